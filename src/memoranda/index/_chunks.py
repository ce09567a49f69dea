"""The codes of a vector index as they are held in memory, and the nearest of them in plain Python.

Plain Python serves a process that asks once: importing numpy would cost it more than the search. A code is compared
column by column: the first bytes of all codes at once, then the second ones, and so on. The bits that differ are looked
up in a table, and added up as one large number with a byte for each document.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, reduce
from operator import add
from typing import NamedTuple

from memoranda.index.documents import KEY

_COLUMNS = 31  # so many columns differ in at most 248 bits, which a byte holds


class Chunk(NamedTuple):
    """Documents, numbered through from `first`: `status` a byte each, `keys` 20, `kinds` 4 (the set of their facets),
    `norms` 4 (the scalar product of a vector with itself)."""

    id: int
    version: int
    first: int
    size: int
    status: bytes
    keys: bytes
    kinds: bytes
    norms: bytes
    codes: bytes


class View(NamedTuple):
    """All chunks as of one generation; `kinds` are the sets of facets, each facet between two line feeds, number 1
    first; `derived` is kept for later."""

    generation: int
    chunks: tuple[Chunk, ...]
    kinds: list[str]
    derived: dict[object, object]

    @property
    def size(self) -> int:
        return sum(chunk.size for chunk in self.chunks)


def nearest(view: View, code: bytes, allowed: bytes, most: int, n: int) -> list[tuple[bytes, int]]:
    """The n documents whose codes differ least, as (key, number), ties by key; only those allowed and shown."""
    distances = _distances(view, code)
    status = b"".join([chunk.status for chunk in view.chunks])
    numbers: Sequence[int] = range(len(distances))
    if 0 in allowed[1:] or max(status, default=0) > most:
        kinds = memoryview(b"".join([chunk.kinds for chunk in view.chunks])).cast("I")
        numbers = [i for i, (s, kind) in enumerate(zip(status, kinds, strict=True)) if s <= most and allowed[kind]]
        distances = [distances[number] for number in numbers]
    furthest = sorted(distances)[:n][-1:] or [0]
    among = [(d, number) for d, number in zip(distances, numbers, strict=True) if d <= furthest[0]]
    keys = b"".join([chunk.keys for chunk in view.chunks])
    found = sorted((distance, keys[number * KEY : number * KEY + KEY], number) for distance, number in among)
    return [(key, number) for _, key, number in found[:n]]


def _distances(view: View, code: bytes) -> list[int]:
    """How many bits of each code differ from this one, in the order of the documents."""
    asked = ("plain", code, view.generation)
    held = view.derived.get("distances")  # notes and passages are asked alike
    if isinstance(held, tuple) and held[0] == asked:
        return list(held[1])
    codes = b"".join([chunk.codes for chunk in view.chunks])
    width = len(code)
    parts = []
    for first in range(0, width, _COLUMNS):
        total = sum(
            int.from_bytes(codes[at::width].translate(_differing(code[at])), "little")
            for at in range(first, min(first + _COLUMNS, width))
        )
        parts.append(total.to_bytes(len(codes) // width, "little"))
    found = list(reduce(lambda a, b: map(add, a, b), parts[1:], iter(parts[0])))
    view.derived["distances"] = (asked, found)
    return found


@cache
def _differing(byte: int) -> bytes:
    """For each other byte the number of bits in which it differs from this one."""
    return bytes([(byte ^ other).bit_count() for other in range(256)])


def products(asked: Sequence[int], vectors: Sequence[bytes]) -> list[int]:
    """The exact scalar products of a vector with others of its length.

    As above: all first numbers at once, times the first one asked for, with 32 bits for each vector. Numbers are made
    positive for that, and what is negative in `asked` is added up apart, so that no bit is borrowed from a neighbour.
    """
    data = b"".join(vectors).translate(_LIFTED)
    width, count = len(asked), len(vectors)
    lanes = bytearray(4 * count)
    plus = minus = 0
    for at, number in enumerate(asked):
        if number:
            lanes[::4] = data[at::width]
            column = int.from_bytes(lanes, "little")
            if number > 0:
                plus += number * column
            else:
                minus -= number * column
    lifted = 128 * sum(asked)
    return [a - b - lifted for a, b in zip(_lanes(plus, count), _lanes(minus, count), strict=True)]


_LIFTED = bytes([(number + 128) % 256 for number in range(256)])  # a signed byte and 128


def _lanes(total: int, count: int) -> list[int]:
    return memoryview(total.to_bytes(4 * count, sys.byteorder)).cast("I").tolist()[:: 1 if _LITTLE else -1]


_LITTLE = sys.byteorder == "little"
