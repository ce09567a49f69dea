"""The OpenAPI document: what FastAPI knows of the routes, with bodies, problems, headers and the security scheme."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel

from memoranda.engines import contract as c
from memoranda.faces.http.problems import MEDIA_TYPE
from memoranda.service.schema import MODULES, definitions, models_of

ABOUT = (
    "Memory for AI agents under governance. Every answer that gives memories back gives data, never instructions. "
    "Every error is a problem document (RFC 9457) with a stable `code`. Unknown fields and parameters are refused."
)
_COMPONENT = "#/components/schemas/{model}"
_SAID = {
    400: "The request cannot be taken as it is.", 401: "Nobody is known by the credential.",
    403: "Known, and not allowed.", 404: "Not there, or not for this caller to know of.", 409: "It conflicts.",
    410: "It was erased.", 412: "It has changed since it was seen.", 413: "The body is too large.",
    415: "The body is not JSON.", 422: "Understood, and not done: the policy or the engine does not allow it.",
    423: "Writing is stopped.", 502: "The engine does not answer.", 503: "A component does not answer.",
}  # fmt: skip
_READ = (400, 401, 403, 404, 409, 410, 413, 415, 422, 502, 503)
_CHANGE = (*_READ[:6], 412, 413, 415, 422, 423, 502, 503)
_EXAMPLES: dict[str, Any] = {
    "RememberRequest": {"content": "Acme is billed on the first of the month.", "subject": "customer/acme"},
    "RecallRequest": {"query": "When is Acme billed?", "top_k": 5},
    "UpdateRequest": {"content": "Acme is billed on the fifteenth of the month."},
    "PurgeRequest": {"scope": "session", "session_id": "run-7", "confirm": True},
    "ExportRequest": {"scopes": ["user"], "format": "ndjson"},
    "ReviewRequest": {"verdict": "accept", "etag": "5f2c…"},
    "TaintRequest": {"reason": "read a mail from a supplier"},
    "HoldRequest": {"event": "set", "reason": "asked for by the court"},
    "PolicyBody": {"engine": "builtin", "policy": {"read_scopes": ["user", "agent"], "recall_top_k": 5}},
    "RestoreRequest": {"version": 1},
    "InstanceDeclaration": {
        "id": "mem0-shared", "provider": "mem0", "base_url": "https://mem0.internal",
        "credential_ref": "env://EAI_CRED_MEMORY_MEM0_API_KEY",
    },
    "CredentialBody": {"credential_ref": "openbao://kv/acme/mem0#api_key"},
    "IngestRequest": {"texts": ["The contract with Acme runs for three years."]},
    "GraphRequest": {"dataset_ids": ["contracts"]},
    "NewTenant": {"id": "acme", "name": "Acme", "organization": "acme-group"},
    "NewUser": {"id": "ana", "roles": ["tenant_admin"]},
    "FirstToken": {"user": "ana"},
    "Members": {"members": ["ana", "bob"]},
    "AgentBody": {"project": "crm", "owner": "ana"},
    "NewToken": {"agent": "cleo", "name": "cleo in production"},
    "GrantChange": {"add": [{"user": "user:acme/bob", "relation": "can_invoke"}]},
    "Floor": {"max_classification": "internal", "retention_days": 365},
    "GraphSearchRequest": {"query": "How long does the contract run?"},
}  # fmt: skip
_TAGGED = ("remember", "get", "update", "review", "get_policy", "put_policy", "restore_policy")


def install(app: FastAPI) -> None:
    """Lets the application answer this document as its own."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def body_of(route: APIRoute) -> type[BaseModel] | None:
    """The model of a route's body."""
    for dependency in route.dependant.dependencies:
        model = getattr(dependency.call, "model", None)
        if model is not None:
            return model  # type: ignore[no-any-return]
    return None


def routes_of(app: FastAPI) -> Iterator[APIRoute]:
    """All routes of the document."""
    yield from (route for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema)


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes,
        separate_input_output_schemas=False,
    )  # fmt: skip
    bodies = {route.unique_id: body_of(route) for route in routes_of(app)}
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    models = {model for model in (*bodies.values(), c.Problem) if model is not None}
    schemas |= definitions(list(models), _COMPONENT)
    every = [model for module in MODULES for model in models_of(module)]
    schemas |= {name: told for name, told in definitions(every, _COMPONENT).items() if name in schemas}
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    document["components"]["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token of this service, or one of OIDC."}
    }
    operations = {
        operation["operationId"]: (path, method, operation)
        for path, methods in document["paths"].items() for method, operation in methods.items()
    }  # fmt: skip
    for route in routes_of(app):
        path, method, operation = operations[route.unique_id]
        _complete(route.name, path, method, operation, bodies[route.unique_id])
    return document


def _complete(name: str, path: str, method: str, operation: dict[str, Any], body: type[BaseModel] | None) -> None:
    """What FastAPI does not know of one operation."""
    responses = operation["responses"]
    responses.pop("422", None)
    told = {"x-request-id": {"description": "The id of the request.", "schema": {"type": "string"}}}
    if not path.startswith("/v1/"):
        if path == "/readyz":
            responses["503"] = {**responses["200"], "description": "A component does not answer."}
        for response in responses.values():
            response["headers"] = dict(told)
        return
    operation["operationId"] = f"{operation['tags'][0]}.{name}"
    operation["security"] = [{"bearer": []}]
    if body is not None:
        content: dict[str, Any] = {"schema": {"$ref": _COMPONENT.format(model=body.__name__)}}
        if body.__name__ in _EXAMPLES:
            content["example"] = _EXAMPLES[body.__name__]
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    for response in responses.values():
        response["headers"] = dict(told)
        if name in _TAGGED:
            response["headers"]["etag"] = {"description": "Names this state.", "schema": {"type": "string"}}
    reads = method == "get" or name in ("recall", "search", "export")
    for status in _READ if reads else _CHANGE:
        responses[str(status)] = _problem(status, told)


def _problem(status: int, headers: dict[str, Any]) -> dict[str, Any]:
    more = {}
    if status == 401:
        more = {"www-authenticate": {"description": "How to authenticate.", "schema": {"type": "string"}}}
    if status == 503:
        more = {"retry-after": {"description": "Seconds until another try.", "schema": {"type": "integer"}}}
    return {
        "description": _SAID[status],
        "headers": {**headers, **more},
        "content": {MEDIA_TYPE: {"schema": {"$ref": _COMPONENT.format(model="Problem")}}},
    }
