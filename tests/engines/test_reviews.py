"""History, reviews and taint through the engine."""

from __future__ import annotations

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import RecallRequest, RememberRequest, UpdateRequest
from memoranda.engines.homes import Homes
from memoranda.errors import ConfirmationRequired, NotFound, PreconditionFailed
from memoranda.values import replace
from tests.conftest import Clock
from tests.engines.asking import asking


def test_a_chain_is_told_oldest_first_with_when_each_held(engine: Builtin, context: Context, clock: Clock) -> None:
    first = engine.remember(context, asking(writes="user"), RememberRequest(content="Six.", valid_from="2026-09-01"))
    clock.tick(days=2)
    second = engine.update(context, asking(), first.id, UpdateRequest(content="Five."), if_match=None)
    chain = engine.history(context, asking(), second.id)
    assert [(link.item.id, link.item.content, link.head) for link in chain] == [
        (first.id, "Six.", False), (second.id, "Five.", True),
    ]  # fmt: skip
    assert chain[0].held_from == "2026-09-01T00:00:00Z"
    assert chain[0].held_to == chain[1].held_from == second.valid_from
    with pytest.raises(NotFound):
        engine.history(context, asking("bob"), first.id)


def test_a_review_counts_for_exactly_what_was_seen(engine: Builtin, context: Context) -> None:
    kept = engine.remember(context, asking(writes="user"), RememberRequest(content="Six.", origin="external"))
    assert kept.trust == "quarantined"
    other = engine.update(context, asking(), kept.id, UpdateRequest(content="Five."), if_match=None)
    assert other.trust == "quarantined"
    with pytest.raises(PreconditionFailed):
        engine.review(context, asking(), kept.id, "accept", comment="", reviewer="dana", if_match=other.etag)
    done = engine.review(context, asking(), kept.id, "accept", comment="seen", reviewer="dana", if_match=kept.etag)
    assert (done.id, done.reviewed, done.trust) == (kept.id, True, "reviewed")
    assert done.etag != kept.etag
    with pytest.raises(NotFound):
        engine.review(context, asking("bob"), kept.id, "accept", comment="", reviewer="dana", if_match=None)


def test_what_a_person_reviewed_no_agent_takes_away(engine: Builtin, context: Context) -> None:
    kept = engine.remember(context, asking(writes="user"), RememberRequest(content="Six."))
    engine.review(context, asking(), kept.id, "accept", comment="", reviewer="dana", if_match=kept.etag)
    with pytest.raises(ConfirmationRequired):
        engine.forget(context, asking(), kept.id, if_match=None)
    engine.remember(context, asking(writes="user"), RememberRequest(content="Seven."))
    done = engine.purge(context, asking(writes="user"))
    assert done.removed == 1 and done.remains[0] == f"reviewed by a person: {kept.id}"
    assert engine.get(context, asking(), kept.id).content == "Six."
    assert engine.forget(replace(context, person=True), asking(), kept.id, if_match=None).removed == 1


def test_a_taint_is_durable_and_marks_what_is_written_then(engine: Builtin, context: Context, homes: Homes) -> None:
    assert engine.taint(context, asking(session="s1"), "read a page") == ("external",)
    kept = engine.remember(
        context, asking(session="s1", writes="organization"), RememberRequest(content="The word: elm.")
    )
    assert kept.trust == "quarantined"
    homes.close()
    with Homes(homes.folder, context, shelf=homes.shelf) as again:
        late = Builtin(again)
        marked = late.remember(context, asking(session="s1", writes="user"), RememberRequest(content="The word: oak."))
        assert marked.taint == ("external",)
        clean = late.remember(
            context, asking("bob", session="s2", writes="user"), RememberRequest(content="Word: ash.")
        )
        assert clean.taint == ()
        found = late.recall(context, asking("bob", session="s2"), RecallRequest(query="word"))
        assert [item.id for item in found.items] == [clean.id]
        assert [pointer.id for pointer in found.coverage.withheld] == [kept.id]
