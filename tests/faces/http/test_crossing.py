"""Crossing tenants: everything that acme can send about what is umbrella's gives, changes and counts nothing.

Umbrella fills every scope, its policies, teams, tokens, relations and sessions; each of its words holds a marker. Then
acme, with all roles that a tenant has, asks every route of the document with umbrella's ids, cursors, ETags and
idempotency keys. No answer may hold a marker or an id of umbrella's that acme did not send, and umbrella's state has to
be the same as before, to the last audit line.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from memoranda.context import Context
from memoranda.faces.http import create_app
from memoranda.faces.http.config import Config
from memoranda.faces.http.operator import operator
from memoranda.service import admin
from memoranda.service.desk import Desk
from memoranda.service.opening import open_desk
from tests.faces.http.standing_in import ROLES, furnish
from tests.postgres import connect
from tests.postgres import database as postgres_database
from tests.unchecked import unchecked

MARK = "umbrellanium"  # a word in everything of umbrella's
SCOPES = ("session", "user", "agent", "shared_agents", "project", "team", "organization", "global")
OPEN = {
    "modes": ["session", "long_term", "agent", "shared", "knowledge_graph"], "write_scopes": list(SCOPES),
    "read_scopes": list(SCOPES), "global_access": True,
}  # fmt: skip
Header = dict[str, str]


@dataclass
class World:
    """Two tenants on one application, and what umbrella has."""

    client: TestClient
    desk: Desk
    headers: dict[str, Header]
    items: dict[str, str]  # scope -> id
    etags: dict[str, str]
    cursor: str
    tokens: list[str]

    def theirs(self) -> set[str]:
        """What must appear in no answer to acme."""
        return {MARK, *self.items.values(), *self.etags.values(), *self.tokens}

    def state(self) -> str:
        """All of umbrella's, as it stands: memories, policies, registry, relations, audit."""
        zoe, lines = self.headers["zoe"], []
        get = self.client.get
        for path in ("policy", "policy/versions"):
            lines.append(get(f"/v1/memory/agents/hive/{path}", headers=zoe).text)
        lines.append(get("/v1/memory/holds", headers=zoe).text)
        assert MARK in lines[-1] and self.items["project"] in lines[-1]
        for path in ("users", "teams", "agents", "tokens", "floor", "agents/hive/relations"):
            lines.append(get(f"/v1/memory/admin/{path}", headers=zoe).text)
        for session in ("hers", None):
            query = {"include_content": "true", "limit": "200"} | ({"session_id": session} if session else {})
            lines.append(get("/v1/memory/agents/hive/memories", params=query, headers=zoe).text)
        assert all(MARK in line or "memories" not in line for line in lines[-1:])
        return "\n".join(lines)

    def events(self) -> int:
        return len(self.desk.audit.query("umbrella", limit=5000)[0])


@pytest.fixture(scope="module", params=["checked", pytest.param("unchecked", marks=pytest.mark.postgres)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """On SQLite and in folders; and on PostgreSQL, where no statement of the service asks for a tenant any more."""
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(postgres_database()).service if request.param == "unchecked" else ""
        secrets = (b"what seals the keys of the Homes there",) if database else ()
        folder = tmp_path_factory.mktemp("crossing")
        desk = open_desk(Context(), folder, environment="development", database=database, homes_secrets=secrets)
        stack.callback(desk.close)
        lost = stack.enter_context(unchecked()) if database else ["nothing"]
        yield from _world(desk)
        assert lost


def _world(desk: Desk) -> Iterator[World]:
    headers = furnish(desk)
    own = operator("umbrella")
    admin.add_agent(desk, own, "hive", "crm", owner="zoe")
    admin.add_user(desk, own, "yan", ROLES)
    admin.add_team(desk, own, "lab", ("zoe", "yan"))
    with TestClient(create_app(Config(environment="development"), desk), raise_server_exceptions=False) as client:
        base, zoe = "/v1/memory/agents/hive", headers["zoe"]
        policy = {"policy": {**OPEN, "teams": ["lab"], "shared_with": ["cleo"]}}
        assert client.put(f"{base}/policy", json=policy, headers=zoe).status_code == 200
        assert client.put("/v1/memory/agents/cleo/policy", json={"policy": OPEN}, headers=headers["ana"]).is_success
        items, etags = {}, {}
        for scope in SCOPES:
            if scope == "organization":
                continue  # neither tenant belongs to one
            body = {"content": f"The {MARK} of the {scope} lies in vault nine.", "scope": scope, "subject": MARK}
            body |= {"team": "lab"} if scope == "team" else {}
            body |= {"session_id": "hers"} if scope == "session" else {}
            answer = client.post(f"{base}/memories", json=body, headers={**zoe, "idempotency-key": f"key-{scope}"})
            assert answer.status_code == 201, answer.text
            items[scope], etags[scope] = answer.json()["id"], answer.json()["etag"]
        held = f"{base}/memories/{items['project']}/hold"
        assert client.post(held, json={"event": "set", "reason": MARK}, headers=zoe).is_success
        page = client.get(f"{base}/memories", params={"limit": 2}, headers=zoe).json()
        tokens = [token.id for token in desk.tokens.list("umbrella")]
        yield World(client, desk, headers, items, etags, page["next_cursor"], tokens)


def test_without_the_check_only_the_database_keeps_tenants_apart(tmp_path: Path) -> None:
    """What `unchecked` takes out is what kept them apart on SQLite."""
    desk = open_desk(Context(), tmp_path, environment="development")
    furnish(desk)
    with unchecked() as lost:
        assert "zoe" in {user.id for user in desk.registry.users("acme")}
        assert lost
    assert "zoe" not in {user.id for user in desk.registry.users("acme")}
    desk.close()


@pytest.mark.postgres
def test_it_is_row_level_security_that_keeps_them_apart_there(tmp_path: Path) -> None:
    with postgres_database() as urls, unchecked(), connect(urls.superuser) as server:
        desk = open_desk(Context(), tmp_path, environment="development", database=urls.service)
        furnish(desk)
        assert "zoe" not in {user.id for user in desk.registry.users("acme")}
        server.execute("ALTER TABLE memoranda.users DISABLE ROW LEVEL SECURITY")
        assert "zoe" in {user.id for user in desk.registry.users("acme")}
        desk.close()


def asked(world: World) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every route of the document, with what is umbrella's in every place where an id goes."""
    document = world.client.app.openapi()  # type: ignore[attr-defined]
    for path, methods in document["paths"].items():
        if path in ("/healthz", "/readyz", "/metrics") or path.startswith("/v1/memory/engines"):
            continue
        agents = ("hive",) if path.startswith("/v1/memory/admin") else ("hive", "cleo")
        places = {
            "agent_id": agents, "item_id": (world.items["user"], world.items["project"]),
            "session_id": ("hers",), "dataset_id": ("ds_1",), "tenant_id": ("umbrella",), "user_id": ("yan", "zoe"),
            "team_id": ("lab",), "token_id": tuple(world.tokens[:1]),
        }  # fmt: skip
        names = [name for name in places if f"{{{name}}}" in path]
        for method, values in itertools.product(methods, itertools.product(*(places[name] for name in names))):
            body = methods[method].get("requestBody")
            yield method, path.format(**dict(zip(names, values, strict=True))), {"json": bodies(path)} if body else {}


def bodies(path: str) -> Any:
    """A body that the route takes, aimed at what is umbrella's."""
    last = path.rsplit("/", 1)[-1]
    return {
        "memories": {"content": "Mine.", "scope": "team", "team": "lab"}, "recall": {"query": MARK},
        "search": {"query": MARK, "session_id": "hers"}, "purge": {"scope": "team", "team": "lab", "confirm": True},
        "export": {"scopes": [], "format": "ndjson"}, "policy": {"policy": {"shared_with": ["hive"]}},
        "restore": {"version": 1}, "review": {"verdict": "reject", "etag": "0"}, "taint": {"reason": "because"},
        "hold": {"event": "set", "reason": "because"},
        "{item_id}": {"content": "Changed."}, "knowledge": {"texts": ["Mine."], "team": "lab"},
        "graph": {"dataset_ids": ["ds_1"]}, "tenants": {"id": "umbrella"}, "first-token": {"user": "zoe"},
        "users": {"id": "mole", "roles": []}, "{team_id}": {"members": ["zoe"]},
        "{agent_id}": {"project": "crm", "owner": "zoe"}, "tokens": {"user": "zoe"}, "floor": {},
        "relations": {"add": [{"user": "user:umbrella/zoe", "relation": "viewer"}]},
    }.get(last, {})  # fmt: skip


@pytest.mark.parametrize("who", ["ana", "cleo of acme", "root"])
def test_no_route_gives_or_changes_what_is_another_tenants(world: World, who: str) -> None:
    before, events = world.state(), world.events()
    header, mine = world.headers[who], 0
    for method, path, more in asked(world):
        if method == "delete" and path.startswith("/v1/memory/admin") and who == "root" and "tenants" in path:
            continue  # who runs the platform may take a tenant away
        answer = world.client.request(method, path, headers=header, **more)
        sent = path + json.dumps(more)
        for word in world.theirs():
            assert word in sent or word not in answer.text, f"{method} {path}: {answer.text}"
        thaws = method == "delete" and path.endswith("/freeze")  # acme's own freeze of that name, if there were one
        if "/agents/hive" in path and not thaws:
            assert answer.status_code in (403, 404, 400, 409, 422), f"{method} {path}: {answer.status_code}"
        mine += answer.is_success
    assert world.state() == before
    assert world.events() - events == 11  # what reading the state has just written, and nothing else
    assert mine or who == "root"


def test_cursors_etags_and_keys_of_others_are_nothing(world: World) -> None:
    client, ana, base = world.client, world.headers["ana"], "/v1/memory/agents/cleo"
    stale = client.get(f"{base}/memories", params={"cursor": world.cursor}, headers=ana)
    assert stale.status_code == 400
    own = client.post(f"{base}/memories", json={"content": "Acme's own."}, headers=ana).json()
    for etag in world.etags.values():
        changed = client.patch(
            f"{base}/memories/{own['id']}", json={"content": "Other."}, headers={**ana, "if-match": f'"{etag}"'}
        )
        assert changed.status_code == 412
    for scope, item in world.items.items():
        again = client.post(
            f"{base}/memories", json={"content": f"Acme asks with key {scope}."},
            headers={**ana, "idempotency-key": f"key-{scope}"},
        )  # fmt: skip
        assert again.status_code == 201
        assert again.json()["id"] != item


def test_a_token_of_one_tenant_opens_nothing_in_another(world: World) -> None:
    for name in ("ana", "cleo of acme", "root"):
        for method, path in (("get", "memories"), ("post", "recall"), ("get", "policy")):
            more = {"json": {"query": MARK}} if method == "post" else {}
            answer = world.client.request(method, f"/v1/memory/agents/hive/{path}", headers=world.headers[name], **more)
            assert answer.status_code in (403, 404)
            assert MARK not in answer.text


@pytest.mark.requirement("S-051", "S-052")
@pytest.mark.parametrize(
    "claim",
    [
        {"params": {"tenant": "umbrella"}}, {"params": {"tenant_id": "umbrella"}}, {"params": {"user": "zoe"}},
        {"headers": {"x-tenant-id": "umbrella"}}, {"headers": {"x-user-id": "zoe"}},
        {"headers": {"x-agent-id": "hive"}}, {"json": {"query": MARK, "tenant": "umbrella"}},
        {"json": {"query": MARK, "user_id": "zoe"}}, {"json": {"query": MARK, "session_id": "hers-too", "team": "lab"}},
    ],
)  # fmt: skip
def test_a_claim_is_refused_and_on_record(world: World, claim: dict[str, Any]) -> None:
    before = len(world.desk.audit.query("acme", limit=5000)[0])
    asking = {"json": {"query": MARK}, **{k: v for k, v in claim.items() if k != "headers"}}
    headers = {**world.headers["ana"], **claim.get("headers", {})}
    answer = world.client.post("/v1/memory/agents/cleo/recall", headers=headers, **asking)
    assert answer.status_code in (400, 403)
    assert "umbrella" not in answer.text
    entries = world.desk.audit.query("acme", limit=5000)[0]
    if answer.status_code == 403:
        assert len(entries) == before + 1
        assert entries[0].event.outcome == "deny"


def test_inside_one_tenant_a_session_and_a_team_of_others_give_nothing(world: World) -> None:
    client, headers, base = world.client, world.headers, "/v1/memory/agents/hive"
    own = operator("umbrella")
    yan = {"authorization": f"Bearer {admin.issue_token(world.desk, own, user='yan')[1]}"}
    grant = {"add": [{"user": "user:umbrella/yan", "relation": "can_invoke"}]}
    assert client.post("/v1/memory/admin/agents/hive/relations", json=grant, headers=headers["zoe"]).is_success
    taken = client.post(f"{base}/memories/search", json={"query": MARK, "session_id": "hers", "top_k": 50}, headers=yan)
    assert taken.status_code == 200  # a session of yan's own, of the same name
    assert world.items["session"] not in taken.text
    found = client.post(f"{base}/memories/search", json={"query": MARK, "top_k": 50}, headers=yan).json()
    assert {item["scope"] for item in found["items"]} <= {"agent", "shared_agents", "project", "team", "global"}
    for scope in ("user", "session"):
        assert client.get(f"{base}/memories/{world.items[scope]}", headers=yan).status_code == 404
    admin.add_team(world.desk, own, "lab", ("zoe",))
    refused = client.post(f"{base}/memories", json={"content": "x", "scope": "team", "team": "lab"}, headers=yan)
    assert refused.status_code == 403
    assert client.get(f"{base}/memories/{world.items['team']}", headers=yan).status_code == 404
