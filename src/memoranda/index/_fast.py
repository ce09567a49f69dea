"""Scoring with numpy, for much work. Gives the same bits as `_plain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memoranda.index._scoring import K1, Scoring, Shares, idf_of, length_terms
from memoranda.index._store import DROPPED, KEY, LIVE, Segment, View

Numbers = npt.NDArray[np.int64]
_SAMPLE = 16


class FastResult:
    """The scores of one search, one place a document of the view."""

    def __init__(self, view: View, scores: npt.NDArray[np.float64], held: list[Numbers], shares: Shares) -> None:
        self.view = view
        self.shares = shares
        self._scores = scores
        self._held = held
        self._found: Numbers | None = None

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
        return [int(mask) for mask in masks]

    def best(self, n: int, allowed: bytes | None, traits: tuple[int, int]) -> list[tuple[int, float]]:
        """The n best among the allowed whose traits, masked by the first, equal the second; ties by key."""
        if self._found is None:
            self._found = np.flatnonzero(self._scores)
        found = self._found
        mask, wanted = traits
        if mask:
            of = np.frombuffer(self.view.traits, np.uint8)
            found = found[(of[found] & mask) == wanted]
        if allowed is not None:
            found = found[np.frombuffer(allowed, np.uint8)[found] != 0]
        scores = self._scores[found]
        if len(scores) > n:
            chosen = _highest(self.view, found, scores, n)
            found, scores = found[chosen], scores[chosen]
        key = self.view.key
        pairs = zip(found.tolist(), scores.tolist(), strict=True)
        return sorted(pairs, key=lambda item: (-item[1], key(item[0])))[:n]


def _highest(view: View, found: Numbers, scores: npt.NDArray[np.float64], n: int) -> npt.NDArray[Any]:
    """Places of at least n scores: the highest n and, of those equal to the last of them, all that may come first."""
    places = np.arange(len(scores))
    if len(scores) > 64 * _SAMPLE:
        # A sample tells about where the n-th score lies; when it was too bold, all are looked at.
        sample = scores[::_SAMPLE]
        rank = min(len(sample), 3 * n // _SAMPLE + 8)
        bold = np.flatnonzero(scores >= np.partition(sample, len(sample) - rank)[len(sample) - rank])
        if len(bold) >= n:
            places = bold
    few = scores[places]
    least = np.partition(few, len(few) - n)[len(few) - n]
    above, ties = places[few > least], places[few == least]
    room = n - len(above)
    if len(ties) > room:
        first = _prefixes(view)[found[ties]]
        ties = ties[first <= np.partition(first, room - 1)[room - 1]]
    return np.concatenate((above, ties))


def run(scoring: Scoring) -> FastResult:
    view = scoring.view
    flat, slope = length_terms(view)
    lengths = np.frombuffer(view.lengths, np.uint16)
    status = np.frombuffer(view.status, np.uint8)
    held: list[Numbers] = []
    weights: list[npt.NDArray[np.float64]] = []
    dfs, idfs = [], []
    for alternatives in scoring.groups:
        numbers, counts = _union([_joined(parts) for parts in alternatives])
        df = len(numbers)
        if view.hidden and df:
            state = status[numbers]
            df = int(np.count_nonzero(state == LIVE))
            kept = state <= scoring.most_status
            numbers, counts = numbers[kept], counts[kept]
        idf = idf_of(view.live, df)
        frequency = counts.astype(np.float64)
        weights.append(frequency * (K1 + 1) / (frequency + (flat + slope * lengths[numbers])) * idf)
        held.append(numbers)
        dfs.append(df)
        idfs.append(idf)
    scores: npt.NDArray[np.float64] = np.zeros(view.size, np.float64)
    if weights:
        # Adds in the order given, group after group, as the plain kernel does.
        added = np.bincount(np.concatenate(held), weights=np.concatenate(weights), minlength=view.size)
        scores = added.astype(np.float64, copy=False)
    return FastResult(view, scores, held, Shares(tuple(idfs), tuple(dfs)))


def _joined(parts: Sequence[tuple[int, bytes]]) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """The postings of one term over all segments, in the order of documents."""
    total = sum(len(data) // 3 for _, data in parts)
    numbers, counts = np.empty(total, np.int64), np.empty(total, np.uint8)
    at = 0
    for base, data in parts:
        n = len(data) // 3
        np.add(np.frombuffer(data, "<u2", n), base, out=numbers[at : at + n], casting="unsafe")
        counts[at : at + n] = np.frombuffer(data, np.uint8, n, 2 * n)
        at += n
    return numbers, counts


def _union(found: Sequence[tuple[Numbers, npt.NDArray[np.uint8]]]) -> tuple[Numbers, npt.NDArray[np.uint8]]:
    """The documents of any alternative, in order, with their highest frequency."""
    found = sorted((f for f in found if len(f[0])), key=lambda f: -len(f[0]))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.uint8)
    numbers, counts = found[0]
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
