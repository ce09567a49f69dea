"""Engines that the launcher has installed for one tenant alone: what they guarantee it, and who works where."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from memoranda.context import Context
from memoranda.engines.contract import (
    GraphSearchRequest,
    IngestRequest,
    InstanceDeclaration,
    Policy,
    PolicyBody,
    PurgeRequest,
    RecallRequest,
    RememberRequest,
)
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import IsolationUnsatisfied, MemorandaError, NotFound
from memoranda.governance.credentials import Credentials
from memoranda.governance.inventory import Inventory
from memoranda.manager.inventory import declaration, render
from memoranda.manager.kinds import API_KEY, Engine, Kind, Models
from memoranda.manager.place import Place, keep
from memoranda.manager.place import engines as installed
from memoranda.manager.sealing import FileVault
from memoranda.service import knowledge, memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.engines import capabilities, declare
from memoranda.service.opening import open_desk
from memoranda.service.policies import put_policy
from tests.cognee_standin import Cognee, Server, serving_cognee
from tests.engines.mem0_standin import KEY, Mem0Server, mem0_standing
from tests.service.conftest import people

Made = Callable[..., Caller]
USER = "memoranda@users.example:a-long-password"
SIX = RememberRequest(content="The office closes at six.", scope="user")
LYON = IngestRequest(texts=("Greta pays Hugo in Lyon.",), build_graph=True)
MODES = ("session", "long_term", "agent", "shared", "knowledge_graph")


class Engines(NamedTuple):
    """What stands on this machine: an engine of each kind for everybody, and one of each for acme."""

    place: Place
    mem0: Mem0Server
    cognee: Server
    own_mem0: Mem0Server
    own_cognee: Server

    def shared(self) -> int:
        """How many calls the engines for everybody have had."""
        return len(self.mem0.asked) + len(self.cognee.cognee.calls)


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    folder = tmp_path / "manager"
    place = Place(folder, FileVault(folder / "sealed", folder / "seal.key"), str, {}, os.urandom)
    with mem0_standing() as mem0, mem0_standing() as own_mem0:
        with serving_cognee(Cognee()) as cognee, serving_cognee(Cognee()) as own_cognee:
            for server in (cognee, own_cognee):
                server.cognee.register(*USER.split(":"))
            for name, url, tenant in (
                ("mem0", mem0.url, None), ("cognee", cognee.url, None),
                ("mem0-acme", own_mem0.url, "acme"), ("cognee-acme", own_cognee.url, "acme"),
            ):  # fmt: skip
                kind: Kind = "mem0" if name.startswith("mem0") else "cognee"
                port = urlsplit(url).port or 0
                keep(place, Engine(name, kind, port, tenant, "local", name, Models("http://127.0.0.1:9/v1"), "", ""))
                place.vault.put(name, {API_KEY[kind]: KEY if kind == "mem0" else USER})
            render(place)
            yield Engines(place, mem0, cognee, own_mem0, own_cognee)


@pytest.fixture
def desk(tmp_path: Path, context: Context, engines: Engines, lying: dict[str, Any]) -> Iterator[Desk]:
    lines = engines.place.service_env.read_text().splitlines()
    keys = {name: value.strip("'\"") for name, _, value in (line.partition("=") for line in lines)}
    egress = Egress(EgressSettings("development"))
    desk = open_desk(
        context, tmp_path / "service", rendered=Inventory((), engines.place.inventory), egress=egress,
        credentials=Credentials(environ=keys), **lying,
    )  # fmt: skip
    people(desk, context)
    yield desk
    desk.close()
    egress.close()


def works_on(desk: Desk, by: Caller, engine: str, mem0: str, cognee: str) -> None:
    """The agent's policy: these instances, and nothing that is not a tenant's own."""
    policy = Policy.model_validate({"modes": MODES, "required_isolation": "dedicated_instance"})
    named = {"hybrid": {"mem0_instance": mem0, "cognee_instance": cognee}, "mem0": {"mem0_instance": mem0},
             "cognee": {"cognee_instance": cognee}}[engine]  # fmt: skip
    put_policy(desk, by, "cleo", PolicyBody.model_validate({"engine": engine, "policy": policy, **named}))


@pytest.mark.requirement("S-061")
def test_what_was_installed_for_a_tenant_is_dedicated_to_it(desk: Desk, caller: Made, engines: Engines) -> None:
    ana, zoe, root = caller("acme", "ana"), caller("globex", "zoe"), caller(None, "root")
    for kind in ("mem0", "cognee"):
        assert capabilities(desk, ana, f"{kind}-acme").isolation == "dedicated_instance"
        assert capabilities(desk, ana, kind).isolation == "logical"
        with pytest.raises(NotFound):
            capabilities(desk, zoe, f"{kind}-acme")
        place = engines.place
        entry = next(one for one in (declaration(place, e) for e in installed(place)) if one.id == f"{kind}-acme")
        named = entry.model_copy(update={"id": f"{kind}-named"})
        declare(desk, root, named)  # an administrator declares the same one, with its tenant
        assert capabilities(desk, ana, f"{kind}-named").isolation == "dedicated_instance"
        with pytest.raises(MemorandaError):  # for everybody, or for another tenant, it cannot be
            declare(desk, root, entry.model_copy(update={"id": f"{kind}-all", "tenant_id": None}))
        with pytest.raises(MemorandaError):
            declare(desk, root, entry.model_copy(update={"id": f"{kind}-other", "tenant_id": "globex"}))
    alone = InstanceDeclaration(
        id="alone", provider="mem0", base_url=engines.mem0.url.replace("127.0.0.1", "localhost"), tenant_id="acme",
        credential_ref="env://EAI_CRED_MEMORY_MEM0_API_KEY",
    )  # fmt: skip
    declare(desk, root, alone)  # nobody has installed it for acme
    assert capabilities(desk, ana, "alone").isolation == "logical"


@pytest.mark.requirement("S-064")
def test_who_needs_a_dedicated_instance_works_on_its_tenants_own(desk: Desk, caller: Made, engines: Engines) -> None:
    ana = caller("acme", "ana")
    works_on(desk, ana, "hybrid", "mem0-acme", "cognee-acme")
    kept = memories.remember(desk, ana, "cleo", SIX)
    knowledge.ingest(desk, ana, "cleo", LYON)
    knowledge.datasets(desk, ana, "cleo", scope=None, limit=10, cursor=None)
    assert kept.engine == "mem0-acme" and len(engines.own_mem0.rows) == 1
    assert "Lyon" in repr(vars(engines.own_cognee.cognee))
    found = memories.search(desk, ana, "cleo", RecallRequest(query="Hugo office closes"))
    assert {item.engine for item in found.items} == {"mem0-acme", "cognee-acme"} and not found.coverage.failed
    works_on(desk, ana, "mem0", "mem0-acme", "")
    assert memories.get(desk, ana, "cleo", kept.id).content == SIX.content
    works_on(desk, ana, "cognee", "", "cognee-acme")
    assert knowledge.search_graph(desk, ana, "cleo", GraphSearchRequest(query="Hugo")).passages
    assert engines.shared() == 0


@pytest.mark.requirement("S-064")
@pytest.mark.parametrize(
    ("engine", "mem0", "cognee"),
    [("mem0", "mem0", ""), ("cognee", "", "cognee"), ("hybrid", "mem0", "cognee-acme"),
     ("hybrid", "mem0-acme", "cognee")],
)  # fmt: skip
def test_and_on_no_shared_one(desk: Desk, caller: Made, engines: Engines, engine: str, mem0: str, cognee: str) -> None:
    ana = caller("acme", "ana")
    works_on(desk, ana, engine, mem0, cognee)
    refused = {
        "remember": lambda: memories.remember(desk, ana, "cleo", SIX),
        "recall": lambda: memories.recall(desk, ana, "cleo", RecallRequest(query="Hugo")),
        "search": lambda: memories.search(desk, ana, "cleo", RecallRequest(query="Hugo")),
        "list": lambda: memories.list_items(desk, ana, "cleo"),
        "purge": lambda: memories.purge(desk, ana, "cleo", PurgeRequest(scope="user", confirm=True)),
        "ingest": lambda: knowledge.ingest(desk, ana, "cleo", LYON),
        "graph": lambda: knowledge.search_graph(desk, ana, "cleo", GraphSearchRequest(query="Hugo")),
    }  # fmt: skip
    touched = {
        ("mem0", ""): {"remember", "recall", "search", "list", "purge"},
        ("", "cognee"): {"list", "purge", "ingest", "graph"},
        ("mem0", "cognee-acme"): {"remember", "recall", "search", "list", "purge"},
        ("mem0-acme", "cognee"): {"recall", "search", "purge", "ingest", "graph"},
    }[mem0, cognee]
    for name in touched:
        with pytest.raises(IsolationUnsatisfied):
            refused[name]()
    assert engines.shared() == 0


def test_another_tenants_instance_is_not_there(desk: Desk, caller: Made, engines: Engines) -> None:
    zoe = caller("globex", "zoe")
    for engine in ("mem0", "cognee", "hybrid"):
        with pytest.raises(MemorandaError):
            works_on(desk, zoe, engine, "mem0-acme", "cognee-acme")
    assert engines.own_mem0.asked == [] and engines.own_cognee.cognee.calls == []
