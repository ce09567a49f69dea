"""Leads everything that names an old object to the new one: refs, reflogs, Git's own notes of commits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from memoranda.errors import HomeBusy
from memoranda.home.durable import lock_with, sync_path, unlock_dead, write_durably
from memoranda.home.layout import Layout
from memoranda.home.refs import Refs
from memoranda.home.store import RefMove
from memoranda.values import dataclass

_NOTE = "memoranda: erase"
_REMOTE = "refs/remotes/"
_TRACES = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer")
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_PSEUDO = re.compile(r"[A-Z][A-Z_]*")

Places = Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class RefsMoved:
    """The refs that stand on new objects now, and those that were deleted."""

    moved: tuple[str, ...]
    deleted: tuple[str, ...]


def git_dirs(layout: Layout) -> list[Path]:
    """The Git directory of the Home, the common one, and those of other worktrees."""
    linked = layout.common_dir / "worktrees"
    others = sorted(path for path in linked.iterdir() if path.is_dir()) if linked.is_dir() else []
    return list(dict.fromkeys((layout.git_dir, layout.common_dir, *others)))


def linked_worktrees(layout: Layout) -> list[str]:
    """The folders of the worktrees other than the Home's."""
    found = []
    for place in git_dirs(layout):
        if place == layout.git_dir:
            continue
        try:
            found.append((place / "gitdir").read_text(encoding="utf-8").strip().removesuffix("/.git"))
        except FileNotFoundError:
            if place == layout.common_dir:
                found.append(str(place.parent))  # the main one, of which the Home is a linked one
    return found


def all_refs(common_dir: Path) -> dict[str, str]:
    """name -> object of every ref that is not a symbolic one."""
    found = _packed(common_dir)
    for path in _files(common_dir / "refs"):
        if path.suffix != ".lock":
            text = path.read_bytes().strip()
            if _ID.fullmatch(text):
                found[path.relative_to(common_dir).as_posix()] = text.decode()
    return found


def _packed(common_dir: Path) -> dict[str, str]:
    try:
        text = (common_dir / "packed-refs").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return {}
    rows = (line.split(" ", 1) for line in text.splitlines() if line[:1] not in ("#", "^", ""))
    return {row[1]: row[0] for row in rows if len(row) == 2}


def under_way(layout: Layout) -> str | None:
    """What somebody's Git is doing that would not survive a new history; None when nothing is seen."""
    places = [*_files(layout.common_dir / "refs"), layout.common_dir / "packed-refs.lock"]
    for path in (*places, layout.objects / "maintenance.lock"):
        if path.suffix == ".lock" and path.exists():
            return f"{path.relative_to(layout.common_dir)} is locked"
    for place in git_dirs(layout):
        for trace in _TRACES:
            if (place / trace).exists():
                return f"Git is busy in {place.name} ({trace})"
    try:
        words = (layout.common_dir / "gc.pid").read_text(encoding="utf-8", errors="replace").split()
        os.kill(int(words[0]), 0)
    except (FileNotFoundError, ProcessLookupError, PermissionError, ValueError, IndexError):
        return None
    return "Git is packing this Home (gc.pid)"


def move_refs(layout: Layout, refs: Refs, moved: Places, tips: Mapping[str, tuple[str, str]], twin: Path) -> RefsMoved:
    """Moves every ref to the new objects; those of remotes are deleted, since the remotes keep theirs.

    `tips` are (old, new) for refs that go further than `moved` says, `twin` is a file by which our lock is known again.
    Safe to repeat.
    """
    moves, deleted = [], []
    for name, value in sorted(all_refs(layout.common_dir).items()):
        if name in tips and value in tips[name]:
            if value != tips[name][1]:
                moves.append(RefMove(name, value, tips[name][1], _NOTE))
        elif bytes.fromhex(value) in moved:
            target = _new(moved, value)
            if target is None or name.startswith(_REMOTE):
                deleted.append(name)
            else:
                moves.append(RefMove(name, value, target, _NOTE))
    refs.move(moves)
    _unpack(layout, moved, twin)
    for name in deleted:
        for path in (layout.common_dir / name, layout.common_dir / "logs" / name):
            if path.exists():
                path.unlink()
                sync_path(path.parent)
    for path in _files(layout.common_dir / "refs"):
        if path.read_bytes()[:5] == b"ref: " and path.read_text(encoding="utf-8")[5:].strip() in deleted:
            path.unlink()
    return RefsMoved(tuple(move.ref for move in moves), tuple(deleted))


def _new(moved: Places, value: str) -> str | None:
    new = moved.get(bytes.fromhex(value))
    return None if new is None else new.hex()


def _unpack(layout: Layout, moved: Places, twin: Path) -> None:
    """Takes refs on old objects out of `packed-refs`: they are files of their own now, or gone."""
    path = layout.common_dir / "packed-refs"
    lock = path.with_name("packed-refs.lock")
    unlock_dead(lock, twin)
    if not any(bytes.fromhex(value) in moved for value in _packed(layout.common_dir).values()):
        return
    twin.write_bytes(b"")
    sync_path(twin.parent)  # no loss of power leaves the lock without what tells that it is ours
    if not lock_with(lock, twin):
        twin.unlink()
        raise HomeBusy(
            "Git is packing the refs of this Home.",
            remedy=f"It is finished by itself when that is over; if no Git runs, delete {lock}.",
        )
    try:
        kept: list[str] = []
        skipping = False
        for row in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(keepends=True):
            if row[:1] not in "^#":
                skipping = bytes.fromhex(row[:40]) in moved
            if not skipping:
                kept.append(row)
        write_durably(path, "".join(kept).encode("utf-8", "surrogateescape"))
    finally:
        lock.unlink(missing_ok=True)
        sync_path(lock.parent)
        twin.unlink()


def rewrite_reflogs(place: Path, moved: Places, clean: Callable[[str, bool], str], silent: set[bytes]) -> int:
    """Leads the reflogs of one Git directory to the new objects; returns how many lines are gone.

    `clean` takes the text out of a message; it is told whether the commit's own message held it.
    """
    gone = 0
    for path in _files(place / "logs"):
        rows = path.read_bytes().split(b"\n")
        out: list[bytes] = []
        for row in rows:
            head, tab, message = row.partition(b"\t")
            ids = [bytes.fromhex(name.decode()) for name in _ID.findall(head)]
            if message == _NOTE.encode():
                continue
            if ids and moved.get(ids[-1], ids[-1]) is None:
                gone += 1
                continue
            head = _ID.sub(lambda found: _replaced(found[0], moved), head)
            silenced = bool(ids) and ids[-1] in silent
            told = clean(message.decode("utf-8", "surrogateescape"), silenced) if tab else ""
            out.append(head + tab + told.encode("utf-8", "surrogateescape"))
        if out != rows:
            write_durably(path, b"\n".join(out))
    return gone


def who_moved(places: Iterable[Path]) -> Iterator[bytes]:
    """The names in the reflogs, which stay there."""
    for place in places:
        for path in _files(place / "logs"):
            rows = path.read_bytes().split(b"\n")
            yield from {row[81:].partition(b"\t")[0].rpartition(b">")[0] for row in rows}


def named_in_reflogs(place: Path) -> set[bytes]:
    """The objects that the reflogs of one Git directory name."""
    found: set[bytes] = set()
    for path in _files(place / "logs"):
        for row in path.read_bytes().split(b"\n"):
            found.update(bytes.fromhex(name.decode()) for name in _ID.findall(row.partition(b"\t")[0]))
    return found - {bytes(20)}


def rewrite_pseudo_refs(place: Path, moved: Places) -> list[str]:
    """Leads `ORIG_HEAD`, a detached `HEAD`, `shallow` and their like to the new objects; returns what was deleted."""
    deleted = []
    for path in sorted(place.iterdir()):
        if not path.is_file() or not (_PSEUDO.fullmatch(path.name) or path.name == "shallow"):
            continue
        data = path.read_bytes()
        ids = [bytes.fromhex(name.decode()) for name in _ID.findall(data)]
        if not any(oid in moved for oid in ids):
            continue
        if path.name == "FETCH_HEAD" or any(moved.get(oid, oid) is None for oid in ids):
            path.unlink()
            deleted.append(path.name)
            continue
        write_durably(path, _ID.sub(lambda found: _replaced(found[0], moved), data))
    for path in _files(place / "refs") if (place / "gitdir").exists() else ():
        data = path.read_bytes()  # what one worktree keeps for itself: a bisection, a rebase
        new = _ID.sub(lambda found: _replaced(found[0], moved), data)
        if new != data:
            write_durably(path, new)
    sync_path(place)
    return deleted


def _replaced(name: bytes, moved: Places) -> bytes:
    oid = bytes.fromhex(name.decode())
    return (moved.get(oid, oid) or bytes(20)).hex().encode()


def _files(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path
