"""Agents on `hybrid`: memories in Mem0, knowledge in Cognee, sessions in builtin, and one answer of all three."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.engines.contract import (
    GraphRequest,
    IngestRequest,
    InstanceDeclaration,
    Policy,
    PolicyBody,
    PurgeRequest,
    RecallRequest,
    RememberRequest,
)
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import EngineUnavailable, IsolationUnsatisfied
from memoranda.governance.credentials import Credentials
from memoranda.service import knowledge, memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.engines import declare
from memoranda.service.opening import open_desk
from memoranda.service.policies import put_policy
from memoranda.service.upkeep import expire_due
from tests.cognee_standin import Cognee, Server, serving_cognee
from tests.conformance.faults import FULL
from tests.engines.component import Answer
from tests.engines.mem0_standin import KEY, Mem0Server, mem0_standing
from tests.service.conftest import people

Made = Callable[..., Caller]
USER = "memoranda@users.example:a-long-password"
MODES = ("session", "long_term", "agent", "shared", "knowledge_graph")
SIX = "The office closes at six."
LYON = "Greta pays Hugo in Lyon every Friday."


@pytest.fixture
def mem0() -> Iterator[Mem0Server]:
    with mem0_standing() as server:
        yield server


@pytest.fixture
def cognee() -> Iterator[Server]:
    with serving_cognee(Cognee()) as server:
        server.cognee.register(*USER.split(":"))
        yield server


@pytest.fixture
def desk(tmp_path: Path, context: Context, lying: dict[str, Any]) -> Iterator[Desk]:
    keys = Credentials(environ={"EAI_CRED_MEMORY_COGNEE_API_KEY": USER, "EAI_CRED_MEMORY_MEM0_API_KEY": KEY})
    egress = Egress(EgressSettings("development"))
    desk = open_desk(context, tmp_path / "service", egress=egress, credentials=keys, **lying)
    people(desk, context)
    yield desk
    desk.close()
    egress.close()


@pytest.fixture
def ana(desk: Desk, caller: Made, mem0: Mem0Server, cognee: Server) -> Caller:
    for id, url in (("mem0", mem0.url), ("cognee", cognee.url)):
        told = {
            "id": id, "provider": id, "base_url": url, "timeout_seconds": 3, "access_control": id == "cognee",
            "credential_ref": f"env://EAI_CRED_MEMORY_{id.upper()}_API_KEY",
        }  # fmt: skip
        declare(desk, caller(None, "root"), InstanceDeclaration.model_validate(told))
    mem0.asked.clear()
    by = caller("acme", "ana")
    hybrid(desk, by)
    return by


def hybrid(desk: Desk, by: Caller, **policy: object) -> None:
    told = Policy.model_validate({"modes": MODES, **policy})
    put_policy(
        desk, by, "cleo", PolicyBody(engine="hybrid", mem0_instance="mem0", cognee_instance="cognee", policy=told)
    )


def remember(desk: Desk, by: Caller, text: str = SIX, **more: object) -> str:
    return memories.remember(desk, by, "cleo", RememberRequest.model_validate({"content": text, **more})).id


def ingest(desk: Desk, by: Caller, *texts: str) -> str:
    made = knowledge.ingest(desk, by, "cleo", IngestRequest(texts=texts, build_graph=True))
    knowledge.build_graph(desk, by, "cleo", GraphRequest(dataset_ids=(made.id,)))
    knowledge.datasets(desk, by, "cleo", scope=None, limit=10, cursor=None)
    return made.id


def engines_of(found: object) -> set[str]:
    return {item.engine for item in found.items}  # type: ignore[attr-defined]


@pytest.mark.requirement("P-128", "P-129")
def test_a_write_goes_to_one_engine(desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server) -> None:
    remember(desk, ana)
    assert len(mem0.rows) == 1 and SIX not in repr(vars(cognee.cognee))
    ingest(desk, ana, LYON)
    assert len(mem0.rows) == 1
    assert LYON not in repr(mem0.rows) and "Lyon" in repr(vars(cognee.cognee))


@pytest.mark.requirement("P-099")
def test_no_conversation_goes_to_an_engine_by_itself(desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server) -> None:
    for n in range(3):
        remember(desk, ana, f"Turn {n}.", scope="session", session_id="s-1")
        memories.recall(desk, ana, "cleo", RecallRequest(query=f"question {n}", session_id="s-1"))
        memories.list_items(desk, ana, "cleo", session_id="s-1", include_content=True)
    expire_due(desk, ana.context)
    assert mem0.sent("POST", "/memories") == [] and mem0.rows == {}
    assert "/add" not in repr(cognee.cognee.calls) and "Turn" not in repr(vars(cognee.cognee))
    remember(desk, ana)
    ingest(desk, ana, LYON)
    assert len(mem0.sent("POST", "/memories")) == 1 and "/add" in repr(cognee.cognee.calls)


@pytest.mark.requirement("P-077", "P-078")
def test_the_instances_are_those_that_the_policy_names(
    desk: Desk, ana: Caller, caller: Made, mem0: Mem0Server, cognee: Server
) -> None:
    with mem0_standing() as memories_of_others, serving_cognee(Cognee()) as knowledge_of_others:
        knowledge_of_others.cognee.register(*USER.split(":"))
        for provider, url in (("mem0", memories_of_others.url), ("cognee", knowledge_of_others.url)):
            told = {"id": f"{provider}-2", "provider": provider, "base_url": url,
                    "credential_ref": f"env://EAI_CRED_MEMORY_{provider.upper()}_API_KEY"}  # fmt: skip
            declare(desk, caller(None, "root"), InstanceDeclaration.model_validate(told))
        policy = Policy.model_validate({"modes": MODES})
        named = PolicyBody(engine="hybrid", mem0_instance="mem0-2", cognee_instance="cognee-2", policy=policy)
        put_policy(desk, ana, "cleo", named)
        remember(desk, ana)
        ingest(desk, ana, LYON)
        assert len(memories_of_others.rows) == 1 and "Lyon" in repr(vars(knowledge_of_others.cognee))
        assert mem0.rows == {} and "Lyon" not in repr(vars(cognee.cognee))


@pytest.mark.requirement("P-130", "P-133", "P-134")
def test_a_recall_asks_all_three_and_gives_one_answer(
    desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server
) -> None:
    remember(desk, ana, "Hugo is paid for the office in Lyon.")
    remember(desk, ana, "Hugo asked in this session when he is paid.", scope="session", session_id="s-1")
    ingest(desk, ana, LYON)
    found = memories.search(desk, ana, "cleo", RecallRequest(query="Hugo paid Lyon", session_id="s-1"))
    assert engines_of(found) == set(found.coverage.engines) == {"builtin", "mem0", "cognee"}
    assert found.coverage.failed == ()
    assert all(len(item.why["found_by"]) == 1 for item in found.items)
    told = repr(mem0.rows) + repr(vars(cognee.cognee))
    assert "this session" not in told
    answer = memories.recall(desk, ana, "cleo", RecallRequest(query="Hugo paid Lyon", session_id="s-1"))
    assert {segment.item.engine for segment in answer.segments} == {"builtin", "mem0", "cognee"}
    assert all(segment.content.startswith("<<memo ") for segment in answer.segments)


@pytest.mark.requirement("P-131", "P-132")
def test_the_same_words_stand_once_with_every_source(desk: Desk, ana: Caller) -> None:
    kept = remember(desk, ana, "greta pays  HUGO in Lyon every friday")
    dataset = ingest(desk, ana, LYON)
    found = memories.search(desk, ana, "cleo", RecallRequest(query="Hugo Lyon"))
    (item,) = found.items
    by = item.why["found_by"]
    assert set(by) == {"mem0", "cognee"} and by["mem0"]["id"] == kept
    assert f"engine://cognee/{dataset}" in item.sources


def test_who_does_not_answer_is_told_and_when_none_does_so_is_that(
    desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server
) -> None:
    remember(desk, ana, "Hugo is paid for the office in Lyon.")
    ingest(desk, ana, LYON)
    asked = RecallRequest(query="Hugo Lyon")
    mem0.fault = lambda *_: Answer(raw=b"")
    found = memories.search(desk, ana, "cleo", asked)
    assert engines_of(found) == {"cognee"} and found.coverage.failed == ("mem0",)
    told = [(e.event.engine, e.event.outcome, e.event.code) for e in desk.audit.query("acme", operation="search")[0]]
    assert ("mem0", "failure", "memory_engine_unavailable") in told
    mem0.fault = None
    cognee.says = [("/search", "reset")] * 4
    found = memories.search(desk, ana, "cleo", asked)
    assert engines_of(found) == {"mem0"} and found.coverage.failed == ("cognee",)
    mem0.fault = lambda *_: Answer(raw=b"")
    cognee.says = [("/search", "reset")] * 4
    with pytest.raises(EngineUnavailable):
        memories.search(desk, ana, "cleo", asked)


def test_isolation_is_asked_of_every_instance_that_is_touched(
    desk: Desk, ana: Caller, mem0: Mem0Server, caller: Made
) -> None:
    hybrid(desk, ana, required_isolation="backend")
    for refused in (
        lambda: remember(desk, ana),
        lambda: memories.search(desk, ana, "cleo", RecallRequest(query="Hugo")),
        lambda: ingest(desk, ana, LYON),
        lambda: memories.purge(desk, ana, "cleo", PurgeRequest(scope="user", confirm=True)),
    ):
        with pytest.raises(IsolationUnsatisfied):
            refused()
    assert mem0.asked == []
    note = RememberRequest(content="Of this session.", scope="session", session_id="s-1")
    assert memories.remember(desk, ana, "cleo", note).engine == "builtin"


def test_a_list_holds_memories_and_those_of_the_session_and_a_purge_empties_all(
    desk: Desk, ana: Caller, mem0: Mem0Server
) -> None:
    for n in range(3):
        remember(desk, ana, f"Number {n}.")
        remember(desk, ana, f"Passing {n}.", scope="session", session_id="s-1")
    seen, cursor = [], None
    for _ in range(6):
        page = memories.list_items(desk, ana, "cleo", session_id="s-1", limit=1, cursor=cursor, include_content=True)
        seen += [item.content for item in page.items]
        cursor = page.next_cursor
    assert cursor is None
    assert sorted(map(str, seen)) == [f"{word} {n}." for word in ("Number", "Passing") for n in range(3)]
    assert memories.purge(desk, ana, "cleo", PurgeRequest(scope="user", confirm=True)).removed == 3
    gone = memories.purge(desk, ana, "cleo", PurgeRequest(scope="session", session_id="s-1", confirm=True))
    assert gone.removed == 3 and mem0.rows == {}


def test_a_purge_reaches_documents_too(desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server) -> None:
    remember(desk, ana, SIX, scope="agent")
    ingest(desk, ana, LYON)
    assert memories.purge(desk, ana, "cleo", PurgeRequest(scope="agent", confirm=True)).removed == 2
    assert mem0.rows == {} and memories.search(desk, ana, "cleo", RecallRequest(query="Hugo Lyon")).items == ()


def test_a_purge_and_a_recall_go_on_without_the_engine_that_fails_in_any_way(
    desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server
) -> None:
    faults = {"a full disk": (500, FULL), "200 with an error inside": (200, {"error": "boom"}), "cut": "reset"}
    for name, fault in faults.items():
        remember(desk, ana, f"Hugo is paid for {name}.", scope="agent")
        ingest(desk, ana, f"Greta pays Hugo {name}.")
        cognee.always = fault
        found = memories.search(desk, ana, "cleo", RecallRequest(query="Hugo paid"))
        assert engines_of(found) == {"mem0"} and found.coverage.failed == ("cognee",)
        gone = memories.purge(desk, ana, "cleo", PurgeRequest(scope="agent", confirm=True))
        assert gone.removed == 1 and "all that lies in cognee: it did not answer; purge again" in gone.remains
        cognee.always = None
        desk.engine_of("cognee")._outside.connection._breaker.answered()  # type: ignore[attr-defined]
        assert memories.purge(desk, ana, "cleo", PurgeRequest(scope="agent", confirm=True)).removed == 1
