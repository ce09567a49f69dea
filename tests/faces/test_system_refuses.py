"""What the operating system refuses is told with what to do about it, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.faces.local import refused_by_system
from memoranda.home.keys import Keys
from memoranda.index.indexes import REBUILDING, Indexes
from memoranda.operations.doctor import doctor
from memoranda.operations.maintenance import index_rebuild, index_status
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "Make room"), (errno.EROFS, "right to read and write"), (errno.EIO, "again")]
)
def test_an_error_of_the_system_says_what_to_do(number: int, remedy: str) -> None:
    told = refused_by_system(OSError(number, os.strerror(number), "/home/notes"))
    assert told.what == f"/home/notes: {os.strerror(number)}." and remedy in told.remedy
    assert "Errno" not in refused_by_system(OSError(number, os.strerror(number))).what


def test_a_rebuild_that_fails_leaves_nothing(
    context: Context, space: Space, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(context, space, NewNote("The ferry leaves at six."))
    assert recall(context, space, "ferry").items
    made = Indexes.catch_up

    def full(self: Indexes, *given: object) -> object:
        made(self, *given)  # type: ignore[arg-type]
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Indexes, "catch_up", full)
        with pytest.raises(OSError, match="No space"):
            space.one().indexes.rebuild()
    assert not (home / ".memoranda" / REBUILDING).exists()
    assert recall(context, space, "ferry").items
    index_rebuild(context, space)
    assert doctor(context, space).ok


def test_what_a_killed_rebuild_left_is_no_foreign_index(context: Context, space: Space, home: Path) -> None:
    left = home / ".memoranda" / REBUILDING
    recall(context, space, "ferry")
    shutil.copytree(home / ".memoranda", left)
    assert REBUILDING not in [index.name for index in index_status(context, space)[0].indexes]
    (finding,) = doctor(context, space).findings
    assert (finding.code, finding.where, finding.severity) == ("leftover", REBUILDING, "notice")
    lock = space.one().indexes._turn()
    lock.acquire()  # as another process that is at it
    assert not doctor(context, space, fix=True).findings and left.exists()
    lock.close()
    (finding,) = doctor(context, space, fix=True).findings
    assert finding.fixed and not left.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_told(context: Context, home: Path, keys: Keys) -> None:
    with Space(context, keys, home, None) as space:
        folder = (home / remember(context, space, NewNote("The ferry leaves at six.")).path).parent
        recall(context, space, "ferry")
    folder.chmod(0)
    try:
        with Space(context, keys, home, None) as space:
            assert recall(context, space, "ferry").items
            assert [f.where for f in doctor(context, space).findings] == [str(folder.relative_to(home))]
    finally:
        folder.chmod(0o755)


def test_what_is_not_taken_in_is_told_as_what_it_is(context: Context, space: Space, home: Path) -> None:
    notes = home / "memory/notes"
    notes.mkdir(exist_ok=True)
    (notes / "link.md").symlink_to(home / "memory/home.yaml")
    os.mkfifo(notes / "pipe.md")
    (notes / "back\\slash.md").write_text("x")
    named = [f for f in doctor(context, space).findings if "slash" in f.where]
    assert [(f.what.endswith(".."), f.remedy.split()[0]) for f in named] == [(False, "Give")]
    told = {f.where: f.what for f in doctor(context, space).findings if f.code == "file_left_alone"}
    assert "link" in told["memory/notes/link.md"] and "no regular file" in told["memory/notes/pipe.md"]
