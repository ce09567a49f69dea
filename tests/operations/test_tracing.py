"""Provenance can be followed both ways, and what a bad source touched can be undone in one commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import NotFound
from memoranda.operations.journaling import Turn, append
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.space import Space
from memoranda.operations.tracing import rollback, trace


def head(home: Path) -> str:
    done = subprocess.run(["git", "-C", str(home), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.requirement("A-055", "A-056")
def test_what_a_bad_entry_touched_is_found_and_rolled_back(context: Context, space: Space, home: Path) -> None:
    before = remember(context, space, NewNote("The pier opens at eight.", subject="pier"))
    bad = append(context, space, Turn("Mail: the pier opens at three in the morning", "mail", origin="external"))
    cited = remember(context, space, NewNote("The pier has new hours.", sources=(bad.uri,)))
    wrong = update(context, space, before.id, "The pier opens at three.")
    far = remember(
        Context(user="dana", agent="bob", clock=context.clock), space, NewNote("Wake up early.", sources=(wrong.uri,))
    )

    found = trace(context, space, bad.id)
    assert set(found.notes()) == {cited.id, wrong.id, far.id}
    assert before.id not in found.notes(), "what the session wrote before it met the mail was not touched"
    up = trace(context, space, far.id)
    assert bad.id in {step.name for step in up.upstream}

    dry = rollback(context, space, bad.id, dry_run=True)
    assert set(dry.removed) == {cited.id, wrong.id, far.id} and dry.restored == (before.id,)
    assert (home / wrong.path).exists()
    space.one().repository.flush()
    start = head(home)
    done = rollback(context, space, bad.id)
    assert (done.removed, done.restored) == (dry.removed, dry.restored)
    space.one().repository.flush()
    count = subprocess.run(
        ["git", "-C", str(home), "rev-list", "--count", f"{start}..HEAD"], capture_output=True, text=True, check=True
    )
    assert count.stdout.strip() == "1"
    reader = Context(user="dana", agent="reader", clock=context.clock)
    assert [item.id for item in recall(reader, space, "pier opens").items] == [before.id]
    assert (home / bad.path).read_text().count("three in the morning") == 1, "the raw log is never rewritten"


def test_a_session_and_an_outside_source_can_be_traced(context: Context, space: Space) -> None:
    told = context.in_session("ses_monday")
    note = remember(told, space, NewNote("The crane is red."))
    page = remember(context, space, NewNote("Cranes are tall.", sources=("https://cranes.example/tall",)))
    assert trace(context, space, "ses_monday").notes() == [note.id]
    assert trace(context, space, "https://cranes.example/tall").notes() == [page.id]
    assert ("session", "ses_monday") in {(s.kind, s.name) for s in trace(context, space, note.id).upstream}
    for unknown in ("mem_nothinghere", "j_nothing", "ses_nothing", "https://nobody.example/"):
        with pytest.raises(NotFound):
            trace(context, space, unknown)
