"""Scoring in plain Python, for little work: a fresh process does not pay for importing numpy.

Does exactly what `_fast` does, in the same order of operations, so that both give the same bits.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Sequence

from memoranda.index._scoring import K1, Group, Scoring, Shares, Weights, idf_of, in_order, length_terms, weights
from memoranda.index._store import LIVE, View, bytes_of, numbers_of

_KEPT = 100_000  # postings with their weights, some 100 bytes each


class PlainResult:
    """The scores of one search: document number to score."""

    def __init__(self, view: View, scores: dict[int, float], held: list[dict[int, float]], shares: Shares) -> None:
        self.view = view
        self.shares = shares
        self._scores = scores
        self._held = held  # per group: the documents that hold it

    def __len__(self) -> int:
        return len(self._scores)

    def score(self, number: int) -> float:
        return self._scores.get(number, 0.0)

    def scores(self, numbers: Sequence[int]) -> list[float]:
        """`score` of each."""
        return [self._scores.get(number, 0.0) for number in numbers]

    def masks(self, numbers: Sequence[int]) -> list[int]:
        """For each document the groups that it holds, as a bit set."""
        masks = [0] * len(numbers)
        for bit, group in enumerate(self._held):
            for i, number in enumerate(numbers):
                if number in group:
                    masks[i] |= 1 << bit
        return masks

    def best(self, n: int, allowed: bytes | None, traits: tuple[int, int]) -> list[tuple[int, float]]:
        """The n best among the allowed whose traits, masked by the first, equal the second; ties by key."""
        scores = self._scores
        mask, wanted = traits
        some, others = self.view.split(traits)
        if not some:
            return []
        if others:
            of = self.view.traits
            scores = {d: s for d, s in scores.items() if of[d] & mask == wanted}
        if allowed is not None:
            scores = {d: s for d, s in scores.items() if allowed[d]}
        chosen: list[tuple[int, float]] = list(scores.items())
        if len(chosen) > n:
            least = heapq.nlargest(n, scores.values())[-1]
            chosen = [item for item in chosen if item[1] >= least]
        return in_order(self.view, chosen)[:n]


def run(scoring: Scoring) -> PlainResult:
    scores: dict[int, float] = {}
    groups = weights(scoring, _KEPT, _weigh)
    get = scores.get
    for group in groups:
        if not scores:
            scores.update(group.found)
            continue
        for d, weight in group.found.items():
            scores[d] = get(d, 0.0) + weight
    held = [group.found for group in groups]
    return PlainResult(scoring.view, scores, held, Shares.of(groups))


def _weigh(scoring: Scoring, group: Group) -> tuple[Weights, int]:
    view = scoring.view
    flat, slope = length_terms(view)
    lengths = view.lengths
    found = _documents(scoring, group.postings)
    status = view.status
    df = sum([status[d] == LIVE for d in found]) if view.hidden else len(found)
    idf = idf_of(view.live, df)
    weighed = {d: count * (K1 + 1) / (count + (flat + slope * lengths[d])) * idf for d, count in found.items()}
    return Weights(weighed, idf, df), len(weighed)


def _documents(scoring: Scoring, alternatives: Sequence[Sequence[tuple[int, bytes]]]) -> dict[int, int]:
    """The documents that hold one of the alternatives with their highest frequency."""
    found: dict[int, int] = {}
    for parts in alternatives:
        for base, data in parts:
            n = len(data) // 3
            numbers: Sequence[int] = numbers_of(data[: 2 * n])
            if base:
                numbers = [number + base for number in numbers]
            if found:
                for number, count in zip(numbers, data[2 * n :], strict=True):
                    if count > found.get(number, 0):
                        found[number] = count
            else:
                found = dict(zip(numbers, data[2 * n :], strict=True))
    if scoring.view.hidden:
        status, most = scoring.view.status, scoring.most_status
        found = {d: count for d, count in found.items() if status[d] <= most}
    return found


def inverted(terms: array[int], counts: bytearray, sizes: array[int], different: int) -> Iterator[tuple[bytes, bytes]]:
    """For each of `different` terms, by number, the documents that hold it and their frequencies, as they are stored.

    `terms` and `counts` run over all documents one after the other, `sizes` says how many belong to each.
    """
    found = [array("H") for _ in range(different)]
    frequencies = [bytearray() for _ in range(different)]
    at = 0
    for number, size in enumerate(sizes):
        for term, count in zip(terms[at : at + size], counts[at : at + size], strict=True):
            found[term].append(number)
            frequencies[term].append(count)
        at += size
    return ((bytes_of(numbers), bytes(held)) for numbers, held in zip(found, frequencies, strict=True))
