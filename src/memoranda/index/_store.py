"""The tables of the lexical index, and the unchanging view of them that a search works on.

Documents lie in segments of at most 65,536, numbered from 0 in each, with postings per term; the newest few lie in
the tail, one row a document with its terms in one string, so that adding a document costs one small row; whoever
searches reads a row once. A segment is never changed; only the status of its documents is.

Postings of a term: the numbers as unsigned 16-bit little-endian integers, then as many bytes of term frequencies.
Postings of a facet: a byte 0 and numbers, or a byte 1 and a bitmap, whichever is shorter.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from memoranda.index.documents import KEY

LIVE, RETIRED, DROPPED = 0, 1, 2
TAIL_MOST = 128  # documents; then they become a segment
SEGMENT_MOST = 65_536  # documents, since their numbers are 16 bits
MOST_FREQUENCY = 200  # a higher term frequency counts as this
MOST_LENGTH = 65_535  # likewise for a document's length
FACET = "\x01"  # before a facet in the place of a term; no term has a control character
_TERM, _END, _ZERO = b"\x02", b"\x03", 33  # the tail: \x02 term \x03 chr(33 + frequency)

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE segments (
  id INTEGER PRIMARY KEY, size INTEGER NOT NULL, keys BLOB NOT NULL, by_key BLOB NOT NULL, lengths BLOB NOT NULL,
  traits BLOB NOT NULL);
CREATE TABLE status (
  segment INTEGER PRIMARY KEY, version INTEGER NOT NULL, live INTEGER NOT NULL, total INTEGER NOT NULL,
  bytes BLOB NOT NULL);
CREATE TABLE postings (segment INTEGER NOT NULL, term TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (segment, term))
  WITHOUT ROWID;
CREATE TABLE tail (
  id INTEGER PRIMARY KEY, key BLOB NOT NULL, status INTEGER NOT NULL, length INTEGER NOT NULL,
  traits INTEGER NOT NULL, terms BLOB NOT NULL);
INSERT INTO meta VALUES ('generation', 0), ('segment', 0);
"""


class Row(NamedTuple):
    """One document as it is stored: `terms` to frequency (facets among them, with frequency 1)."""

    key: bytes
    status: int
    length: int
    traits: int
    terms: dict[str, int]


class Segment(NamedTuple):
    """A segment as a view holds it. `by_key` are its document numbers in the order of their keys, `total` the summed
    lengths of its live documents; `derived` is what a kernel derives once from what never changes."""

    id: int
    size: int
    keys: bytes
    by_key: array[int]
    lengths: array[int]
    traits: bytes
    status: bytes
    version: int
    live: int
    total: int
    derived: dict[str, object]

    def key(self, number: int) -> bytes:
        return self.keys[number * KEY : number * KEY + KEY]

    def find(self, key: bytes) -> int | None:
        """The number of the document with this key, unless it was dropped."""
        at = bisect_left(self.by_key, key, key=self.key)
        if at == self.size:
            return None
        number = self.by_key[at]
        return number if self.key(number) == key and self.status[number] != DROPPED else None


Held = dict[bytes, list[tuple[int, int]]]
"""Per term the rows of the tail that hold it, in their order, with its frequency in each."""


class Tail(NamedTuple):
    """The newest documents, in the order in which they came; their numbers follow those of the segments.

    `numbers` leads from a row to its place here. `held` grows with the tail and is shared with later views: rows that
    are not among `numbers` are none of this view's.
    """

    rows: tuple[int, ...]
    keys: tuple[bytes, ...]
    status: bytes
    lengths: array[int]
    traits: bytes
    texts: tuple[bytes, ...]
    numbers: dict[int, int]
    held: Held

    def postings(self, term: str) -> bytes:
        """The postings of a term as a segment has them; b"" when there are none."""
        found = self.held.get(term.encode())
        if not found:
            return b""
        numbers, frequencies = array("H"), bytearray()
        for row, count in found:
            number = self.numbers.get(row)
            if number is not None:
                numbers.append(number)
                frequencies.append(count)
        return bytes_of(numbers) + frequencies

    def document(self, number: int) -> Row:
        """The document as it was added."""
        terms = {term.decode(): count for term, count in _unpacked(self.texts[number])}
        return Row(self.keys[number], self.status[number], self.lengths[number], self.traits[number], terms)


class View:
    """Everything a search needs besides postings, as of one generation. Documents are numbered through.

    `bases` are the first numbers of the segments and of the tail, `live` and `total` the live documents and their
    summed lengths; `derived` is what a kernel derives once for this generation, `lasting` what it derives of the
    segments alone, and which the next view takes over when it has the same ones.
    """

    def __init__(
        self, generation: int, segments: tuple[Segment, ...], tail: Tail, live: int, total: int,
        lasting: dict[object, object] | None = None,
    ) -> None:  # fmt: skip
        self.generation = generation
        self.segments = segments
        self.tail = tail
        self.live = live
        self.total = total
        self.derived: dict[object, object] = {}
        self.lasting: dict[object, object] = {} if lasting is None else lasting
        bases = [0]
        for segment in segments:
            bases.append(bases[-1] + segment.size)
        self.bases = tuple(bases)

    @property
    def size(self) -> int:
        return self.bases[-1] + len(self.tail.keys)

    @cached_property
    def status(self) -> bytes:
        return b"".join([*(segment.status for segment in self.segments), self.tail.status])

    @cached_property
    def lengths(self) -> array[int]:
        return array("H", b"".join([*(segment.lengths for segment in self.segments), self.tail.lengths]))

    @cached_property
    def traits(self) -> bytes:
        return b"".join([*(segment.traits for segment in self.segments), self.tail.traits])

    @cached_property
    def hidden(self) -> bool:
        """Some document is not live."""
        return self.live < self.size

    def split(self, traits: tuple[int, int]) -> tuple[bool, bool]:
        """Whether there are documents whose traits, masked by the first, equal the second, and whether others."""
        mask, wanted = traits
        right = [of & mask == wanted for of in self._kinds]
        return any(right), not all(right)

    @cached_property
    def _kinds(self) -> list[int]:
        """The traits that there are, each once."""
        found = set(self.tail.traits)
        for segment in self.segments:
            kinds = segment.derived.get("kinds")
            if kinds is None:
                kinds = segment.derived["kinds"] = {of for of in range(256) if of in segment.traits}
            found |= kinds  # type: ignore[arg-type]
        return sorted(found)

    def key(self, number: int) -> bytes:
        at = bisect_right(self.bases, number) - 1
        if at == len(self.segments):
            return self.tail.keys[number - self.bases[-1]]
        return self.segments[at].key(number - self.bases[at])

    def find(self, key: bytes) -> int | None:
        """The number of the document with this key; None when there is none or it was dropped."""
        if key in self.tail_numbers:
            return self.bases[-1] + self.tail_numbers[key]
        for base, segment in zip(self.bases, self.segments, strict=False):
            number = segment.find(key)
            if number is not None:
                return base + number
        return None

    @cached_property
    def tail_numbers(self) -> dict[bytes, int]:
        return {key: number for number, key in enumerate(self.tail.keys)}


def numbers_of(data: bytes) -> array[int]:
    """Unsigned 16-bit little-endian integers, on any machine."""
    numbers = array("H")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def bytes_of(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = array("H", numbers)
        numbers.byteswap()
    return numbers.tobytes()


def read_view(db: sqlite3.Connection, generation: int, former: View | None) -> View:
    """The view of a generation, inside a transaction; what did not change is taken over from a former one."""
    known = {segment.id: segment for segment in former.segments} if former else {}
    segments = []
    for number, version, live, total in db.execute("SELECT segment, version, live, total FROM status ORDER BY segment"):
        segment = known.get(number)
        if segment is None:
            segment = _read_segment(db, number, version, live, total)
        elif segment.version != version:
            (status,) = db.execute("SELECT bytes FROM status WHERE segment = ?", (number,)).fetchone()
            segment = segment._replace(status=status, version=version, live=live, total=total)
        segments.append(segment)
    tail = _read_tail(db, former.tail if former else None)
    present = [length for length, status in zip(tail.lengths, tail.status, strict=True) if status == LIVE]
    live_ones = sum(segment.live for segment in segments) + len(present)
    total = sum(segment.total for segment in segments) + sum(present)
    same = former is not None and tuple(map(id, former.segments)) == tuple(map(id, segments))
    return View(generation, tuple(segments), tail, live_ones, total, former.lasting if former and same else None)


def _read_segment(db: sqlite3.Connection, number: int, version: int, live: int, total: int) -> Segment:
    query = "SELECT size, keys, by_key, lengths, traits, bytes FROM segments JOIN status ON segment = id WHERE id = ?"
    size, keys, by_key, lengths, traits, status = db.execute(query, (number,)).fetchone()
    return Segment(
        number, size, keys, numbers_of(by_key), numbers_of(lengths), traits, status, version, live, total, {}
    )


def _read_tail(db: sqlite3.Connection, former: Tail | None) -> Tail:
    """The tail as it is now; what a former one has read of rows that are still there is taken over."""
    now = db.execute("SELECT id, key, status FROM tail ORDER BY id").fetchall()
    known = len(former.rows) if former else 0
    if former is None or [row[:2] for row in now[:known]] != list(zip(former.rows, former.keys, strict=True)):
        former, known = Tail((), (), b"", array("H"), b"", (), {}, {}), 0  # rows went: their numbers may come again
    fresh = []
    if len(now) > known:
        query = "SELECT id, key, length, traits, terms FROM tail WHERE id >= ? ORDER BY id"
        fresh = db.execute(query, (now[known][0],)).fetchall()
    for row, *_, text in fresh:
        for term, count in _unpacked(text):
            former.held.setdefault(term, []).append((row, count))
    return Tail(
        tuple(row[0] for row in now), tuple(row[1] for row in now), bytes(row[2] for row in now),
        former.lengths + array("H", [row[2] for row in fresh]), former.traits + bytes(row[3] for row in fresh),
        (*former.texts, *(row[4] for row in fresh)), {row[0]: n for n, row in enumerate(now)}, former.held,
    )  # fmt: skip


def add_to_tail(db: sqlite3.Connection, rows: Iterable[Row]) -> None:
    db.executemany(
        "INSERT INTO tail (key, status, length, traits, terms) VALUES (?, ?, ?, ?, ?)",
        ((row.key, row.status, row.length, row.traits, _packed(row.terms)) for row in rows),
    )


def _packed(terms: dict[str, int]) -> bytes:
    return b"".join([_TERM + term.encode() + _END + bytes((_ZERO + count,)) for term, count in terms.items()])


def _unpacked(text: bytes) -> Iterator[tuple[bytes, int]]:
    return ((item[:-2], item[-1] - _ZERO) for item in text.split(_TERM)[1:])


def tail_rows(tail: Tail) -> Iterator[Row]:
    """The documents of the tail that were not dropped."""
    return (tail.document(n) for n in range(len(tail.keys)) if tail.status[n] != DROPPED)
