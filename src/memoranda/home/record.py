"""One record of the intake log: what one write changed, complete enough to do it again.

On the medium: `MLR1`, header length (u32), data length (u32), sequence (u64), CRC-32 of header and data (u32), the
header as JSON, the data of the changes one after the other. Big-endian.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime

from memoranda.home.jsonline import json_line
from memoranda.values import dataclass

_FRAME = struct.Struct(">4sIIQI")
_MAGIC = b"MLR1"
FRAME_SIZE = _FRAME.size


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file. `old` and `new` are blob ids, None where the file does not exist before or after.

    `data` is the whole new content, or with `appended` what was added to the old one; empty for a deletion.
    `outside` marks what was found in the working tree and is there already.
    """

    path: str
    old: str | None
    new: str | None
    data: bytes = b""
    appended: bool = False
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """One write: `seq` counts the records of this clone, `at` is the known time of everything in it."""

    seq: int
    at: datetime
    op: str
    reason: str
    author: str
    trailers: Mapping[str, str]
    changes: tuple[FileChange, ...]
    ledger: tuple[str, ...] = ()


class Unread:
    """A whole record as it lies at `at` of `buffer`: most of what other processes wrote is never asked for."""

    __slots__ = ("at", "buffer", "seq")  # no dataclass: each of many processes makes one for each note of the others

    def __init__(self, seq: int, buffer: bytes, at: int) -> None:
        self.seq, self.buffer, self.at = seq, buffer, at

    def record(self) -> Record:
        found = decode(self.buffer, self.at, self.seq)
        assert found is not None  # its checksum was right when it was read
        return found[0]

    def says(self, word: bytes) -> bool:
        """Whether this JSON text stands somewhere in its header."""
        _, head_size, _, _, _ = _FRAME.unpack_from(self.buffer, self.at)
        start = self.at + FRAME_SIZE
        return self.buffer.find(word, start, start + head_size) >= 0

    def changes(self) -> tuple[FileChange, ...]:
        """Its files and nothing else."""
        _, head_size, _, _, _ = _FRAME.unpack_from(self.buffer, self.at)
        start = self.at + FRAME_SIZE
        end = start + head_size
        # Inside a text every quotation mark has a backslash before it, so these are the members that `encode` wrote.
        first = self.buffer.find(_FILES, start, end) + len(_FILES)
        last = self.buffer.find(_LEDGER, first, end)
        return _changes(json.loads(self.buffer[first:last]), self.buffer, end)


_FILES, _LEDGER = b',"files":', b',"ledger":'


def encode(record: Record) -> bytes:
    """The record as it lies in the log."""
    header = {
        "at": record.at.timestamp(),
        "op": record.op,
        "why": record.reason,
        "by": record.author,
        "with": dict(record.trailers),
        "files": [[c.path, c.old, c.new, len(c.data), c.appended, c.outside] for c in record.changes],
        "ledger": record.ledger,
    }
    head = json_line(header).encode("ascii")
    data = b"".join([change.data for change in record.changes])
    crc = zlib.crc32(data, zlib.crc32(head))
    return b"".join((_FRAME.pack(_MAGIC, len(head), len(data), record.seq, crc), head, data))


def peek(buffer: bytes, at: int) -> int:
    """The number that the record at `at` bears, 0 where there is none."""
    return int(_FRAME.unpack_from(buffer, at)[3]) if len(buffer) - at >= FRAME_SIZE else 0


def whole(buffer: bytes, at: int, expected: int) -> int | None:
    """Where record number `expected`, at `at`, ends; None when it is incomplete or damaged."""
    if len(buffer) - at < FRAME_SIZE:
        return None
    magic, head_size, data_size, seq, crc = _FRAME.unpack_from(buffer, at)
    start = at + FRAME_SIZE
    end: int = start + head_size + data_size
    if magic != _MAGIC or seq != expected or end > len(buffer) or zlib.crc32(memoryview(buffer)[start:end]) != crc:
        return None
    return end


def decode(buffer: bytes, at: int, expected: int) -> tuple[Record, int] | None:
    """Record number `expected`, at `at`, and where the next one begins; None when it is incomplete or damaged."""
    end = whole(buffer, at, expected)
    if end is None:
        return None
    _, head_size, _, seq, _ = _FRAME.unpack_from(buffer, at)
    place = at + FRAME_SIZE + head_size
    header = json.loads(buffer[at + FRAME_SIZE : place])
    record = Record(
        seq,
        datetime.fromtimestamp(header["at"], UTC),
        header["op"],
        header["why"],
        header["by"],
        header["with"],
        _changes(header["files"], buffer, place),
        tuple(header["ledger"]),
    )
    return record, end


def _changes(
    rows: list[tuple[str, str | None, str | None, int, bool, bool]], buffer: bytes, place: int
) -> tuple[FileChange, ...]:
    changes = []
    for path, old, new, size, appended, outside in rows:
        changes.append(FileChange(path, old, new, bytes(buffer[place : place + size]), appended, outside))
        place += size
    return tuple(changes)
