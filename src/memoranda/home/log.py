"""The intake log: what makes an acknowledged write durable, before Git has heard of it.

`<git dir>/memoranda/` holds numbered segments of records, the lock of the writers, and `state`, a few numbers that all
processes share through a memory map: the current segment, how far its records stand in the working tree, and how far
these files are synced. Readers see a record when it stands in the working tree; until then it can be taken back.
A record is acknowledged when one `fdatasync`, shared by all who wait, has covered it. A segment is filled with zeros
ahead of its records: a sync that changes no file size does not wait for the file system's journal (measured on ext4:
0.09 ms against 0.3 to 4). Zeros behind the last record end the log.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.errors import ReadOnlyHome
from memoranda.home.durable import FileLock, begin_writing, sync_data, sync_path
from memoranda.home.held import Held
from memoranda.home.log_state import LogState
from memoranda.home.record import FRAME_SIZE, FileChange, Record, Unread, encode, whole
from memoranda.home.segments import AHEAD, HEAD_SIZE, Segments, records, write_at

_NO_FRAME = bytes(FRAME_SIZE)
ROTATE_AT = 4 << 20


class IntakeLog:
    """The log of one Home, shared by its threads and by other processes.

    `former` gives the number of the last record before the first one, asked when there is no log yet: one that was
    taken away goes on where it was, since what came later bears a higher number.
    """

    def __init__(self, folder: Path, former: Callable[[], int] = int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._former_record = former
        self._folder = folder
        self._segments = Segments(folder)
        self._threads = threading.Lock()
        self._file_lock = FileLock(folder / "log.lock")
        self._sync_lock = FileLock(folder / "sync.lock")
        self._reading = threading.Lock()
        self._sync_mutex = threading.Lock()
        self._sync_turn = threading.Condition(self._sync_mutex)
        self._syncing, self._waiting = False, 0  # whether a thread of ours syncs, how many wait for it
        self._failed: str | None = None
        self._segment = 0
        self._descriptor = -1
        self._former = -1  # the segment before: a thread may still be syncing it
        self._read_at = 0
        self._synced = 0
        self.missed = 0  # how often the segment changed before all of the last one was read
        self._size = 0  # of the segment's file, as far as it is known: it only ever grows
        self.whole = False  # while the lock is held: nothing was torn, or recorded and not written
        self._held = Held()
        self._turn = _Writing(self)
        self._listeners: list[tuple[str, bytes, Callable[[Record], None]]] = []  # a word, as it lies in the log, whom
        with self._locked():
            self._state = LogState(folder / "state")
            self._settle()
        self._open_segment(self._current(), HEAD_SIZE)

    # The shared numbers

    def _settle(self) -> None:
        """Sees to it that there is a segment, that the numbers speak of the newest, and that there is no other."""
        segment = self._current()
        found = self._segments.numbers()
        if not found:
            self._segments.make(1, self._former_record())
            sync_path(self._folder.parent)  # which holds our folder since a moment ago
            self._state.write(1, HEAD_SIZE, HEAD_SIZE)
            return
        if segment not in found or self._state.fresh_boot:  # the numbers may be older than the segments, or lost
            segment = self._segments.newest(found)
            if segment != self._current():
                self._state.write(segment, HEAD_SIZE, HEAD_SIZE, b"")
        self._segments.keep_only(segment, found)

    def _current(self) -> int:
        return self._state.numbers()[0]

    @property
    def fresh_boot(self) -> bool:
        """Whether the machine was started anew and nobody has looked yet which files were lost by it."""
        return self._state.fresh_boot

    @property
    def applied(self) -> int:
        """The offset in the current segment up to which the working tree holds what the records say."""
        return self._state.numbers()[1]

    @property
    def safe(self) -> int:
        """The offset in the current segment up to which the files in the working tree survive a loss of power."""
        return self._state.numbers()[2]

    def publish(self, record: Record, end: int) -> None:
        """The working tree holds what the record just appended says: from now on everybody sees it."""
        self._state.advance(end)
        with self._reading:
            self._read_at = end
            self._held.add(record, end)
        told = "\n".join(record.ledger)
        for word, _, listener in self._listeners:
            if word in told:
                listener(record)

    def set_repaired(self) -> None:
        """The working tree holds what every record says (inside `writing`)."""
        self._set_applied(self._read_at)

    def _set_applied(self, offset: int) -> None:
        self._state.write(self._segment, offset, min(self.safe, offset))

    def set_safe(self, segment: int, offset: int) -> None:
        """The files that the records up to `offset` of `segment` left in the working tree are synced."""
        with self._locked():
            current, applied, safe = self._state.numbers()
            if current == segment and safe < offset <= applied and not self.fresh_boot:
                self._state.write(current, applied, offset)

    def mark(self) -> tuple[int, int]:
        """(segment, offset) up to which records stand in the working tree: another one when somebody has written."""
        return self._state.numbers()[:2]

    @property
    def segment(self) -> int:
        return self._segment

    @property
    def end(self) -> int:
        """The offset behind the last record read."""
        return self._read_at

    @property
    def last(self) -> int:
        """The sequence number of the newest record read so far."""
        return self._held.last

    # Segments

    def _open_segment(self, segment: int, at: int) -> None:
        descriptor, last = self._segments.open(segment)
        if self._former >= 0:
            os.close(self._former)
        self._former, self._descriptor = self._descriptor, descriptor
        self._segment, self._read_at, self._synced, self._size = segment, at, 0, 0
        if at == HEAD_SIZE:
            self.missed += last != self._held.last  # the last segment went on behind what was read of it
        self._held.begin(last if at == HEAD_SIZE else None)

    def skip_to(self, segment: int, offset: int, seq: int) -> None:
        """Begins reading behind what is known to be committed already (a process that has just opened)."""
        if segment == self._segment and offset > self._read_at and not self._held:
            self._read_at = offset
            self._held.begin(seq)

    def refresh(self) -> None:
        """Reads what other processes and threads have written since, as far as it stands in the working tree."""
        if self._state.usual(self._segment) == self._read_at:
            return  # nobody has: asked at every call
        with self._reading:
            while True:
                current, applied, _ = self._state.numbers()
                if current == self._segment:
                    self._read_tail(applied)
                    return
                if not self._segments.path(current).exists():
                    return
                self._open_segment(current, HEAD_SIZE)  # what stood in the last one is committed

    def _refresh_all(self) -> None:
        """Reads everything there is, also what a writer left that died before its files (inside the lock)."""
        with self._reading:
            if self._current() != self._segment:
                self._open_segment(self._current(), HEAD_SIZE)
            if any(os.pread(self._descriptor, FRAME_SIZE, self._read_at)):
                self._read_tail(os.fstat(self._descriptor).st_size)

    def _read_tail(self, end: int) -> None:
        if end <= self._read_at:
            return
        buffer = os.pread(self._descriptor, end - self._read_at, self._read_at)
        at, next_at = 0, whole(buffer, 0, self._held.last + 1)
        while next_at is not None:
            item = Unread(self._held.last + 1, buffer, at)
            self._held.add(item, self._read_at + next_at)
            for _, word, listener in self._listeners:
                if buffer.find(word, at, next_at) >= 0:
                    listener(item.record())
            at, next_at = next_at, whole(buffer, next_at, self._held.last + 1)
        self._read_at += at

    def listen(self, word: str, listener: Callable[[Record], None]) -> None:
        """`listener` is told of every record in whose ledger lines the JSON text `word` stands, in their order."""
        self._listeners.append((word, json.dumps(word)[1:-1].encode("ascii"), listener))

    def _wipe_torn(self) -> None:
        """Zeroes what a writer left that died in the middle of a record: its text could look like a record.

        After a loss of power a later block of it may have reached the disk and the first one not.
        """
        rest = os.fstat(self._descriptor).st_size - self._read_at
        looked_at = rest if self.fresh_boot else FRAME_SIZE
        if any(os.pread(self._descriptor, looked_at, self._read_at)):
            write_at(self._descriptor, bytes(rest), self._read_at)

    def forget(self, seq: int) -> None:
        """Lets go of the records up to `seq`: they are in Git."""
        with self._reading:
            self._held.forget(seq)

    def after(self, seq: int) -> list[tuple[Record, int]]:
        """The records behind `seq` that are still held, each with the offset of its end."""
        with self._reading:
            return self._held.after(seq)

    def any_after(self, seq: int) -> bool:
        """Whether a record behind `seq` is held."""
        with self._reading:
            return self._held.any_after(seq)

    def newest_change(self, path: str, seq: int) -> tuple[bool, FileChange | None]:
        """(whether every record behind `seq` is held, what the newest held one behind it did to the file if any)."""
        with self._reading:
            return self._held.newest_change(path, seq)

    # Writing

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads:
            self._file_lock.acquire()
            try:
                yield
            finally:
                self._file_lock.release()

    @property
    def takes_writes(self) -> bool:
        """False once the disk has refused to keep what was written."""
        return self._failed is None

    def writing(self) -> _Writing:
        """Holds the writers' lock, with the other processes' records read and a torn tail cut off."""
        if self._failed:
            raise ReadOnlyHome(
                "This Home takes no more writes.", why=self._failed, remedy="Check the disk and open the Home again."
            )
        return self._turn

    def take_turn(self) -> None:
        """Takes the writers' lock; `writing` does, and gives it back."""
        self._threads.acquire()
        self._file_lock.acquire()
        try:
            self._catch_up()
        except BaseException:
            self.give_back()
            raise

    def _catch_up(self) -> None:
        applied = self._state.usual(self._segment)
        if applied is not None:
            if applied != self._read_at:
                with self._reading:
                    self._read_tail(applied)
            self.whole = applied == self._read_at and os.pread(self._descriptor, FRAME_SIZE, applied) == _NO_FRAME
        if not self.whole:
            self._refresh_all()
            self._wipe_torn()

    def give_back(self) -> None:
        self.whole = False
        self._file_lock.release()
        self._threads.release()

    def append(self, record: Record) -> int:
        """Writes one record (inside `writing`) and returns the offset of its end; nobody sees it before `publish`."""
        data = encode(record)
        try:
            if self._read_at + len(data) + FRAME_SIZE > self._size:
                self._make_room(len(data))
            write_at(self._descriptor, data, self._read_at)
            begin_writing(self._descriptor, self._read_at, len(data))
        except OSError as error:
            os.ftruncate(self._descriptor, self._read_at)
            self._size = self._read_at
            raise ReadOnlyHome(
                "The intake log could not be written.", why=str(error), remedy="Make room on the disk and try again."
            ) from error
        return self._read_at + len(data)

    def _make_room(self, wanted: int) -> None:
        """Sees to it that zeros lie ahead; another process may have laid them."""
        self._size = os.fstat(self._descriptor).st_size
        if self._read_at + wanted + FRAME_SIZE > self._size:
            write_at(self._descriptor, bytes(wanted + max(AHEAD, self._size >> 2)), self._size)
            self._size = os.fstat(self._descriptor).st_size

    def take_back(self, end: int) -> None:
        """Wipes the record that `append` has just written up to `end` (inside `writing`, instead of `publish`)."""
        write_at(self._descriptor, bytes(end - self._read_at), self._read_at)

    def unsafe_span(self) -> tuple[int, int, int]:
        """(segment, offset, bytes) of what `unsafe` would give: how far it reaches, and how much is to be read."""
        segment, applied, safe = self._state.numbers()
        return segment, applied, max(0, applied - safe)

    def unsafe(self) -> tuple[int, int, list[Record]]:
        """(segment, offset, records): what stands in the working tree up to the offset and may go with the power."""
        with self._reading:
            segment, applied, safe = self._state.numbers()
            if segment != self._segment or safe >= applied:
                return segment, safe, []
            buffer = os.pread(self._descriptor, applied - safe, safe)
        return segment, applied, [record for record, _ in records(buffer, 0)]

    def everything(self, offset: int = HEAD_SIZE) -> list[tuple[Record, int]]:
        """The records of the current segment that end behind `offset`, read afresh, each with its end."""
        buffer = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        return [(record, end) for record, end in records(buffer, HEAD_SIZE) if end > offset]

    def unapplied(self) -> bool:
        """Whether a writer died between its record and its files, or the machine went down with files unsynced.

        Inside `writing` the answer is exact; outside it may be yes because somebody is writing at this moment.
        """
        return not self.whole and self._unapplied()

    def _unapplied(self) -> bool:
        return self.fresh_boot or any(os.pread(self._descriptor, FRAME_SIZE, self.applied))

    def sync(self, segment: int, offset: int) -> None:
        """Returns when everything up to `offset` of `segment` survives a loss of power; waiters share one sync."""
        with self._sync_mutex:
            while True:
                if self._failed:
                    raise ReadOnlyHome(
                        "The write could not be made durable.",
                        why=self._failed,
                        remedy="Check the disk and open the Home again.",
                    )
                if segment != self._segment or self._synced >= offset:
                    return
                if not self._syncing:
                    self._syncing = True
                    break
                self._waiting += 1
                self._sync_turn.wait()
                self._waiting -= 1
            with self._reading:
                descriptor, reading = self._descriptor, self._segment
        failure, reached = None, 0
        try:
            reached = self._sync(descriptor, reading, offset)
        except OSError as error:  # never retried: the kernel may have dropped the dirty pages already
            failure = f"fdatasync failed: {error}"
        with self._sync_mutex:
            self._syncing = False
            if failure:
                self._failed = failure
            elif reading == self._segment:
                self._synced = max(self._synced, reached)
            if self._waiting:
                self._sync_turn.notify_all()
        if failure:
            raise ReadOnlyHome(
                "The write could not be made durable.", why=failure, remedy="Check the disk and open the Home again."
            )

    def _sync(self, descriptor: int, segment: int, offset: int) -> int:
        """Syncs a segment if no other process has done so meanwhile; up to where it is synced now.

        One sync covers what all processes have written. They take turns, so that who comes second need not sync again.
        """
        if (reached := self._state.durable(segment)) >= offset:
            return reached
        self._sync_lock.acquire()
        try:
            if (reached := self._state.durable(segment)) >= offset:
                return reached
            current, applied, _ = self._state.numbers()
            sync_data(descriptor)
            if current != segment or applied < offset:
                return offset  # what was read by us; the segment has been left, or its records are only being written
            self._state.set_durable(segment, applied)
            return applied
        finally:
            self._sync_lock.release()

    def fail(self, reason: str) -> None:
        """From now on this process writes no more."""
        self._failed = reason

    def large(self) -> bool:
        return self._read_at > ROTATE_AT

    def rotate(self) -> None:
        """Begins a new segment (inside `writing`, when every record is committed and its files are synced)."""
        with self._sync_mutex:
            while self._syncing:
                self._waiting += 1
                self._sync_turn.wait()
                self._waiting -= 1
            with self._reading:
                old = self._segment
                self._segments.make(old + 1, self._held.last)
                self._state.write(old + 1, HEAD_SIZE, HEAD_SIZE, self._state.boot)
                self._open_segment(old + 1, HEAD_SIZE)
                self._segments.path(old).unlink()

    def scrub(self) -> None:
        """Begins a new segment as `rotate` does, and overwrites the old one, which others may hold open."""
        old = os.dup(self._descriptor)
        try:
            self.rotate()
            write_at(old, bytes(os.fstat(old).st_size), 0)
            sync_data(old)
        finally:
            os.close(old)

    def close(self) -> None:
        for descriptor in (self._descriptor, self._former):
            if descriptor >= 0:
                os.close(descriptor)
        self._file_lock.close()
        self._sync_lock.close()
        self._state.close()


class _Writing:
    """The writers' lock, for the time of a `with`."""

    __slots__ = ("_log",)

    def __init__(self, log: IntakeLog) -> None:
        self._log = log

    def __enter__(self) -> None:
        self._log.take_turn()

    def __exit__(self, *_: object) -> None:
        self._log.give_back()
