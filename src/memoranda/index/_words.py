"""The documents that hold a word of a query, as arrays, and what the word gives to each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from memoranda.index._scoring import K1, Group, Scoring, Weights, idf_of, length_terms
from memoranda.index._store import LIVE, View

Numbers = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
_LASTING = 3_000_000  # postings kept from view to view, 9 bytes each; more where a word alone has that many


class Place(NamedTuple):
    """Documents by their numbers in the view, in order, how often each holds the word, and how many are live."""

    documents: Numbers
    counts: Counts
    live: int
    highest: int  # of the counts


class Word:
    """A word of a query in one view: in a `Place` of the segments and one of the tail.

    `most` is more than it gives to any document. Weights are worked out when they are asked for, and kept.
    """

    __slots__ = ("_flat", "_idf", "_lengths", "_places", "_slope", "_weighed", "most", "size")

    def __init__(self, view: View, places: Sequence[Place], idf: float) -> None:
        self._flat, self._slope = length_terms(view)
        self._lengths = np.frombuffer(view.lengths, np.uint16)
        self._places = places
        self._idf = idf
        self._weighed: list[tuple[Numbers, Floats]] | None = None
        self.size = sum(len(place.documents) for place in places)
        highest = max((place.highest for place in places), default=0)
        norm = self._flat + self._slope * _shortest(view)
        self.most = highest * (K1 + 1) / (highest + norm) * idf * (1 + 1e-9)  # the last digits are of no account here

    def weighed(self) -> list[tuple[Numbers, Floats]]:
        """All documents with what each of them is given, part by part, no document twice."""
        if self._weighed is None:
            self._weighed = [(place.documents, self._weigh(place.documents, place.counts)) for place in self._places]
        return self._weighed

    def of(self, numbers: Numbers) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Which of these documents hold it, and what it gives to each, 0 to the others."""
        holds = np.zeros(len(numbers), np.bool_)
        gives = np.zeros(len(numbers))
        for place in self._places:
            at = np.searchsorted(place.documents, numbers)
            at[at == len(place.documents)] = 0
            here = np.flatnonzero(place.documents[at] == numbers)
            if len(here):
                holds[here] = True
                gives[here] = self._weigh(numbers[here], place.counts[at[here]])
        return holds, gives

    def add_to(self, scores: Floats) -> None:
        """Adds what it gives to the documents that have a score already."""
        for place in self._places:
            scored = np.flatnonzero(scores[place.documents])
            documents = place.documents[scored]
            scores[documents] += self._weigh(documents, place.counts[scored])

    def held_by(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Which of these documents hold it."""
        holds = np.zeros(len(numbers), np.bool_)
        for place in self._places:
            at = np.searchsorted(place.documents, numbers)
            at[at == len(place.documents)] = 0
            holds |= place.documents[at] == numbers
        return holds

    def _weigh(self, documents: Numbers, counts: Counts) -> Floats:
        norm = self._lengths[documents] * self._slope
        norm += self._flat
        frequency = counts.astype(np.float64)
        norm += frequency
        frequency *= K1 + 1
        frequency /= norm
        frequency *= self._idf
        return frequency


def _shortest(view: View) -> int:
    """The length of the shortest document."""
    found = view.derived.get("shortest")
    if found is None:
        found = view.derived["shortest"] = int(np.frombuffer(view.lengths, np.uint16).min(initial=65_535))
    return found  # type: ignore[return-value]


def word_of(scoring: Scoring, group: Group) -> tuple[Weights, int]:
    """A group as a word, and how many postings it has."""
    view = scoring.view
    kept: _Lasting = view.lasting.setdefault("words", _Lasting())  # type: ignore[assignment]
    if kept.postings > max(_LASTING, 6 * view.size):
        kept.clear()
        kept.postings = 0
    asked = group.alternatives, scoring.most_status
    settled = kept.get(asked)
    if settled is None:
        settled = kept[asked] = _place(scoring, group, tail=False)
        kept.postings += len(settled.documents)
    places = [place for place in (settled, _place(scoring, group, tail=True)) if len(place.documents)]
    df = sum(place.live for place in places)
    idf = idf_of(view.live, df)
    word = Word(view, places, idf)
    return Weights(word, idf, df), word.size


class _Lasting(dict[tuple[tuple[str, ...], int], Place]):
    """(alternatives, the highest status) -> the documents of segments, as long as these stay as they are."""

    postings = 0


def _place(scoring: Scoring, group: Group, *, tail: bool) -> Place:
    """The documents of the tail, or of the segments, that hold one of the alternatives, as far as they are shown."""
    view = scoring.view
    chosen = ([part for part in parts if (part[0] == view.bases[-1]) == tail] for parts in group.postings)
    found = [_joined(parts) for parts in chosen if parts]
    if not found:
        return Place(np.zeros(0, np.int64), np.zeros(0, np.uint8), 0, 0)
    documents, counts = found[0] if len(found) == 1 else _union(found)
    live = len(documents)
    if view.hidden:
        state = np.frombuffer(view.status, np.uint8)[documents]
        live = int(np.count_nonzero(state == LIVE))
        shown = state <= scoring.most_status
        documents, counts = documents[shown], counts[shown]
    return Place(documents, counts, live, int(counts.max(initial=0)))


def _joined(parts: Sequence[tuple[int, bytes]]) -> tuple[Numbers, Counts]:
    """Segments follow one another, and so do their documents."""
    size = sum(len(data) // 3 for _, data in parts)
    documents, counts, at = np.empty(size, np.int64), np.empty(size, np.uint8), 0
    for base, data in parts:
        n = len(data) // 3
        np.add(np.frombuffer(data, "<u2", n), base, out=documents[at : at + n], dtype=np.int64)
        counts[at : at + n] = np.frombuffer(data, np.uint8, n, 2 * n)
        at += n
    return documents, counts


def _union(found: Sequence[tuple[Numbers, Counts]]) -> tuple[Numbers, Counts]:
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
