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
import mmap
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.errors import HomeDamaged, ReadOnlyHome
from memoranda.home.durable import FileLock, begin_writing, sync_data, sync_path
from memoranda.home.record import FRAME_SIZE, FileChange, Record, Unread, decode, encode, peek, whole

_HEAD = struct.Struct(">8sQ")  # a segment begins with a magic and the sequence number before its first record
_MAGIC = b"MEMLOG1\n"
# Segment, offset up to which the working tree is written, offset up to which its files are synced, boot, and up to
# where the log itself is synced (segment and offset in one number). In the native form each number is stored at one
# stroke, so that another process can read it without a lock.
_STATE = struct.Struct("@QQQ32sQ")
_WRITERS = struct.Struct("@QQQ32s")
_DURABLE = struct.Struct("@Q")
_DURABLE_AT = _STATE.size - _DURABLE.size
_OFFSET_BITS = 40
HEAD_SIZE = _HEAD.size
_NO_FRAME = bytes(FRAME_SIZE)
ROTATE_AT = 4 << 20
_AHEAD = 256 << 10


def boot_id() -> bytes:
    """A name of this run of the operating system: another one means that unsynced files may be torn."""
    if sys.platform == "darwin":
        import ctypes

        size = ctypes.c_size_t(64)
        buffer = ctypes.create_string_buffer(64)
        ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0)
        return buffer.value[:32].ljust(32, b"-")
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()[:32].ljust(32, b"-")
    except OSError:
        return b"unknown".ljust(32, b"-")


class IntakeLog:
    """The log of one Home, shared by its threads and by other processes.

    `former` gives the number of the last record before the first one, asked when there is no log yet: one that was
    taken away goes on where it was, since what came later bears a higher number.
    """

    def __init__(self, folder: Path, former: Callable[[], int] = int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._former_record = former
        self._folder = folder
        self._threads = threading.Lock()
        self._file_lock = FileLock(folder / "log.lock")
        self._sync_lock = FileLock(folder / "sync.lock")
        self._reading = threading.Lock()
        self._sync_turn = threading.Condition()
        self._syncing = False
        self._failed: str | None = None
        self._this_boot = boot_id()
        self._segment = 0
        self._descriptor = -1
        self._former = -1  # the segment before: a thread may still be syncing it
        self._read_at = 0
        self._last = 0
        self._synced = 0
        self.missed = 0  # how often the segment changed before all of the last one was read
        self._size = 0  # of the segment's file, as far as it is known: it only ever grows
        self.whole = False  # while the lock is held: nothing was torn, or recorded and not written
        self._held: list[Record | Unread] = []  # read from the current segment and not yet forgotten, without a gap
        self._ends: list[int] = []
        self._listeners: list[tuple[str, bytes, Callable[[Record], None]]] = []  # a word, as it lies in the log, whom
        with self._locked():
            self._state = self._map_state()
        self._open_segment(self._current(), HEAD_SIZE)

    # The shared numbers

    def _map_state(self) -> mmap.mmap:
        path = self._folder / "state"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if (size := os.fstat(descriptor).st_size) < _STATE.size:
                os.pwrite(descriptor, bytes(_STATE.size - size), size)
            state = mmap.mmap(descriptor, _STATE.size)
        finally:
            os.close(descriptor)
        segment, _, _, boot, _ = _STATE.unpack_from(state)
        if boot != self._this_boot:
            _DURABLE.pack_into(state, _DURABLE_AT, 0)
        found = sorted(int(p.stem) for p in self._folder.glob("*.log") if p.stem.isdigit())
        if not found:
            self._make_segment(1, self._former_record())
            sync_path(self._folder.parent)  # which holds our folder since a moment ago
            _pack_state(state, 1, HEAD_SIZE, HEAD_SIZE, self._this_boot)
            return state
        if segment not in found or boot != self._this_boot:  # the numbers may be older than the segments, or lost
            segment = self._newest(found)
            if segment != _STATE.unpack_from(state)[0]:
                _pack_state(state, segment, HEAD_SIZE, HEAD_SIZE, b"")
        for other in found:
            if other != segment:  # a rotation was cut short: before it moved on, or before it had cleaned up
                self._path(other).unlink()
        for left in self._folder.glob("segment.*.tmp"):
            left.unlink()
        return state

    def _newest(self, found: list[int]) -> int:
        """The segment that holds the newest records; a fresh one counts only if the one before it did not go on."""
        *before, last = found
        if not before:
            return last
        fresh, older = self._path(last).read_bytes(), self._path(before[-1]).read_bytes()
        if any(True for _ in _records(fresh, HEAD_SIZE)):
            return last
        went_on = any(record.seq > _HEAD.unpack_from(fresh)[1] for record, _ in _records(older, HEAD_SIZE))
        return before[-1] if went_on else last

    def _current(self) -> int:
        return self._numbers()[0]

    def _numbers(self) -> tuple[int, int, int]:
        segment, applied, safe, _, _ = _STATE.unpack_from(self._state)
        return segment, applied, safe

    def _boot(self) -> bytes:
        return bytes(_STATE.unpack_from(self._state)[3])

    @property
    def fresh_boot(self) -> bool:
        """Whether the machine was started anew and nobody has looked yet which files were lost by it."""
        return self._boot() != self._this_boot

    @property
    def applied(self) -> int:
        """The offset in the current segment up to which the working tree holds what the records say."""
        return self._numbers()[1]

    @property
    def safe(self) -> int:
        """The offset in the current segment up to which the files in the working tree survive a loss of power."""
        return self._numbers()[2]

    def publish(self, record: Record, end: int) -> None:
        """The working tree holds what the record just appended says: from now on everybody sees it."""
        self._set_applied(end)
        with self._reading:
            self._read_at, self._last = end, record.seq
            self._hold(record, end)
        for word, _, listener in self._listeners:
            if any(word in line for line in record.ledger):
                listener(record)

    def set_repaired(self) -> None:
        """The working tree holds what every record says (inside `writing`)."""
        self._set_applied(self._read_at)

    def _set_applied(self, offset: int) -> None:
        _pack_state(self._state, self._segment, offset, min(self.safe, offset), self._this_boot)

    def set_safe(self, segment: int, offset: int) -> None:
        """The files that the records up to `offset` of `segment` left in the working tree are synced."""
        with self._locked():
            current, applied, safe = self._numbers()
            if current == segment and safe < offset <= applied and not self.fresh_boot:
                _pack_state(self._state, current, applied, offset, self._boot())

    def mark(self) -> tuple[int, int]:
        """(segment, offset) up to which records stand in the working tree: another one when somebody has written."""
        return self._numbers()[:2]

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
        return self._last

    # Segments

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:08d}.log"

    def _make_segment(self, segment: int, last: int) -> None:
        fresh = self._folder / f"segment.{os.getpid()}.tmp"
        with fresh.open("wb") as file:
            file.write(_HEAD.pack(_MAGIC, last) + bytes(_AHEAD))
            file.flush()
            sync_data(file.fileno())
        fresh.replace(self._path(segment))
        sync_path(self._folder)

    def _open_segment(self, segment: int, at: int) -> None:
        path = self._path(segment)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        magic, last = _HEAD.unpack(os.pread(descriptor, HEAD_SIZE, 0).ljust(HEAD_SIZE, b"\0"))
        if magic != _MAGIC:
            os.close(descriptor)
            raise HomeDamaged(
                f"The intake log {path.name} does not begin as one.",
                remedy="Move it aside and run `memoranda doctor`; everything committed is in Git.",
            )
        if self._former >= 0:
            os.close(self._former)
        self._former, self._descriptor = self._descriptor, descriptor
        self._segment, self._read_at, self._synced, self._size = segment, at, 0, 0
        if at == HEAD_SIZE:
            self.missed += last != self._last  # the last segment went on behind what was read of it
            self._last = last
        self._held, self._ends = [], []

    def skip_to(self, segment: int, offset: int, seq: int) -> None:
        """Begins reading behind what is known to be committed already (a process that has just opened)."""
        if segment == self._segment and offset > self._read_at and not self._held:
            self._read_at, self._last = offset, seq

    def refresh(self) -> None:
        """Reads what other processes and threads have written since, as far as it stands in the working tree."""
        with self._reading:
            while True:
                current, applied, _ = self._numbers()
                if current == self._segment:
                    self._read_tail(applied)
                    return
                if not self._path(current).exists():
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
        at, next_at = 0, whole(buffer, 0, self._last + 1)
        while next_at is not None:
            item = Unread(self._last + 1, buffer, at)
            self._hold(item, self._read_at + next_at)
            self._last = item.seq
            for _, word, listener in self._listeners:
                if buffer.find(word, at, next_at) >= 0:
                    listener(item.record())
            at, next_at = next_at, whole(buffer, next_at, self._last + 1)
        self._read_at += at

    def _hold(self, item: Record | Unread, end: int) -> None:
        self._held.append(item)
        self._ends.append(end)

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
            _write_at(self._descriptor, bytes(rest), self._read_at)

    def forget(self, seq: int) -> None:
        """Lets go of the records up to `seq`: they are in Git."""
        with self._reading:
            behind = self._behind(seq)
            del self._held[:behind], self._ends[:behind]

    def after(self, seq: int) -> list[tuple[Record, int]]:
        """The records behind `seq` that are still held, each with the offset of its end."""
        with self._reading:
            behind = self._behind(seq)
            found = [item if isinstance(item, Record) else item.record() for item in self._held[behind:]]
            self._held[behind:] = found
            return list(zip(found, self._ends[behind:], strict=True))

    def any_after(self, seq: int) -> bool:
        """Whether a record behind `seq` is held."""
        with self._reading:
            return self._behind(seq) < len(self._held)

    def newest_change(self, path: str, seq: int) -> tuple[bool, FileChange | None]:
        """(whether every record behind `seq` is held, what the newest held one behind it did to the file if any)."""
        with self._reading:
            behind = self._behind(seq)
            whole = self._last - len(self._held) + behind == seq
            held = self._held[behind:]
        for item in reversed(held):
            for change in item.changes if isinstance(item, Record) else item.changes():
                if change.path == path:
                    return whole, change
        return whole, None

    def _behind(self, seq: int) -> int:
        """Where the records behind `seq` begin among those that are held."""
        return min(max(seq - self._last + len(self._held), 0), len(self._held))

    # Writing

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads:
            self._file_lock.acquire()
            try:
                yield
            finally:
                self._file_lock.release()

    def writing(self) -> _Writing:
        """Holds the writers' lock, with the other processes' records read and a torn tail cut off."""
        if self._failed:
            raise ReadOnlyHome(
                "This Home takes no more writes.", why=self._failed, remedy="Check the disk and open the Home again."
            )
        return _Writing(self)

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
        segment, applied, _, boot, _ = _STATE.unpack_from(self._state)
        if segment == self._segment and boot == self._this_boot:  # the usual case, at a glance
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
            _write_at(self._descriptor, data, self._read_at)
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
            _write_at(self._descriptor, bytes(wanted + max(_AHEAD, self._size >> 2)), self._size)
            self._size = os.fstat(self._descriptor).st_size

    def take_back(self, end: int) -> None:
        """Wipes the record that `append` has just written up to `end` (inside `writing`, instead of `publish`)."""
        _write_at(self._descriptor, bytes(end - self._read_at), self._read_at)

    def unsafe_span(self) -> tuple[int, int, int]:
        """(segment, offset, bytes) of what `unsafe` would give: how far it reaches, and how much is to be read."""
        segment, applied, safe = self._numbers()
        return segment, applied, max(0, applied - safe)

    def unsafe(self) -> tuple[int, int, list[Record]]:
        """(segment, offset, records): what stands in the working tree up to the offset and may go with the power."""
        with self._reading:
            segment, applied, safe = self._numbers()
            if segment != self._segment or safe >= applied:
                return segment, safe, []
            buffer = os.pread(self._descriptor, applied - safe, safe)
        return segment, applied, [record for record, _ in _records(buffer, 0)]

    def everything(self, offset: int = HEAD_SIZE) -> list[tuple[Record, int]]:
        """The records of the current segment that end behind `offset`, read afresh, each with its end."""
        buffer = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        return [(record, end) for record, end in _records(buffer, HEAD_SIZE) if end > offset]

    def unapplied(self) -> bool:
        """Whether a writer died between its record and its files, or the machine went down with files unsynced.

        Inside `writing` the answer is exact; outside it may be yes because somebody is writing at this moment.
        """
        return not self.whole and self._unapplied()

    def _unapplied(self) -> bool:
        return self.fresh_boot or any(os.pread(self._descriptor, FRAME_SIZE, self.applied))

    def sync(self, segment: int, offset: int) -> None:
        """Returns when everything up to `offset` of `segment` survives a loss of power; waiters share one sync."""
        with self._sync_turn:
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
                self._sync_turn.wait()
            with self._reading:
                descriptor, reading = self._descriptor, self._segment
        failure, reached = None, 0
        try:
            reached = self._sync(descriptor, reading, offset)
        except OSError as error:  # never retried: the kernel may have dropped the dirty pages already
            failure = f"fdatasync failed: {error}"
        with self._sync_turn:
            self._syncing = False
            if failure:
                self._failed = failure
            elif reading == self._segment:
                self._synced = max(self._synced, reached)
            self._sync_turn.notify_all()
        if failure:
            raise ReadOnlyHome(
                "The write could not be made durable.", why=failure, remedy="Check the disk and open the Home again."
            )

    def _sync(self, descriptor: int, segment: int, offset: int) -> int:
        """Syncs a segment if no other process has done so meanwhile; up to where it is synced now.

        One sync covers what all processes have written. They take turns, so that who comes second need not sync again.
        """
        if (reached := self._durable(segment)) >= offset:
            return reached
        self._sync_lock.acquire()
        try:
            if (reached := self._durable(segment)) >= offset:
                return reached
            current, applied, _ = self._numbers()
            sync_data(descriptor)
            if current != segment or applied < offset:
                return offset  # what was read by us; the segment has been left, or its records are only being written
            _DURABLE.pack_into(self._state, _DURABLE_AT, segment << _OFFSET_BITS | applied)
            return applied
        finally:
            self._sync_lock.release()

    def _durable(self, segment: int) -> int:
        """Up to where some process has synced this segment, 0 when nobody has.

        Never more than what is written: then the log was put back from a copy, and the number is of another one.
        """
        durable = _STATE.unpack_from(self._state)[4]
        offset: int = durable & (1 << _OFFSET_BITS) - 1
        return offset if durable >> _OFFSET_BITS == segment and offset <= self.applied else 0

    def fail(self, reason: str) -> None:
        """From now on this process writes no more."""
        self._failed = reason

    def large(self) -> bool:
        return self._read_at > ROTATE_AT

    def rotate(self) -> None:
        """Begins a new segment (inside `writing`, when every record is committed and its files are synced)."""
        with self._sync_turn:
            while self._syncing:
                self._sync_turn.wait()
            with self._reading:
                old = self._segment
                self._make_segment(old + 1, self._last)
                _pack_state(self._state, old + 1, HEAD_SIZE, HEAD_SIZE, self._boot())
                self._open_segment(old + 1, HEAD_SIZE)
                self._path(old).unlink()

    def scrub(self) -> None:
        """Begins a new segment as `rotate` does, and overwrites the old one, which others may hold open."""
        old = os.dup(self._descriptor)
        try:
            self.rotate()
            _write_at(old, bytes(os.fstat(old).st_size), 0)
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


def _pack_state(state: mmap.mmap, segment: int, applied: int, safe: int, boot: bytes) -> None:
    """Writes the numbers that only change inside the writers' lock; the last one is not among them."""
    _WRITERS.pack_into(state, 0, segment, applied, safe, boot)


def _records(buffer: bytes, at: int) -> Iterator[tuple[Record, int]]:
    """The records from `at` on, each with the offset of its end."""
    expected = peek(buffer, at)
    while (found := decode(buffer, at, expected)) is not None:
        record, at = found
        expected = record.seq + 1
        yield record, at


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, offset)
        view, offset = view[done:], offset + done
