"""One write: a record of the log, the files that it says, and the word that it is durable.

Also where an append to a journal will end up: the entry is cited by the blob that it makes, which is known before Git
has heard of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from memoranda.context import Context
from memoranda.errors import HomeDamaged, InvalidPath, ReadOnlyHome
from memoranda.home.activity import Activity
from memoranda.home.contents import Contents
from memoranda.home.draft import Appending, Change, Draft
from memoranda.home.ledger import Pen
from memoranda.home.log import IntakeLog
from memoranda.home.objects import object_id
from memoranda.home.record import FileChange, Record

_NOTHING: tuple[str, str | None, bytes, str, bytes] = ("", None, b"", "", b"")


def record_of(
    draft: Draft, seq: int, at: datetime, files: Sequence[FileChange], blobs: Mapping[str, str | None], pen: Pen
) -> Record:
    """Record number `seq` of a draft that changes these files; `blobs`: what its paths hold afterwards."""
    lines: list[str] = []
    for line in draft.ledger:
        filled = {"n": seq, "at": at.isoformat(), **line}
        if "path" in line and line["path"] in blobs:
            filled["blob"] = blobs[line["path"]]
        lines.append(pen.line(filled))
    return Record(seq, at, draft.op, draft.reason, draft.author, draft.trailers, tuple(files), tuple(lines))


class Writer:
    """The writing half of an open Home.

    Args:
        contents: what the Home holds.
        log, activity, pen: the Home's own.
        current: whether no erasing is decided, or was finished since it was known here (inside the lock).
        ready: called when that is not so; waits for an erasing, and finishes one that was cut short.
        repair: brings the files to what the log says (inside its lock).
        wake: told of every record that is durable.
        slipped: whether commits of ours were taken off the branch by mistake, and are not put back yet.
    """

    def __init__(
        self,
        contents: Contents,
        log: IntakeLog,
        activity: Activity,
        pen: Pen,
        *,
        current: Callable[[], bool],
        ready: Callable[[], None],
        repair: Callable[[], None],
        wake: Callable[[], None],
        slipped: Callable[[], bool],
    ) -> None:
        self._contents = contents
        self._log = log
        self._activity = activity
        self._pen = pen
        self._current = current
        self._ready = ready
        self._repair = repair
        self._wake = wake
        self._slipped = slipped
        self._open: tuple[str, str, bytes, int] = ("", "", b"", -1)  # the open journal: path, blob, content, record
        self._opening: tuple[str, str, bytes, int] | None = None  # what it will be when the record is written
        self._coming: tuple[str, str | None, bytes, str, bytes] = _NOTHING  # what `appending` foresaw

    def forget(self) -> None:
        """What is held of the open journal is void: an erasing came between."""
        self._open, self._coming = ("", "", b"", -1), _NOTHING

    def write(self, context: Context, build: Callable[[datetime], Draft]) -> Record:
        """One write: `build` is called inside the writers' lock with its known time; durable when this returns."""
        record = self.record(context, lambda at: self._record(build(at), at))
        assert record is not None
        return record

    def record(self, context: Context, make: Callable[[datetime], Record | None]) -> Record | None:
        """Puts on record what `make` gives, called as `build` is; None when there is nothing."""
        while True:
            with self._log.writing():
                current = self._current()
                if current:
                    if self._log.unapplied():
                        self._repair()  # of what a killed writer left
                    self._opening, self._coming = None, _NOTHING
                    now = context.now()
                    record = make(now if now.tzinfo is UTC else now.astimezone(UTC))
                    if record is None:
                        return None
                    end = self._log.append(record)
                    self._apply(record, end)
                    self._log.publish(record, end)
                    self._open = self._opening or self._open
                    segment = self._log.segment
            if current:
                self._log.sync(segment, end)
                self._wake()
                return record
            self._ready()

    def _apply(self, record: Record, end: int) -> None:
        worktree = self._contents.worktree
        applied: list[FileChange] = []
        folders: set[str] = set()
        try:
            for change in record.changes:
                worktree.apply(change, folders)
                applied.append(change)
        except (OSError, InvalidPath) as error:
            self._log.take_back(end)
            worktree.take_back(applied, self._contents.blob)
            if isinstance(error, InvalidPath):
                raise
            raise ReadOnlyHome(
                "A file of the Home could not be written.",
                why=str(error),
                remedy="Mend the folder's permissions or make room, then try again; nothing was written.",
            ) from error

    def found(
        self, at: datetime, draft: Draft, files: tuple[FileChange, ...], told: Mapping[str, Mapping[str, object]]
    ) -> Record:
        """The record of edits that stand in the working tree already (inside `make`); `told`: path -> more fields."""
        seq = self._log.last + 1
        lines = tuple(
            self._pen.line(
                {"n": seq, "at": at.isoformat(), "kind": "found", "path": c.path, "blob": c.new}
                | dict(told.get(c.path, {}))
            )
            for c in files
        )
        return Record(seq, at, draft.op, draft.reason, draft.author, {}, files, lines)

    def _record(self, draft: Draft, at: datetime) -> Record:
        files = []
        blobs: dict[str, str | None] = {}
        for change in draft.changes:
            old, new = self._pair(change)
            blobs[change.path] = new
            appended = change.appended and old is not None
            files.append(FileChange(change.path, old, new, change.data or b"", appended, change.laid))
        return record_of(draft, self._log.last + 1, at, files, blobs, self._pen)

    def _pair(self, change: Change) -> tuple[str | None, str | None]:
        """The blobs of a path before and after a change; an append's content is held for the next one."""
        if change.data is None:
            return self._before(change)[0], None
        path, old, before, new, content = self._coming
        if not change.appended or path != change.path or len(content) != len(before) + len(change.data):
            old, before = self._before(change)
            content = before + change.data
            new = change.blob or object_id("blob", content)
        if path == change.path:
            self._coming = _NOTHING  # used up, or foreseen of other bytes
        if change.appended:
            self._opening = (change.path, new, content, self._log.last + 1)
        return old, new

    def _before(self, change: Change) -> tuple[str | None, bytes]:
        """The blob that a change replaces, and for an append the bytes that it continues."""
        worktree = self._contents.worktree
        path, blob, content, _ = self._open
        if change.appended and path == change.path and worktree.untouched(path, blob):
            return blob, content  # as our own last append has left it: the usual case
        if change.appended and self._follow_open(change.path):
            return self._open[1], self._open[2]
        if change.data is not None and not change.laid and not worktree.exists(change.path):
            return None, b""
        old = self._contents.known(self._contents.snapshot())(change.path)
        if not change.appended or old is None:
            return old, b""
        data = self._contents.blob(old)
        if data is None:
            raise HomeDamaged(
                f"The file {change.path} is missing in Git.", remedy="Run `git fsck`, restore from a clone."
            )
        worktree.verify(change.path, old, data)
        return old, data

    def _follow_open(self, path: str) -> bool:
        """Takes over what others have appended to the open journal: the newest record says which bytes it has.

        They are read back from the file, so that the records in between need not be. False when no record says so, or
        the file holds something else.
        """
        newest = self._log.newest_change(path, self._open[3])[1]
        if newest is None or newest.new is None or newest.outside:
            return False
        data = self._contents.worktree.adopt(path, newest.new)
        if data is None:
            return False
        self._open = path, newest.new, data, self._log.last
        return True

    def may_append(self, path: str) -> bool:
        """False for a file of the branch while a person has a merge, a rebase or the like under way.

        Git would stumble over its change, and refuse to go on, or put an older state in its place; a file that it does
        not know yet is in nobody's way. Nor is a file continued that ends before what is on record: a person went back
        behind it, and what was written to it a moment ago is on its way back.
        """
        if not self._activity.at_rest() or self._activity.just_now():
            commit = self._contents.store.refs.head_commit()
            if commit is not None and self._contents.blob_at(commit, path) is not None:
                return False
        return self._is_whole(path)

    def _is_whole(self, path: str) -> bool:
        """Whether nothing is missing at the end of a file that the newest record of it has, as far as it is there."""
        worktree = self._contents.worktree
        if (path == self._open[0] and worktree.untouched(path, self._open[1])) or not worktree.exists(path):
            return True
        if self._follow_open(path):
            return True
        known = None if self._slipped() else self._contents.known(self._contents.snapshot())(path)
        if known is None or worktree.adopt(path, known) is not None:
            return known is not None
        found, recorded = worktree.read(path), self._contents.blob(known)
        return found is None or recorded is None or not recorded.startswith(found)

    def appending(self, path: str, data: bytes) -> Appending:
        """What appending `data` to `path` will make of it; only inside the `build` of a `write`."""
        change = Change(path, data, appended=True)
        old, before = self._before(change)
        content = before + data
        blob = object_id("blob", content)
        self._coming = (path, old, before, blob, content)
        return Appending(change, blob, before.count(b"\n") + 1)
