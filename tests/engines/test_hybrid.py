"""What is hybrid's own: that all are asked before any is waited for, and what is asked of whom."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.cognee import Cognee
from memoranda.engines.contract import Found, IngestRequest, OperationContext, RecallRequest, RememberRequest
from memoranda.engines.hybrid import Hybrid
from memoranda.engines.mem0 import Mem0
from tests import cognee_standin
from tests.engines.asking import asking
from tests.engines.component import Answer, Asked
from tests.engines.mem0_standin import KEY, Mem0Server, mem0_standing
from tests.engines.outside import beside, outside

USER = "memoranda@users.example:a-long-password"
ALL = asking(reads=("user",), session="s-1")


class Meeting:
    """Where those who are asked wait for each other; `met` says whether all came in time."""

    def __init__(self) -> None:
        self.of: threading.Barrier | None = None
        self.met: list[bool] = []

    def __call__(self) -> None:
        if self.of is not None:
            try:
                self.of.wait(2.0)
                self.met.append(True)
            except threading.BrokenBarrierError:
                self.met.append(False)


class Sessions(Builtin):
    """Builtin, which first waits for the others."""

    meeting: Meeting

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        self.meeting()
        return super().recall(context, where, asked)


class Documents(cognee_standin.Cognee):
    """Cognee, which waits for the others before it answers a search."""

    meeting: Meeting

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        if target.endswith("/search"):
            self.meeting()
        return super().answer(method, target, headers, body)


class Three(NamedTuple):
    hybrid: Hybrid
    meeting: Meeting
    memories: Mem0Server
    documents: Documents


@pytest.fixture
def three(tmp_path: Path, context: Context) -> Iterator[Three]:
    meeting, cognee = Meeting(), Documents()
    cognee.meeting = meeting
    cognee.register(*USER.split(":"))
    with (
        mem0_standing() as mem0,
        cognee_standin.serving_cognee(cognee) as documents,
        outside(tmp_path, context, mem0.url, KEY) as rooms,
        beside(rooms, documents.url, USER, instance="cognee-1") as also,
    ):
        memories, knowledge, sessions = Mem0(rooms), Cognee(also), Sessions(rooms.company.homes)
        sessions.meeting = meeting
        memories.remember(context, asking(writes="user"), RememberRequest(content="Hugo is paid for the office."))
        passing = asking(reads=(), writes="session", session="s-1")
        sessions.remember(context, passing, RememberRequest(content="Hugo asked when he is paid."))
        texts = IngestRequest(texts=("Greta pays Hugo every Friday.",), scope="user", build_graph=True)
        knowledge.ingest(context, asking(writes="user"), texts)
        knowledge.datasets(context, asking(reads=("user",)), scope=None, limit=9, after=None)

        def answered(asked: Asked, answer: Callable[[], Answer]) -> Answer:
            if asked.path == "/search":
                meeting()
            return answer()

        mem0.fault = answered
        yield Three(Hybrid(memories, sessions, knowledge), meeting, mem0, cognee)


def engines_of(found: Found) -> list[str]:
    return sorted(item.engine for item in found.items)


def searches(documents: Documents) -> int:
    return sum(target.endswith("/search") for _, target, _ in documents.calls)


def test_all_are_asked_before_any_is_waited_for(three: Three, context: Context) -> None:
    """None of the three goes on before the other two were asked; who waited for one of them would wait in vain."""
    three.meeting.of = threading.Barrier(3)
    found = three.hybrid.recall(context, ALL, RecallRequest(query="Hugo paid"))
    assert three.meeting.met == [True, True, True]
    assert engines_of(found) == ["builtin", "cognee-1", "mem0-1"] and found.coverage.failed == ()


def test_several_places_are_asked_at_the_same_time(three: Three, context: Context) -> None:
    three.meeting.of = threading.Barrier(4)  # three places of Mem0, and Cognee
    where = asking(reads=("user", "agent", "project"))
    found = three.hybrid.recall(context, where, RecallRequest(query="Hugo paid"))
    assert three.meeting.met == [True] * 4 and engines_of(found) == ["cognee-1", "mem0-1"]


@pytest.mark.parametrize("time", [{"as_of": "2026-01-01"}, {"known_at": "2026-01-01"}])
def test_of_another_time_documents_are_not_asked_and_that_is_told(
    three: Three, context: Context, time: dict[str, str]
) -> None:
    """They say neither when they held nor when that was known: an answer of today would pass for one of then."""
    before = searches(three.documents)
    found = three.hybrid.recall(context, ALL, RecallRequest.model_validate({"query": "Hugo paid", **time}))
    assert searches(three.documents) == before and "cognee-1" not in found.coverage.engines
    (notice,) = found.coverage.notices
    assert notice.startswith("cognee-1 was not asked")
    alone = asking(reads=("user",))  # where only Mem0 is left to answer
    found = three.hybrid.recall(context, alone, RecallRequest.model_validate({"query": "Hugo paid", **time}))
    assert found.coverage.engines == ("mem0-1",) and notice in found.coverage.notices
    asked_of_today = three.hybrid.recall(context, alone, RecallRequest(query="Hugo paid"))
    assert asked_of_today.coverage.notices == () and "cognee-1" in asked_of_today.coverage.engines


def test_kinds_ask_no_documents_and_that_is_told(three: Three, context: Context) -> None:
    before = searches(three.documents)
    found = three.hybrid.recall(context, ALL, RecallRequest(query="Hugo paid", kinds=("semantic",)))
    assert searches(three.documents) == before
    assert [one.partition(":")[0] for one in found.coverage.notices] == ["cognee-1 was not asked"]
