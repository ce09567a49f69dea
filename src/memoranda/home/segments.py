"""The files of the intake log: numbered segments, each with a head, records, and zeros behind them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from memoranda.errors import HomeDamaged
from memoranda.home.durable import sync_data, sync_path
from memoranda.home.record import Record, decode, peek

_HEAD = struct.Struct(">8sQ")  # a segment begins with a magic and the sequence number before its first record
_MAGIC = b"MEMLOG1\n"
HEAD_SIZE = _HEAD.size
AHEAD = 256 << 10  # bytes of zeros


class Segments:
    """The segments in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, segment: int) -> Path:
        return self._folder / f"{segment:08d}.log"

    def numbers(self) -> list[int]:
        """Of those that are there, in their order."""
        return sorted(int(p.stem) for p in self._folder.glob("*.log") if p.stem.isdigit())

    def make(self, segment: int, last: int) -> None:
        """A new one behind record number `last`; durable, and there from one moment to the next."""
        fresh = self._folder / f"segment.{os.getpid()}.tmp"
        with fresh.open("wb") as file:
            file.write(_HEAD.pack(_MAGIC, last) + bytes(AHEAD))
            file.flush()
            sync_data(file.fileno())
        fresh.replace(self.path(segment))
        sync_path(self._folder)

    def open(self, segment: int) -> tuple[int, int]:
        """(descriptor, number of the last record before its first one); HomeDamaged when it does not begin as one."""
        path = self.path(segment)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        magic, last = _HEAD.unpack(os.pread(descriptor, HEAD_SIZE, 0).ljust(HEAD_SIZE, b"\0"))
        if magic != _MAGIC:
            os.close(descriptor)
            raise HomeDamaged(
                f"The intake log {path.name} does not begin as one.",
                remedy="Move it aside and run `memoranda doctor`; everything committed is in Git.",
            )
        return descriptor, last

    def newest(self, found: list[int]) -> int:
        """The one that holds the newest records; a fresh one counts only if the one before it did not go on."""
        *before, last = found
        if not before:
            return last
        fresh, older = self.path(last).read_bytes(), self.path(before[-1]).read_bytes()
        if any(True for _ in records(fresh, HEAD_SIZE)):
            return last
        went_on = any(record.seq > _HEAD.unpack_from(fresh)[1] for record, _ in records(older, HEAD_SIZE))
        return before[-1] if went_on else last

    def keep_only(self, segment: int, found: list[int]) -> None:
        """Removes what a rotation left that was cut short: before it moved on, or before it had cleaned up."""
        for other in found:
            if other != segment:
                self.path(other).unlink()
        for left in self._folder.glob("segment.*.tmp"):
            left.unlink()


def records(buffer: bytes, at: int) -> Iterator[tuple[Record, int]]:
    """The records from `at` on, each with the offset of its end."""
    expected = peek(buffer, at)
    while (found := decode(buffer, at, expected)) is not None:
        record, at = found
        expected = record.seq + 1
        yield record, at


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    if (done := os.pwrite(descriptor, data, offset)) == len(data):
        return
    view = memoryview(data)[done:]
    while view:
        offset += done
        done = os.pwrite(descriptor, view, offset)
        view = view[done:]
