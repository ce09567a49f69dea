"""What a search found, by key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from memoranda.index._scoring import Result
from memoranda.index.analysis import Query
from memoranda.index.traits import PASSAGE

Accept = Callable[[Sequence[str]], Collection[str]]

_FIRST = 128  # results of the first batch; each further one goes four times as far


class Match(NamedTuple):
    """Which groups of the query a document holds (indices into `Query.groups`), their `share` of the query's idf
    (0 to 1), and `rarest`, the smallest number of live documents that hold one of them."""

    groups: tuple[int, ...]
    share: float
    rarest: int


class Held(NamedTuple):
    """What a document has of a search, whatever the facets: `mask` has bit i for group i of the query, `score` is
    its BM25 (0 when it holds nothing), `traits` its traits; `passes` says whether the facets let it through."""

    mask: int
    score: float
    traits: int
    passes: bool


class Scores:
    """The scored documents of one search for `query`. It stays as it is, whatever is added to the index afterwards."""

    def __init__(
        self,
        query: Query,
        result: Result,
        allowed: bytes | None,
        find: Callable[[Sequence[str]], list[int | None]],
        key_of: Callable[[int], str],
        traits: bytes,
        most_status: Callable[[int], bool],
    ) -> None:
        self.query = query
        self._result = result
        self._allowed = allowed
        self._find = find
        self._key_of = key_of
        self._traits = traits
        self._shown = most_status
        self._numbers: dict[str, int] = {}
        self._held: dict[str, Held] = {}
        self._shares: dict[int, float] = {0: 0.0}
        self.idf = result.shares.idf
        self.df = result.shares.df

    def __len__(self) -> int:
        """How many documents hold a word of the query, before the facets."""
        return len(self._result)

    def ranked(self, *, passages: bool | None = None) -> Iterator[list[tuple[str, float]]]:
        """All that pass the facets in batches, best first, ties by key; only passages, or only notes, when asked."""
        return self._batches(_FIRST, passages)

    def _batches(self, reach: int, passages: bool | None) -> Iterator[list[tuple[str, float]]]:
        traits = (0, 0) if passages is None else (PASSAGE, PASSAGE if passages else 0)
        done = 0
        while True:
            best = self._result.best(reach, self._allowed, traits)
            batch = [(self._named(number), score) for number, score in best[done:]]
            if batch:
                yield batch
            if len(best) < reach:
                return
            done, reach = reach, reach * 4

    def top(self, n: int, accept: Accept | None = None, *, passages: bool | None = None) -> list[tuple[str, float]]:
        """The best n that `accept` lets through; it gets a batch of keys and returns the acceptable ones."""
        found: list[tuple[str, float]] = []
        if n <= 0:
            return found
        reach = n if accept is None else n + n // 8 + 2
        for batch in self._batches(reach, passages):
            passing = None if accept is None else set(accept([key for key, _ in batch]))
            found += [item for item in batch if passing is None or item[0] in passing][: n - len(found)]
            if len(found) >= n:
                break
        return found

    def of(self, keys: Sequence[str]) -> dict[str, float]:
        """The scores of these documents, whatever the facets; those that hold no word of the query are left out."""
        scores = {key: self._result.score(number) for key, number in self._numbered(keys).items()}
        return {key: score for key, score in scores.items() if score}

    def held(self, keys: Sequence[str]) -> dict[str, Held]:
        """What each of these documents has; keys that the index does not show are left out."""
        known = self._held
        if fresh := [key for key in keys if key not in known]:
            numbered = self._numbered(fresh)
            numbers = list(numbered.values())
            masks, scores = self._result.masks(numbers), self._result.scores(numbers)
            traits, allowed = self._traits, self._allowed
            for key, number, mask, score in zip(numbered, numbers, masks, scores, strict=True):
                known[key] = Held(mask, score, traits[number], allowed is None or allowed[number] == 1)
        return {key: known[key] for key in keys if key in known}

    def matched(self, keys: Sequence[str]) -> dict[str, Match]:
        """What each of these documents matches, whatever the facets; those that match nothing are left out."""
        return {key: self.match(held.mask) for key, held in self.held(keys).items() if held.mask}

    def match(self, mask: int) -> Match:
        """What a set of groups amounts to."""
        groups = tuple(i for i in range(len(self.idf)) if mask >> i & 1)
        return Match(groups, self.share(mask), min((self.df[i] for i in groups), default=0))

    def share(self, mask: int) -> float:
        """The share of the query's idf that a set of groups carries, 0 to 1."""
        share = self._shares.get(mask)
        if share is None:
            carried = sum(idf for i, idf in enumerate(self.idf) if mask >> i & 1)
            share = self._shares[mask] = carried / sum(self.idf)
        return share

    def _named(self, number: int) -> str:
        key = self._key_of(number)
        self._numbers[key] = number
        return key

    def _numbered(self, keys: Sequence[str]) -> dict[str, int]:
        """key -> number of what the search may show; found by the search itself, or looked up."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._numbers]
        if unknown:
            for key, number in zip(unknown, self._find(unknown), strict=True):
                if number is not None and self._shown(number):
                    self._numbers[key] = number
        return {key: self._numbers[key] for key in dict.fromkeys(keys) if key in self._numbers}
