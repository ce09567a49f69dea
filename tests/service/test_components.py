"""The service on real components or their stand-ins: each decides, and each that does not answer plainly means no."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import ExportRequest, PurgeRequest, RecallRequest, RememberRequest, UpdateRequest
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable, Forbidden
from memoranda.governance.decisions import Decision, EmbeddedDecisions, Opa
from memoranda.governance.injection import GatewayFilter
from memoranda.governance.openfga import OpenFga
from memoranda.governance.relations import Tuple, tuples_of_agent, tuples_of_tenant
from memoranda.service import memories
from memoranda.service.answers import ReviewRequest, TaintRequest
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.values import replace
from tests.engines.component import Answer, Asked, standing
from tests.governance.openfga_standin import MODEL, STORE, OpenFgaServer

Made = Callable[..., Caller]
CLEO = "agent:acme/cleo"
ASKED = RecallRequest(query="roof")
ROOF = RememberRequest(content="The roof was mended in May.")

WRITES: dict[str, Callable[[Desk, Caller, str], object]] = {
    "remember": lambda desk, by, _: memories.remember(desk, by, "cleo", ROOF),
    "update": lambda desk, by, item: memories.update(desk, by, "cleo", item, UpdateRequest(content="Another roof.")),
    "forget": lambda desk, by, item: memories.forget(desk, by, "cleo", item),
    "purge": lambda desk, by, _: memories.purge(desk, by, "cleo", PurgeRequest(scope="user", confirm=True)),
    "review": lambda desk, by, item: memories.review(
        desk, by, "cleo", item, ReviewRequest(verdict="accept", etag=memories.get(desk, by, "cleo", item).etag)
    ),
    "taint": lambda desk, by, _: memories.taint(desk, by, "cleo", "s1", TaintRequest(reason="untrusted_content")),
}
READS: dict[str, Callable[[Desk, Caller, str], object]] = {
    "recall": lambda desk, by, _: memories.recall(desk, by, "cleo", ASKED),
    "search": lambda desk, by, _: memories.search(desk, by, "cleo", ASKED),
    "list": lambda desk, by, _: memories.list_items(desk, by, "cleo"),
    "get": lambda desk, by, item: memories.get(desk, by, "cleo", item),
    "history": lambda desk, by, item: memories.history(desk, by, "cleo", item),
    "export": lambda desk, by, _: memories.export(desk, by, "cleo", ExportRequest()),
}


class Watched:
    """An engine that tells what was called on it."""

    def __init__(self, inner: Builtin, told: list[str]) -> None:
        self._inner, self._told = inner, told

    def __getattr__(self, name: str) -> Any:
        if name not in ("document", "isolation", "instance"):
            self._told.append(f"engine.{name}")
        return getattr(self._inner, name)


class Recording:
    """Decisions that tell what was asked, and say no to one operation."""

    shipped = True

    def __init__(self, told: list[str], refused: str = "") -> None:
        self._inner, self._told, self._refused = EmbeddedDecisions(), told, refused

    def decide(self, package: Any, input: Any) -> Decision:
        self._told.append(f"{package}:{input['operation']}")
        if input["operation"] == self._refused:
            return Decision(False, ("refused",), package)
        return self._inner.decide(package, input)

    def ready(self) -> None: ...


@pytest.mark.requirement("S-069", "S-070")
@pytest.mark.parametrize("operation", [*WRITES, *READS])
def test_every_operation_passes_its_decision_before_the_engine_is_called(
    desk: Desk, caller: Made, operation: str
) -> None:
    ana = caller("acme", "ana")
    item = memories.remember(desk, ana, "cleo", ROOF).id
    package = "memory.write" if operation in WRITES else "memory.search"
    call = (WRITES | READS)[operation]

    told: list[str] = []
    watched: Any = Watched(desk.builtin, told)
    with pytest.raises(Forbidden, match=package):
        call(replace(desk, builtin=watched, decisions=Recording(told, operation)), ana, item)
    assert told[-1] == f"{package}:{operation}"
    before = [one for one in told if one.startswith("engine.")]
    assert before == (["engine.get"] if operation == "review" else [])  # what the test reads to review it

    told.clear()
    call(replace(desk, builtin=watched, decisions=Recording(told)), ana, item)
    at = told.index(f"{package}:{operation}")
    assert any(one.startswith("engine.") for one in told[at + 1 :])
    assert [one for one in told[:at] if one.startswith("engine.")] == before


@pytest.fixture
def egress() -> Iterator[Egress]:
    made = Egress(EgressSettings(environment="development"))
    yield made
    made.close()


@pytest.mark.requirement("S-067")
def test_who_may_invoke_an_agent_is_decided_by_openfga(desk: Desk, caller: Made, egress: Egress) -> None:
    answers = OpenFgaServer()
    with standing(answers) as server:
        governed = replace(desk, relations=OpenFga(egress, server.url, STORE, MODEL))
        with pytest.raises(Forbidden):  # the tuples that lie in process do not count
            memories.remember(governed, caller("acme", "ana"), "cleo", ROOF)
        governed.relations.write(tuples_of_tenant("acme") + tuples_of_agent("acme", "cleo", "ana"))
        item = memories.remember(governed, caller("acme", "ana"), "cleo", ROOF)
        assert memories.get(governed, caller("acme", "ana"), "cleo", item.id).id == item.id
        with pytest.raises(Forbidden):
            memories.search(governed, caller("acme", "bob"), "cleo", ASKED)
        grant = Tuple("user:acme/bob", "can_invoke", CLEO)
        governed.relations.write([grant])
        memories.search(governed, caller("acme", "bob"), "cleo", ASKED)
        governed.relations.write(remove=[grant])
        with pytest.raises(Forbidden):
            memories.search(governed, caller("acme", "bob"), "cleo", ASKED)
        memories.search(governed, caller("acme", "ana", "cleo"), "cleo", ASKED)  # the agent itself: by identity
        with pytest.raises(Forbidden):
            memories.search(governed, caller("acme", "bob", "max"), "cleo", ASKED)
    assert answers.wrong == []


def _with(name: str, desk: Desk, egress: Egress, url: str) -> Desk:
    if name == "openfga":
        return replace(desk, relations=OpenFga(egress, url, STORE, MODEL, timeout=0.5))
    if name == "opa":
        return replace(desk, decisions=Opa(egress, url, timeout=0.5))
    return replace(desk, injection=GatewayFilter(egress, url, timeout=0.5))


def _well(name: str) -> Callable[[Asked], Answer]:
    if name == "openfga":
        answers = OpenFgaServer()
        answers.store.write(tuples_of_agent("acme", "cleo", "ana"), [])
        return answers
    if name == "opa":
        return lambda _: Answer(body={"result": {"allow": True, "deny": []}})
    return lambda asked: Answer(body={"verdicts": [{"level": "clean"} for _ in asked.json["texts"]]})


BROKEN = {
    "an error": Answer(503),
    "slow": Answer(wait=2.0),
    "dripping": Answer(body=b" " * 100, drip=0.05),
    "nonsense": Answer(body={"result": "yes", "allowed": "yes", "verdicts": "fine"}),
    "no HTTP": Answer(raw=b"\x00\x01"),
    "elsewhere": Answer(307, headers={"location": "http://127.0.0.1:1/"}),
}


@pytest.mark.parametrize("name", ["openfga", "opa", "gateway"])
def test_a_component_that_fails_stops_what_needs_it_and_it_goes_on_by_itself(
    desk: Desk, caller: Made, egress: Egress, name: str
) -> None:
    ana = caller("acme", "ana")
    memories.remember(desk, ana, "cleo", ROOF)

    def refused(governed: Desk) -> None:
        for read in (memories.recall, memories.search):
            with pytest.raises(ComponentUnavailable):
                read(governed, ana, "cleo", ASKED)
        if name != "gateway":
            with pytest.raises(ComponentUnavailable):
                memories.remember(governed, ana, "cleo", RememberRequest(content="The roof leaks again."))
        assert len(memories.list_items(desk, ana, "cleo").items) == 1

    def well(governed: Desk) -> None:
        assert len(memories.search(governed, ana, "cleo", ASKED).items) == 1

    with standing(_well(name)) as server:
        governed = _with(name, desk, egress, server.url)
        well(governed)
        right = server.answers
        for broken in BROKEN.values():
            server.answers = lambda _, answer=broken: answer  # type: ignore[misc]
            refused(governed)
        server.answers = right
        well(governed)
        port = server.port
    refused(governed)
    with standing(_well(name), port=port) as server:
        well(governed)
    assert _failures(desk) >= 2 * (len(BROKEN) + 1)


def _failures(desk: Desk) -> int:
    """How many failures the audit tells of."""
    found, _ = desk.audit.query("acme", limit=200, outcome="failure", code=ComponentUnavailable.code)
    return len(found)
