"""What the catalog is asked by key, id, path, subject and chain: plain questions to its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from memoranda.index.among import among
from memoranda.index.rows import EntryRow, NoteRow
from memoranda.index.tables import ODD, SELECT_ENTRY, SELECT_NOTE, entry_row, note_row, texts_of
from memoranda.notes.ids import told_id

_SCHEMES = frozenset("nas http https file mailto mid cid ftp urn doi data tel git ssh mcp".split())


class Lookups:
    """The rows of one catalog as they stand now; nothing of them is kept at hand."""

    db: sqlite3.Connection

    # Notes

    def _notes(self, where: str, values: Sequence[object] = ()) -> list[NoteRow]:
        return [note_row(row) for row in self.db.execute(SELECT_NOTE + where, values)]

    def titled(self, title: str, most: int) -> list[str]:
        """The documents of live notes with exactly this title, ASCII letters in either case; at most so many."""
        query = "SELECT key FROM notes WHERE live = 1 AND title != '' AND title = ? COLLATE NOCASE ORDER BY key LIMIT ?"
        return [key for (key,) in self.db.execute(query, (title, most))]

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

    def blob_of(self, path: str) -> str | None:
        row = self.db.execute("SELECT blob FROM files WHERE path = ?", (path,)).fetchone()
        return row[0] if row else None

    def blobs(self) -> dict[str, int]:
        """The blobs of all files there are now, each with how many files hold it."""
        return dict(self.db.execute("SELECT blob, count(*) FROM files GROUP BY blob"))
