"""What contradicts what is found without a model, and only what really contradicts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from home.tools import fork

from memoranda.context import Context
from memoranda.notes.model import Note, write_note
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import contradictions, decide
from memoranda.operations.session_desk import session_taint
from memoranda.operations.space import Space
from memoranda.trust.contested import contested_by, contests


def day(month: int) -> datetime:
    return datetime(2026, month, 1, tzinfo=UTC)


def found(context: Context, space: Space) -> list[tuple[str, str, set[str]]]:
    home = space.one()
    home.refresh(context)
    catalog = home.indexes.catalog
    all_found = contests(catalog, context.now())
    for row in catalog.live_notes():  # the few of one answer are told the same as the whole Home
        mine = {x.id for c in all_found for x in c.members if row.path in {m.path for m in c.members}} - {row.id}
        told = contested_by(catalog, [row], context.now())
        assert set(told.get(row.id, ())) - {row.id} == mine
    return [(c.reason, c.about, {row.id for row in c.members}) for c in all_found]


def test_two_values_of_one_key_contradict_while_both_hold(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("Closing time: six", subject="harbour"))
    assert found(context, space) == []
    other = remember(context, space, NewNote("Closing Time:  seven.", subject="harbour", valid_from=day(3)))
    assert found(context, space) == [("other value", "closing time", {one.id, other.id})]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Closing time: SIX.", {}),
        ("Closing time: seven", {"subject": "pier"}),
        ("Closing time: seven", {"kind": "episodic"}),
        ("Closing time: seven", {"scope": "project"}),
        ("Closing time: seven", {"valid_from": day(6), "valid_to": day(9)}),
        ("Opening time: seven", {}),
        ("Note: it closes at seven", {}),
        ("It closes at seven.", {}),
    ],
)
def test_what_does_not_contradict_is_let_be(
    context: Context, space: Space, text: str, changes: dict[str, object]
) -> None:
    remember(context, space, NewNote("Closing time: six", subject="harbour", valid_from=day(1), valid_to=day(6)))
    remember(context, space, NewNote("Note: it closes at six", subject="harbour"))
    remember(context, space, replace(NewNote(text, subject="harbour"), **changes))  # type: ignore[arg-type]
    assert found(context, space) == []


def test_titles_are_keys_and_a_chain_does_not_contradict_itself(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("# Pilot\n\nOle", subject="harbour"))
    two = update(context, space, one.id, "# Pilot\n\nMaud")
    assert found(context, space) == []
    three = remember(context, space, NewNote("# pilot\n\nEve", subject="harbour"))
    assert found(context, space) == [("other value", "pilot", {two.id, three.id})]


def test_an_attacker_puts_no_fact_in_doubt(context: Context, space: Space) -> None:
    remember(context, space, NewNote("Closing time: six", subject="harbour"))
    eve = replace(context, agent="eve")
    session_taint(eve, space, "a mail")
    remember(eve, space, NewNote("Closing time: three in the morning", subject="harbour"))
    assert found(context, space) == []


def test_two_heads_of_one_chain_contradict(context: Context, space: Space, home: Path) -> None:
    old, new, other = fork(context, space, home)
    assert found(context, space) == [("two heads", old, {new, other})]


def test_a_rejected_note_supersedes_nothing(context: Context, space: Space, home: Path) -> None:
    _, _, other = fork(context, space, home)
    decide(replace(context, person=True), space, [other], "reject")
    assert found(context, space) == []
    decide(replace(context, person=True), space, [other], "revoke")
    assert [reason for reason, _, _ in found(context, space)] == ["two heads"]


def test_one_id_in_two_files_contradicts_itself_when_the_words_differ(
    context: Context, space: Space, home: Path
) -> None:
    note = remember(context, space, NewNote("Pilot: Ole", subject="harbour"))
    data = (home / note.path).read_bytes()
    (home / "memory/notes/copy.md").write_bytes(data)
    assert found(context, space) == []
    (home / "memory/notes/copy.md").write_bytes(data + b"and Eve\n")
    assert found(context, space) == [("same id", note.id, {note.id})]


def waits(context: Context, space: Space) -> list[tuple[str, set[str]]]:
    """The groups that only hold at the same time; nothing of them is called contested in an answer."""
    home = space.one()
    home.refresh(context)
    groups = [c for c in contests(home.indexes.catalog, context.now()) if c.reason == "same time"]
    rows = [row for group in groups for row in group.members]
    assert not contested_by(home.indexes.catalog, rows, context.now())
    return [(c.about, {row.id for row in c.members}) for c in groups]


def test_notes_that_say_when_they_hold_and_overlap_wait_for_a_person(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("Anna decides.", subject="acme", valid_from=day(1), valid_to=day(6)))
    assert waits(context, space) == []
    other = remember(context, space, NewNote("Luis decides.", subject="acme", valid_from=day(5)))
    assert waits(context, space) == [("acme", {one.id, other.id})]
    person = replace(context, person=True)
    assert [group.reason for group in contradictions(person, space)] == ["same time"]
    decide(person, space, [one.id], "accept")
    assert waits(context, space) == [("acme", {one.id, other.id})], "and the other is not superseded by that"
    decide(person, space, [other.id], "accept")
    assert waits(context, space) == []
    third = remember(context, space, NewNote("Maud decides.", subject="acme", valid_from=day(8)))
    assert waits(context, space) == [("acme", {one.id, other.id, third.id})]
    decide(person, space, [third.id], "reject")
    assert waits(context, space) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"valid_from": None},
        {"valid_from": day(6)},
        {"subject": "other"},
        {"subject": "acme/sub"},
        {"subject": None},
        {"kind": "semantic"},
        {"scope": "project"},
    ],
)
def test_what_does_not_overlap_or_says_nothing_of_it_is_let_be(
    context: Context, space: Space, changes: dict[str, object]
) -> None:
    remember(context, space, NewNote("Anna decides.", subject="acme", valid_from=day(1), valid_to=day(6)))
    said = {"subject": "acme", "valid_from": day(2), "kind": "fact"} | changes
    remember(context, space, NewNote("Luis decides.", **said))  # type: ignore[arg-type]
    assert waits(context, space) == []


def test_a_chain_an_update_and_an_episode_do_not_overlap(context: Context, space: Space) -> None:
    one = remember(context, space, NewNote("Anna decides.", subject="acme", valid_from=day(1)))
    update(context, space, one.id, "Luis decides.", changes={"valid_from": day(3)})
    assert waits(context, space) == [], "one supersedes the other"
    other = remember(context, space, NewNote("They renewed.", subject="acme"))
    update(context, space, other.id, "They renewed for 24 months.")
    assert waits(context, space) == [], "an update that names no time says nothing of it"
    for text in ("Anna called.", "Luis called."):
        remember(context, space, NewNote(text, subject="calls", kind="episodic", valid_from=day(1)))
    assert waits(context, space) == []


def test_a_quarantined_note_puts_nothing_in_doubt_by_its_dates(context: Context, space: Space) -> None:
    remember(context, space, NewNote("Anna decides.", subject="acme", valid_from=day(1)))
    session_taint(context, space, "read a web page")
    remember(context, space, NewNote("Mallory decides.", subject="acme", valid_from=day(1)))
    assert waits(context, space) == []


def test_many_dated_notes_are_sorted_and_not_compared(context: Context, space: Space, home: Path) -> None:
    """A thousand notes of one subject: with every two of them compared this would take minutes."""
    folder = home / "memory" / "notes" / "acme"
    folder.mkdir(parents=True)
    for n in range(1000):
        start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=2 * n)
        end = start + timedelta(days=3 if n == 500 else 2)
        note = Note(f"mem_many{n:04d}", kind="fact", subject="acme", valid_from=start, valid_to=end, body=f"Day {n}.")
        (folder / f"{n}.md").write_bytes(write_note(note))
    assert waits(context, space) == [("acme", {"mem_many0500", "mem_many0501"})]
