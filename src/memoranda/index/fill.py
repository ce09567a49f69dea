"""Fills the catalog: what a changed file, a record of the log or a line of the ledger means for its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memoranda.index.among import among
from memoranda.index.catalog import Catalog
from memoranda.index.pending import Pending
from memoranda.index.tables import document_title, note_key, note_values
from memoranda.index.version import Version
from memoranda.notes.journal import Entry, day_of, entry_key, is_journal_path, parse_journal
from memoranda.notes.model import read_note
from memoranda.notes.times import to_ms

_INSERT_NOTE = f"INSERT INTO notes VALUES (NULL, {', '.join('?' * 32)})"
_INSERT_NUMBERED = f"INSERT INTO notes VALUES ({', '.join('?' * 33)})"
_MANY = 16  # steps that are worth taking together


class Filler:
    """Writes into one catalog, inside a transaction of its caller.

    Args:
        is_note: whether a path is one of the Home's notes.
        blob: gives the bytes of a blob, None when it is missing.
    """

    def __init__(self, catalog: Catalog, is_note: Callable[[str], bool], blob: Callable[[str], bytes | None]) -> None:
        self._catalog = catalog
        self._db = catalog.db
        self._is_note = is_note
        self._blob = blob
        self.pending = Pending(catalog.db)

    def steps(self, steps: Sequence[tuple[Version, bytes | None]]) -> None:
        """As `step` for each; many new notes at once cost a fraction."""
        if len(steps) >= _MANY:
            steps = self._new_notes(steps)
        for version, data in steps:
            self.step(version, data)

    def _new_notes(self, steps: Sequence[tuple[Version, bytes | None]]) -> list[tuple[Version, bytes | None]]:
        """Takes in those that bring a note to a path that holds nothing; returns the others."""
        taken = self._taken([version.path for version, _ in steps])
        (row,) = self._db.execute("SELECT coalesce(max(row), 0) FROM notes").fetchone()
        notes: list[tuple[object, ...]] = []
        pending: list[tuple[str, int, int]] = []
        edges: list[tuple[str, str, int]] = []
        files: list[tuple[str, str, int]] = []
        feed: list[tuple[str]] = []
        rest: list[tuple[Version, bytes | None]] = []
        for version, data in steps:
            path, blob = version.path, version.blob
            if blob is None or path in taken or not self._is_note(path):
                taken.add(path)  # what follows for this path has to follow
                rest.append((version, data))
                continue
            taken.add(path)
            note = read_note(path, (self._blob(blob) or b"") if data is None else data)
            values = note_values(path, blob, int(version.at.timestamp()), None, note, self._catalog.key())
            row += 1
            notes.append((row, *values))
            if version.seq is not None:
                pending.append((path, version.seq, row))
            edges += [(old, note.id, row) for old in dict.fromkeys(note.supersedes)]
            files.append((path, blob, 0))
            feed.append((str(values[2]),))
        execute = self._db.executemany
        execute(_INSERT_NUMBERED, notes)
        execute("INSERT INTO pending VALUES (?, ?, ?)", pending)
        execute("INSERT OR IGNORE INTO edges VALUES (?, ?, ?)", edges)
        execute("INSERT INTO files VALUES (?, ?, ?)", files)
        execute("INSERT INTO feed (key, live) VALUES (?, 1)", feed)
        return rest

    def _taken(self, paths: Sequence[str]) -> set[str]:
        """Which of these paths hold something."""
        return {row[0] for row in among(self._db, "SELECT path FROM files WHERE path IN (?*)", paths)}

    def step(self, version: Version, data: bytes | None = None) -> None:
        """The file at this path has this blob from this time on; `data` saves reading it."""
        current = self._catalog.blob_of(version.path)
        if current == version.blob:
            return
        lines, is_note = 0, self._is_note(version.path)
        if is_journal_path(version.path):
            lines = self._journal(version, data)
        elif is_note:
            self._note(version, data, known=current is not None)
        if version.seq is not None and (version.blob is None or not is_note):
            self.pending.add(version.path, version.seq)
        if version.blob is None:
            self._db.execute("DELETE FROM files WHERE path = ?", (version.path,))
        else:
            self._db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (version.path, version.blob, lines))

    def append(self, version: Version, old: str, data: bytes) -> None:
        """A journal that stood at `old` got `data` at its end: costs the entry, not the day."""
        row = self._db.execute("SELECT blob, lines FROM files WHERE path = ?", (version.path,)).fetchone()
        if row is None or row[0] != old or version.blob is None or not is_journal_path(version.path):
            self.step(version)
            return
        if version.seq is not None:
            self.pending.add(version.path, version.seq)
        lines = int(row[1])
        (last,) = self._db.execute("SELECT max(place) FROM entries WHERE path = ?", (version.path,)).fetchone()
        place = 0 if last is None else last + 1
        fresh = parse_journal(data, day_of(version.path))
        self._entries(version.path, place, [(entry_key(e), e) for e in fresh], lines)
        for entry in fresh:
            self._db.execute("INSERT INTO feed (key, live) VALUES (?, 1)", (entry_key(entry),))
        self._db.execute(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (version.path, version.blob, lines + data.count(b"\n"))
        )

    def _note(self, version: Version, data: bytes | None, *, known: bool) -> None:
        if known:
            at = int(version.at.timestamp())
            retired = self._db.execute(
                "SELECT row, key FROM notes WHERE path = ? AND live = 1", (version.path,)
            ).fetchall()
            for row, key in retired:
                self._db.execute("UPDATE notes SET live = 0, known_to = max(known_from, ?) WHERE row = ?", (at, row))
                self.feed(key)
        if version.blob is not None:
            key = self._insert(version, None, data)
            self._db.execute("INSERT INTO feed (key, live) VALUES (?, 1)", (key,))

    def _insert(self, version: Version, known_to: int | None, data: bytes | None) -> str:
        assert version.blob is not None
        if data is None:
            data = self._blob(version.blob) or b""
        note = read_note(version.path, data)
        known_from = int(version.at.timestamp())
        values = note_values(version.path, version.blob, known_from, known_to, note, self._catalog.key())
        row = self._db.execute(_INSERT_NOTE, values).lastrowid
        assert row is not None
        if version.seq is not None:
            self.pending.add(version.path, version.seq, row)
        for old in dict.fromkeys(note.supersedes):
            self._db.execute("INSERT OR IGNORE INTO edges VALUES (?, ?, ?)", (old, note.id, row))
        return note_key(version.blob, document_title(version.path, note))

    def feed(self, key: str) -> None:
        """Tells the content indexes whether this key stands in some file now."""
        live = self._db.execute("SELECT 1 FROM notes WHERE key = ? AND live = 1 LIMIT 1", (key,)).fetchone()
        self._db.execute("INSERT INTO feed (key, live) VALUES (?, ?)", (key, int(live is not None)))

    def _journal(self, version: Version, data: bytes | None) -> int:
        """Takes in a whole journal file; returns how many lines it has."""
        if version.blob is None:
            data = b""
        elif data is None:
            data = self._blob(version.blob) or b""
        fresh = [(entry_key(e), e) for e in parse_journal(data, day_of(version.path))]
        held = self._db.execute(
            "SELECT key, first, last FROM entries WHERE path = ? ORDER BY place", (version.path,)
        ).fetchall()
        same = 0
        while same < min(len(held), len(fresh)) and held[same] == _mark(*fresh[same]):
            same += 1
        self._db.execute("DELETE FROM entries WHERE path = ? AND place >= ?", (version.path, same))
        self._entries(version.path, same, fresh[same:], 0)
        for key in dict.fromkeys((*(row[0] for row in held[same:]), *(key for key, _ in fresh[same:]))):
            live = self._db.execute("SELECT 1 FROM entries WHERE key = ? LIMIT 1", (key,)).fetchone()
            self._db.execute("INSERT INTO feed (key, live) VALUES (?, ?)", (key, int(live is not None)))
        return data.count(b"\n")

    def _entries(self, path: str, place: int, fresh: Sequence[tuple[str, Entry]], lines: int) -> None:
        self._db.executemany(
            "INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (path, place + n, e.id, key, to_ms(e.at), e.speaker, lines + e.start, lines + e.end, e.text, e.id)
                for n, (key, e) in enumerate(fresh)
            ],
        )


def _mark(key: str, entry: Entry) -> tuple[str, int, int]:
    return key, entry.start, entry.end
