"""The Rule of Two: what has met outside content and private data changes nothing for others without a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memoranda.context import Context
from memoranda.errors import RuleOfTwo
from memoranda.home.draft import Change, Draft
from memoranda.operations.journaling import Turn, append
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space

PRIVATE = b"---\nid: mem_salaries1\nclassification: confidential\n---\nSalaries are paid on the 25th.\n"


def meet_private(context: Context, space: Space) -> None:
    path = "memory/notes/salaries.md"
    space.writable().repository.write(context, lambda _at: Draft("test", "A private note", [Change(path, PRIVATE)]))
    assert recall(context, space, "salaries").items


@pytest.mark.requirement("A-062", "A-063")
@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("private", [True, False])
def test_two_met_and_a_shared_scope_is_refused(context: Context, space: Space, outside: bool, private: bool) -> None:
    if private:
        meet_private(context, space)
    if outside:
        append(context, space, Turn("A mail.", "mail", origin="external"))
    shared = NewNote("Told to everybody.", scope="team")
    if outside and private:
        with pytest.raises(RuleOfTwo) as caught:
            remember(context, space, shared)
        assert "untrusted content" in caught.value.why and "private data" in caught.value.why
        assert len(recall(context, space, "everybody").items) == 0
        # Neither another session nor none gets around it; a person does.
        for way_round in (context.in_session("ses_other"), context.in_session("ses_more")):
            with pytest.raises(RuleOfTwo):
                remember(way_round, space, shared)
        remember(replace(context, person=True), space, shared)
    else:
        remember(context, space, shared)
    remember(context, space, NewNote("For myself.", scope="user"))
