"""What both kernels share: the formula, and what a search asks of a kernel.

BM25 with k1 and b, over live documents only; a group of alternatives counts as one term with the highest frequency of
them and the document frequency of their union. Retired documents, when asked for, are scored by the same statistics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

from memoranda.index._store import View

# The usual values; on LoCoMo every k1 of 0.7 to 1.2 and b of 0.3 to 0.75 found the same within the noise.
K1, B = 1.2, 0.75


class Scoring(NamedTuple):
    """`groups`: per word of the query, per alternative, the postings as (number of the first document, data).

    `most_status` is the highest document status that is scored.
    """

    view: View
    groups: Sequence[Sequence[Sequence[tuple[int, bytes]]]]
    most_status: int


class Shares(NamedTuple):
    """Per group of the query: its inverse document frequency, and the live documents that hold it."""

    idf: tuple[float, ...]
    df: tuple[int, ...]


class Result(Protocol):
    """What a kernel gives back; documents are numbers of the view."""

    shares: Shares

    def __len__(self) -> int: ...
    def score(self, number: int) -> float: ...
    def masks(self, numbers: Sequence[int]) -> list[int]: ...
    def best(self, n: int, allowed: bytes | None, traits: tuple[int, int]) -> list[tuple[int, float]]: ...


def idf_of(live: int, df: int) -> float:
    """Rounded, so that it is the same on every machine's mathematics library; never zero, so that a word that is
    everywhere is still found."""
    return max(round(math.log(1 + (live - df + 0.5) / (df + 0.5)), 6), 0.000_001)


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
