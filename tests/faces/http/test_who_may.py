"""Who may use an agent's memory over HTTP, and what its policy and the audit make of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from memoranda.faces.http.operator import operator
from memoranda.service import admin
from memoranda.service.desk import Desk

from .standing_in import Events

Header = dict[str, str]
PREFIX = "/v1/memory"
AGENT = f"{PREFIX}/agents/cleo"
ROUTES = [
    ("POST", "/memories", {"content": "The kiln needs a new door."}),
    ("GET", "/memories", None),
    ("POST", "/recall", {"query": "kiln"}),
    ("POST", "/memories/search", {"query": "kiln"}),
    ("GET", "/memories/{item}", None),
    ("PATCH", "/memories/{item}", {"content": "The kiln has a new door."}),
    ("GET", "/memories/{item}/history", None),
    ("POST", "/memories/purge", {"scope": "session", "session_id": "{item}", "confirm": True}),
    ("POST", "/memories/export", {}),
    ("POST", "/sessions/{item}/taint", {"reason": "a mail"}),
    ("DELETE", "/memories/{item}", None),
]
KNOWLEDGE = [
    ("POST", "/knowledge", {"texts": ["x"]}),
    ("GET", "/knowledge/datasets", None),
    ("POST", "/knowledge/graph", {"dataset_ids": ["d"]}),
    ("POST", "/knowledge/search", {"query": "x"}),
    ("GET", "/knowledge/datasets/d/relations", None),
    ("DELETE", "/knowledge/datasets/d", None),
]


@pytest.fixture(scope="module")
def bob(desk: Desk, tokens: dict[str, Header]) -> Header:
    """A user of acme without any relation on cleo."""
    admin.add_user(desk, operator("acme"), "bob", ("developer", "auditor"))
    return {"authorization": f"Bearer {admin.issue_token(desk, operator('acme'), user='bob')[1]}"}


def all_routes(client: TestClient, header: Header, item: str) -> dict[tuple[str, str], int]:
    """(method, path) -> status, of every memory and knowledge route."""
    told = {}
    for method, path, body in [*ROUTES, *KNOWLEDGE]:
        sent = None if body is None else json.loads(json.dumps(body).replace("{item}", item))
        answer = client.request(method, f"{AGENT}{path.format(item=item)}", json=sent, headers=header)
        told[method, path] = answer.status_code
    return told


@pytest.mark.requirement("P-100", "P-101", "S-068", "P-043")
def test_the_memory_routes_are_for_the_agent_and_for_who_may_invoke_it(
    client: TestClient, auth: Header, ana: Header, bob: Header, tokens: dict[str, Header]
) -> None:
    def made(header: Header, content: str) -> str:
        item: dict[str, Any] = client.post(f"{AGENT}/memories", json={"content": content}, headers=header).json()
        return str(item["id"])

    policy = client.get(f"{AGENT}/policy", headers=ana).json()["policy"]
    graph = {"policy": {**policy, "modes": [*policy["modes"], "knowledge_graph"]}}
    assert client.put(f"{AGENT}/policy", json=graph, headers=ana).status_code == 200
    mine = made(auth, "A thing that only the agent knows.")
    assert set(all_routes(client, bob, mine).values()) == {403}
    assert set(all_routes(client, tokens["root"], mine).values()) <= {403, 404}
    grant = {"user": "user:acme/bob", "relation": "can_invoke"}
    at = f"{PREFIX}/admin/agents/cleo/relations"
    assert client.post(at, json={"add": [grant]}, headers=ana).status_code == 204
    bobs = made(bob, "A thing of Bob's.")
    for header, item in ((auth, mine), (bob, bobs)):
        statuses = all_routes(client, header, item)
        for method, path, _ in ROUTES:
            assert statuses[method, path] in (200, 201), (method, path)
        for method, path, _ in KNOWLEDGE:
            assert statuses[method, path] == 422, (method, path)
    assert client.post(at, json={"remove": [grant]}, headers=ana).status_code == 204
    assert set(all_routes(client, bob, bobs).values()) == {403}


@pytest.mark.requirement("P-046")
def test_the_context_is_the_servers(client: TestClient, auth: Header, events: Events) -> None:
    client.post(f"{AGENT}/memories", json={"content": "The mill has two wheels."}, headers=auth)
    event = events("acme")[0]
    assert (event.tenant, event.project, event.user, event.agent, event.scope) == ("acme", "crm", "ana", "cleo", "user")


@pytest.mark.requirement("P-095")
def test_a_recall_without_a_number_gives_what_the_policy_says(client: TestClient, auth: Header, ana: Header) -> None:
    for n in range(12):
        content = f"Harvest note {n}: field {n} gave {n + 3} sacks."
        assert client.post(f"{AGENT}/memories", json={"content": content}, headers=auth).status_code == 201

    def found(**more: Any) -> int:
        body = {"query": "harvest sacks field", "budget": 50_000, **more}
        return len(client.post(f"{AGENT}/recall", json=body, headers=auth).json()["segments"])

    assert found() == 8
    assert found(top_k=10) == 10
    policy = client.get(f"{AGENT}/policy", headers=ana).json()["policy"]
    put = client.put(f"{AGENT}/policy", json={"policy": {**policy, "recall_top_k": 3}}, headers=ana)
    assert put.status_code == 200 and found() == 3
    client.put(f"{AGENT}/policy", json={"policy": policy}, headers=ana)


@pytest.mark.requirement("P-094", "S-062", "S-063")
def test_an_instance_that_separates_too_little_does_not_serve(client: TestClient, ana: Header) -> None:
    client.put(f"{PREFIX}/admin/agents/iso", json={"project": "crm"}, headers=ana)
    at = f"{PREFIX}/agents/iso"
    assert client.post(f"{at}/memories", json={"content": "A first note."}, headers=ana).status_code == 201
    strict = {"policy": {"required_isolation": "dedicated_instance"}}
    assert client.put(f"{at}/policy", json=strict, headers=ana).status_code == 200
    for path, body in (("memories", {"content": "A second note."}), ("recall", {"query": "note"})):
        refused = client.post(f"{at}/{path}", json=body, headers=ana)
        told = refused.json()
        assert (refused.status_code, told["code"]) == (409, "memory_isolation_unsatisfied")
        assert "dedicated instance" in json.dumps(told) and "Navin Manager" in json.dumps(told)
        assert "first note" not in refused.text


@pytest.mark.requirement("P-096", "P-097")
def test_a_change_of_engine_and_a_sharing_stand_in_the_audit(
    client: TestClient, ana: Header, events: Events, tokens: dict[str, Header]
) -> None:
    declared = {"id": "shared-mem0", "provider": "mem0", "base_url": "https://mem0.example"}
    assert client.post(f"{PREFIX}/engines", json=declared, headers=tokens["root"]).status_code == 201
    client.put(f"{PREFIX}/admin/agents/mover", json={"project": "crm"}, headers=ana)
    at = f"{PREFIX}/agents/mover/policy"
    assert client.put(at, json={"engine": "mem0", "mem0_instance": "shared-mem0"}, headers=ana).status_code == 200
    assert "memory.engine.change" in {event.operation for event in events("acme")[:5]}
    assert "memory.share" not in {event.operation for event in events("acme")[:5]}
    assert client.put(at, json={"policy": {"shared_with": ["cleo"]}}, headers=ana).status_code == 200
    assert "memory.share" in {event.operation for event in events("acme")[:5]}


@pytest.mark.requirement("P-007", "P-008", "P-009")
def test_capabilities_of_declared_instances_are_told_without_calling_them(
    client: TestClient, ana: Header, tokens: dict[str, Header]
) -> None:
    key_of_nobody = {"credential_ref": "env://EAI_CRED_OF_NOBODY"}
    for name, provider, more in (
        ("m1", "mem0", {}), ("m2", "mem0", {"tenant_id": "acme"}), ("c1", "cognee", {"access_control": True}),
    ):  # fmt: skip
        body = {"id": name, "provider": provider, "base_url": f"https://{name}.invalid", **key_of_nobody, **more}
        assert client.post(f"{PREFIX}/engines", json=body, headers=tokens["root"]).status_code == 201

    def told(name: str) -> Any:
        return client.get(f"{PREFIX}/engines/{name}/capabilities", headers=ana).json()

    # A tenant in a declaration alone dedicates nothing: the Manager has to have installed it for that tenant.
    assert [told(name)["isolation"] for name in ("m1", "m2", "c1")] == ["logical", "logical", "logical"]
    assert [told(name)["session_memory"] for name in ("builtin", "m1", "c1")] == [True, False, False]
    assert set(told("c1")["capabilities"]["memory"]) == {"forget", "list", "purge", "get_health", "get_capabilities"}
    assert set(told("m1")["capabilities"]["memory"]) == set(told("builtin")["capabilities"]["memory"])
    assert client.get(f"{PREFIX}/engines/m2/capabilities", headers=tokens["zoe"]).status_code == 404
    key = {"credential_ref": "openbao://secret/tenants/acme/cognee#api_key"}
    assert client.put(f"{PREFIX}/engines/c1/credential", json=key, headers=ana).status_code == 200
    assert told("c1")["isolation"] == "backend"


@pytest.mark.requirement("S-073", "S-074")
def test_no_word_of_a_memory_is_in_the_audit(
    client: TestClient, app: FastAPI, auth: Header, ana: Header, tokens: dict[str, Header]
) -> None:
    word = "quetzalcoatl"
    made = client.post(f"{AGENT}/memories", json={"content": f"About {word}.", "subject": word}, headers=auth).json()
    client.post(f"{AGENT}/recall", json={"query": f"{word}?"}, headers=auth)
    client.post(f"{AGENT}/recall", json={"query": f"{word}?"}, headers=tokens["zoe"])  # another tenant's
    asked = client.get(f"{PREFIX}/audit?item={made['id']}&operation=recall", headers=ana)
    assert [event["actor"] for event in asked.json()["events"]]  # who recalled this note: one query
    everything = client.get(f"{PREFIX}/audit?limit=200", headers=ana).text
    denied = client.get(f"{PREFIX}/audit?outcome=deny&limit=200", headers=tokens["zoe"]).json()["events"]
    assert denied and word not in json.dumps(denied)
    assert made["id"] in everything and word not in everything
    with app.state.desk.audit.database.read() as connection:
        rows = connection.exec_driver_sql("select * from audit_events").all()
    assert rows and word not in str(rows)
