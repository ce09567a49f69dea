"""The lexical index: which documents hold the words of a question, and how well (first, simple form).

Exact BM25 from live statistics: the answer depends on the set of documents and on which of them are retired, never
on the history of the index. Ties are broken by key.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoranda.errors import IndexDamaged
from memoranda.index.analysis import ANALYSIS_VERSION, Query, analyze
from memoranda.index.recipe import Recipe

K1, B = 1.2, 0.75
Accept = Callable[[Sequence[str]], Collection[str]]


@dataclass(frozen=True, slots=True)
class Document:
    """One immutable text: `key` is 40 hex characters of its content, `facets` exact strings to filter by."""

    key: str
    title: str = ""
    subject: str = ""
    text: str = ""
    tags: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """What one `apply` did; `missing` are keys to retire, revive or drop that the index does not know."""

    added: int
    retired: int
    revived: int
    dropped: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    live: int
    retired: int


@dataclass(frozen=True, slots=True)
class Match:
    """Which groups of the query a document holds (indices into `Query.groups`), their `share` of the query's idf
    (0 to 1), and `rarest`, the smallest number of live documents that hold one of them."""

    groups: tuple[int, ...]
    share: float
    rarest: int


class LexicalIndex:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._docs: dict[str, tuple[dict[str, int], int, frozenset[str], bool]] = {}
        for key, terms, length, facets, live in connection.execute("SELECT * FROM docs"):
            self._docs[key] = (json.loads(terms), length, frozenset(json.loads(facets)), bool(live))

    @staticmethod
    def recipe() -> Recipe:
        return Recipe("lexical", 0, {"analysis": ANALYSIS_VERSION, "k1": K1, "b": B})

    @staticmethod
    def open(directory: Path) -> LexicalIndex:
        """Opens the index of a directory, made when missing. Raises IndexDamaged: remove the directory, build anew."""
        directory.mkdir(parents=True, exist_ok=True)
        try:
            db = sqlite3.connect(directory / "lexical.db", isolation_level=None)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("CREATE TABLE IF NOT EXISTS docs (key TEXT PRIMARY KEY, terms, length, facets, live)")
            db.execute("CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT)")
            return LexicalIndex(db)
        except sqlite3.DatabaseError as error:
            raise IndexDamaged("The lexical index cannot be read.", remedy="Run `memoranda index rebuild`.") from error

    def close(self) -> None:
        self._db.close()

    def state(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT name, value FROM state"))

    def counts(self) -> Counts:
        live = sum(doc[3] for doc in self._docs.values())
        return Counts(live, len(self._docs) - live)

    def known(self, keys: Iterable[str]) -> set[str]:
        return {key for key in keys if key in self._docs}

    def apply(
        self,
        add: Iterable[Document] = (),
        retire: Iterable[str] = (),
        revive: Iterable[str] = (),
        drop: Iterable[str] = (),
        *,
        state: Mapping[str, str] | None = None,
    ) -> Applied:
        missing: list[str] = []
        counts = [0, 0, 0, 0]
        self._db.execute("BEGIN IMMEDIATE")
        for document in add:
            bag = analyze(document.text, title=document.title, subject=document.subject, tags=document.tags)
            self._docs[document.key] = (bag.terms, bag.length, frozenset(document.facets), True)
            self._store(document.key)
            counts[0] += 1
        for which, keys, live in ((1, retire, False), (2, revive, True)):
            for key in keys:
                if key in self._docs:
                    self._docs[key] = (*self._docs[key][:3], live)
                    self._store(key)
                    counts[which] += 1
                else:
                    missing.append(key)
        for key in drop:
            if self._docs.pop(key, None) is None:
                missing.append(key)
            else:
                self._db.execute("DELETE FROM docs WHERE key=?", (key,))
                counts[3] += 1
        if state is not None:
            self._db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", list(state.items()))
        self._db.execute("COMMIT")
        return Applied(counts[0], counts[1], counts[2], counts[3], tuple(missing))

    def _store(self, key: str) -> None:
        terms, length, facets, live = self._docs[key]
        row = (key, json.dumps(terms), length, json.dumps(sorted(facets)), int(live))
        self._db.execute("INSERT OR REPLACE INTO docs VALUES (?, ?, ?, ?, ?)", row)

    def search(self, query: Query, facets: Sequence[Sequence[str]] = (), *, include_retired: bool = False) -> Scores:
        """Scores every document that holds a word of the query and passes the facets.

        `facets` is a list of groups: a document must have at least one facet of each group.
        """
        live = [doc for doc in self._docs.values() if doc[3]]
        average = (sum(doc[1] for doc in live) / len(live)) if live else 1.0
        idf, df = [], []
        for group in query.groups:
            n = sum(any(term in doc[0] for term in group.alternatives) for doc in live)
            df.append(n)
            idf.append(round(math.log(1 + (len(live) - n + 0.5) / (n + 0.5)), 6))
        scores: dict[str, float] = {}
        matches: dict[str, Match] = {}
        total = sum(idf) or 1.0
        for key, (terms, length, has, alive) in self._docs.items():
            if not (alive or include_retired) or not all(any(f in has for f in group) for group in facets):
                continue
            score, held = 0.0, []
            norm = K1 * (1 - B + B * length / average)
            for i, group in enumerate(query.groups):
                tf = max((terms.get(term, 0) for term in group.alternatives), default=0)
                if tf:
                    held.append(i)
                    score += idf[i] * (tf * (K1 + 1) / (tf + norm))
            if held:
                scores[key] = score
                share = sum(idf[i] for i in held) / total
                matches[key] = Match(tuple(held), share, min(df[i] for i in held))
        return Scores(scores, matches, tuple(idf), tuple(df))


class Scores:
    """The scored documents of one search. `idf` and `df` are per group of the query."""

    def __init__(
        self, scores: dict[str, float], matches: dict[str, Match], idf: tuple[float, ...], df: tuple[int, ...]
    ) -> None:
        self._scores = scores
        self._matches = matches
        self.idf = idf
        self.df = df

    def __len__(self) -> int:
        return len(self._scores)

    def ranked(self) -> Iterator[list[tuple[str, float]]]:
        """All scored documents in batches, best first, ties by key."""
        order = sorted(self._scores.items(), key=lambda item: (-item[1], item[0]))
        for start in range(0, len(order), 200):
            yield order[start : start + 200]

    def top(self, n: int, accept: Accept | None = None) -> list[tuple[str, float]]:
        """The best n that `accept` lets through; it gets a batch of keys and returns the acceptable ones."""
        found: list[tuple[str, float]] = []
        for batch in self.ranked():
            passing = None if accept is None else set(accept([key for key, _ in batch]))
            found.extend(item for item in batch if passing is None or item[0] in passing)
            if len(found) >= n:
                break
        return found[:n]

    def of(self, keys: Sequence[str]) -> dict[str, float]:
        """The scores of these documents; those that match nothing (or are filtered out) are left out."""
        return {key: self._scores[key] for key in keys if key in self._scores}

    def matched(self, keys: Sequence[str]) -> dict[str, Match]:
        """What each of these documents matches; those that match nothing are left out."""
        return {key: self._matches[key] for key in keys if key in self._matches}
