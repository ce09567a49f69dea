"""How many notes and entries there are: counted once, and then by what the catalog's feed says has come."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import NamedTuple

from memoranda.index.among import among

_MOST = 256  # what came since the last time; more is counted anew

_PLACE = (
    "SELECT (SELECT value FROM state WHERE name = 'identity'), (SELECT coalesce(max(row), 0) FROM main.notes),"
    " (SELECT coalesce(max(row), 0) FROM main.entries), (SELECT coalesce(max(n), 0) FROM feed),"
    " (SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM state WHERE name = 'told')"
)
_ALL = "SELECT (SELECT count(*) FROM notes WHERE live = 1), (SELECT count(*) FROM entries)"


class _Place(NamedTuple):
    """How far a catalog is: its identity, its last rows of notes and of entries, the end of its feed, and how many
    lines about something the ledger has told it (`testimony.take_in`)."""

    identity: str | None
    note: int
    entry: int
    feed: int
    told: int


class Counting:
    """Counts the live notes and the entries of one catalog.

    With `by_ledger` the tables are views that show what the ledger vouches for: a line about something old may turn it.
    """

    def __init__(self, db: sqlite3.Connection, *, by_ledger: bool = False) -> None:
        self._db = db
        self._by_ledger = by_ledger
        self._held: tuple[_Place, int, int] | None = None

    def now(self) -> tuple[int, int]:
        """(notes, entries). To count a hundred thousand takes as long as a recall."""
        inside = self._db.in_transaction
        if not inside:
            self._db.execute("BEGIN")  # one state of the file for all that is asked
        try:
            place = _Place._make(self._db.execute(_PLACE).fetchone())
            come = self._come(place)
            if come is not None and self._held is not None:
                notes, entries = self._held[1] + come[0], self._held[2] + come[1]
            else:
                notes, entries = self._db.execute(_ALL).fetchone()
        finally:
            if not inside:
                self._db.execute("COMMIT")
        self._held = place, notes, entries
        return notes, entries

    def _come(self, place: _Place) -> tuple[int, int] | None:
        """How many notes and entries came since the last time; None where something else has happened too.

        Every row that comes, goes or turns is told in the feed by its key: when it tells of the new rows and of nothing
        else, all others are as they were.
        """
        held = self._held[0] if self._held else None
        if held is None or place.identity is None or place.identity != held.identity:
            return None
        if not 0 <= place.feed - held.feed <= _MOST:
            return None
        notes = self._db.execute("SELECT key, live, blob FROM main.notes WHERE row > ?", (held.note,)).fetchall()
        entries = self._db.execute("SELECT key, 1, about FROM main.entries WHERE row > ?", (held.entry,)).fetchall()
        told = self._db.execute("SELECT key, live FROM feed WHERE n > ?", (held.feed,))
        rows = [*notes, *entries]
        if Counter(told) != Counter(row[:2] for row in rows) or not all(row[1] == 1 for row in notes):
            return None
        if not self._by_ledger:
            return len(notes), len(entries)
        about = among(self._db, "SELECT about FROM main.ledger WHERE about IN (?*)", {row[2] for row in rows})
        if place.told - held.told != len(list(about)):
            return None  # or the ledger speaks of something else
        shown = self._db.execute("SELECT row FROM notes WHERE row > ? AND live = 1", (held.note,)).fetchall()
        return len(shown), len(self._db.execute("SELECT row FROM entries WHERE row > ?", (held.entry,)).fetchall())
