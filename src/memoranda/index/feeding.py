"""What the catalog's feed says of documents that came and went, taken over by the content index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from memoranda.home.erasing.blanking import erased_on
from memoranda.index.beside import Beside
from memoranda.index.catalog import Catalog
from memoranda.index.documents import OF, Document
from memoranda.index.lexical import LexicalIndex
from memoranda.notes.journal import agent_of

if TYPE_CHECKING:
    from memoranda.index._bulk import Bulk, Vocabulary

_BATCH = 2000
_MANY = 1500  # documents for which importing numpy is worth its time
_SOME = 200  # documents that are worth a segment of their own where numpy is imported already
RECORDS = "(remember)"  # behind the speaker of a journal entry that only records a call

Progress = Callable[[str, int, int], None]


class Feeding:
    """Brings one content index up to one catalog."""

    def __init__(
        self, catalog: Catalog, lexical: LexicalIndex, identity: str, progress: Progress | None = None,
        made: Callable[[Catalog, Iterable[str]], Iterator[Document]] | None = None,
    ) -> None:  # fmt: skip
        """`identity` is the catalog's: an index that followed another one is compared as a whole.

        `made` gives the documents of keys; without it they are what the notes and entries say.
        """
        self._documents = made or documents
        self._catalog = catalog
        self._lexical = lexical
        self._identity = identity
        self._progress = progress
        self._bulk: Bulk | None = None
        self._vocabulary: Vocabulary | None = None
        self._reached = 0  # the feed up to which the bulk holds what the index does not

    def bring(self) -> None:
        """Everything that the feed says."""
        self.settle()
        state = self._lexical.state()
        last = self._last()
        if state.get("catalog") != self._identity:
            self._reconcile(last)
        elif int(state.get("feed", "0")) < last:
            self._follow(int(state["feed"]), last)

    def gather(self) -> None:
        """As `bring`, while more is coming: many new documents are analysed, and written when they make a segment."""
        state = self._lexical.state()
        if state.get("catalog") != self._identity:
            self.bring()
            return
        self._reached = max(self._reached, int(state.get("feed", "0")))
        if self._bulk is None and self._last() - self._reached < _worth_a_bulk():
            return
        while rows := self._catalog.db.execute(_FEED, (self._reached, _BATCH)).fetchall():
            if not all(live > 0 for _, _, live in rows):
                self.bring()
                return
            keys = [key for _, key, _ in rows]
            self._bulk = self._gathered(self._bulk, keys, self._state(self._reached))
            self._reached = rows[-1][0]

    def _gathered(self, bulk: Bulk | None, keys: Sequence[str], before: dict[str, str] | None = None) -> Bulk:
        """The bulk with the documents of these keys; what has no room in it is written, with the state `before`."""
        for document in self._documents(self._catalog, keys):
            if bulk is not None and bulk.full:
                self._lexical.apply(bulk=bulk, state=before)
                bulk = None
            if bulk is None:
                bulk = self._new_bulk()
            bulk.add(document)
        return bulk or self._new_bulk()

    def settle(self) -> None:
        """Writes what was gathered."""
        if self._bulk is not None:
            self._lexical.apply(bulk=self._bulk, state=self._state(self._reached))
            self._bulk = None

    def _new_bulk(self) -> Bulk:
        from memoranda.index._bulk import MOST_RUNS, Bulk, Vocabulary

        if self._vocabulary is None or len(self._vocabulary) > MOST_RUNS:
            self._vocabulary = Vocabulary()
        return Bulk(self._vocabulary)

    def _last(self) -> int:
        return self._catalog.fed()

    def _state(self, feed: int) -> dict[str, str]:
        return {"catalog": self._identity, "feed": str(feed)}

    def _follow(self, since: int, last: int) -> None:
        """Takes over what the catalog's feed says since the last time."""
        rows = self._catalog.db.execute("SELECT key, live FROM feed WHERE n > ? ORDER BY n", (since,))
        live: dict[str, int] = dict(rows)  # 1: live, 0: a former state, -1: forgotten
        gone = [key for key in live if live[key] == 0]
        out = {key for key in live if live[key] < 0}
        known = self._lexical.known(gone) | out
        fresh = [key for key in live if key not in known]  # adding a document that is known revives it
        rest = self._add_many(iter(fresh), len(fresh))
        drop = self._lexical.known(out) if out else ()
        self._lexical.apply(add=self._documents(self._catalog, rest), retire=gone, drop=drop, state=self._state(last))

    def _reconcile(self, last: int) -> None:
        """The catalog was made again: what the content index has already need not be analysed a second time."""
        beside = Beside(self._catalog, self._lexical.keys())
        rest = self._add_many(beside.missing(), self._catalog.documents() if self._progress else 0)
        self._lexical.apply(
            add=self._documents(self._catalog, rest), retire=beside.former(), revive=beside.again, drop=beside.gone,
            state=self._state(last),
        )  # fmt: skip

    def _add_many(self, keys: Iterator[str], about: int) -> Sequence[str]:
        """Adds the documents of these keys when they are many; returns those that are left to be added.

        `about` is how many there are, for who waits.
        """
        few = list(islice(keys, _worth_a_bulk()))
        if len(few) < _worth_a_bulk():
            return few
        keys, done = chain(few, keys), 0
        bulk: Bulk | None = None
        while batch := list(islice(keys, _BATCH)):
            if self._progress:
                self._progress("indexing", done, max(done, about))
            bulk = self._gathered(bulk, batch)
            done += len(batch)
        self._lexical.apply(bulk=bulk)
        if self._progress:
            self._progress("indexing", done, done)
        return ()


def documents(catalog: Catalog, keys: Iterable[str]) -> Iterator[Document]:
    """The documents of these keys, made from the catalog's rows."""
    wanted = list(keys)
    notes: set[str] = set()
    for key, title, subject, body, tags, kind, scope, owner in catalog.note_texts(wanted):
        notes.add(key)
        facets = ["in:notes", f"kind:{kind}", f"scope:{scope}", f"{OF}{scope} {owner}"]
        if subject:
            steps = subject.split("/")
            facets += ["subject:" + "/".join(steps[: n + 1]) for n in range(len(steps))]
        yield Document(key, title, subject or "", body, tags, tuple(facets))
    for key, entry in catalog.entries_by_key([k for k in wanted if k not in notes]).items():
        if not entry.text or entry.speaker.endswith(RECORDS) or erased_on(entry.text) is not None:
            continue  # it records a `remember`, whose note carries the same words; or its words are gone
        facets = ["in:journal", "kind:journal", f"agent:{agent_of(entry.path)}"]
        yield Document(key, entry.speaker, "", entry.text, (), tuple(facets))


def _worth_a_bulk() -> int:
    """From how many documents on they are taken in at once."""
    return _SOME if "numpy" in sys.modules else _MANY


_FEED = "SELECT n, key, live FROM feed WHERE n > ? ORDER BY n LIMIT ?"
