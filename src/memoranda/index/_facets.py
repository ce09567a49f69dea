"""Which documents pass the facets of a search: worked out before anything is ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from memoranda.index._at_hand import numpy_at_hand
from memoranda.index._store import FACET, View, numbers_of

# The eight bits of a byte as eight bytes, lowest first.
_EIGHT = [bytes((byte >> bit) & 1 for bit in range(8)) for byte in range(256)]

Fetch = Callable[[Sequence[str]], Mapping[tuple[int, str], bytes]]


def facet_term(facet: str) -> str:
    """The term under which a facet is kept; control characters and lone surrogates cannot be kept as they are."""
    clean = facet if facet.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in facet)
    return FACET + clean


def allowed(view: View, groups: Sequence[Sequence[str]], fetch: Fetch) -> bytes | None:
    """One byte a document, 1 where every group has one of its facets there; None when all pass.

    `fetch` gives the stored postings of terms, by segment id and term.
    """
    if not groups:
        return None
    wanted = tuple(tuple(sorted({facet_term(facet) for facet in group})) for group in groups)
    if wanted not in view.derived:
        passing = worked_out(view, wanted, fetch)
        view.derived[wanted] = passing if passing.count(0) else None
    return view.derived[wanted]  # type: ignore[return-value]


def worked_out(view: View, groups: Sequence[Sequence[str]], fetch: Fetch) -> bytes:
    """One byte a document as in `allowed`, for groups of terms."""
    stored = fetch([facet for group in groups for facet in group])
    pieces = []
    for segment in view.segments:
        bits = (1 << segment.size) - 1
        for group in groups:
            some = 0
            for facet in group:
                data = stored.get((segment.id, facet))
                if data:
                    some |= _bits(data, segment.size)
            bits &= some
        pieces.append(_spread(bits, segment.size))
    tail = bytearray(b"\1" * len(view.tail.keys))
    for group in groups:
        holding = {number for facet in group for number in _tail_numbers(view, facet)}
        for number in range(len(tail)):
            if number not in holding:
                tail[number] = 0
    return b"".join([*pieces, bytes(tail)])


def _tail_numbers(view: View, facet: str) -> Sequence[int]:
    data = view.tail.postings(facet)
    return numbers_of(data[: len(data) // 3 * 2])


def _bits(data: bytes, size: int) -> int:
    if data[0]:
        return int.from_bytes(data[1:], "little")
    bitmap = bytearray((size + 7) // 8)
    for number in numbers_of(data[1:]):
        bitmap[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(bitmap, "little")


def _spread(bits: int, size: int) -> bytes:
    raw = bits.to_bytes((size + 7) // 8, "little")
    numpy = numpy_at_hand()
    if numpy is not None:
        return bytes(numpy.unpackbits(numpy.frombuffer(raw, numpy.uint8), bitorder="little")[:size].tobytes())
    return b"".join([_EIGHT[byte] for byte in raw])[:size]
