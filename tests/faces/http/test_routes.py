"""Every route of the requirement's tables: its method, its fields and defaults, its codes, and what it hands on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from memoranda.engines import contract as c
from memoranda.faces.http.openapi import body_of, routes_of
from memoranda.service.schema import schema_document

from .standing_in import AUTH, StandIns

BASE = "/v1/memory/agents/cleo"
# The tables of the requirement: the method and the path, the fields that are named there, the status of success.
TABLES = """
GET /engines | | 200
GET /engines/{engine_id}/capabilities | | 200
GET /engines/{engine_id}/health | | 200
POST /engines | id provider base_url tenant_id credential_ref access_control tls_verify timeout_seconds manager_cluster manager_service | 201
DELETE /engines/{engine_id} | | 204
PUT /engines/{engine_id}/credential | credential_ref | 200
DELETE /engines/{engine_id}/credential | | 200
GET /agents/{agent_id}/policy | | 200
PUT /agents/{agent_id}/policy | engine mem0_instance cognee_instance policy | 200
GET /agents/{agent_id}/policy/versions | | 200
POST /agents/{agent_id}/policy/restore | version | 200
POST /agents/{agent_id}/memories | content scope kind classification session_id team retention_days legal_hold source subject sources confidence valid_from valid_to supersedes origin | 201
GET /agents/{agent_id}/memories | scope limit cursor include_content | 200
POST /agents/{agent_id}/recall | query scopes top_k session_id budget kinds as_of known_at | 200
POST /agents/{agent_id}/memories/search | query scopes top_k session_id budget kinds as_of known_at | 200
GET /agents/{agent_id}/memories/{item_id} | version | 200
PATCH /agents/{agent_id}/memories/{item_id} | content | 200
DELETE /agents/{agent_id}/memories/{item_id} | | 200
POST /agents/{agent_id}/memories/purge | scope confirm team session_id | 200
POST /agents/{agent_id}/memories/export | scopes format | 200
POST /agents/{agent_id}/knowledge | texts scope team dataset_id classification retention_days legal_hold build_graph | 201
GET /agents/{agent_id}/knowledge/datasets | scope limit cursor | 200
POST /agents/{agent_id}/knowledge/graph | dataset_ids | 200
POST /agents/{agent_id}/knowledge/search | query dataset_ids top_k search_type | 200
GET /agents/{agent_id}/knowledge/datasets/{dataset_id}/relations | | 200
DELETE /agents/{agent_id}/knowledge/datasets/{dataset_id} | | 200
POST /agents/{agent_id}/memories/{item_id}/review | verdict etag comment | 200
GET /agents/{agent_id}/memories/{item_id}/history | | 200
POST /agents/{agent_id}/sessions/{session_id}/taint | reason | 200
"""  # noqa: E501
ROWS = [tuple(part.strip() for part in row.split("|")) for row in TABLES.strip().splitlines()]
REQUIRED = "P-047 P-054 P-103 P-105 P-107 P-109 P-111 P-113 P-115".split()


def document(app: FastAPI) -> dict[str, Any]:
    told: dict[str, Any] = app.openapi()
    return told


@pytest.mark.requirement(*REQUIRED)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_tables_stand_in_the_openapi_document(app: FastAPI, row: tuple[str, str, str]) -> None:
    (method, path), told = row[0].split(), document(app)
    operation = told["paths"][f"/v1/memory{path}"][method.lower()]
    if "requestBody" in operation:
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        fields = set(told["components"]["schemas"][name]["properties"])
        assert fields == set(row[1].split())
    else:
        sent = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
        assert sent - {"session_id"} == set(row[1].split())
    assert [status for status in operation["responses"] if status < "300"] == [row[2]]


def test_every_route_under_the_prefix_is_in_the_tables_or_named_here(app: FastAPI) -> None:
    known = {tuple(row[0].split()) for row in ROWS}
    beyond = {
        (method.upper(), path.removeprefix("/v1/memory"))
        for path, methods in document(app)["paths"].items()
        for method in methods
    } - known
    assert {path for _, path in beyond} <= {"/healthz", "/readyz", "/metrics"}


def test_the_schemas_of_the_openapi_document_are_those_of_the_contract(app: FastAPI) -> None:
    contract = json.loads(json.dumps(schema_document()["$defs"]).replace("#/$defs/", "#/components/schemas/"))
    schemas = document(app)["components"]["schemas"]
    assert len(schemas) > 30
    for name, schema in schemas.items():
        if name not in ("Alive", "Readiness"):
            assert schema == contract[name], name


def test_every_operation_says_how_it_is_refused_and_who_may(app: FastAPI) -> None:
    told = document(app)
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            if not path.startswith("/v1/"):
                continue
            assert operation["security"] == [{"bearer": []}], path
            assert {"400", "401", "403", "404", "502", "503"} <= set(operation["responses"]), path
            for status, response in operation["responses"].items():
                if status >= "400":
                    schema = response["content"]["application/problem+json"]["schema"]
                    assert schema["$ref"].endswith("/Problem")
            if method in ("post", "put", "patch"):
                content = operation["requestBody"]["content"]["application/json"]
                validator = Draft202012Validator({**content["schema"], "components": told["components"]})
                validator.validate(content["example"])


@pytest.mark.requirement("P-102", "P-104")
def test_remember_answers_201_with_the_defaults_of_the_document(client: TestClient, stand_ins: StandIns) -> None:
    answer = client.post(f"{BASE}/memories", json={"content": "Acme pays late."}, headers=AUTH)
    assert answer.status_code == 201
    assert answer.headers["etag"] == f'"{answer.json()["etag"]}"'
    name, (caller, agent_id, new), _ = stand_ins.told[-1]
    assert (name, caller.user, agent_id) == ("remember", "ana", "cleo")
    assert new == c.RememberRequest(content="Acme pays late.")
    assert (new.kind, new.scope, new.classification, new.legal_hold) == ("fact", None, "internal", False)


@pytest.mark.requirement("P-106")
def test_the_list_shows_content_only_when_it_is_asked_for(client: TestClient) -> None:
    client.post(f"{BASE}/memories", json={"content": "Acme pays late."}, headers=AUTH)
    bare = client.get(f"{BASE}/memories", headers=AUTH).json()
    assert [item["content"] for item in bare["items"]] == [None]
    whole = client.get(f"{BASE}/memories?include_content=true", headers=AUTH).json()
    assert [item["content"] for item in whole["items"]] == ["Acme pays late."]


@pytest.mark.parametrize(("sent", "status"), [("1", 200), ("200", 200), ("0", 400), ("201", 400), ("many", 400)])
def test_limit_is_bounded(client: TestClient, sent: str, status: int) -> None:
    assert client.get(f"{BASE}/memories?limit={sent}", headers=AUTH).status_code == status


def test_an_etag_goes_out_and_comes_back(client: TestClient, stand_ins: StandIns) -> None:
    made = client.post(f"{BASE}/memories", json={"content": "x"}, headers=AUTH)
    at = f"{BASE}/memories/{made.json()['id']}"
    stale = client.patch(at, json={"content": "y"}, headers={**AUTH, "if-match": '"old"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "memory_precondition_failed")
    done = client.patch(at, json={"content": "y"}, headers={**AUTH, "if-match": made.headers["etag"]})
    assert (done.status_code, done.headers["etag"]) == (200, '"new"')
    for odd in ('W/"e0"', "e0", '"a", "b"', '""'):
        assert client.patch(at, json={"content": "y"}, headers={**AUTH, "if-match": odd}).status_code == 400
    client.patch(at, json={"content": "y"}, headers={**AUTH, "if-match": "*"})
    assert stand_ins.told[-1][2]["if_match"] is None
    assert client.get(f"{BASE}/policy", headers=AUTH).headers["etag"] == '"v0"'
    client.put(f"{BASE}/policy", json={}, headers={**AUTH, "if-match": '"v0"'})
    assert stand_ins.told[-1][2] == {"if_match": "v0"}


def test_idempotency_keys_and_versions_are_handed_on(client: TestClient, stand_ins: StandIns) -> None:
    made = client.post(f"{BASE}/memories", json={"content": "x"}, headers={**AUTH, "idempotency-key": "k-1"})
    assert stand_ins.told[-1][2] == {"idempotency_key": "k-1"}
    at = f"{BASE}/memories/{made.json()['id']}"
    client.get(at, headers=AUTH)
    assert stand_ins.told[-1][2] == {"exact": False, "session_id": None}
    client.get(f"{at}?version=exact&session_id=run-7", headers=AUTH)
    assert stand_ins.told[-1][2] == {"exact": True, "session_id": "run-7"}
    assert client.get(f"{at}?version=latest", headers=AUTH).status_code == 400
    spaced = {**AUTH, "idempotency-key": "a b"}
    assert client.post(f"{BASE}/memories", json={"content": "x"}, headers=spaced).status_code == 400


@pytest.mark.requirement("P-114")
def test_a_purge_without_confirm_is_refused(client: TestClient) -> None:
    answer = client.post(f"{BASE}/memories/purge", json={"scope": "user"}, headers=AUTH)
    assert (answer.status_code, answer.json()["code"]) == (409, "memory_confirmation_required")


def test_an_export_is_a_file(client: TestClient) -> None:
    answer = client.post(f"{BASE}/memories/export", json={}, headers=AUTH)
    assert (answer.status_code, answer.content) == (200, b"PK")
    assert answer.headers["content-disposition"] == 'attachment; filename="memories.zip"'


def test_a_withdrawn_instance_leaves_nothing_to_say(client: TestClient) -> None:
    answer = client.delete("/v1/memory/engines/m", headers=AUTH)
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_body_is_one_of_the_contract(client: TestClient, app: FastAPI, row: tuple[str, str, str]) -> None:
    """What a route answers is checked against the contract as it stands, not against the types that made it."""
    (method, path), told = row[0].split(), document(app)
    made = client.post(f"{BASE}/memories", json={"content": "x"}, headers=AUTH).json()
    operation = told["paths"][f"/v1/memory{path}"][method.lower()]
    for name, value in {"agent_id": "cleo", "item_id": made["id"], "engine_id": "m", "dataset_id": "d"}.items():
        path = path.replace(f"{{{name}}}", value)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    answer = client.request(method, f"/v1/memory{path.replace('{session_id}', 's')}", json=body, headers=AUTH)
    documented = operation["responses"][str(answer.status_code)].get("content", {})
    for kind, content in documented.items():
        if kind == answer.headers["content-type"] and "schema" in content:
            schema = {**content["schema"], "components": told["components"]}
            Draft202012Validator(schema).validate(answer.json())


def test_bodies_are_read_by_the_models_that_the_document_names(app: FastAPI) -> None:
    with_bodies = [route for route in routes_of(app) if route.methods & {"POST", "PUT", "PATCH"}]
    assert len(with_bodies) > 12
    assert all(body_of(route) is not None for route in with_bodies)


def provided() -> Iterator[str]:
    """The lines of the requirement's document that name a route, where it lies beside the project."""
    page = Path(__file__).parents[4] / "shared/spec/navin-memory-provider.fr.txt"
    if page.exists():
        yield from re.findall(r"^((?:GET|POST|PUT|PATCH|DELETE) /\S+)", page.read_text(encoding="utf-8"), re.M)


def test_the_tables_here_are_those_of_the_requirement() -> None:
    assert set(provided()) <= {row[0] for row in ROWS}
