"""Scoring with numpy, for much work. Gives the same bits as `_plain`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from memoranda.index._scoring import K1, Group, Scoring, Shares, Weights, idf_of, in_order, length_terms, weights
from memoranda.index._store import DROPPED, LIVE, SEGMENT_MOST, Segment, View
from memoranda.index.documents import KEY

Numbers = npt.NDArray[np.int64]
Small = npt.NDArray[np.uint16]
Counts = npt.NDArray[np.uint8]
Place = tuple[int, Small, Counts]  # the number of a segment's first document, documents in it, frequencies
Floats = npt.NDArray[np.float64]
_KEPT = 1_000_000  # postings with their weights, 16 bytes each; more where a word alone has that many
_REACH = SEGMENT_MOST  # no segment has more
_SAMPLE = 16


class FastResult:
    """The scores of one search, one place a document of the view."""

    def __init__(self, view: View, scores: Floats, held: list[Numbers], shares: Shares) -> None:
        self.view = view
        self.shares = shares
        self._scores = scores
        self._held = held

    def __len__(self) -> int:
        return int(np.count_nonzero(self._scores))

    def score(self, number: int) -> float:
        return float(self._scores[number])

    def masks(self, numbers: Sequence[int]) -> list[int]:
        """For each document the groups that it holds, as a bit set."""
        wanted = np.array(numbers, np.int64)
        masks = np.zeros(len(wanted), np.uint64)
        for bit, held in enumerate(self._held):
            if len(held):
                at = np.searchsorted(held, wanted)
                at[at == len(held)] = 0
                masks |= (held[at] == wanted).astype(np.uint64) << np.uint64(bit)
        found: list[int] = masks.tolist()
        return found

    def best(self, n: int, allowed: bytes | None, traits: tuple[int, int]) -> list[tuple[int, float]]:
        """The n best among the allowed whose traits, masked by the first, equal the second; ties by key."""
        if not self.view.split(traits)[0]:
            return []
        passing = _passing(self.view, allowed, traits)
        found = _highest(self.view, self._scores, passing, n)
        pairs = list(zip(found.tolist(), self._scores[found].tolist(), strict=True))
        return in_order(self.view, pairs)[:n]


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
    if len(scores) > 64 * _SAMPLE:
        # A sample tells about where the n-th score lies; when it was too bold, all are looked at.
        sample = scores[::_SAMPLE] if passing is None else scores[::_SAMPLE] * passing[::_SAMPLE]
        rank = len(sample) - min(len(sample), 3 * n // _SAMPLE + 8)
        bold = np.partition(sample, rank)[rank]
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
    groups = weights(scoring, max(_KEPT, 4 * scoring.view.size), _weigh)
    # Word after word: one addition a document and word, in the order of the words, as in the plain kernel.
    numbers = np.concatenate([group.found[0] for group in groups])
    each = np.concatenate([group.found[1] for group in groups])
    scores: Floats = np.bincount(numbers, each, scoring.view.size).astype(np.float64, copy=False)
    return FastResult(scoring.view, scores, [group.found[0] for group in groups], Shares.of(groups))


def _weigh(scoring: Scoring, group: Group) -> tuple[Weights, int]:
    """The documents that hold a word, by their numbers in the view, and what it gives to each."""
    view = scoring.view
    norms = _norms(view)
    places, df = _documents(scoring, group.postings)
    idf = idf_of(view.live, df)
    held: list[Numbers] = [np.zeros(0, np.int64)]
    weighed: list[Floats] = [np.zeros(0, np.float64)]
    for base, numbers, counts in sorted(places, key=itemgetter(0)):
        documents = numbers.astype(np.int64)
        documents += base
        norm = norms[documents]
        frequency = counts.astype(np.float64)
        norm += frequency
        frequency *= K1 + 1
        frequency /= norm
        frequency *= idf
        held.append(documents)
        weighed.append(frequency)
    found = (np.concatenate(held), np.concatenate(weighed))
    return Weights(found, idf, df), len(found[0])


def _norms(view: View) -> Floats:
    """BM25's normalisation of every document by its length."""
    found = view.derived.get("norms")
    if found is None:
        flat, slope = length_terms(view)
        found = view.derived["norms"] = np.frombuffer(view.lengths, np.uint16) * slope + flat
    return found  # type: ignore[return-value]


def _documents(scoring: Scoring, alternatives: Sequence[Sequence[tuple[int, bytes]]]) -> tuple[list[Place], int]:
    """Per segment, the documents that hold one of the alternatives; and how many of them are live."""
    by_base: dict[int, list[tuple[Small, Counts]]] = {}
    for parts in alternatives:
        for base, data in parts:
            n = len(data) // 3
            found = np.frombuffer(data, "<u2", n), np.frombuffer(data, np.uint8, n, 2 * n)
            by_base.setdefault(base, []).append(found)
    places: list[Place] = []
    df = 0
    view = scoring.view
    status = np.frombuffer(view.status, np.uint8)
    for base, found_here in by_base.items():
        numbers, counts = found_here[0] if len(found_here) == 1 else _union(found_here)
        if view.hidden:
            state = status[base : base + _REACH][numbers]
            df += int(np.count_nonzero(state == LIVE))
            kept = state <= scoring.most_status
            numbers, counts = numbers[kept], counts[kept]
        else:
            df += len(numbers)
        if len(numbers):
            places.append((base, numbers, counts))
    return places, df


def _union(found: Sequence[tuple[Small, Counts]]) -> tuple[Small, Counts]:
    """The documents of any alternative, in order, with their highest frequency."""
    found = sorted(found, key=lambda f: -len(f[0]))
    numbers, counts = found[0][0], found[0][1].copy()
    for others, frequencies in found[1:]:
        at = np.searchsorted(numbers, others)
        same = numbers[np.minimum(at, len(numbers) - 1)] == others
        places = at[same]
        counts[places] = np.maximum(counts[places], frequencies[same])
        new = ~same
        numbers = np.insert(numbers, at[new], others[new])
        counts = np.insert(counts, at[new], frequencies[new])
    return numbers, counts


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
