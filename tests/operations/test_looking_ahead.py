"""A comparison that is begun ahead of the question answers the first look, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.faces import local
from memoranda.home import comparison
from memoranda.home.keys import Keys
from memoranda.home.layout import layout_of
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space


@pytest.fixture
def notes(context: Context, home: Path, keys: Keys) -> list[Path]:
    with Space(context, keys, home, None) as space:
        told = [remember(context, space, NewNote(f"The ferry to {place}.")) for place in ("Horta", "Velas")]
    return [home / one.path for one in told]


def _edit(path: Path, word: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + f"\nA word: {word}.\n", encoding="utf-8")


def test_an_edit_before_it_is_recalled_and_one_after_it_by_the_next_question(
    context: Context, home: Path, keys: Keys, notes: list[Path]
) -> None:
    _edit(notes[0], "zebra")
    begun = comparison.begin(layout_of(home))
    assert begun is not None
    with Space(context, keys, home, None, begun=begun) as space:
        assert "zebra" in recall(context, space, "zebra").items[0].text
        _edit(notes[1], "okapi")
        assert "okapi" in recall(context, space, "okapi").items[0].text


def test_without_an_index_there_is_nothing_to_begin_and_an_edit_is_found_all_the_same(
    context: Context, home: Path, keys: Keys, notes: list[Path]
) -> None:
    (home / ".git" / "index").unlink()
    _edit(notes[0], "zebra")
    begun = local.begin(local.Choice(home, None))
    assert begun is None
    with Space(context, keys, home, None, begun=begun) as space:
        assert "zebra" in recall(context, space, "zebra").items[0].text


def test_an_index_that_git_cannot_read_says_nothing_of_any_file(home: Path, notes: list[Path]) -> None:
    (home / ".git" / "index").write_bytes(b"DIRC" + bytes(40))
    _edit(notes[0], "zebra")
    begun = comparison.begin(layout_of(home))
    assert begun is not None
    assert begun.differing() is None
