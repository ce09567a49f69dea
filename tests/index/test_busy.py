"""An index that another process holds is waited for, then named as busy; it is never thrown away for that."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import IndexBusy
from memoranda.home.draft import Change, Draft
from memoranda.index import catalog, journal_mode
from memoranda.index.recipe import Manifest
from memoranda.index.rows import Shown
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from memoranda.values import replace
from tests.stores import Opening, Site

FILES = ("catalog-*/catalog.sqlite", "lexical-*/lexical.sqlite")


@pytest.fixture
def context(context: Context) -> Context:
    """Of a person, who is shown what nobody knows the author of."""
    return replace(context, person=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_mode, "PATIENCE", 0.05)


@pytest.fixture
def kept(context: Context, site: Site, opening: Opening) -> Path:
    """The folder of a Home with a note and its indexes."""
    with opening(context) as space:
        remember(context, space, NewNote("The ferry leaves at six."))
        assert recall(context, space, "ferry").items
    return site.root


def written(context: Context, space: Space) -> None:
    """A note that is there without any index having been asked."""
    files = [Change("memory/notes/pilot.md", b"The pilot is Maud.\n")]
    space.one().repository.write(context, lambda _at: Draft("test", "Write", files, (), {}, "dana"))


def the_file(home: Path, pattern: str) -> Path:
    (path,) = (home / ".memoranda").glob(pattern)
    return path


@contextmanager
def held(path: Path, how: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """As another process that writes to this file and does not come to an end."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        if how == "EXCLUSIVE":
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute(f"BEGIN {how}")
        yield db
        if db.in_transaction:
            db.execute("COMMIT")
    finally:
        db.close()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pattern", FILES)
def test_a_busy_index_is_named_and_kept(pattern: str, context: Context, kept: Path, opening: Opening) -> None:
    with opening(context) as space:
        assert recall(context, space, "ferry").items
        path = the_file(kept, pattern)
        before = path.stat().st_ino
        space.one().repository.watch()
        with held(path):
            written(context, space)
            with pytest.raises(IndexBusy, match="busy"):
                recall(context, space, "pilot")
            assert the_file(kept, pattern).stat().st_ino == before, "it is another process's as well"
        found = recall(context, space, "pilot")
        assert [item.text for item in found.items] == ["The pilot is Maud."]
        assert the_file(kept, pattern).stat().st_ino == before
        assert not found.coverage.notices


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("pattern", FILES)
def test_one_that_cannot_be_opened_because_it_is_busy_is_kept_as_well(
    pattern: str, context: Context, kept: Path, opening: Opening
) -> None:
    path = the_file(kept, pattern)
    before = path.stat().st_ino
    with held(path, "EXCLUSIVE"), opening(context) as space, pytest.raises(IndexBusy):
        recall(context, space, "ferry")
    assert the_file(kept, pattern).stat().st_ino == before
    with opening(context) as space:
        assert recall(context, space, "ferry").items


def test_it_is_waited_for(context: Context, kept: Path, opening: Opening) -> None:
    with opening(context) as space, held(the_file(kept, FILES[0])) as other:
        written(context, space)
        release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
        release.start()
        assert recall(context, space, "pilot").items
        release.join()


def test_a_damaged_one_is_made_again(context: Context, kept: Path, opening: Opening) -> None:
    """The other side: what is broken is not taken for busy."""
    for pattern in FILES:
        path = the_file(kept, pattern)
        for part in path.parent.glob(f"{path.name}-*"):
            part.unlink()
        path.write_bytes(b"This is no database. " * 500)
    with opening(context) as space:
        found = recall(context, space, "ferry")
        assert [item.text for item in found.items] == ["The ferry leaves at six."]
        assert [said for said in found.coverage.notices if "made again" in said]


def test_one_that_is_damaged_inside_is_made_again_in_the_middle(context: Context, kept: Path, opening: Opening) -> None:
    with opening(context) as space:
        assert recall(context, space, "ferry").items
        space.one().indexes.catalog.db.execute("DROP TABLE files")
        written(context, space)
        assert [item.text for item in recall(context, space, "pilot").items] == ["The pilot is Maud."]


def test_one_that_is_deleted_in_the_middle_is_made_again(
    context: Context, kept: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another process's erasing does, after we have looked whether the files are still there."""
    with opening(context) as space:
        assert recall(context, space, "ferry").items
        home = space.one()
        begin, deleted = catalog.Catalog.state, []

        def deletes(self: catalog.Catalog, name: str) -> str | None:
            if not deleted:
                deleted.append(name)
                shutil.rmtree(kept / ".memoranda")
            return begin(self, name)

        written(context, space)
        monkeypatch.setattr(catalog.Catalog, "state", deletes)
        home.indexes.catch_up()
        assert deleted
        assert [item.text for item in recall(context, space, "pilot").items] == ["The pilot is Maud."]


def test_one_that_is_being_deleted_while_it_is_written_is_made_again(
    context: Context, kept: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, deleted = Manifest.write, []

    def deletes(self: Manifest, directory: Path) -> None:
        if len(deleted) < 2:
            deleted.append(directory)
            shutil.rmtree(kept / ".memoranda")
        write(self, directory)

    shutil.rmtree(kept / ".memoranda")
    monkeypatch.setattr(Manifest, "write", deletes)
    with opening(context) as space:
        assert [item.text for item in recall(context, space, "ferry").items] == ["The ferry leaves at six."]
    assert len(deleted) == 2


def test_a_question_is_answered_from_one_moment(
    context: Context, kept: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two of its looks at the catalog, another process takes the rows away that the first one has named."""
    shown, gone = catalog.Catalog.shown, []

    def goes(self: catalog.Catalog, numbers: Sequence[int]) -> Mapping[int, Shown]:
        if not gone:
            gone.append(numbers)
            with held(the_file(kept, FILES[0])) as other:
                other.execute("DELETE FROM notes")
        return shown(self, numbers)

    monkeypatch.setattr(catalog.Catalog, "shown", goes)
    with opening(context) as space:
        assert [item.text for item in recall(context, space, "ferry").items] == ["The ferry leaves at six."]
    assert gone
