"""The nearest codes with numpy, for many documents. Gives the same as plain Python in `_chunks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from mmap import mmap
from operator import mul

import numpy as np
import numpy.typing as npt

from memoranda.index._chunks import Chunk, View
from memoranda.index.documents import KEY
from memoranda.index.journal_mode import damaged

_KEPT = 8  # sets of facets
_SAMPLE = 16
_NARROW = 1024  # numbers of a vector
_BLOCK = 32_768  # codes at once, so that what is made of them stays in the processor's cache


class _Codes:
    """The codes of all chunks, a row for each 64 bits, with status and kinds; grown in place as chunks come.

    `width` bytes are a code; one that is no multiple of eight is filled up with zeros.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self.words = words = -(-width // 8)
        self.size = 0
        self.generation = -1  # of the view that it is as far as
        self.last: tuple[tuple[bytes, int], npt.NDArray[np.uint16]] | None = None  # notes and passages are asked alike
        self.chunks: list[tuple[int, int, int, int]] = []  # id, version, first, size
        self.firsts: npt.NDArray[np.int64] = np.zeros(0, np.int64)  # of the chunks
        self.codes: npt.NDArray[np.uint64] = np.zeros((words, 1024), np.uint64)
        self.status: npt.NDArray[np.uint8] = np.zeros(1024, np.uint8)
        self.kinds: npt.NDArray[np.uint32] = np.zeros(1024, np.uint32)
        self.norms: npt.NDArray[np.uint32] = np.zeros(1024, np.uint32)
        self.shown: dict[tuple[bytes, int], tuple[int, npt.NDArray[np.bool_] | None, int]] = {}

    def bring(self, chunks: Sequence[Chunk]) -> None:
        """Takes over what changed; chunks are only ever added at the end, or grow there."""
        for n, chunk in enumerate(chunks):
            if n < len(self.chunks):
                number, version, first, size = self.chunks[n]
                if (number, version) == (chunk.id, chunk.version):
                    continue
                if size == chunk.size:
                    self.status[first : first + size] = np.frombuffer(chunk.status, np.uint8)
                    self.norms[first : first + size] = np.frombuffer(chunk.norms, "<u4")
                    self.chunks[n] = (chunk.id, chunk.version, first, size)
                    continue
                assert n == len(self.chunks) - 1
                self.size = first
                self.chunks.pop()
            self._take(chunk)
        self.firsts = np.array([first for _, _, first, _ in self.chunks], np.int64)

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
            self.norms = np.resize(self.norms, grown)
            self.status = np.resize(self.status, grown)
        self.codes[:, first:last] = self.in_words(chunk.codes).T
        self.status[first:last] = np.frombuffer(chunk.status, np.uint8)
        self.kinds[first:last] = np.frombuffer(chunk.kinds, "<u4")
        self.norms[first:last] = np.frombuffer(chunk.norms, "<u4")
        self.chunks.append((chunk.id, chunk.version, first, chunk.size))
        self.size = last


def nearest(view: View, code: bytes, allowed: bytes, most: int, n: int) -> list[tuple[bytes, int]]:
    """The n documents whose codes differ least, as (key, number), ties by key; only those allowed and shown."""
    held = _held(view, len(code))
    numbers = _nearest(view, held, code, allowed, most, n)
    distances = _distances_of(view, held, code)[numbers]
    ranked = sorted(zip(distances.tolist(), _keys(view, held, numbers), numbers.tolist(), strict=True))
    return [(key, number) for _, key, number in ranked]


def alike(
    view: View, asked: Sequence[int], code: bytes, vectors: Callable[[Sequence[int]], bytes | mmap], allowed: bytes,
    most: int, among: int, n: int,
) -> list[tuple[bytes, float]]:  # fmt: skip
    """The best n by their cosine with a vector, as (key, cosine), ties by key, of the `among` with the nearest codes.

    `vectors` maps the vectors as far as these numbers. IndexDamaged, as `products`.
    """
    held = _held(view, len(code))
    numbers = _nearest(view, held, code, allowed, most, among)
    if not len(numbers):
        return []
    recorded = held.norms[numbers]
    rows = rows_of(vectors(numbers.tolist()), len(asked), numbers)
    cosines = cosines_of(asked, rows, recorded)
    if len(numbers) > n:
        least = np.partition(cosines, len(cosines) - n)[len(cosines) - n]
        kept = cosines >= least
        numbers, cosines = numbers[kept], cosines[kept]
    found = list(zip(_keys(view, held, numbers), cosines.tolist(), strict=True))
    found.sort(key=lambda item: (-item[1], item[0]))
    return found[:n]


def _nearest(view: View, held: _Codes, code: bytes, allowed: bytes, most: int, n: int) -> npt.NDArray[np.int64]:
    """The numbers of the n documents that `nearest` names, in their own order."""
    distances = _distances_of(view, held, code)
    shown, count = _shown(view, held, allowed, most)
    found = _closest(distances, shown, count, n)
    if len(found) <= n:
        return found
    far = distances[found]
    last = far.max()
    ties = found[far == last]
    nearer = found[far < last]
    first = sorted(zip(_keys(view, held, ties), ties.tolist(), strict=True))[: n - len(nearer)]
    return np.concatenate((nearer, np.array([number for _, number in first], np.int64)))


def _distances_of(view: View, held: _Codes, code: bytes) -> npt.NDArray[np.uint16]:
    asked = (code, view.generation)
    if held.last is None or held.last[0] != asked:
        held.last = (asked, _distances(held, held.in_words(code)[0]))
    return held.last[1]


def _held(view: View, width: int) -> _Codes:
    """The codes of a view; `width` bytes are one."""
    held = view.derived.get("codes")
    if held is None:
        held = view.derived["codes"] = _Codes(width)
    assert isinstance(held, _Codes)
    if held.generation != view.generation:
        held.bring(view.chunks)
        held.generation = view.generation
    return held


def _shown(view: View, held: _Codes, allowed: bytes, most: int) -> tuple[npt.NDArray[np.bool_] | None, int]:
    """Which documents are allowed and shown (None: all), and how many; kept, since most questions ask alike."""
    kept = held.shown.get((allowed, most))
    if kept is None or kept[0] != view.generation:
        shown = held.status[: held.size] <= most
        if 0 in allowed[1:]:
            shown &= np.frombuffer(allowed, np.uint8)[held.kinds[: held.size]] != 0
        count = int(np.count_nonzero(shown))
        if len(held.shown) >= _KEPT:
            held.shown.clear()
        kept = held.shown[allowed, most] = (view.generation, None if count == held.size else shown, count)
    return kept[1:]


def _closest(
    distances: npt.NDArray[np.uint16], shown: npt.NDArray[np.bool_] | None, count: int, n: int
) -> npt.NDArray[np.int64]:
    """The numbers of the n shown with the smallest distances, and of all that are as far as the last of them."""
    if count <= n:
        return np.arange(len(distances)) if shown is None else np.flatnonzero(shown)
    found = None
    if count > 64 * _SAMPLE:
        # A sample tells about where the n-th lies; when it was too bold, all are looked at.
        sample = distances[::_SAMPLE] if shown is None else distances[::_SAMPLE][shown[::_SAMPLE]]
        rank = min(2 * n // _SAMPLE + 8, len(sample) - 1)
        if rank >= 0:
            found = _within(distances, shown, np.partition(sample, rank)[rank])
    if found is None or len(found) < n:
        found = np.arange(len(distances)) if shown is None else np.flatnonzero(shown)
    few = distances[found]
    closest: npt.NDArray[np.int64] = found[few <= np.partition(few, n - 1)[n - 1]]
    return closest


def _within(
    distances: npt.NDArray[np.uint16], shown: npt.NDArray[np.bool_] | None, most: np.uint16
) -> npt.NDArray[np.int64]:
    near = distances <= most
    return np.flatnonzero(near if shown is None else near & shown)


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
    of = np.searchsorted(held.firsts, numbers, side="right") - 1
    at = (numbers - held.firsts[of]) * KEY
    pairs = zip(of.tolist(), at.tolist(), strict=True)
    return [view.chunks[chunk].keys[start : start + KEY] for chunk, start in pairs]


Many = Sequence[int] | npt.NDArray[np.int64]


def rows_of(vectors: bytes | mmap, width: int, numbers: Many) -> npt.NDArray[np.int8]:
    """The vectors with these numbers, of `width` signed bytes each. IndexDamaged where the file ends before."""
    count = len(vectors) // width
    if max(numbers, default=0) >= count:
        raise damaged("The vector index", "vectors are missing at its end")
    return np.frombuffer(vectors, np.int8, count * width).reshape(count, width)[np.asarray(numbers, np.int64)]


def norms_of(view: View, width: int, numbers: Sequence[int]) -> npt.NDArray[np.uint32]:
    """What was recorded of vectors: their products with themselves."""
    return _held(view, -(-width // 8)).norms[np.array(numbers, np.int64)]


def cosines_of(
    asked: Sequence[int], rows: npt.NDArray[np.int8], norms: npt.NDArray[np.uint32]
) -> npt.NDArray[np.float64]:
    """The cosines of a vector with others, as plain Python gives them; 0 for what is all zeros. IndexDamaged."""
    lengths = np.sqrt(norms * np.float64(sum(map(mul, asked, asked))))
    found = np.array(products(asked, rows, norms), np.float64)
    return np.divide(found, lengths, out=np.zeros(len(found)), where=lengths > 0)


def products(asked: Sequence[int], rows: npt.NDArray[np.int8], norms: npt.NDArray[np.uint32]) -> list[int]:
    """The exact scalar products of a vector with others, whose products with themselves are checked. IndexDamaged."""
    # Whole numbers are exact as floats, in whatever order they are added: sums of products of bytes stay below 2 ** 24
    # up to a thousand dimensions, and far below 2 ** 53 always.
    exact: npt.NDArray[np.floating] = rows.astype(np.float32 if rows.shape[1] <= _NARROW else np.float64)
    if (np.einsum("ij,ij->i", exact, exact).astype(np.int64) != norms).any():
        raise damaged("The vector index", "a vector is not the one that was written")
    # Not by `@`: its library begins threads for this, and where the processors are busy one waits for the other for
    # longer than a recall takes.
    found: list[int] = np.einsum("ij,j->i", exact, np.array(asked, exact.dtype)).astype(np.int64).tolist()
    return found


def norms(vectors: Sequence[bytes]) -> bytes:
    """The scalar product of each vector with itself, as 4 bytes."""
    rows = np.frombuffer(b"".join(vectors), np.int8).reshape(len(vectors), -1).astype(np.int32)
    found: bytes = np.einsum("ij,ij->i", rows, rows).astype("<u4").tobytes()
    return found
