"""Making segments: from documents, and from other segments.

Merging is log-structured: eight segments of a size class become one of the next, so a document is rewritten a few
times in its life however many are added one at a time, and a search has few segments to look into.
"""

from __future__ import annotations

import heapq
import sqlite3
import sys
from array import array
from collections.abc import Iterator, Sequence
from operator import itemgetter

from memoranda.index._store import (
    DROPPED,
    FACET,
    LIVE,
    SEGMENT_MOST,
    TAIL_MOST,
    Row,
    Segment,
    bytes_of,
    numbers_of,
)

FAN = 8
# Documents and postings of one segment when many come at once; bounds the memory of a build to some 40 MB.
BUILD_DOCUMENTS = 32_768
BUILD_POSTINGS = 2_500_000
INSERT_POSTINGS = "INSERT INTO postings (segment, term, data) VALUES (?, ?, ?)"
_CHUNK = 4096  # rows of postings handed to SQLite at once
_MUCH = 150_000  # postings that are worth importing numpy for


class _Numbers(dict[str, int]):
    """Numbers terms in the order in which they are first asked for."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class Builder:
    """Collects documents in memory and writes them as one segment.

    One flat list of (term, frequency) over all documents, sorted by term at the end: no object per term and document.
    """

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._status = bytearray()
        self._lengths = array("H")
        self._traits = bytearray()
        self._numbers = _Numbers()
        self._terms = array("I")
        self._counts = bytearray()
        self._sizes = array("I")  # how many terms each document has

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def postings(self) -> int:
        return len(self._terms)

    def add(self, row: Row) -> None:
        self._keys.append(row.key)
        self._status.append(row.status)
        self._lengths.append(row.length)
        self._traits.append(row.traits)
        self._terms.extend(map(self._numbers.__getitem__, row.terms))
        self._counts.extend(row.terms.values())
        self._sizes.append(len(row.terms))

    def write(self, db: sqlite3.Connection, number: int, version: int) -> None:
        """Writes the segment `number`; its terms in order, so that the table grows at its end."""
        size = len(self._keys)
        if len(self._terms) >= _MUCH or "numpy" in sys.modules:
            from memoranda.index._fast import inverted
        else:
            from memoranda.index._plain import inverted
        postings = inverted(self._terms, self._counts, self._sizes, len(self._numbers))
        rows = []
        for term, (found, counts) in zip(self._numbers, postings, strict=True):
            data = pack_facet(numbers_of(found), size) if term[0] == FACET else found + counts
            rows.append((number, term, data))
        rows.sort(key=itemgetter(1))
        db.executemany(INSERT_POSTINGS, rows)
        write_documents(db, number, version, self._keys, self._lengths, self._traits, self._status)


def write_documents(
    db: sqlite3.Connection,
    number: int,
    version: int,
    keys: Sequence[bytes],
    lengths: array[int],
    traits: bytes | bytearray,
    status: bytes | bytearray,
) -> None:
    by_key = array("H", sorted(range(len(keys)), key=keys.__getitem__))
    db.execute(
        "INSERT INTO segments (id, size, keys, by_key, lengths, traits) VALUES (?, ?, ?, ?, ?, ?)",
        (number, len(keys), b"".join(keys), bytes_of(by_key), bytes_of(lengths), bytes(traits)),
    )
    live = [length for length, state in zip(lengths, status, strict=True) if state == LIVE]
    db.execute(
        "INSERT INTO status (segment, version, live, total, bytes) VALUES (?, ?, ?, ?, ?)",
        (number, version, len(live), sum(live), bytes(status)),
    )


def pack_facet(numbers: array[int], size: int) -> bytes:
    """The documents of a facet: their numbers, or a bitmap (bit n of byte n // 8) when that is shorter."""
    if len(numbers) * 16 <= size:
        return b"\0" + bytes_of(numbers)
    bitmap = bytearray((size + 7) // 8)
    for number in numbers:
        bitmap[number >> 3] |= 1 << (number & 7)
    return b"\1" + bitmap


def unpack_facet(data: bytes) -> array[int]:
    """The numbers of a facet's documents, in their order."""
    if data[0] == 0:
        return numbers_of(data[1:])
    bits = int.from_bytes(data[1:], "little")
    return array("H", [n for n, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"])


def due(segments: Sequence[Segment]) -> list[Segment]:
    """The segments that should become one now; none when all is well."""
    classes: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.status.count(DROPPED) == segment.size:
            return [segment]
        level, bound = 0, TAIL_MOST * FAN
        while segment.size >= bound:
            level, bound = level + 1, bound * FAN
        classes.setdefault(level, []).append(segment)
    for _, same in sorted(classes.items()):
        if len(same) >= FAN:
            chosen = fitting(same)
            if len(chosen) > 1:
                return chosen
    return []


def fitting(segments: Sequence[Segment]) -> list[Segment]:
    """As many segments as fit into one, the smallest first."""
    chosen, size = [], 0
    for segment in sorted(segments, key=lambda s: (s.size, s.id)):
        if size + segment.size <= SEGMENT_MOST:
            chosen.append(segment)
            size += segment.size
    return sorted(chosen, key=lambda s: s.id)


def merge(db: sqlite3.Connection, segments: Sequence[Segment], number: int, version: int) -> None:
    """Writes the documents of these segments, without the dropped ones, as the segment `number`; removes the old."""
    keys: list[bytes] = []
    status, traits, lengths = bytearray(), bytearray(), array("H")
    moved: list[Sequence[int]] = []  # old number -> new number, -1 for a dropped document
    for segment in segments:
        start = len(keys)
        kept = [n for n in range(segment.size) if segment.status[n] != DROPPED]
        if len(kept) == segment.size:
            moved.append(range(start, start + segment.size))
        else:
            places = [-1] * segment.size
            for place, n in enumerate(kept, start):
                places[n] = place
            moved.append(places)
        for n in kept:
            keys.append(segment.key(n))
            status.append(segment.status[n])
            traits.append(segment.traits[n])
            lengths.append(segment.lengths[n])
    chunk: list[tuple[int, str, bytes]] = []
    for term, data in _merged(db, segments, moved, len(keys)):
        chunk.append((number, term, data))
        if len(chunk) == _CHUNK:
            db.executemany(INSERT_POSTINGS, chunk)
            chunk.clear()
    db.executemany(INSERT_POSTINGS, chunk)
    if keys:
        write_documents(db, number, version, keys, lengths, traits, status)
    for segment in segments:
        db.execute("DELETE FROM postings WHERE segment = ?", (segment.id,))
        db.execute("DELETE FROM segments WHERE id = ?", (segment.id,))
        db.execute("DELETE FROM status WHERE segment = ?", (segment.id,))


def _merged(
    db: sqlite3.Connection, segments: Sequence[Segment], moved: Sequence[Sequence[int]], size: int
) -> Iterator[tuple[str, bytes]]:
    """The postings of every term over the segments, in the order of terms."""
    streams = [_stream(db, at, segment.id) for at, segment in enumerate(segments)]
    term, numbers, counts = "", array("H"), bytearray()
    for found, at, data in heapq.merge(*streams, key=itemgetter(0)):
        if found != term:
            if numbers:
                yield term, _pack(term, numbers, counts, size)
            term, numbers, counts = found, array("H"), bytearray()
        places = moved[at]
        if found[0] == FACET:
            old, frequencies = unpack_facet(data), b""
        else:
            old, frequencies = numbers_of(data[: len(data) // 3 * 2]), data[len(data) // 3 * 2 :]
        if isinstance(places, range):
            start = places.start
            numbers.extend([n + start for n in old])
            counts += frequencies
            continue
        kept = [i for i, n in enumerate(old) if places[n] >= 0]
        numbers.extend([places[old[i]] for i in kept])
        if frequencies:
            counts += bytes([frequencies[i] for i in kept])
    if numbers:
        yield term, _pack(term, numbers, counts, size)


def _stream(db: sqlite3.Connection, at: int, segment: int) -> Iterator[tuple[str, int, bytes]]:
    for term, data in db.execute("SELECT term, data FROM postings WHERE segment = ? ORDER BY term", (segment,)):
        yield term, at, data


def _pack(term: str, numbers: array[int], counts: bytearray, size: int) -> bytes:
    return pack_facet(numbers, size) if term[0] == FACET else bytes_of(numbers) + counts
