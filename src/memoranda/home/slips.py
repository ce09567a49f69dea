"""Commits of ours that a person's Git has taken off the branch without anybody asking for it, and their way back.

`git reset` reads HEAD, brings the files there and then sets the branch to what it has read, wherever that stands by
then; `git stash` ends with one. What we commit in between is on no branch afterwards. The reflog tells it from a step
back that somebody wanted: to stay on HEAD was asked for, and the branch has moved.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime

from memoranda.errors import HomeDamaged
from memoranda.home.layout import Layout
from memoranda.home.log import IntakeLog
from memoranda.home.objects import object_id
from memoranda.home.record import FileChange, Record
from memoranda.home.store import ObjectStore, RefMove
from memoranda.home.worktree import Worktree
from memoranda.values import dataclass

_TAIL = 16 << 10  # bytes of a reflog
_STAYS = {"reset: moving to HEAD", "reset: moving to @"}


@dataclass(frozen=True, slots=True)
class Slip:
    """The branch stands on `now` and stood on `left`, which goes on from there."""

    branch: str
    now: str
    left: str

    @property
    def move(self) -> RefMove:
        return RefMove(self.branch, self.now, self.left, "memoranda: put back what a reset did not know of")


class Slips:
    """Looks for slips of one repository; asked before every read, so nothing is read twice."""

    def __init__(self, layout: Layout, store: ObjectStore) -> None:
        self._folder = f"{layout.common_dir}/logs"
        self._store = store
        self._none: tuple[str, str, tuple[int, int]] | None = None  # what was looked into, and was no slip

    def find(self, branch: str, now: str) -> Slip | None:
        """How the branch came to stand on `now`, where our own commits have not left it, if that was a slip."""
        path = f"{self._folder}/{branch}"
        try:
            status = os.stat(path)  # noqa: PTH116 - once a read
        except OSError:
            return None  # a person keeps no reflog
        seen = branch, now, (status.st_size, status.st_mtime_ns)
        if seen == self._none:
            return None
        left = _came_from(path, now)
        if left is not None and self._store.is_ancestor(now, left):
            return Slip(branch, now, left)
        self._none = seen
        return None


def _came_from(path: str, now: str) -> str | None:
    """The commit from which a reset that was to stay there has led to `now`, as the last line that tells of a move."""
    with open(path, "rb") as file:  # noqa: PTH123 - the folder is kept as text
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        lines = file.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        head, _, told = line.partition("\t")
        old, _, rest = head.partition(" ")
        new = rest.partition(" ")[0]
        if old != new:
            return old if new == now and told in _STAYS else None
    return None


def mend(slip: Slip, store: ObjectStore, log: IntakeLog, worktree: Worktree, behind: Iterable[Record]) -> None:
    """Brings the files that the reset took back to what they held; what somebody has changed since stays.

    `behind` are the records that are not in Git yet: what they say of these files comes on top.
    """
    changes = {change.path: change for change in store.changes(slip.now, slip.left)}
    with log.writing():
        steps: list[FileChange] = []
        for path, change in changes.items():
            if _blob(worktree, path) != change.old or (change.old is None and worktree.exists(path)):
                continue
            data = b""
            if change.new is not None:
                found = store.get(change.new)
                if found is None:
                    raise HomeDamaged(f"The file {path} is missing in Git.", remedy="Run `git fsck`.")
                data = found.data
            steps.append(FileChange(path, change.old, change.new, data))
        names = {step.path for step in steps}
        more = [change for record in behind for change in record.changes if change.path in names]

        def blob(oid: str) -> bytes | None:
            found = store.get(oid)
            return found.data if found else None

        worktree.repair([_record(steps), _record(more)], blob)


def keep(
    worktree: Worktree,
    records: Iterable[Record],
    known: Callable[[str], str | None],
    blob: Callable[[str], bytes | None],
    *,
    gone: bool,
) -> set[str]:
    """Puts back what a person's Git took out of files that it did not know as we had left them (inside the log's lock).

    `git stash`, `git reset --hard` and `git checkout -- FILE` bring a file to what the last commit or Git's index says,
    and a write of a moment ago is in neither. `records` are such writes, `known` gives what a path should hold, `blob`
    the bytes of that. What somebody edited stays. `gone`: Git was at work just now, so that nobody else need have taken
    away a file that they made: it comes back as well. Returns the paths.
    """
    chains: dict[str, list[FileChange]] = {}
    for record in records:
        for change in record.changes:
            if change.outside or change.old is None or change.new is None:
                chains.pop(change.path, None)
            if not change.outside and change.new is not None:
                chains.setdefault(change.path, []).append(change)
    kept: set[str] = set()
    for path, chain in chains.items():
        last = chain[-1].new
        if last is None or worktree.untouched(path, last) or known(path) != last:
            continue
        found = worktree.read(path)
        if found is None:
            back = gone and chain[0].old is None and not worktree.exists(path)
        else:
            back = _went_back(found, chain)
        if back and (whole := blob(last)) is not None:
            before = None if found is None else object_id("blob", found)
            with suppress(FileExistsError):  # Git has just put it back itself
                worktree.apply(FileChange(path, before, last, whole))
            kept.add(path)
    return kept


def _went_back(found: bytes, chain: list[FileChange]) -> bool:
    """Whether a file stands where it stood before some of these changes; later ones may have been appended to it."""
    former = {change.old for change in chain} - {chain[-1].new}
    for change in reversed(chain):
        if object_id("blob", found) in former:
            return True
        if not change.appended or not found.endswith(change.data):
            return False
        found = found.removesuffix(change.data)
    return object_id("blob", found) in former


def _blob(worktree: Worktree, path: str) -> str | None:
    data = worktree.read(path)
    return None if data is None else object_id("blob", data)


def _record(changes: Iterable[FileChange]) -> Record:
    return Record(0, datetime.fromtimestamp(0, UTC), "", "", "", {}, tuple(changes))
