"""The catalog: every note and journal entry with what can change while its text does not.

A derivative like every index (SQLite in `.memoranda/`), made from Git, the log and the ledger; lists, chains and the
labels of what recall finds are answered from it. A note that was edited or deleted keeps its former rows with the time
in which they were known, so that `known_at` can be asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from memoranda.index import testimony
from memoranda.index.among import among
from memoranda.index.counting import Counting
from memoranda.index.journal_mode import connect, damaged, named_errors, transaction, write_ahead
from memoranda.index.kept import Kept, Moment
from memoranda.index.lookups import Lookups
from memoranda.index.rows import Brief, NoteRow, Said, Shown, Totals
from memoranda.index.showing import shown
from memoranda.index.tables import (
    BLOB,
    ID,
    SELECT_BRIEF,
    SELECT_SAID,
    SELECT_SPANS,
    TABLES,
    is_sealed,
)

FILE = "catalog.sqlite"
WHAT = "The catalog"

_SPANS = 130  # of three parameters each, in one SQL statement
_ROOM = (("cache_size", -131_072), ("wal_autocheckpoint", 4096))  # kibibytes (below zero), pages
_FOR_READERS = ("notes_id", "notes_facts", "notes_at", "entries_at", "ledger_session")
_MOST_BRIEFS = 8192  # documents whose rows are kept at hand until somebody writes: some 8 MB
_MOST_TURNED = 256  # lines of the feed for which it is worth to look which documents they are about
_MOST_SHOWN = 2048  # the same of notes that were shown, with their texts
_MOST_SAID = 8192  # the same of entries of journals, by key and by place


class Catalog(Lookups):
    """The open catalog of one Home. One thread at a time."""

    limited = False  # whether it shows a reader's part

    def __init__(self, connection: sqlite3.Connection, directory: Path) -> None:
        self.db = connection
        self.directory = directory
        self._moment = Moment(connection)
        self.ledger = testimony.Testimony(connection, self._moment)
        self.key: Callable[[], bytes] = bytes  # that of the seals of rows; without it nothing is sealed
        self.keep_days: int | None = None  # how long anything here is kept at most, for who asks
        self.bent = False  # whether a row was met that is not as it was made
        self.forget()

    def forget(self) -> None:
        """Lets go of every answer that is kept at hand."""
        self._settled: tuple[int, int] | None = None
        self.reviewed: tuple[object, object] | None = None  # kept by `trust.edited`, with its mark
        self._counting = Counting(self.db, by_ledger=self.limited)
        self._totals: tuple[tuple[int, int], Totals] | None = None
        self._fed: tuple[str | None, int] | None = None  # up to where `_turned` has heard the feed
        moment = self._moment
        self._rows: Kept[str, list[tuple[Any, ...]]] = Kept(self.db, _MOST_BRIEFS, self._turned, moment=moment)
        self._briefs: Kept[str, list[Brief]] = Kept(self.db, _MOST_BRIEFS, moment=moment)
        self._shown: Kept[int, Shown] = Kept(self.db, _MOST_SHOWN, moment=moment)
        self._said: Kept[str, Said | None] = Kept(self.db, _MOST_SAID, moment=moment)
        self._places: Kept[tuple[str, int], Said | None] = Kept(self.db, _MOST_SAID, moment=moment)
        self._true: dict[int, Shown] = {}  # those among them whose seal was looked at

    @staticmethod
    def open(directory: Path) -> Catalog:
        """Opens or makes the catalog in `directory`.

        Raises:
            IndexDamaged: the file is not a catalog.
            IndexBusy, Unavailable: another process holds it, or it cannot be used now.
        """
        directory.mkdir(parents=True, exist_ok=True)
        with named_errors(WHAT):
            db = connect(directory / FILE)
            try:
                write_ahead(db)
                db.execute("PRAGMA synchronous = OFF")  # a cache: after a loss of power it is made again
                db.execute("PRAGMA secure_delete = ON")  # what goes is overwritten: it may be forgotten, or a secret
                if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'feed'").fetchone():
                    db.executescript(TABLES)
            except sqlite3.Error:
                db.close()
                raise
        return Catalog(db, directory)

    @contextmanager
    def roomy(self) -> Iterator[None]:
        """For who writes much: more pages are held in memory meanwhile, and carried into the file less often.

        Ids and digests come in any order: what has no room is written and read again for each of them.
        """
        kept = [self.db.execute(f"PRAGMA {name}").fetchone()[0] for name, _ in _ROOM]
        for name, size in _ROOM:
            self.db.execute(f"PRAGMA {name} = {size}")
        try:
            yield
        finally:
            for (name, _), size in zip(_ROOM, kept, strict=True):
                self.db.execute(f"PRAGMA {name} = {size}")
            self.db.execute("PRAGMA shrink_memory")

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Inside a transaction that fills the empty catalog: what only readers look things up by is sorted at the end,
        for a fraction of what it costs to put each row in its place. Nothing has changed when it raises."""
        query = "SELECT sql FROM sqlite_master WHERE type = 'index' AND name IN (?*)"
        indexes = [sql for (sql,) in among(self.db, query, _FOR_READERS)]
        for name in _FOR_READERS:
            self.db.execute(f"DROP INDEX IF EXISTS {name}")
        yield
        for sql in indexes:
            self.db.execute(sql)

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next; it stays open."""
        self.forget()
        with named_errors(WHAT):
            self.db.execute("PRAGMA shrink_memory")

    def close(self) -> None:
        self.db.close()

    def steady(self) -> AbstractContextManager[None]:
        """All that is read inside is of one moment: rows do not go between two looks, whatever others write."""
        return self._moment.steady()

    def check(self) -> None:
        """Reads everything. Raises IndexDamaged when the file does not hold together."""
        with named_errors(WHAT):
            (problem,) = self.db.execute("PRAGMA quick_check(1)").fetchone()
        if problem != "ok":
            raise damaged(WHAT, problem)

    # State

    def mark(self) -> tuple[int, int]:
        """Another one after every change, by this process or another."""
        return self.db.execute("PRAGMA data_version").fetchone()[0], self.db.total_changes

    def state(self, name: str) -> str | None:
        row = self.db.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def set_state(self, **values: str | None) -> None:
        """All of these or, for whoever is killed on the way, none: a commit without its records would be a lie."""
        with nullcontext() if self.db.in_transaction or len(values) == 1 else transaction(self.db):
            for name, value in values.items():
                if value is None:
                    self.db.execute("DELETE FROM state WHERE name = ?", (name,))
                else:
                    self.db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    # What came in without the ledger's word

    def unclaimed(self) -> bool:
        """Whether notes or entries came in since `claimed` was called."""
        mark = self.mark()
        if self._settled == mark:
            return False
        found = self.state("claimed") != self.claimable()
        self._settled = None if found else mark
        return found

    def claimed(self, upto: str) -> None:
        """What was here when `claimable` said so was looked at. IndexBusy, Unavailable: it cannot be written now."""
        with named_errors(WHAT):
            self.set_state(claimed=upto)

    def claimable(self) -> str:
        """How far there is something to look at."""
        last = "SELECT (SELECT coalesce(max(row), 0) FROM notes), (SELECT coalesce(max(row), 0) FROM entries)"
        return "{} {}".format(*self.db.execute(last).fetchone())

    def without_word(self) -> tuple[list[NoteRow], list[tuple[int, str, str, str]]]:
        """What is new and of which the ledger says nothing: notes; entries as (row, id, key, what it says of the id).

        An entry is among them too when the ledger knows its id and another text.
        """
        state = self.state("claimed")
        note, entry = map(int, (state or "0 0").split())
        notes = self._notes("LEFT JOIN ledger l ON l.about = n.blob WHERE n.row > ? AND l.about IS NULL", (note,))
        entries = self.db.execute(
            "SELECT e.row, e.id, e.key, coalesce(l.taint, '[]') FROM entries e LEFT JOIN ledger l ON l.about = e.id"
            " WHERE e.row > ? AND (l.about IS NULL OR l.key != e.key)",
            (entry,),
        )
        return notes, entries.fetchall()

    def known_by_key(self, rows: Iterable[int]) -> None:
        """These entries are not those that the ledger means by their ids: what it says of them goes by their keys.

        IndexBusy, Unavailable: it cannot be written now.
        """
        with named_errors(WHAT):
            self.db.executemany("UPDATE entries SET about = key WHERE row = ?", [(row,) for row in rows])

    # What is kept at hand of notes

    def briefs(self, keys: Iterable[str]) -> dict[str, list[Brief]]:
        """The rows, live and former, of these documents, as far as visibility goes."""
        return {key: rows for key, rows in self._briefs.of(keys, self._read_briefs).items() if rows}

    def _read_briefs(self, keys: Sequence[str]) -> Iterable[tuple[str, list[Brief]]]:
        """Of the rows, what comes and goes without them is asked anew whenever somebody has written."""
        held = self._rows.of(keys, self._read_rows)
        found = [row for rows in held.values() for row in rows]
        stamps = self.ledger.taints([row[BLOB] for row in found])
        linked = self.linked([row[ID] for row in found])
        return [
            (key, [Brief._make((*row, int(row[ID] in linked), stamps.get(row[BLOB]))) for row in rows])
            for key, rows in held.items()
        ]

    def _read_rows(self, keys: Sequence[str]) -> Iterable[tuple[str, list[tuple[Any, ...]]]]:
        found: dict[str, list[tuple[Any, ...]]] = {key: [] for key in keys}
        for row in among(self.db, f"{SELECT_BRIEF} WHERE n.key IN (?*)", keys):
            found[row[0]].append(row)
        return found.items()

    def _turned(self) -> list[str] | None:
        """The documents of which a row came, went or turned since this was asked last: the feed names each of them.
        None when that cannot be told."""
        query = "SELECT (SELECT value FROM state WHERE name = 'identity'), (SELECT coalesce(max(n), 0) FROM feed)"
        before, self._fed = self._fed, self.db.execute(query).fetchone()
        if before is None or before[0] is None or self._fed is None or self._fed[0] != before[0]:
            return None
        if not 0 <= self._fed[1] - before[1] <= _MOST_TURNED:
            return None
        return [key for (key,) in self.db.execute("SELECT key FROM feed WHERE n > ?", (before[1],))]

    def shown(self, numbers: Sequence[int]) -> dict[int, Shown]:
        """What a reader is told of the notes in these rows, by row."""
        return self._shown.of(numbers, lambda missing: ((row.row, row) for row in shown(self.db, missing)))

    def is_true(self, row: Shown) -> bool:
        """Whether the row says what its blob says; of one that is kept at hand, looked at once."""
        if self._true.get(row.row) is row:
            return True
        if not is_sealed(self.key(), row):
            self.bent = True
            return False
        if len(self._true) >= _MOST_SHOWN:
            self._true.clear()
        self._true[row.row] = row
        return True

    # And of journals

    def passages(self, spans: Sequence[tuple[str, int, int]]) -> list[Said]:
        """The entries of each (path, first place, last place), both included, in the order of the spans."""
        wanted = [(path, place) for path, first, last in spans for place in range(first, last + 1)]
        return [entry for entry in self._places.of(wanted, self._read_places).values() if entry is not None]

    def _read_places(self, wanted: list[tuple[str, int]]) -> Iterable[tuple[tuple[str, int], Said | None]]:
        found: dict[tuple[str, int], Said | None] = dict.fromkeys(wanted)
        spans: list[tuple[str, int, int]] = []
        for path, place in sorted(wanted):
            if spans and spans[-1][0] == path and place == spans[-1][2] + 1:
                spans[-1] = (path, spans[-1][1], place)
            else:
                spans.append((path, place, place))
        for at in range(0, len(spans), _SPANS):
            part = spans[at : at + _SPANS]
            query = SELECT_SPANS.format(",".join(["(?,?,?)"] * len(part)))
            for row in self.db.execute(query, [value for span in part for value in span]):
                found[row[2], row[3]] = Said._make(row)
        return found.items()

    def said(self, keys: Sequence[str]) -> dict[str, Said]:
        """The entries with these keys; the first in the order of the journals when several say the same."""
        return {key: entry for key, entry in self._said.of(keys, self._read_said).items() if entry is not None}

    def _read_said(self, keys: list[str]) -> Iterable[tuple[str, Said | None]]:
        found: dict[str, Said | None] = dict.fromkeys(keys)
        for row in among(self.db, f"{SELECT_SAID}WHERE e.key IN (?*) ORDER BY e.path, e.place", keys):
            if found[row[0]] is None:
                found[row[0]] = Said._make(row)
        return found.items()

    # How much there is

    def count_notes(self) -> int:
        return self.totals().notes

    def count_entries(self) -> int:
        return self.totals().entries

    def fed(self) -> int:
        """The number of the last line of the feed: of what came and went, as indexes follow it."""
        return int(self.db.execute("SELECT coalesce(max(n), 0) FROM feed").fetchone()[0])

    def documents(self) -> int:
        """About how many documents it tells of, former states included."""
        return sum(map(int, self.claimable().split()))

    def totals(self) -> Totals:
        """How much there is; asked again only when somebody has written, since every recall says it."""
        mark = self.mark()
        if self._totals is None or self._totals[0] != mark:
            self._totals = (mark, Totals(*self._counting.now(), self.state("commit") or None))
        return self._totals[1]
