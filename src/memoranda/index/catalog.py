"""The catalog: every note and journal entry with what can change while its text does not.

A derivative like every index (SQLite in `.memoranda/`), made from Git, the log and the ledger; lists, chains and the
labels of what recall finds are answered from it. A note that was edited or deleted keeps its former rows with the time
in which they were known, so that `known_at` can be asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from memoranda.index import testimony
from memoranda.index.among import among
from memoranda.index.counting import Counting
from memoranda.index.journal_mode import connect, damaged, named_errors, transaction, write_ahead
from memoranda.index.kept import Kept, Moment
from memoranda.index.rows import Brief, EntryRow, NoteRow, Said, Shown, Totals
from memoranda.index.showing import shown
from memoranda.index.tables import (
    BLOB,
    ID,
    ODD,
    SELECT_BRIEF,
    SELECT_ENTRY,
    SELECT_NOTE,
    SELECT_SAID,
    SELECT_SPANS,
    TABLES,
    entry_row,
    is_sealed,
    note_row,
    texts_of,
)
from memoranda.notes.ids import told_id

FILE = "catalog.sqlite"
WHAT = "The catalog"

_SCHEMES = frozenset("nas http https file mailto mid cid ftp urn doi data tel git ssh mcp".split())
_SPANS = 130  # of three parameters each, in one SQL statement
_ROOM = (("cache_size", -131_072), ("wal_autocheckpoint", 4096))  # kibibytes (below zero), pages
_FOR_READERS = ("notes_id", "notes_facts", "notes_at", "entries_at", "ledger_session")
_MOST_BRIEFS = 8192  # documents whose rows are kept at hand until somebody writes: some 8 MB
_MOST_TURNED = 256  # lines of the feed for which it is worth to look which documents they are about
_MOST_SHOWN = 2048  # the same of notes that were shown, with their texts
_MOST_SAID = 8192  # the same of entries of journals, by key and by place


class Catalog:
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

    # Notes

    def _notes(self, where: str, values: Sequence[object] = ()) -> list[NoteRow]:
        return [note_row(row) for row in self.db.execute(SELECT_NOTE + where, values)]

    def titled(self, title: str, most: int) -> list[str]:
        """The documents of live notes with exactly this title, ASCII letters in either case; at most so many."""
        query = "SELECT key FROM notes WHERE live = 1 AND title != '' AND title = ? COLLATE NOCASE ORDER BY key LIMIT ?"
        return [key for (key,) in self.db.execute(query, (title, most))]

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

    def rows(self, numbers: Sequence[int]) -> list[NoteRow]:
        """The whole rows of these numbers."""
        return [note_row(row) for row in among(self.db, f"{SELECT_NOTE}WHERE n.row IN (?*)", numbers)]

    def sources(self, numbers: Sequence[int]) -> Iterator[str]:
        """What the notes in these rows cite, one after the other."""
        for (sources,) in among(self.db, "SELECT sources FROM notes WHERE row IN (?*)", numbers):
            yield from texts_of(sources)

    def note_texts(
        self, keys: Sequence[str]
    ) -> Iterator[tuple[str, str, str | None, str, tuple[str, ...], str, str, str]]:
        """(key, title, subject, body, tags, kind, scope, owner) of each of these documents that is a note's, once."""
        query = (
            "SELECT key, title, subject, body, tags, kind, scope, owner FROM notes"
            " WHERE key IN (?*) GROUP BY key HAVING row = min(row)"
        )
        for key, title, subject, body, tags, *of in among(self.db, query, keys):
            kind, scope, owner = of
            yield key, title, subject, body, texts_of(tags), kind, scope, owner

    def edged(
        self, keys: Sequence[str]
    ) -> Iterator[tuple[str, str, str, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
        """(key, body, id, title, subject, links, supersedes, sources) of each of these documents that is a note's."""
        query = (
            "SELECT key, body, id, title, subject, links, supersedes, sources FROM notes"
            " WHERE key IN (?*) GROUP BY key HAVING row = min(row)"
        )
        for *plain, links, supersedes, sources in among(self.db, query, keys):
            key, body, note_id, title, subject = plain
            yield key, body, note_id, title, subject or "", texts_of(links), texts_of(supersedes), texts_of(sources)

    def by_id(self, note_id: str, known_at: datetime | None = None) -> list[NoteRow]:
        """The rows with this id, known now or at `known_at`; several when files share the id, by path."""
        rows = self._notes("WHERE n.id = ? ORDER BY n.path, n.row", (note_id,))
        if not rows:
            rows = self._notes("WHERE n.id = ? ORDER BY n.path, n.row", (self._meant("notes", note_id),))
        return [row for row in rows if (row.live if known_at is None else row.known_at(known_at))]

    def by_path(self, path: str) -> NoteRow | None:
        rows = self._notes("WHERE n.path = ? AND n.live = 1", (path,))
        return rows[0] if rows else None

    def schemes(self, row: int) -> tuple[str, ...]:
        """The schemes of a note's sources (`nas`, `https`), without a word of what follows them or of other schemes."""
        found = self.db.execute("SELECT sources FROM notes WHERE row = ?", (row,)).fetchone()
        named = [source.partition(":")[0].lower() for source in texts_of(found[0])] if found else []
        return tuple(dict.fromkeys(scheme if scheme in _SCHEMES else "other" for scheme in named))

    def all_states(self, note_id: str) -> list[NoteRow]:
        """Every row that ever had this id, oldest first."""
        return self._notes("WHERE n.id = ? ORDER BY n.row", (note_id,))

    def at_path(self, path: str) -> list[NoteRow]:
        """Every state of the note at this path, oldest first."""
        return self._notes("WHERE n.path = ? ORDER BY n.row", (path,))

    def live_notes(self, where: str = "", values: Sequence[object] = ()) -> Iterator[NoteRow]:
        """All notes that hold a path now, by path; `where` narrows (columns are `n.…`)."""
        cursor = self.db.execute(f"{SELECT_NOTE}WHERE n.live = 1 {where} ORDER BY n.path", values)
        return (note_row(row) for row in cursor)

    def with_problems(self) -> list[NoteRow]:
        """The notes in which something was not understood."""
        return list(self.live_notes("AND n.problems != '[]'"))

    def linked_notes(self) -> list[NoteRow]:
        """The notes that supersede another or are superseded."""
        return list(self.live_notes("AND (n.supersedes != '[]' OR n.id IN (SELECT old FROM edges))"))

    def shared_ids(self, ids: Iterable[str] | None = None) -> dict[str, list[str]]:
        """The ids that several files have, all or those among these, with their paths."""
        found: dict[str, list[str]] = {}
        query = (
            "SELECT id, path FROM notes WHERE live = 1 AND id IN"
            f" (SELECT id FROM notes WHERE live = 1 {'' if ids is None else 'AND id IN (?*)'}"
            " GROUP BY id HAVING count(*) > 1) ORDER BY id, path"
        )
        for note_id, path in self.db.execute(query) if ids is None else among(self.db, query, sorted(set(ids))):
            found.setdefault(note_id, []).append(path)
        return found

    def fact_heads(self, subject: str) -> list[tuple[int, str, str]]:
        """(row, title, first 200 characters) of the facts about exactly this subject that files hold now."""
        query = "SELECT row, title, substr(body, 1, 200) FROM notes WHERE live = 1 AND kind = 'fact' AND subject = ?"
        return self.db.execute(query, (subject,)).fetchall()

    def crowded_facts(self) -> Iterator[NoteRow]:
        """The facts that share subject and scope with another fact, by path."""
        fact = "live = 1 AND kind = 'fact' AND subject IS NOT NULL"
        groups = f"SELECT subject, scope FROM notes WHERE {fact} GROUP BY subject, scope"
        return self.live_notes(f"AND n.kind = 'fact' AND (n.subject, n.scope) IN ({groups} HAVING count(*) > 1)")

    def dated_together(self) -> Iterator[NoteRow]:
        """The notes that say from when or until when they hold, and are not alone with their subject, kind and scope.

        Without episodes, which end with what happened.
        """
        dated = "subject IS NOT NULL AND kind != 'episodic' AND (valid_from IS NOT NULL OR valid_to IS NOT NULL)"
        groups = f"SELECT subject, kind, scope, owner FROM notes WHERE live = 1 AND {dated}"
        several = f"{groups} GROUP BY subject, kind, scope, owner HAVING count(*) > 1"
        return self.live_notes(f"AND (n.subject, n.kind, n.scope, n.owner) IN ({several})")

    def nas_sources(self) -> Iterator[tuple[str, str, str]]:
        """(id, path, source) of every pointer into a Home that a note cites."""
        query = "SELECT id, path, sources FROM notes WHERE live = 1 AND sources LIKE '%nas://%' ORDER BY path"
        for note_id, path, sources in self.db.execute(query):
            for source in texts_of(sources):
                if source.startswith("nas://"):
                    yield note_id, path, source

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

    # Chains

    def linked(self, ids: Iterable[str]) -> set[str]:
        """Which of these ids some note names in its `supersedes`."""
        return {row[0] for row in among(self.db, "SELECT old FROM edges WHERE old IN (?*)", ids)}

    def superseded(self) -> set[str]:
        """The ids that some note supersedes now."""
        query = "SELECT DISTINCT e.old FROM edges e JOIN notes n ON n.row = e.row WHERE n.live = 1"
        return {row[0] for row in self.db.execute(query)}

    def successors(self, note_id: str) -> tuple[str, ...]:
        """The ids of the notes that supersede this one now, oldest first."""
        rows = self.db.execute(
            "SELECT DISTINCT n.id, n.known_from FROM edges e JOIN notes n ON n.row = e.row"
            " WHERE e.old = ? AND n.live = 1 ORDER BY n.known_from, n.id",
            (note_id,),
        )
        return tuple(dict.fromkeys(row[0] for row in rows))

    def predecessors(self, note_id: str) -> tuple[str, ...]:
        """The ids that this note supersedes, directly or through others."""
        found: dict[str, None] = {}
        todo = [note_id]
        while todo:
            query = "SELECT e.old FROM edges e JOIN notes n ON n.row = e.row WHERE e.new = ? AND n.live = 1"
            for (old,) in self.db.execute(query, (todo.pop(),)).fetchall():
                if old not in found and old != note_id:
                    found[old] = None
                    todo.append(old)
        return tuple(found)

    def component(self, note_id: str, known_at: datetime | None = None) -> list[NoteRow]:
        """The rows of every note that this id is linked with, directly or not, as known now or at `known_at`."""
        seen: set[str] = set()
        todo = [note_id]
        rows: list[NoteRow] = []
        while todo:
            now = todo.pop()
            if now in seen:
                continue
            seen.add(now)
            here = self.by_id(now, known_at)
            rows += here
            for row in here:
                todo += row.supersedes
            todo += [r[0] for r in self.db.execute("SELECT DISTINCT new FROM edges WHERE old = ?", (now,))]
        return rows

    def ids_about(self, subject: str) -> list[str]:
        """The ids of all notes, also of those that are gone, that were ever about this subject or one below it."""
        query = "SELECT DISTINCT id FROM notes WHERE subject = ? OR substr(subject, 1, ?) = ? ORDER BY id"
        return [r[0] for r in self.db.execute(query, (subject, len(subject) + 1, subject + "/"))]

    def versions_of_chain(self, note_id: str) -> list[NoteRow]:
        """Every state, also former ones, of every note that was ever linked with this id, in the order they came."""
        seen: dict[str, None] = {note_id: None}
        rows: list[NoteRow] = []
        for now in (todo := [note_id]):
            here = self._notes("WHERE n.id = ?", (now,))
            rows += here
            linked = [old for row in here for old in row.supersedes]
            linked += [r[0] for r in self.db.execute("SELECT DISTINCT new FROM edges WHERE old = ?", (now,))]
            fresh = [other for other in dict.fromkeys(linked) if other not in seen]
            seen.update(dict.fromkeys(fresh))
            todo += fresh
        return sorted(rows, key=lambda row: (row.known_from, row.row))

    # Journal

    def entries_by_key(self, keys: Iterable[str]) -> dict[str, EntryRow]:
        found: dict[str, EntryRow] = {}
        for row in among(self.db, f"{SELECT_ENTRY} WHERE key IN (?*) ORDER BY path, place", keys):
            entry = entry_row(row)
            found.setdefault(entry.key, entry)
        return found

    def entries_of(self, path: str) -> list[EntryRow]:
        """The entries of one journal file, in order."""
        return [entry_row(row) for row in self.db.execute(f"{SELECT_ENTRY} WHERE path = ? ORDER BY place", (path,))]

    def entry(self, entry_id: str) -> EntryRow | None:
        query = f"{SELECT_ENTRY} WHERE id = ? ORDER BY path, place"
        row = self.db.execute(query, (entry_id,)).fetchone()
        if row is None:
            row = self.db.execute(query, (self._meant("entries", entry_id),)).fetchone()
        return entry_row(row) if row else None

    def _meant(self, table: str, told: str) -> str | None:
        """The id that is told as this one, since it is not of our making."""
        odd = self.db.execute(f"SELECT DISTINCT id FROM {table} WHERE {ODD}")  # few, by an index of their own
        return next((name for (name,) in odd if told_id(name) == told), None)

    def knows(self, name: str) -> bool:
        """Whether a note, in any of its states, or an entry has this id."""
        found = self.db.execute("SELECT 1 FROM notes WHERE id = ? LIMIT 1", (name,)).fetchone()
        return found is not None or self.entry(name) is not None

    def known_entries(self, ids: Iterable[str]) -> set[str]:
        """Which of these entries some journal holds."""
        return {row[0] for row in among(self.db, "SELECT id FROM entries WHERE id IN (?*)", ids)}

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

    def blob_of(self, path: str) -> str | None:
        row = self.db.execute("SELECT blob FROM files WHERE path = ?", (path,)).fetchone()
        return row[0] if row else None

    def blobs(self) -> dict[str, int]:
        """The blobs of all files there are now, each with how many files hold it."""
        return dict(self.db.execute("SELECT blob, count(*) FROM files GROUP BY blob"))
