"""Retention: a note is hidden on time and removed when asked, and nothing unreviewed takes a reviewed note away."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Clock

from memoranda.context import Context
from memoranda.errors import InvalidNote, LegalHold, MemorandaError, NotFound
from memoranda.operations.doctor import doctor
from memoranda.operations.expiring import expire
from memoranda.operations.forgetting import Forgotten
from memoranda.operations.holding import hold
from memoranda.operations.journaling import Turn, append
from memoranda.operations.listing import history, list_notes
from memoranda.operations.loading import automatic_context
from memoranda.operations.reading import read
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide, queue
from memoranda.operations.space import Space
from memoranda.operations.timelines import timeline
from tests.stores import Site


def ids(items: list[object] | tuple[object, ...]) -> list[str]:
    return sorted(item.id for item in items)  # type: ignore[attr-defined]


def asked(context: Context, space: Space, words: str) -> set[str]:
    """The ids that any form of this question shows."""
    forms = ({}, {"history": True}, {"as_of": context.now()}, {"known_at": context.now()})
    return {item.id for form in forms for item in recall(context, space, words, **form).items if item.kind != "journal"}


def test_a_note_is_hidden_everywhere_from_the_moment_on(
    context: Context, person: Context, space: Space, clock: Clock, site: Site
) -> None:
    short = remember(context, space, NewNote("The lamp is lit.", subject="lamp", retention_days=30))
    long = remember(context, space, NewNote("The lamp is green.", subject="lamp", retention_days=365))
    decide(person, space, [short.id, long.id], "accept")
    clock.tick(days=29, hours=23)
    assert asked(context, space, "lamp") == {short.id, long.id}
    assert len(automatic_context(context, space).items) == 2
    assert expire(context, space).removed == ()
    clock.tick(hours=2)
    assert asked(context, space, "lamp") == {long.id}
    assert ids(list_notes(context, space)) == [long.id]
    assert ids(automatic_context(context, space).items) == [long.id]
    assert ids(queue(context, space, states=("reviewed",))) == [long.id]
    for uri in (short.id, short.uri, short.path):
        with pytest.raises(NotFound, match="retention"):
            read(context, space, uri)
    with pytest.raises(NotFound):
        history(context, space, short.id)
    assert ids(timeline(context, space, "lamp")) == [long.id]
    assert site.file(short.path), "hidden, and removed when asked"

    dry = expire(context, space, dry_run=True)
    assert ids([item for item in dry.removed if item.kind == "note"]) == [short.id] and site.file(short.path)
    done = expire(context, space)
    assert done.removed == dry.removed and "retention ended on 2026-11-01" in done.removed[0].why
    assert not done.erased and not site.file(short.path)
    assert expire(context, space).removed == ()
    space.one().repository.flush()
    assert "The lamp is lit" in site.git("log", "-p")
    assert remember(context, space, NewNote("The lamp is lit.")).id, "what expired may be learned again"


@pytest.mark.requirement("A-060")
def test_the_history_goes_with_it_when_its_class_asks_for_it(
    context: Context, space: Space, clock: Clock, site: Site
) -> None:
    gone = remember(context, space, NewNote("Kowalskoff came.", retention_days=1, retention_class="erase_history"))
    kept = remember(context, space, NewNote("Zebrafisch came.", retention_days=1, retention_class="keep_history"))
    clock.tick(days=2)
    done = expire(context, space)
    assert ids([x for x in done.removed if x.kind == "note"]) == sorted([gone.id, kept.id]) and done.erased
    assert done.found == () and site.places(["kowalskoff"]) == []
    assert "Zebrafisch" in site.git("log", "-p")
    with pytest.raises(InvalidNote):
        remember(context, space, NewNote("Bad.", retention_class="for_ever"))
    assert doctor(context, space).ok


def test_what_was_said_stays_in_the_journal(context: Context, space: Space, clock: Clock) -> None:
    """Else a note that cites a whole journal, and ends at once, would take it away without a person."""
    said = append(context, space, Turn("Kowalskoff is the new harbour master.", "dana"))
    whole = said.uri.partition("#")[0]
    note = remember(
        context, space,
        NewNote("Zebrafisch.", sources=(said.uri, whole), retention_days=0, retention_class="erase_history"),
    )  # fmt: skip
    done = expire(context, space)
    assert [item.id for item in done.removed] == [note.id] and done.erased
    assert read(context, space, said.uri).text.endswith("harbour master.")
    assert [item.id for item in recall(context, space, "harbour master").items] == [said.id]


def test_ending_a_head_ends_its_chain_and_what_was_generated_from_it(
    context: Context, space: Space, clock: Clock, home: Path
) -> None:
    old = remember(context, space, NewNote("The pier opens at eight."))
    new = update(context, space, old.id, "The pier opens at nine.", changes={"retention_days": 10})
    text = f"---\nid: mem_sum1\ngenerated: true\ninputs: [{new.id}]\n---\nPiers open in the morning.\n"
    (home / "memory/notes/sum.md").write_text(text)
    cites = remember(context, space, NewNote("Come at nine.", sources=(new.uri,)))
    clock.tick(days=11)
    assert asked(context, space, "pier opens") == {"mem_sum1"}, "no predecessor comes back to life"
    done = expire(context, space)
    assert ids([x for x in done.removed if x.kind == "note"]) == sorted([old.id, new.id, "mem_sum1"])
    assert ids(list_notes(context, space)) == [cites.id], "somebody's own note stays"


def test_a_former_note_that_ends_leaves_its_head(context: Context, space: Space, clock: Clock) -> None:
    old = remember(context, space, NewNote("The pier opens at eight.", retention_days=1))
    head = remember(context, space, NewNote("The pier opens at nine.", supersedes=(old.id,)))
    clock.tick(days=2)
    assert ids([x for x in expire(context, space).removed if x.kind == "note"]) == [old.id]
    assert ids(list_notes(context, space)) == [head.id]
    assert doctor(context, space).ok


def test_of_two_retentions_the_shorter_wins(context: Context, space: Space, clock: Clock, home: Path) -> None:
    note = remember(context, space, NewNote("The lamp is lit.", retention_days=30))
    longer = update(context, space, note.id, "The lamp is out.", changes={"retention_days": 300})
    taken_over = update(context, space, longer.id, "The lamp is lit again.")
    own = remember(context, space, NewNote("The crane is red.", retention_days=30))
    path = home / own.path
    path.write_text(path.read_text().replace("retention_days: 30", "retention_days: 3000"))
    assert [row.retention_days for n in (longer, taken_over) for row in space.one().indexes.catalog.by_id(n.id)] == [30]
    space.one().refresh(context)
    clock.tick(days=31)
    assert asked(context, space, "lamp crane") == set()
    assert len([x for x in expire(context, space).removed if x.kind == "note"]) == 4


def test_a_hold_refuses_and_keeps_nothing_else(
    context: Context, person: Context, space: Space, clock: Clock, site: Site
) -> None:
    held = remember(context, space, NewNote("The lamp is lit.", retention_days=1, legal_hold=True))
    free = remember(context, space, NewNote("The crane is red.", retention_days=1))
    clock.tick(days=2)
    assert asked(context, space, "lamp crane") == set(), "a hold keeps a note from being removed, not from being hidden"
    for dry_run in (True, False):
        with pytest.raises(LegalHold, match=held.id) as refused:
            expire(context, space, dry_run=dry_run)
        done = refused.value.done
        assert isinstance(done, Forgotten) and done.dry_run == dry_run
        assert ids([x for x in done.removed if x.kind == "note"]) == [free.id]
        assert (held.id, True) in [(r.what, "legal hold" in r.why) for r in done.remains]
        assert site.file(held.path) and (site.file(free.path) is not None) == dry_run
    with pytest.raises(LegalHold, match=held.id):
        expire(context, space)  # as often as it is tried, also when nothing else is due
    hold(person, space, [held.id], "release", reason="closed")
    assert ids([x for x in expire(context, space).removed if x.kind == "note"]) == [held.id]


def test_no_unreviewed_retention_takes_a_reviewed_note_away(
    context: Context, person: Context, space: Space, site: Site, clock: Clock, home: Path
) -> None:
    edited = remember(context, space, NewNote("The lamp is lit.", subject="lamp"))
    superseded = remember(context, space, NewNote("The crane is red.", subject="crane"))
    decide(person, space, [edited.id, superseded.id], "accept")
    path = home / edited.path
    path.write_text(
        path.read_text().replace("\nsources:", "\nretention_days: 0\nretention_class: erase_history\nsources:")
    )
    update(
        context, space, superseded.id, "The crane is blue.",
        changes={"retention_days": 0, "retention_class": "erase_history"},
    )  # fmt: skip
    clock.tick(days=1)
    assert ids(automatic_context(context, space).items) == sorted([edited.id, superseded.id])
    done = expire(context, space)
    assert done.removed == () and any(superseded.id in r.what and "terminal" in r.why for r in done.remains)
    assert site.file(superseded.path) and path.exists()
    assert ids(automatic_context(context, space).items) == sorted([edited.id, superseded.id])
    done = expire(person, space)
    assert superseded.id in {x.id for x in done.removed} and edited.id not in {x.id for x in done.removed}


def test_an_agent_s_retention_takes_no_note_of_others_away(
    context: Context, person: Context, space: Space, clock: Clock, site: Site
) -> None:
    bobs = remember(replace(context, agent="bob"), space, NewNote("The crane is red."))
    over = {"retention_days": 0, "retention_class": "erase_history"}
    mine = update(context, space, bobs.id, "The crane is blue.", changes=over)
    done = expire(context, space)
    assert done.removed == () and any(bobs.id in r.what and "somebody else" in r.why for r in done.remains)
    assert site.file(bobs.path)
    assert {x.id for x in expire(person, space).removed if x.kind == "note"} == {bobs.id, mine.id}


def test_an_edit_of_a_file_takes_no_history_without_a_person(
    context: Context, person: Context, space: Space, site: Site, clock: Clock, home: Path
) -> None:
    notes = [remember(replace(context, agent="bob"), space, NewNote(f"Kowalskoff {n}.")) for n in "ab"]
    added = "\nretention_days: 0\nretention_class: erase_history\nsources:"
    for note in notes:
        path = home / note.path
        path.write_text(path.read_text().replace("\nsources:", added))
    done = expire(context, space)
    assert len(done.removed) == 4 and not done.erased
    space.one().repository.flush()
    assert "Kowalskoff a." in site.git("log", "-p"), "an agent that edits a file could have deleted it, and no more"


def test_a_note_that_expired_does_not_come_back_with_an_old_state(
    context: Context, space: Space, site: Site, clock: Clock, home: Path
) -> None:
    note = remember(context, space, NewNote("The lamp is lit.", retention_days=1))
    space.one().repository.flush()
    data = site.file(note.path)
    clock.tick(days=2)
    expire(context, space)
    (home / note.path).parent.mkdir(parents=True, exist_ok=True)
    (home / note.path).write_bytes(data)
    assert asked(context, space, "lamp") == set()
    report = doctor(context, space)
    assert "file_refused" in {finding.code for finding in report.findings}


def test_a_retention_without_end_is_none(context: Context, space: Space, home: Path) -> None:
    (home / "memory/notes").mkdir()
    (home / "memory/notes/long.md").write_text(f"---\nretention_days: {10**30}\n---\nThe lamp is lit.\n")
    assert len(asked(context, space, "lamp")) == 1
    with pytest.raises(MemorandaError):
        remember(context, space, NewNote("Bad.", retention_days=-1))
    assert expire(replace(context, clock=lambda: context.now() + timedelta(days=10)), space).removed == ()
