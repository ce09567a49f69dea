"""Scoring with numpy, for much work. Gives the same bits as `_plain`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from memoranda.index._best import candidates, of_sample
from memoranda.index._scoring import Scoring, Shares, in_order, weights
from memoranda.index._store import DROPPED, Segment, View
from memoranda.index._words import Floats, Numbers, Word, word_of
from memoranda.index.documents import KEY

_KEPT = 1_000_000  # postings whose weights are kept, 8 bytes each; more where a word alone has that many
_MUCH = 500_000  # a document costs a quarter of a posting; below, all documents are scored


class FastResult:
    """The scores of one search. Where much would have to be scored, only what may be among the best is."""

    def __init__(self, view: View, words: Sequence[Word], shares: Shares) -> None:
        self.view = view
        self.shares = shares
        self._words = words
        self._known: dict[int, float] = {}
        self._much = 4 * sum(word.size for word in words) + view.size > _MUCH
        self._all: Floats | None = None
        if not self._much:
            self._every()

    def __len__(self) -> int:
        return int(np.count_nonzero(self._every()))

    def score(self, number: int) -> float:
        if self._all is not None:
            return float(self._all[number])
        if number not in self._known:
            self.masks([number])
        return self._known[number]

    def scores(self, numbers: Sequence[int]) -> list[float]:
        """`score` of each."""
        if self._all is None:
            return [self.score(number) for number in numbers]
        found: list[float] = self._all[np.array(numbers, np.int64)].tolist()
        return found

    def masks(self, numbers: Sequence[int]) -> list[int]:
        """For each document the groups that it holds, as a bit set."""
        if not numbers:
            return []
        wanted = np.array(numbers, np.int64)
        masks = np.zeros(len(wanted), np.uint64)
        scores = np.zeros(len(wanted))
        for bit, word in enumerate(self._words):
            if self._all is not None:
                holds = word.held_by(wanted)
            else:
                holds, gives = word.of(wanted)
                scores += gives
            masks |= holds.astype(np.uint64) << np.uint64(bit)
        if self._all is None:
            self._known.update(zip(numbers, scores.tolist(), strict=True))
        found: list[int] = masks.tolist()
        return found

    def best(self, n: int, allowed: bytes | None, traits: tuple[int, int]) -> list[tuple[int, float]]:
        """The n best among the allowed whose traits, masked by the first, equal the second; ties by key."""
        if not self.view.split(traits)[0]:
            return []
        passing = _passing(self.view, allowed, traits)
        few = candidates(self.view, self._words, passing, n) if self._much else None
        if few is None:
            scores = self._every()
            found = _highest(self.view, scores, passing, n)
            return in_order(self.view, list(zip(found.tolist(), scores[found].tolist(), strict=True)))[:n]
        scores = self._exact(few)
        if len(few) > n:
            least = np.partition(scores, len(few) - n)[len(few) - n]
            few, scores = few[scores >= least], scores[scores >= least]
        return in_order(self.view, list(zip(few.tolist(), scores.tolist(), strict=True)))[:n]

    # Word after word: one addition a document and word, in the order of the words, as in the plain kernel.

    def _every(self) -> Floats:
        """The score of every document."""
        if self._all is None:
            parts = [part for word in self._words for part in word.weighed()]
            numbers = np.concatenate([numbers for numbers, _ in parts]) if parts else np.zeros(0, np.int64)
            each = np.concatenate([each for _, each in parts]) if parts else np.zeros(0)
            self._all = np.bincount(numbers, each, self.view.size).astype(np.float64, copy=False)
        return self._all

    def _exact(self, numbers: Numbers) -> Floats:
        scores = np.zeros(len(numbers))
        for word in self._words:
            scores += word.of(numbers)[1]
        return scores


def _passing(view: View, allowed: bytes | None, traits: tuple[int, int]) -> npt.NDArray[np.bool_] | None:
    """Which documents are allowed and have the traits; None when all."""
    among = None if allowed is None else np.frombuffer(allowed, np.bool_)
    if not view.split(traits)[1]:
        return among
    right: npt.NDArray[np.bool_] | None = view.derived.get(("passing", traits))  # type: ignore[assignment]
    if right is None:
        mask, wanted = traits
        right = view.derived["passing", traits] = (np.frombuffer(view.traits, np.uint8) & mask) == wanted
    return right if among is None else among & right


def _highest(view: View, scores: Floats, passing: npt.NDArray[np.bool_] | None, n: int) -> Numbers:
    """At least n documents, if there are so many: the highest n and, of those equal to the last of them, all that may
    come first."""
    found = None
    if len(scores) > 1024:
        # A sample tells about where the n-th score lies; when it was too bold, all are looked at.
        bold = of_sample(scores, passing, n)
        if bold > 0:
            found = _above(scores, bold, passing)
    if found is None or len(found) < n:
        found = _above(scores, np.nextafter(0, 1), passing)
    if len(found) <= n:
        return found
    few = scores[found]
    least = np.partition(few, len(few) - n)[len(few) - n]
    above, ties = found[few > least], found[few == least]
    room = n - len(above)
    if len(ties) > room:
        first = _prefixes(view)[ties]
        ties = ties[first <= np.partition(first, room - 1)[room - 1]]
    return np.concatenate((above, ties))


def _above(scores: Floats, least: float, passing: npt.NDArray[np.bool_] | None) -> Numbers:
    chosen = scores >= least
    return np.flatnonzero(chosen if passing is None else chosen & passing)


def run(scoring: Scoring) -> FastResult:
    groups = weights(scoring, max(_KEPT, 4 * scoring.view.size), word_of)
    return FastResult(scoring.view, [group.found for group in groups], Shares.of(groups))


def _prefixes(view: View) -> npt.NDArray[np.uint64]:
    """The first 8 bytes of every key as a number."""
    found = view.derived.get("prefixes")
    if found is None:
        parts = [_segment_prefixes(segment)[0] for segment in view.segments]
        found = np.concatenate([*parts, _first_bytes(b"".join(view.tail.keys))])
        view.derived["prefixes"] = found
    return found  # type: ignore[return-value]


def _segment_prefixes(segment: Segment) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The prefixes in the order of documents, and sorted."""
    found = segment.derived.get("prefixes")
    if found is None:
        plain = _first_bytes(segment.keys)
        found = (plain, plain[np.frombuffer(segment.by_key, np.uint16)])
        segment.derived["prefixes"] = found
    return found  # type: ignore[return-value]


def _first_bytes(keys: bytes) -> npt.NDArray[np.uint64]:
    rows = np.frombuffer(keys, np.uint8).reshape(-1, KEY)[:, :8]
    return np.ascontiguousarray(rows).view(">u8").reshape(-1).astype(np.uint64)


def find(view: View, keys: Sequence[bytes]) -> list[int | None]:
    """The numbers of the documents with these keys, as `View.find` gives them, for many at once."""
    wanted = _first_bytes(b"".join(keys))
    found: list[int | None] = [None] * len(keys)
    for base, segment in zip(view.bases, view.segments, strict=False):
        sorted_prefixes = _segment_prefixes(segment)[1]
        at = np.searchsorted(sorted_prefixes, wanted)
        at[at == segment.size] = 0
        for i in np.flatnonzero(sorted_prefixes[at] == wanted).tolist():
            number = segment.by_key[at[i]]
            if segment.key(number) != keys[i]:
                number = segment.find(keys[i])  # several keys begin alike
            if number is not None and segment.status[number] != DROPPED:
                found[i] = base + number
    tail = view.tail_numbers
    if tail:
        for i, key in enumerate(keys):
            if key in tail:
                found[i] = view.bases[-1] + tail[key]
    return found


def inverted(terms: array[int], counts: bytearray, sizes: array[int], different: int) -> Iterator[tuple[bytes, bytes]]:
    """As `_plain.inverted`: per term, by number, the documents that hold it and their frequencies."""
    of = np.frombuffer(terms, np.uint32)
    order = np.argsort(of, kind="stable")
    documents = np.repeat(np.arange(len(sizes), dtype="<u2"), np.frombuffer(sizes, np.uint32))[order].tobytes()
    held = np.frombuffer(counts, np.uint8)[order].tobytes()
    ends = np.cumsum(np.bincount(of, minlength=different)).tolist()
    start = 0
    for end in ends:
        yield documents[2 * start : 2 * end], held[start:end]
        start = end
