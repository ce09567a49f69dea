"""The codes of a vector index as they are held in memory, and the nearest of them in plain Python."""

from __future__ import annotations

from typing import NamedTuple

from memoranda.index.documents import KEY


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
    """All chunks as of one generation; `kinds` are the sets of facets, number 1 first; `derived` is kept for later."""

    generation: int
    chunks: tuple[Chunk, ...]
    kinds: list[frozenset[str]]
    derived: dict[object, object]

    @property
    def size(self) -> int:
        return sum(chunk.size for chunk in self.chunks)


def nearest(view: View, code: bytes, allowed: bytes, most: int, n: int) -> list[tuple[bytes, int]]:
    """The n documents whose codes differ least, as (key, number), ties by key; only those allowed and shown."""
    asked = int.from_bytes(code, "big")
    width = len(code)
    found: list[tuple[int, bytes, int]] = []
    for chunk in view.chunks:
        kinds, codes, keys, first = memoryview(chunk.kinds).cast("I"), chunk.codes, chunk.keys, chunk.first
        found += [
            (
                (int.from_bytes(codes[at * width : at * width + width], "big") ^ asked).bit_count(),
                keys[at * KEY : at * KEY + KEY],
                first + at,
            )
            for at, (status, kind) in enumerate(zip(chunk.status, kinds, strict=True))
            if status <= most and allowed[kind]
        ]
    found.sort()
    return [(key, number) for _, key, number in found[:n]]
