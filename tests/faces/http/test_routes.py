"""Every route of the requirement's tables: its method, its fields and defaults, its codes, and what it hands on."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from memoranda.faces.http import administration
from memoranda.faces.http.openapi import body_of, routes_of
from memoranda.faces.http.routes.standing import Alive, Making, Readiness
from memoranda.governance.policies import Floor
from memoranda.service.schema import models_of, schema_document

BASE = "/v1/memory/agents/cleo"
Header = dict[str, str]
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
POST /agents/{agent_id}/memories/{item_id}/hold | event reason | 200
DELETE /agents/{agent_id}/sessions/{session_id} | | 200
DELETE /agents/{agent_id}/sessions | | 200
"""  # noqa: E501
ROWS = [tuple(part.strip() for part in row.split("|")) for row in TABLES.strip().splitlines()]


def document(app: FastAPI) -> dict[str, Any]:
    told: dict[str, Any] = app.openapi()
    return told


@pytest.mark.requirement("P-047", "P-054", "P-103", "P-105", "P-107", "P-109", "P-111", "P-113", "P-115")
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
    paths = {path for _, path in beyond if not path.startswith("/admin/")}
    assert paths == {"/healthz", "/readyz", "/metrics", "/audit", "/holds"}


def test_the_schemas_of_the_openapi_document_are_those_of_the_contract(app: FastAPI) -> None:
    contract = json.loads(json.dumps(schema_document()["$defs"]).replace("#/$defs/", "#/components/schemas/"))
    schemas = document(app)["components"]["schemas"]
    own = {model.__name__ for model in (*models_of(administration), Alive, Making, Readiness, Floor)}
    assert len(set(schemas) - own) > 30
    for name, schema in schemas.items():
        if name not in own:
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
            if method in ("post", "put", "patch") and not path.endswith("/freeze"):
                content = operation["requestBody"]["content"]["application/json"]
                validator = Draft202012Validator({**content["schema"], "components": told["components"]})
                validator.validate(content["example"])


@pytest.mark.requirement("P-102", "P-104", "P-084")
def test_remember_answers_201_with_the_defaults_of_the_document(client: TestClient, auth: Header) -> None:
    answer = client.post(f"{BASE}/memories", json={"content": "Acme pays late."}, headers=auth)
    assert answer.status_code == 201
    told = answer.json()
    assert answer.headers["etag"] == f'"{told["etag"]}"'
    assert (told["kind"], told["scope"], told["classification"], told["legal_hold"]) == (
        "fact", "user", "internal", False,
    )  # fmt: skip


@pytest.mark.requirement("P-105", "P-106")
def test_the_list_comes_in_pages_and_shows_content_only_when_it_is_asked_for(client: TestClient, auth: Header) -> None:
    for n in range(3):
        client.post(f"{BASE}/memories", json={"content": f"Page {n} of the manual."}, headers=auth)
    first = client.get(f"{BASE}/memories?scope=user&limit=2", headers=auth).json()
    assert [item["content"] for item in first["items"]] == [None, None]
    params = {"scope": "user", "limit": "2", "cursor": first["next_cursor"], "include_content": "true"}
    second = client.get(f"{BASE}/memories", params=params, headers=auth).json()
    assert second["items"][0]["content"]
    assert not {item["id"] for item in first["items"]} & {item["id"] for item in second["items"]}
    params["scope"] = "agent"  # a cursor goes on with its own list only
    assert client.get(f"{BASE}/memories", params=params, headers=auth).json()["code"] == "memory_invalid"


@pytest.mark.parametrize(("sent", "status"), [("1", 200), ("200", 200), ("0", 400), ("201", 400), ("many", 400)])
def test_limit_is_bounded(client: TestClient, auth: Header, sent: str, status: int) -> None:
    assert client.get(f"{BASE}/memories?limit={sent}", headers=auth).status_code == status


def test_an_etag_goes_out_and_comes_back(client: TestClient, auth: Header, ana: Header) -> None:
    made = client.post(f"{BASE}/memories", json={"content": "The door is red."}, headers=auth)
    at = f"{BASE}/memories/{made.json()['id']}"
    stale = client.patch(at, json={"content": "y"}, headers={**auth, "if-match": '"old"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "memory_precondition_failed")
    fresh = {**auth, "if-match": made.headers["etag"]}
    done = client.patch(at, json={"content": "The door is green."}, headers=fresh)
    assert done.status_code == 200 and done.headers["etag"] not in ("", made.headers["etag"])
    assert done.json()["id"] != made.json()["id"]
    again = client.patch(at, json={"content": "The door is blue."}, headers=fresh)
    assert again.status_code == 412
    for odd in ('W/"e0"', "e0", '"a", "b"', '""'):
        assert client.patch(at, json={"content": "y"}, headers={**auth, "if-match": odd}).status_code == 400
    anything = {**auth, "if-match": "*"}
    assert client.patch(at, json={"content": "The door is blue."}, headers=anything).status_code == 200
    policy = client.get(f"{BASE}/policy", headers=ana)
    body = {"policy": policy.json()["policy"]}
    put = client.put(f"{BASE}/policy", json=body, headers={**ana, "if-match": policy.headers["etag"]})
    assert put.status_code == 200 and put.headers["etag"] != policy.headers["etag"]
    late = client.put(f"{BASE}/policy", json=body, headers={**ana, "if-match": policy.headers["etag"]})
    assert (late.status_code, late.json()["code"]) == (412, "memory_precondition_failed")


def test_the_same_idempotency_key_gives_the_first_answer_again(client: TestClient, auth: Header) -> None:
    headers = {**auth, "idempotency-key": "k-1"}
    first = client.post(f"{BASE}/memories", json={"content": "The cellar is dry."}, headers=headers).json()
    assert client.post(f"{BASE}/memories", json={"content": "The cellar is dry."}, headers=headers).json() == first
    other = client.post(f"{BASE}/memories", json={"content": "Another."}, headers=headers)
    assert 400 <= other.status_code < 500
    spaced = {**auth, "idempotency-key": "a b"}
    assert client.post(f"{BASE}/memories", json={"content": "x"}, headers=spaced).status_code == 400


@pytest.mark.requirement("P-110", "P-111", "P-112")
def test_any_id_of_a_chain_answers_with_its_head(client: TestClient, auth: Header) -> None:
    first = client.post(f"{BASE}/memories", json={"content": "The gate opens at eight."}, headers=auth).json()
    at = f"{BASE}/memories/{first['id']}"
    second = client.patch(at, json={"content": "The gate opens at nine."}, headers=auth).json()
    assert client.get(at, headers=auth).json()["id"] == second["id"]
    assert client.get(f"{at}?version=exact", headers=auth).json()["id"] == first["id"]
    assert client.get(f"{at}?version=latest", headers=auth).status_code == 400
    history = client.get(f"{at}/history", headers=auth).json()
    assert [link["item"]["id"] for link in history["links"]] == [first["id"], second["id"]]
    assert client.delete(at, headers=auth).status_code == 200
    for gone in (first, second):
        assert client.get(f"{BASE}/memories/{gone['id']}", headers=auth).status_code == 404


@pytest.mark.requirement("P-107", "P-108", "S-080")
def test_a_recall_answers_segments_of_untrusted_data(client: TestClient, auth: Header) -> None:
    client.post(f"{BASE}/memories", json={"content": "The lighthouse is painted white."}, headers=auth)
    answer = client.post(f"{BASE}/recall", json={"query": "lighthouse", "top_k": 1}, headers=auth).json()
    (segment,) = answer["segments"]
    assert segment["type"] == "memory"
    assert re.match(r"<<memo \w+ ", segment["content"]) and "painted white" in segment["content"]
    assert segment["item"]["content"] is None


@pytest.mark.requirement("P-113", "P-114")
def test_a_purge_without_confirm_is_refused(client: TestClient, auth: Header) -> None:
    body = {"content": "Only for this run.", "scope": "session", "session_id": "run-9"}
    assert client.post(f"{BASE}/memories", json=body, headers=auth).status_code == 201
    scope = {"scope": "session", "session_id": "run-9"}
    answer = client.post(f"{BASE}/memories/purge", json=scope, headers=auth)
    assert (answer.status_code, answer.json()["code"]) == (409, "memory_confirmation_required")
    listed = f"{BASE}/memories?scope=session&session_id=run-9"
    assert len(client.get(listed, headers=auth).json()["items"]) == 1
    done = client.post(f"{BASE}/memories/purge", json={**scope, "confirm": True}, headers=auth)
    assert (done.status_code, done.json()["removed"]) == (200, 1)
    assert client.get(listed, headers=auth).json()["items"] == []


@pytest.mark.requirement("P-115")
def test_an_export_is_a_file(client: TestClient, auth: Header) -> None:
    client.post(f"{BASE}/memories", json={"content": "The archive is in the attic."}, headers=auth)
    answer = client.post(f"{BASE}/memories/export", json={"scopes": ["user"]}, headers=auth)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == 'attachment; filename="memories.zip"'
    files = zipfile.ZipFile(io.BytesIO(answer.content))
    assert any(b"The archive is in the attic." in files.read(name) for name in files.namelist())
    lines = client.post(f"{BASE}/memories/export", json={"format": "ndjson"}, headers=auth)
    assert all(json.loads(line) for line in lines.text.splitlines())


@pytest.mark.requirement("P-053", "P-058")
def test_an_instance_is_declared_and_withdrawn_by_the_platform(
    client: TestClient, auth: Header, ana: Header, tokens: dict[str, Header]
) -> None:
    body = {"id": "m", "provider": "mem0", "base_url": "https://mem0.example"}
    for other in (auth, ana):
        assert client.post("/v1/memory/engines", json=body, headers=other).status_code == 403
    assert client.post("/v1/memory/engines", json=body, headers=tokens["root"]).status_code == 201
    assert client.delete("/v1/memory/engines/m", headers=ana).status_code == 403
    answer = client.delete("/v1/memory/engines/m", headers=tokens["root"])
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_body_is_one_of_the_contract(
    client: TestClient, app: FastAPI, tokens: dict[str, Header], row: tuple[str, str, str]
) -> None:
    """What a route answers is checked against the contract as it stands, not against the types that made it."""
    (method, path), told = row[0].split(), document(app)
    made = client.post(f"{BASE}/memories", json={"content": f"About {row[0]}"}, headers=tokens["ana"]).json()
    operation = told["paths"][f"/v1/memory{path}"][method.lower()]
    for name, value in {"agent_id": "cleo", "item_id": made["id"], "engine_id": "builtin", "dataset_id": "d"}.items():
        path = path.replace(f"{{{name}}}", value)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    for who in ("ana", "root", "cleo of umbrella"):
        url = f"/v1/memory{path.replace('{session_id}', 's')}"
        answer = client.request(method, url, json=body, headers=tokens[who])
        assert str(answer.status_code) in operation["responses"], answer.text
        documented = operation["responses"][str(answer.status_code)].get("content", {})
        for kind, content in documented.items():
            if kind == answer.headers.get("content-type") and "schema" in content:
                schema = {**content["schema"], "components": told["components"]}
                Draft202012Validator(schema).validate(answer.json())


def test_bodies_are_read_by_the_models_that_the_document_names(app: FastAPI) -> None:
    with_bodies = [
        route for route in routes_of(app) if route.methods & {"POST", "PUT", "PATCH"} and "freeze" not in route.path
    ]
    assert len(with_bodies) > 12
    assert all(body_of(route) is not None for route in with_bodies)


def provided() -> Iterator[str]:
    """The lines of the requirement's document that name a route, where it lies beside the project."""
    page = Path(__file__).parents[4] / "shared/spec/navin-memory-provider.fr.txt"
    if page.exists():
        yield from re.findall(r"^((?:GET|POST|PUT|PATCH|DELETE) /\S+)", page.read_text(encoding="utf-8"), re.M)


def test_the_tables_here_are_those_of_the_requirement() -> None:
    assert set(provided()) <= {row[0] for row in ROWS}
