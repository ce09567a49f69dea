"""Who writes at the same time as others has a sheet of the journal of their own; who comes later goes on in one."""

from __future__ import annotations

from pathlib import Path

from home.tools import assert_sound, git, note, texts
from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.notes.journal import parse_journal
from memoranda.operations import journaling
from memoranda.operations.space import Space


def sheet_of(context: Context, space: Space, text: str) -> str:
    return journaling.append(context, space, journaling.Turn(text, "dana")).path


def entries(home: Path) -> dict[str, list[str]]:
    found = sorted((home / "agents").rglob("*.md"))
    return {str(path.relative_to(home)): [e.text for e in parse_journal(path.read_bytes())] for path in found}


def test_each_of_two_writers_keeps_to_a_sheet_and_nobody_loses_an_entry(home: Path, keys: Keys) -> None:
    context = Context(user="dana", agent="cleo")
    with Space(context, keys, home, None) as one, Space(context, keys, home, None) as two:
        for space in (one, two):
            space.one().repository._background.stop()  # what is written stays new: it is not in Git
        sheets = [(sheet_of(context, one, f"one {n}"), sheet_of(context, two, f"two {n}")) for n in range(4)]
        (first, second), *others = sheets
        assert first != second
        assert set(others) == {(first, second)}
        assert entries(home) == {first: [f"one {n}" for n in range(4)], second: [f"two {n}" for n in range(4)]}
        note(context, one, "a note")
        assert "a note" in texts(context, two).values()
    assert_sound(home)


def test_a_sheet_that_a_person_went_back_behind_is_not_in_the_way(home: Path, keys: Keys) -> None:
    """It stands there, and no commit and no record knows it: the next entry begins another one."""
    context = Context(user="dana", agent="cleo")
    with Space(context, keys, home, None) as space:
        left = sheet_of(context, space, "one")
        assert space.one().repository.flush() is None
    git(home, "reset", "--quiet", "--mixed", "HEAD~1")
    with Space(context, keys, home, None) as space:
        fresh = sheet_of(context, space, "two")
        assert fresh != left
        space.one().refresh(context)  # and it is taken in as an edit
    assert entries(home) == {left: ["one"], fresh: ["two"]}
    assert_sound(home)


def test_a_sheet_to_which_somebody_else_has_appended_is_gone_on_with(home: Path, keys: Keys) -> None:
    """One that begins when all is in Git goes on in the last sheet; its owner reads that back, and loses nothing."""
    context = Context(user="dana", agent="cleo")
    with Space(context, keys, home, None) as one:
        sheet = sheet_of(context, one, "one 0")
        assert one.one().repository.flush() is None
        with Space(context, keys, home, None) as later:
            assert sheet_of(context, later, "later 0") == sheet
            assert sheet_of(context, one, "one 1") == sheet
            assert sheet_of(context, later, "later 1") == sheet
        assert entries(home) == {sheet: ["one 0", "later 0", "one 1", "later 1"]}
    assert_sound(home)


def test_an_edit_of_the_open_sheet_is_found_and_kept(home: Path, keys: Keys) -> None:
    context = Context(user="dana", agent="cleo")
    with Space(context, keys, home, None) as space:
        sheet = sheet_of(context, space, "the first")
        path = home / sheet
        path.write_bytes(path.read_bytes().replace(b"the first", b"THE FIRST"))
        sheet_of(context, space, "the second")
        space.one().repository.look(context)
        sheet_of(context, space, "the third")
        assert [text for texts in entries(home).values() for text in texts] == ["THE FIRST", "the second", "the third"]
    assert_sound(home)
