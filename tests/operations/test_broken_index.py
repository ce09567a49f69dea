"""An index that is broken inside, wherever that is: recall answers as before, and nothing breaks off."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import IndexDamaged
from memoranda.home.keys import Keys
from memoranda.operations.doctor import doctor
from memoranda.operations.listing import list_notes
from memoranda.operations.maintenance import index_status
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from memoranda.values import replace

PAGE = 4096
FILES = ("catalog-*/catalog.sqlite", "lexical-*/lexical.sqlite", "vectors-*/vectors.sqlite")


@pytest.fixture
def context(context: Context) -> Context:
    return replace(context, person=True)


@pytest.fixture
def kept(context: Context, home: Path, keys: Keys) -> Path:
    """A Home with a chain and its indexes."""
    with Space(context, keys, home, None) as space:
        notes = [
            remember(context, space, NewNote(f"Lantern {n} hangs at the pier.", subject=f"pier/{n % 2}"))
            for n in range(4)
        ]
        remember(context, space, NewNote("Lantern 0 was taken down.", supersedes=(notes[0].id,)))
        assert recall(context, space, "lantern").items
    return home


def broken(kept: Path, junk: Callable[[int], bytes], place: Path, step: int) -> Iterator[tuple[str, Path]]:
    """(name of the index, copy of the Home) with one page of one index overwritten, page after page."""
    for pattern in FILES:
        for whole in (kept / ".memoranda").glob(pattern):
            for page in range(0, whole.stat().st_size // PAGE, step):
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(kept, place)
                (path,) = (place / ".memoranda").glob(pattern)
                with path.open("r+b") as file:
                    file.seek(page * PAGE)
                    file.write(junk(PAGE))
                yield path.parent.name, place


def test_recall_answers_as_before(
    context: Context, kept: Path, keys: Keys, tmp_path: Path, seeded: Callable[[int], bytes]
) -> None:
    with Space(context, keys, kept, None) as space:
        before = [item.text for item in recall(context, space, "lantern").items]
    mended = 0
    for _, home in broken(kept, seeded, tmp_path / "copy", 3):
        with Space(context, keys, home, None) as space:
            recall(context, space, "lantern")  # the vectors are made anew for the next one
            assert [item.text for item in recall(context, space, "lantern").items] == before
            mended += bool(not index_damage(context, space))
    assert mended > 5


def index_damage(context: Context, space: Space) -> list[str]:
    return [finding.where for finding in doctor(context, space).findings if finding.code == "index_damaged"]


def test_doctor_says_which_and_makes_it_again(
    context: Context, kept: Path, keys: Keys, tmp_path: Path, seeded: Callable[[int], bytes]
) -> None:
    found = 0
    for name, home in broken(kept, seeded, tmp_path / "copy", 5):
        with Space(context, keys, home, None) as space:
            index_status(context, space)
            named = index_damage(context, space)
            assert set(named) <= {name}
            found += bool(named)
            report = doctor(context, space)
            assert report.ok, report.findings
            assert not [finding for finding in report.findings if finding.code.startswith("index_")]
            assert len(list_notes(context, space)) == 4
    assert found > 3


def test_what_is_written_does_not_depend_on_it(
    context: Context, kept: Path, keys: Keys, tmp_path: Path, seeded: Callable[[int], bytes]
) -> None:
    for _, home in broken(kept, seeded, tmp_path / "copy", 6):
        with Space(context, keys, home, None) as space:
            try:
                remember(context, space, NewNote("A gull sits on it."))
            except IndexDamaged as error:
                assert "index rebuild" in error.remedy
                continue
        with Space(context, keys, home, None) as space:
            assert [item.text for item in recall(context, space, "gull").items] == ["A gull sits on it."]
