"""The nearest codes with numpy, for many documents. Gives the same as plain Python in `_chunks`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memoranda.index._chunks import Chunk, View
from memoranda.index.documents import KEY

_BLOCK = 32_768  # codes at once, so that what is made of them stays in the processor's cache


class _Codes:
    """The codes of all chunks, a row for each 64 bits, with status and kinds; grown in place as chunks come.

    `width` bytes are a code; one that is no multiple of eight is filled up with zeros.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.words = words = -(-width // 8)
        self.size = 0
        self.last: tuple[tuple[bytes, int], npt.NDArray[np.uint16]] | None = None  # notes and passages are asked alike
        self.chunks: list[tuple[int, int, int, int]] = []  # id, version, first, size
        self.codes: npt.NDArray[np.uint64] = np.zeros((words, 1024), np.uint64)
        self.status: npt.NDArray[np.uint8] = np.zeros(1024, np.uint8)
        self.kinds: npt.NDArray[np.uint32] = np.zeros(1024, np.uint32)

    def bring(self, chunks: Sequence[Chunk]) -> None:
        """Takes over what changed; chunks are only ever added at the end, or grow there."""
        for n, chunk in enumerate(chunks):
            if n < len(self.chunks):
                number, version, first, size = self.chunks[n]
                if (number, version) == (chunk.id, chunk.version):
                    continue
                if size == chunk.size:
                    self.status[first : first + size] = np.frombuffer(chunk.status, np.uint8)
                    self.chunks[n] = (chunk.id, chunk.version, first, size)
                    continue
                assert n == len(self.chunks) - 1
                self.size = first
                self.chunks.pop()
            self._take(chunk)

    def in_words(self, codes: bytes) -> npt.NDArray[np.uint64]:
        """Codes as rows of 64 bits."""
        rows = np.frombuffer(codes, np.uint8).reshape(-1, self._width)
        if filling := -self._width % 8:
            rows = np.pad(rows, ((0, 0), (0, filling)))
        return rows.view(np.uint64)

    def _take(self, chunk: Chunk) -> None:
        first, last = self.size, self.size + chunk.size
        if last > len(self.status):
            grown = max(last, 2 * len(self.status))
            self.codes = np.concatenate([self.codes, np.zeros((self.words, grown - len(self.status)), np.uint64)], 1)
            self.kinds = np.resize(self.kinds, grown)
            self.status = np.resize(self.status, grown)
        self.codes[:, first:last] = self.in_words(chunk.codes).T
        self.status[first:last] = np.frombuffer(chunk.status, np.uint8)
        self.kinds[first:last] = np.frombuffer(chunk.kinds, "<u4")
        self.chunks.append((chunk.id, chunk.version, first, chunk.size))
        self.size = last


def nearest(view: View, code: bytes, allowed: bytes, most: int, n: int) -> list[tuple[bytes, int]]:
    """The n documents whose codes differ least, as (key, number), ties by key; only those allowed and shown."""
    held = view.derived.get("codes")
    if held is None:
        held = view.derived["codes"] = _Codes(len(code))
    assert isinstance(held, _Codes)
    held.bring(view.chunks)
    asked = (code, view.generation)
    if held.last is None or held.last[0] != asked:
        held.last = (asked, _distances(held, held.in_words(code)[0]))
    distances = held.last[1]
    hidden = held.status[: held.size] > most
    if 0 in allowed[1:]:
        hidden |= np.frombuffer(allowed, np.uint8)[held.kinds[: held.size]] == 0
    if hidden.any():
        distances = np.where(hidden, np.uint16(65_535), distances)
    shown = held.size - int(np.count_nonzero(hidden))
    if shown <= n:
        found = np.flatnonzero(distances != 65_535)
    else:
        found = np.flatnonzero(distances <= np.partition(distances, n - 1)[n - 1])
    numbers = found.tolist()
    ranked = sorted(zip(distances[found].tolist(), _keys(view, held, found), numbers, strict=True))
    return [(key, number) for _, key, number in ranked[:n]]


def _distances(held: _Codes, asked: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    distances = np.empty(held.size, np.uint16)
    for first in range(0, held.size, _BLOCK):
        last = min(first + _BLOCK, held.size)
        block = distances[first:last]
        block[:] = np.bitwise_count(held.codes[0, first:last] ^ asked[0])
        for word in range(1, held.words):
            block += np.bitwise_count(held.codes[word, first:last] ^ asked[word])
    return distances


def _keys(view: View, held: _Codes, numbers: npt.NDArray[np.int64]) -> list[bytes]:
    firsts = np.array([first for _, _, first, _ in held.chunks])
    of = np.searchsorted(firsts, numbers, side="right") - 1
    at = (numbers - firsts[of]) * KEY
    pairs = zip(of.tolist(), at.tolist(), strict=True)
    return [view.chunks[chunk].keys[start : start + KEY] for chunk, start in pairs]


def products(asked: Sequence[int], vectors: Sequence[bytes], norms: Sequence[int]) -> list[int]:
    """The exact scalar products of a vector with others, whose products with themselves are checked."""
    from memoranda.index.journal_mode import damaged

    data = b"".join(vectors)
    rows = np.frombuffer(data, np.int8)
    if len(rows) != len(vectors) * len(asked):
        raise damaged("The vector index", "vectors are missing at its end")
    # Sums of products of bytes stay far below 2 ** 24 times a thousand: float64 holds them exactly.
    exact = rows.reshape(len(vectors), len(asked)).astype(np.float64)
    if np.einsum("ij,ij->i", exact, exact).astype(np.int64).tolist() != list(norms):
        raise damaged("The vector index", "a vector is not the one that was written")
    found: list[int] = (exact @ np.array(asked, np.float64)).astype(np.int64).tolist()
    return found


def norms(vectors: Sequence[bytes]) -> bytes:
    """The scalar product of each vector with itself, as 4 bytes."""
    rows = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.int32)
    found: bytes = np.einsum("ij,ij->i", rows, rows).astype("<u4").tobytes()
    return found
