"""What the operating system refuses is told with what to do about it, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import HomeFormatUnknown, ReadOnlyHome
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


@pytest.mark.disk
def test_a_home_whose_refs_were_moved_into_a_table_is_refused_by_name(context: Context, home: Path, keys: Keys) -> None:
    """What `git refs migrate --ref-format=reftable` leaves: nothing that is written could be committed."""
    head = (home / ".git/HEAD").read_text()
    (home / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    with Space(context, keys, home, None) as space, pytest.raises(HomeFormatUnknown, match="reftable"):
        space.one()
    (home / ".git/HEAD").write_text(head)
    with Space(context, keys, home, None) as space:
        assert remember(context, space, NewNote("The ferry leaves at six.")).id


@pytest.mark.disk
def test_a_limit_on_the_size_of_files_refuses_by_name_and_loses_nothing(
    context: Context, space: Space, home: Path
) -> None:
    """`ulimit -f`, met by the log, by a pack, by an index: at the next call, without it, all is there."""
    kept = [remember(context, space, NewNote("The ferry leaves at six.")).path]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    refused = 0
    for most in (0, 1000, 6000, 70_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            kept.append(remember(context, space, NewNote(f"The pier, {most}. " + "It is long. " * 400)).path)
        except ReadOnlyHome:
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        kept.append(remember(context, space, NewNote(f"The gulls after {most}.")).path)
        assert recall(context, space, "ferry").items
    assert refused
    assert space.one().repository.flush() is None
    assert sorted(kept) == sorted(p.relative_to(home).as_posix() for p in (home / "memory/notes").rglob("*.md"))
    assert doctor(context, space).ok


@pytest.mark.disk
def test_a_question_is_answered_where_there_is_no_room_to_note_what_was_looked_at(
    context: Context, space: Space, home: Path, keys: Keys
) -> None:
    remember(context, space, NewNote("The ferry leaves at six."))
    assert space.one().repository.flush() is None  # nobody commits in between, so the indexes have nothing to take in
    assert recall(context, space, "ferry").items
    note = home / ".memoranda/folders.json"
    note.unlink()
    (home / "memory/notes/drafts").mkdir()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        assert recall(context, space, "ferry").items
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((home / ".memoranda").glob("folders.json*"))
    with Space(context, keys, home, None) as again:
        assert recall(context, again, "ferry").items
    assert note.exists()
