"""One change of the lexical index, inside a transaction that the caller holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from memoranda.index._facets import facet_term
from memoranda.index._segments import BUILD_DOCUMENTS, BUILD_POSTINGS, Builder, due, fitting, merge
from memoranda.index._store import (
    DROPPED,
    LIVE,
    MOST_FREQUENCY,
    MOST_LENGTH,
    RETIRED,
    TAIL_MOST,
    Row,
    Segment,
    View,
    add_to_tail,
    tail_rows,
)
from memoranda.index.analysis import analyze
from memoranda.index.documents import JOURNAL, Applied, Document, raw_key
from memoranda.index.traits import PASSAGE

if TYPE_CHECKING:
    from memoranda.index._bulk import Bulk


def row_of(document: Document) -> Row:
    """A document as it is stored. Raises ValueError when its key is not 40 hex characters."""
    bag = analyze(document.text, title=document.title, subject=document.subject, tags=document.tags)
    terms = bag.terms
    if terms and max(terms.values()) > MOST_FREQUENCY:
        terms = {term: min(count, MOST_FREQUENCY) for term, count in terms.items()}
    for facet in document.facets:
        terms[facet_term(facet)] = 1
    traits = bag.traits | (PASSAGE if JOURNAL in document.facets else 0)
    return Row(raw_key(document.key), LIVE, min(bag.length, MOST_LENGTH), traits, terms)


class Writer:
    """Applies one change; `reread` gives the view of what has been written so far."""

    def __init__(self, db: sqlite3.Connection, view: View, reread: Callable[[], View]) -> None:
        self._db = db
        self._view = view
        self._reread = reread
        self._written = False  # something that the view does not show yet
        self._shifted = False  # segments came, or lost documents

    def apply(
        self,
        add: Iterable[Document],
        retire: Iterable[str],
        revive: Iterable[str],
        drop: Iterable[str],
        bulk: Bulk | None = None,
    ) -> Applied:
        added, again = self._add(add) if bulk is None else self._add_bulk(bulk)
        orders = [(raw_key(key), status) for keys, status in ((retire, RETIRED), (revive, LIVE)) for key in keys]
        orders += [(raw_key(key), DROPPED) for key in drop]
        counts, missing = self._change(again, orders)
        self._merge_what_is_due()
        self._publish()
        return Applied(added, counts[RETIRED], counts[LIVE], counts[DROPPED], tuple(key.hex() for key in missing))

    def compact(self) -> None:
        """Merges as far as segments can be merged, the tail included, without the dropped documents."""
        self._write_segment(self._take_tail())
        for segment in [s for s in self._settled().segments if DROPPED in s.status]:
            self._merge([segment])
        while len(chosen := fitting(self._settled().segments)) > 1:
            self._merge(chosen)
        self._publish()

    def _add(self, documents: Iterable[Document]) -> tuple[int, list[bytes]]:
        """Stores the documents that are new; returns how many, and the keys of those that were known."""
        view = self._view
        taken: set[bytes] = set()
        again: list[bytes] = []
        few: list[Row] = []
        room = TAIL_MOST - len(view.tail.keys)
        builder: Builder | None = None
        for document in documents:
            key = raw_key(document.key)
            if key in taken or view.find(key) is not None:
                again.append(key)
                continue
            taken.add(key)
            row = row_of(document)
            if builder is None and len(few) < room:
                few.append(row)
                continue
            if builder is None:
                builder = self._take_tail()
                for waiting in few:
                    builder.add(waiting)
            builder.add(row)
            if len(builder) >= BUILD_DOCUMENTS or builder.postings >= BUILD_POSTINGS:
                self._write_segment(builder)
                builder = Builder()
        if builder is not None:
            self._write_segment(builder)
        elif few:
            add_to_tail(self._db, few)
            self._written = True
        return len(taken), again

    def _add_bulk(self, bulk: Bulk) -> tuple[int, list[bytes]]:
        """As `_add`; the tail stays where it is."""
        from memoranda.index._fast import find

        numbers = find(self._view, bulk.keys)
        taken: dict[bytes, int] = {}
        out: set[int] = set()
        again: list[bytes] = []
        for place, (key, number) in enumerate(zip(bulk.keys, numbers, strict=True)):
            if number is not None or taken.setdefault(key, place) != place:
                out.add(place)
                again.append(key)
        if out:
            bulk.leave_out(out)
        if len(bulk):
            bulk.write(self._db, self._new_segment(), self._view.generation + 1)
        return len(bulk), again

    def _take_tail(self) -> Builder:
        builder = Builder()
        for row in tail_rows(self._view.tail):
            builder.add(row)
        if self._view.tail.keys:
            self._db.execute("DELETE FROM tail")
            self._written = True
        return builder

    # Status

    def _change(
        self, again: Iterable[bytes], orders: Sequence[tuple[bytes, int]]
    ) -> tuple[dict[int, int], dict[bytes, None]]:
        """Gives documents their new status; counts by status, and the keys that are not known."""
        counts = {LIVE: 0, RETIRED: 0, DROPPED: 0}
        missing: dict[bytes, None] = {}
        known = list(again)
        if not known and not orders:
            return counts, missing
        view = self._settled()
        changes = {number: LIVE for key in known if (number := view.find(key)) is not None}
        for key, status in orders:
            number = view.find(key)
            if number is None or changes.get(number) == DROPPED:
                missing[key] = None
            else:
                changes[number] = status
                counts[status] += 1
        self._set_status({number: status for number, status in changes.items() if view.status[number] != status})
        return counts, missing

    def _set_status(self, changes: dict[int, int]) -> None:
        view = self._view
        for base, segment in zip(view.bases, view.segments, strict=False):
            here = {n - base: status for n, status in changes.items() if base <= n < base + segment.size}
            if here:
                states = bytearray(segment.status)
                live, total = segment.live, segment.total
                for number, status in here.items():
                    sign = (status == LIVE) - (states[number] == LIVE)
                    live, total = live + sign, total + sign * segment.lengths[number]
                    states[number] = status
                self._db.execute(
                    "UPDATE status SET version = ?, live = ?, total = ?, bytes = ? WHERE segment = ?",
                    (view.generation + 1, live, total, bytes(states), segment.id),
                )
        for number, status in changes.items():
            if number >= view.bases[-1]:
                row = view.tail.rows[number - view.bases[-1]]
                if status == DROPPED:
                    self._db.execute("DELETE FROM tail WHERE id = ?", (row,))
                else:
                    self._db.execute("UPDATE tail SET status = ? WHERE id = ?", (status, row))
        self._written = self._written or bool(changes)
        self._shifted = self._shifted or DROPPED in changes.values()

    # Segments

    def _new_segment(self) -> int:
        """The number of the next segment; a number is never used twice."""
        self._written = self._shifted = True
        self._db.execute("UPDATE meta SET value = value + 1 WHERE name = 'segment'")
        (number,) = self._db.execute("SELECT value FROM meta WHERE name = 'segment'").fetchone()
        return int(number)

    def _write_segment(self, builder: Builder) -> None:
        if len(builder):
            builder.write(self._db, self._new_segment(), self._view.generation + 1)

    def _merge(self, chosen: Sequence[Segment]) -> None:
        merge(self._db, chosen, self._new_segment(), self._view.generation + 1)

    def _merge_what_is_due(self) -> None:
        while self._shifted and (chosen := due(self._settled().segments)):
            self._merge(chosen)

    def _publish(self) -> None:
        """Tells every reader that there is something new."""
        if self._written:
            self._db.execute("UPDATE meta SET value = value + 1 WHERE name = 'generation'")
            self._written = False

    def _settled(self) -> View:
        """The view with everything that was written."""
        if self._written:
            self._publish()
            self._view = self._reread()
        return self._view
