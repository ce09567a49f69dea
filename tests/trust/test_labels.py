"""Taint only grows, a state follows from the ledger alone, and the Rule of Two lets two things through, never three."""

from __future__ import annotations

import itertools
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.notes.model import CLASSIFICATIONS, SCOPES
from memoranda.trust.labels import (
    CLEAN,
    SENSITIVITIES,
    SHARED_SCOPES,
    STATES,
    Root,
    Taint,
    inherit,
    is_private,
    loads,
    note_state,
    reaches_beyond,
    two_met,
    unresolved,
)

TAINTS = st.builds(
    lambda roots: Taint(frozenset(roots)),
    st.lists(st.builds(Root, st.sampled_from(["journal", "tool"]), st.text(max_size=5), st.just("r")), max_size=4),
)


@given(TAINTS, st.lists(TAINTS, max_size=5))
def test_a_note_has_the_taint_of_its_session_and_of_every_source_and_no_other(
    session: Taint, sources: list[Taint]
) -> None:
    taint = inherit(session, sources)
    assert session <= taint
    assert all(source <= taint for source in sources)
    assert taint.roots == session.roots.union(*(source.roots for source in sources))


@given(st.lists(TAINTS, min_size=1, max_size=4), st.data())
def test_taint_is_never_lost_through_any_number_of_steps(sessions: list[Taint], data: st.DataObject) -> None:
    """Notes cite notes, in whatever session; whatever stands anywhere among the ancestors of a note stands in it."""
    notes: list[Taint] = []
    ancestors: list[set[int]] = []
    for number in range(data.draw(st.integers(1, 12))):
        cited = data.draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        notes.append(inherit(data.draw(st.sampled_from(sessions)), [notes[i] for i in cited]))
        ancestors.append(cited.union(*(ancestors[i] for i in cited)))
        assert all(notes[i] <= notes[number] for i in ancestors[number])


@given(TAINTS)
def test_taint_survives_the_ledger(taint: Taint) -> None:
    assert Taint.read(json.loads(json.dumps(taint.records()))) == taint


def test_a_damaged_record_still_taints() -> None:
    assert Taint.read([{}])
    assert Taint.read([{"kind": None, "reason": 3}]).integrity == "external"


def test_a_source_that_cannot_be_resolved_is_external() -> None:
    assert inherit(CLEAN, [unresolved("nas://gone/x.md@1")]).labels == ("external",)
    assert CLEAN.labels == () and CLEAN.integrity == "internal"


@given(st.booleans(), st.booleans(), TAINTS, st.booleans())
def test_the_state_of_a_note(reviewed: bool, was_reviewed: bool, taint: Taint, written: bool) -> None:
    state = note_state(reviewed=reviewed, was_reviewed=was_reviewed, taint=taint, written=written)
    assert state in STATES
    assert (state == "reviewed") == reviewed
    assert (state == "quarantined") == (bool(taint) and not reviewed)
    assert (state == "contested") == (was_reviewed and not reviewed and not taint)
    assert (loads(reviewed=reviewed, was_reviewed=was_reviewed) == "these") == (state == "reviewed")


def test_nothing_that_was_never_reviewed_loads() -> None:
    assert loads(reviewed=False, was_reviewed=False) == ""
    assert loads(reviewed=False, was_reviewed=True) == "last reviewed"


def test_private_begins_at_confidential_and_a_word_that_nobody_knows_is_private() -> None:
    assert SENSITIVITIES == CLASSIFICATIONS
    assert [is_private(word) for word in SENSITIVITIES] == [False, False, True, True]
    assert is_private("Public") and is_private("") and is_private("Confidential ")


@pytest.mark.parametrize("operation", ["remember", "update", "forget", "import"])
def test_a_write_reaches_beyond_the_session_when_its_scope_is_shared(operation: str) -> None:
    beyond = {scope for scope in SCOPES if reaches_beyond(operation, scope)}
    assert beyond == SHARED_SCOPES == set(SCOPES) - {"session", "user", "agent"}


def test_what_always_and_what_never_reaches_beyond() -> None:
    for operation in ("export", "purge", "accept_review", "an operation of tomorrow"):
        assert reaches_beyond(operation, "user")
    for operation in ("recall", "read", "journal", "taint"):
        assert not reaches_beyond(operation, "global")


def test_two_of_the_three_are_allowed_and_three_are_not() -> None:
    for three in itertools.product((False, True), repeat=3):
        assert two_met(*three) == (("untrusted content", "private data") if all(three) else ())


def test_a_file_that_cites_very_much_costs_no_more_than_it_is_long() -> None:
    many = [unresolved(f"nas://gone/{number}.md") for number in range(60_000)]
    found: list[Taint] = []
    looking = threading.Thread(target=lambda: found.append(inherit(CLEAN, many)), daemon=True)
    looking.start()
    looking.join(20)  # squared, it would be minutes
    assert found and len(found[0].roots) == 60_000
