"""What an engine elsewhere does wrong: the named error, in time, and nothing half-written; the same for each."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from memoranda.context import Context
from memoranda.errors import EngineUnavailable, NotFound, OutcomeUnknown
from tests.conformance.faults import FAULTS, Elsewhere
from tests.conformance.subject import Subject
from tests.conftest import Clock
from tests.engines.asking import asking

ENGINES = ("cognee", "hybrid", "mem0")
SIX = "The office closes at six."
IN_TIME = 45.0  # seconds; what drips a byte a second would take a minute


class Failing(Subject):
    elsewhere: Elsewhere


def reads(subject: Failing, context: Context, kept: str) -> list[Callable[[], object]]:
    """What is asked of the engine itself, each once."""
    if not subject.keeps_memories:
        dataset = subject.datasets(context)[0].id
        return [
            lambda: subject.search(context, "office closes"),
            lambda: subject.knowledge.relations(context, asking(), dataset),
        ]
    return [lambda: subject.texts(context, "office closes"), lambda: subject.get(context, kept)]


@pytest.fixture
def kept(subject: Failing, context: Context) -> str:
    """Something that the engine has; its words are found."""
    if subject.knowledge is not None:
        subject.built(context, SIX)
    return subject.keep(context, SIX) if subject.keeps_memories else subject.listed(context)[0].id


@pytest.mark.requirement("P-044", "P-068")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_ends_in_time_with_its_error(subject: Failing, context: Context, kept: str, fault: str) -> None:
    asked = reads(subject, context, kept)
    for ask in asked[:-1] if fault == "200 with nothing" else asked:  # a memory that is none is not there
        subject.elsewhere.breaks(fault)
        began = time.monotonic()
        with pytest.raises(EngineUnavailable) as error:
            ask()
        assert time.monotonic() - began < IN_TIME
        told = error.value.problem()
        assert (told["status"], told["code"]) == (502, "memory_engine_unavailable") and told["remedy"]
        assert not any(word in str(told) for word in ("boom", "html", "No space left"))  # not the engine's own words
        subject.elsewhere.breaks(None)
        assert ask()  # and it goes on


@pytest.mark.requirement("P-068")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_write_leaves_nothing_half_written(subject: Failing, context: Context, clock: Clock, fault: str) -> None:
    subject.elsewhere.breaks(fault)
    began = time.monotonic()
    with pytest.raises(EngineUnavailable) as error:
        subject.keep(context, SIX)
    assert time.monotonic() - began < IN_TIME
    assert not any(word in str(error.value) for word in ("boom", "html", "No space left"))
    if isinstance(error.value, OutcomeUnknown):  # answered as unknown, with its id
        assert error.value.problem()["item_id"] == error.value.item_id in str(error.value)
    subject.elsewhere.breaks(None)
    assert subject.listed(context) == []
    clock.tick(minutes=20)  # what was unknown is found out by then: it is nothing
    for engine in subject.upkeep:
        engine.expire(context, "acme")
    assert subject.listed(context) == []
    again = subject.keep(context, SIX)
    assert [item.id for item in subject.listed(context)] == [again]


@pytest.mark.requirement("P-068")
@pytest.mark.parametrize("fault", FAULTS)
def test_an_update_that_was_not_done_leaves_what_there_was(
    subject: Failing, context: Context, clock: Clock, fault: str
) -> None:
    if not subject.keeps_memories:
        pytest.skip("a document is replaced by none")
    kept = subject.remember(context, SIX).id
    subject.elsewhere.breaks(fault)
    with pytest.raises(NotFound if fault == "200 with nothing" else EngineUnavailable):  # a memory that is none
        subject.update(context, kept, "The office closes at seven.")
    subject.elsewhere.breaks(None)

    def one_head(text: str) -> None:
        (head,) = subject.listed(context)
        assert (head.content, subject.get(context, kept).content) == (text, text)
        assert subject.texts(context, "office closes") == [text]

    one_head(SIX)
    clock.tick(minutes=20)
    for engine in subject.upkeep:
        engine.expire(context, "acme")
    one_head(SIX)
    subject.update(context, kept, "The office closes at seven.")
    one_head("The office closes at seven.")


@pytest.mark.parametrize("fault", FAULTS)
def test_what_could_not_be_removed_stands_as_it_did(subject: Failing, context: Context, kept: str, fault: str) -> None:
    if fault == "200 with nothing" and subject.name == "cognee":
        pytest.skip("so Cognee says that it has removed something")
    subject.elsewhere.breaks(fault)
    with pytest.raises(EngineUnavailable):
        subject.engine.forget(context, asking(), kept, if_match=None)
    subject.elsewhere.breaks(None)
    assert kept in [item.id for item in subject.listed(context)]
    assert subject.engine.forget(context, asking(), kept, if_match=None).removed == 1


@pytest.mark.requirement("S-043")
def test_a_key_that_was_renewed_is_looked_up_and_one_that_was_not_is_named(
    subject: Failing, context: Context, kept: str
) -> None:
    subject.elsewhere.rotates(told=True)
    for ask in reads(subject, context, kept):
        assert ask()
    other = subject.keep(context, "Bread is baked at four.")
    subject.elsewhere.rotates(told=False)
    for ask in (*reads(subject, context, kept), lambda: subject.keep(context, "Milk is bought at two.")):
        with pytest.raises(EngineUnavailable, match=r"key|let this user in") as error:
            ask()
        assert not isinstance(error.value, OutcomeUnknown)  # nothing was done by somebody who was not let in
    subject.elsewhere.rotates(told=True)
    assert {kept, other} == {item.id for item in subject.listed(context)}


def test_who_refuses_the_connection_is_named_and_left_alone_after_a_while(
    subject: Failing, context: Context, kept: str
) -> None:
    asked = reads(subject, context, kept)
    subject.elsewhere.ends()
    for ask in (*asked, lambda: subject.keep(context, "Bread is baked at four.")):
        with pytest.raises(EngineUnavailable) as error:
            ask()
        assert not isinstance(error.value, OutcomeUnknown)  # it was never asked
    assert subject.engine.health(context).status == "unavailable"
    for _ in range(5):
        with pytest.raises(EngineUnavailable) as error:
            asked[-1]()
    assert error.value.retry_after and "asked again at" in str(error.value)
