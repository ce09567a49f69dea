"""The lexical index: which documents hold the words of a question, and how well.

An exact inverted index in one SQLite file. Every score is computed from all postings and from the statistics of the
live documents, so an answer depends on the set of documents and on which of them are retired, and never on the order
in which they came, on segments, or on what was deleted before. Ties are broken by key. Of many documents only
those are scored that may be among the best (see `_best`): the answer is that of scoring all.

The file is a cache. Everything of one `apply` is one transaction together with the state that it reached; a process
killed in it leaves the index as it was before.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import Stemmer

from memoranda.index import _facets, _plain
from memoranda.index._scores import Accept, Held, Match, Scores
from memoranda.index._scoring import K1, B, Group, Result, Scoring
from memoranda.index._store import LIVE, RETIRED, SCHEMA, View, read_view
from memoranda.index._within import within
from memoranda.index._write import Writer
from memoranda.index.analysis import ANALYSIS_VERSION, Query
from memoranda.index.documents import FACETS_VERSION, Applied, Document
from memoranda.index.journal_mode import damaged, named_errors, open_cache, transaction
from memoranda.index.recipe import Recipe

if TYPE_CHECKING:
    from memoranda.index._bulk import Bulk

__all__ = ["Accept", "Applied", "Counts", "Document", "Held", "LexicalIndex", "Match", "Query", "Scores"]

FILE = "lexical.sqlite"
_WHAT = "The lexical index"
_FORMAT = 1
_CACHE_BYTES = 24 << 20  # postings kept in memory, at most, or 64 bytes a document
_FRESH_WORK = 150_000  # postings that plain Python scores in about the time that importing numpy takes
_WARM_WORK = 1_500  # postings below which numpy's overhead is more than what it saves
_MANY_KEYS = 24
_MOST_KNOWN = 20_000  # keys whose numbers are kept at hand until something is added: some 3 MB


class Counts(NamedTuple):
    """Documents that are found, and documents that are kept for history only."""

    live: int
    retired: int


class LexicalIndex:
    """An open lexical index. Usable from several threads; several processes may hold it open."""

    def __init__(self, connection: sqlite3.Connection, directory: Path) -> None:
        self._db = connection
        self.directory = directory
        self._lock = threading.RLock()
        self._view: View | None = None
        self._postings: dict[tuple[int, str], bytes] = {}
        self._postings_bytes = 0
        self._searches = 0

    @staticmethod
    @cache
    def recipe() -> Recipe:
        """What determines an answer: the analysis, the formula, and the tables of Unicode and of the stemmer."""
        params = {
            "format": _FORMAT, "analysis": ANALYSIS_VERSION, "k1": K1, "b": B, "unicode": unicodedata.unidata_version,
            "snowball": Stemmer.version(), "facets": FACETS_VERSION,
        }  # fmt: skip
        return Recipe("lexical", 1, params)

    @staticmethod
    def open(directory: Path) -> LexicalIndex:
        """Opens the index of a directory; makes it when there is none.

        Raises:
            IndexDamaged: the file is not an index that this version can read; `remove` it and build it anew.
        """
        db = open_cache(directory / FILE, SCHEMA, _FORMAT, _WHAT)
        return LexicalIndex(db, directory)

    @staticmethod
    def remove(directory: Path) -> None:
        """Deletes the index of a directory, if there is one."""
        import shutil  # slow to import, and seldom wanted

        shutil.rmtree(directory, ignore_errors=True)

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next; it stays open."""
        with self._lock, named_errors(_WHAT):
            self._view = None
            self._postings.clear()
            self._postings_bytes = 0
            self._db.execute("PRAGMA shrink_memory")

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._view = None

    # What is in it

    def mark(self) -> tuple[int, int]:
        """Another one after every change, by this process or another."""
        with self._lock, named_errors(_WHAT):
            return self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes

    def state(self) -> dict[str, str]:
        """What the last `apply` said that it reached."""
        with self._reading() as _:
            return dict(self._db.execute("SELECT name, value FROM state"))

    def counts(self) -> Counts:
        with self._reading() as view:
            return Counts(view.live, view.status.count(RETIRED))

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that it holds, retired ones included."""
        wanted = list(keys)
        with self._reading() as view:
            return {key for key, number in zip(wanted, _finder(view)(wanted), strict=True) if number is not None}

    def keys(self) -> set[str]:
        """The keys of all documents, retired ones included."""
        with self._reading() as view:
            return {view.key(n).hex() for n in range(view.size) if view.status[n] <= RETIRED}

    def check(self) -> None:
        """Reads everything. Raises IndexDamaged when the file or what it says does not hold together."""
        with self._reading() as view:
            problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            sizes = all(
                len(s.status) == len(s.lengths) == len(s.traits) == len(s.by_key) == s.size for s in view.segments
            )
            if problem != "ok" or not sizes:
                raise damaged(_WHAT, problem if problem != "ok" else "the sizes of a segment differ")

    # Changing

    def apply(
        self,
        add: Iterable[Document] = (),
        retire: Iterable[str] = (),
        revive: Iterable[str] = (),
        drop: Iterable[str] = (),
        *,
        bulk: Bulk | None = None,
        state: Mapping[str, str] | None = None,
    ) -> Applied:
        """Adds, retires, revives and drops documents, in this order, and notes the state reached: all or nothing.

        Adding a known key revives it, since the content of a key never changes. A retired document is kept for
        history; a dropped one is forgotten. `add` is read once and never held whole; `bulk` takes its place.

        Raises:
            ValueError: a key is not 40 hex characters.
            IndexDamaged, Unavailable: the file cannot be read, or not be written now.
        """
        with self._changing() as writer:
            applied = writer.apply(add, retire, revive, drop, bulk)
            if state is not None:
                self._db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", list(state.items()))
        return applied

    def compact(self) -> None:
        """Makes as few segments as possible, and forgets dropped documents for good."""
        with self._changing() as writer:
            writer.compact()

    @contextmanager
    def _changing(self) -> Iterator[Writer]:
        """One change, in a transaction; a view that was read inside it is not kept when it fails."""
        with self._lock, named_errors(_WHAT):
            try:
                with transaction(self._db):
                    yield Writer(self._db, self._refreshed(), self._refreshed)
            except BaseException:
                self._view = None
                raise

    # Searching

    def search(self, query: Query, facets: Sequence[Sequence[str]] = (), *, include_retired: bool = False) -> Scores:
        """Scores every document that holds a word of the query.

        `facets` are groups: a document is among the results when it has at least one facet of each. They are applied
        before ranking. Statistics are those of all live documents, whatever the facets; but a group of places
        (`of:…`) shuts everything else out, see `_within`.
        """
        with self._reading() as view:
            view, facets = within(view, facets, lambda wanted: self._fetch(view, wanted))
            terms = [term for group in query.groups for term in group.alternatives]
            stored = self._fetch(view, terms)
            parts = {term: _parts(view, stored, term) for term in terms}
            groups = [Group(group.alternatives, [parts[term] for term in group.alternatives]) for group in query.groups]
            most = RETIRED if include_retired else LIVE
            allowed = _facets.allowed(view, facets, lambda wanted: self._fetch(view, wanted))
            work = sum(len(data) // 3 for found in parts.values() for _, data in found)
            run = self._kernel(work)
        result = run(Scoring(view, groups, most))
        status = view.status
        return Scores(
            query,
            result,
            allowed,
            _finder(view, self._searches > 2),
            _namer(view),
            view.traits,
            lambda n: status[n] <= most,
        )

    def warm(self) -> None:
        """For a process that will search often: does now what the first searches would do."""
        import numpy as _  # noqa: F401

        self.read_ahead()

    def read_ahead(self) -> None:
        """Reads what every search needs."""
        with self._reading() as view:
            view.lengths, view.traits, view.status  # noqa: B018

    def _kernel(self, work: int) -> Callable[[Scoring], Result]:
        self._searches += 1
        loaded = "numpy" in sys.modules
        # From its third search on, a process is taken for one that stays.
        if work > (_WARM_WORK if loaded or self._searches > 2 else _FRESH_WORK):
            from memoranda.index import _fast

            return _fast.run
        return _plain.run

    def _fetch(self, view: View, terms: Sequence[str]) -> dict[tuple[int, str], bytes]:
        """The stored postings of these terms by segment, through the cache; b"" where there are none."""
        if self._postings_bytes > max(_CACHE_BYTES, 64 * view.size):
            self._postings.clear()
            self._postings_bytes = 0
        found = {}
        for segment in view.segments:
            missing = []
            for term in dict.fromkeys(terms):
                data = self._postings.get((segment.id, term))
                if data is None:
                    missing.append(term)
                else:
                    found[segment.id, term] = data
            if missing:
                marks = ",".join("?" * len(missing))
                query = f"SELECT term, data FROM postings WHERE segment = ? AND term IN ({marks})"
                read = dict(self._db.execute(query, (segment.id, *missing)))
                for term in missing:
                    data = read.get(term, b"")
                    found[segment.id, term] = self._postings[segment.id, term] = data
                    self._postings_bytes += len(data) + 100
        return found

    def _refreshed(self) -> View:
        """The view of the present generation; inside a transaction."""
        (generation,) = self._db.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
        if self._view is None or self._view.generation != generation:
            self._view = read_view(self._db, generation, self._view)
        return self._view

    @contextmanager
    def _reading(self) -> Iterator[View]:
        """The present view, and one snapshot of the file for whatever else is read meanwhile."""
        with self._lock, named_errors(_WHAT):
            self._db.execute("BEGIN")
            try:
                yield self._refreshed()
            finally:
                if self._db.in_transaction:
                    self._db.execute("COMMIT")


def _parts(view: View, stored: Mapping[tuple[int, str], bytes], term: str) -> list[tuple[int, bytes]]:
    """The postings of a term with the number of the first document of each segment, and of the tail."""
    parts = [
        (base, data)
        for base, segment in zip(view.bases, view.segments, strict=False)
        if (data := stored[segment.id, term])
    ]
    data = view.tail.postings(term) if view.tail.keys else b""
    return [*parts, (view.bases[-1], data)] if data else parts


def _namer(view: View) -> Callable[[int], str]:
    """The keys of documents by number, kept at hand: the same ones come again and again."""
    lasting, passing = _known(view, "names")
    first = view.bases[-1]

    def name(number: int) -> str:
        known = lasting if number < first else passing
        found = known.get(number)
        if found is None:
            found = known[number] = view.key(number).hex()
        return found

    return name


def _finder(view: View, staying: bool = False) -> Callable[[Sequence[str]], list[int | None]]:
    lasting, passing = _known(view, "numbers")
    first = view.bases[-1]

    def find(keys: Sequence[str]) -> list[int | None]:
        if missing := [key for key in keys if key not in lasting and key not in passing]:
            for key, number in zip(missing, looked_up(missing), strict=True):
                (lasting if number is not None and number < first else passing)[key] = number
        return [lasting[key] if key in lasting else passing[key] for key in keys]

    def looked_up(keys: Sequence[str]) -> list[int | None]:
        raw = [_raw(key) for key in keys]
        if len(raw) > _MANY_KEYS and (staying or "numpy" in sys.modules):
            from memoranda.index import _fast

            return _fast.find(view, raw)
        return [view.find(key) for key in raw]

    return find


def _known(view: View, what: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """What was looked up of documents in segments, which stays so when the tail grows, and what of all others."""
    found = []
    for held in (view.lasting, view.derived):
        known: dict[Any, Any] = held.setdefault(what, {})  # type: ignore[assignment]
        if len(known) > _MOST_KNOWN:
            known.clear()
        found.append(known)
    return found[0], found[1]


def _raw(key: str) -> bytes:
    """A key as it is stored; a text that is no key becomes one that nothing has."""
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        return b"\0" * 21
    return raw
