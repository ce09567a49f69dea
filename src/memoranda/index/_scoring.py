"""What both kernels share: the formula, and what a search asks of a kernel.

BM25 with k1 and b, over live documents only; a group of alternatives counts as one term with the highest frequency of
them and the document frequency of their union. Retired documents, when asked for, are scored by the same statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from memoranda.index._store import View

# The usual values; on LoCoMo every k1 of 0.7 to 1.2 and b of 0.3 to 0.75 found the same within the noise.
K1, B = 1.2, 0.75


class Group(NamedTuple):
    """One word of the query: its `alternatives`, and of each the postings as (number of the first document, data)."""

    alternatives: tuple[str, ...]
    postings: Sequence[Sequence[tuple[int, bytes]]]


class Scoring(NamedTuple):
    """`most_status` is the highest document status that is scored."""

    view: View
    groups: Sequence[Group]
    most_status: int


class Weights(NamedTuple):
    """What a word of a query gives to the documents that hold it, in the form of a kernel; its `idf`, and in how many
    live documents it is. The same for every query, as long as nothing is added or retired."""

    found: Any
    idf: float
    df: int


class Shares(NamedTuple):
    """Per group of the query: its inverse document frequency, and the live documents that hold it."""

    idf: tuple[float, ...]
    df: tuple[int, ...]

    @staticmethod
    def of(groups: Sequence[Weights]) -> Shares:
        return Shares(tuple([group.idf for group in groups]), tuple([group.df for group in groups]))


class Result(Protocol):
    """What a kernel gives back; documents are numbers of the view."""

    shares: Shares

    def __len__(self) -> int: ...
    def score(self, number: int) -> float: ...
    def scores(self, numbers: Sequence[int]) -> list[float]: ...
    def masks(self, numbers: Sequence[int]) -> list[int]: ...
    def best(self, n: int, allowed: bytes | None, traits: tuple[int, int]) -> list[tuple[int, float]]: ...


def idf_of(live: int, df: int) -> float:
    """Rounded, so that it is the same on every machine's mathematics library; never zero, so that a word that is
    everywhere is still found."""
    return max(round(math.log(1 + (live - df + 0.5) / (df + 0.5)), 6), 0.000_001)


def weights(scoring: Scoring, most: int, weigh: Callable[[Scoring, Group], tuple[Weights, int]]) -> list[Weights]:
    """The weights of every group, those that were worked out for an earlier query and are still at hand taken over.

    `weigh` gives the weights of a group and how many postings that are; about `most` are kept.
    """
    kept: _Kept = scoring.view.derived.setdefault((weigh, scoring.most_status), _Kept())  # type: ignore[assignment]
    if kept.postings > most:
        kept.clear()
        kept.postings = 0
    result = []
    for group in scoring.groups:
        found = kept.get(group.alternatives)
        if found is None:
            found, size = weigh(scoring, group)
            kept[group.alternatives] = found
            kept.postings += size
        result.append(found)
    return result


class _Kept(dict[tuple[str, ...], Weights]):
    """Alternatives -> weights."""

    postings = 0


def length_terms(view: View) -> tuple[float, float]:
    """(a, c) such that a + c * length is BM25's normalisation."""
    average = view.total / view.live if view.total else 1.0
    return K1 * (1 - B), K1 * B / average


def in_order(view: View, pairs: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Documents with their scores, best first, ties by key."""
    pairs.sort(key=itemgetter(1), reverse=True)
    at = 0
    while at < len(pairs) - 1:
        end = at + 1
        while end < len(pairs) and pairs[end][1] == pairs[at][1]:
            end += 1
        if end - at > 1:
            pairs[at:end] = sorted(pairs[at:end], key=lambda pair: view.key(pair[0]))
        at = end
    return pairs
