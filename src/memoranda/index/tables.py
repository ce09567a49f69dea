"""The tables of the catalog: how a note becomes a row of them, and how a row is read again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memoranda.index import pending, testimony, withheld, within
from memoranda.index.recipe import Recipe
from memoranda.index.rows import Brief, EntryRow, NoteRow, Shown
from memoranda.notes.times import from_ms, to_ms

# Whether an id is not of our making, so that it is told as another one (`notes.ids.told_id`).
ODD = "(length(substr(id, instr(id, '_') + 1)) != 16 OR substr(id, instr(id, '_') + 1) GLOB '*[^0-9a-hjkmnp-tv-z]*')"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, blob TEXT NOT NULL, lines INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notes (
  row INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, blob TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL,
  live INTEGER NOT NULL, known_from INTEGER NOT NULL, known_to INTEGER, kind TEXT NOT NULL, subject TEXT,
  scope TEXT NOT NULL, owner TEXT NOT NULL,
  valid_from INTEGER, valid_to INTEGER, recorded_at TEXT, confidence REAL, origin TEXT NOT NULL,
  taint TEXT NOT NULL, reviewed INTEGER NOT NULL, classification TEXT NOT NULL, generated INTEGER NOT NULL,
  sources TEXT NOT NULL, supersedes TEXT NOT NULL, title TEXT NOT NULL, tags TEXT NOT NULL, links TEXT NOT NULL,
  body TEXT NOT NULL, front_lines INTEGER NOT NULL, problems TEXT NOT NULL,
  retention_days INTEGER, legal_hold INTEGER NOT NULL, retention_class TEXT, seal BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS notes_retention ON notes (id) WHERE retention_days IS NOT NULL;
CREATE INDEX IF NOT EXISTS notes_held ON notes (id) WHERE legal_hold = 1;
CREATE TABLE IF NOT EXISTS kept_out (path TEXT NOT NULL, about TEXT NOT NULL, blob TEXT NOT NULL,
  mark TEXT NOT NULL, PRIMARY KEY (path, about, blob)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refused (path TEXT NOT NULL, about TEXT NOT NULL, blob TEXT NOT NULL,
  PRIMARY KEY (path, about, blob)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS notes_id ON notes (id);
CREATE INDEX IF NOT EXISTS notes_odd ON notes (id) WHERE {ODD};
CREATE INDEX IF NOT EXISTS notes_key ON notes (key);
CREATE INDEX IF NOT EXISTS notes_path ON notes (path);
CREATE INDEX IF NOT EXISTS notes_live ON notes (path, live) WHERE live = 1;
CREATE INDEX IF NOT EXISTS notes_facts ON notes (subject, title COLLATE NOCASE) WHERE live = 1 AND kind = 'fact';
CREATE INDEX IF NOT EXISTS notes_title ON notes (title COLLATE NOCASE) WHERE live = 1 AND title != '';
CREATE TABLE IF NOT EXISTS edges (old TEXT NOT NULL, new TEXT NOT NULL, row INTEGER NOT NULL,
  PRIMARY KEY (old, new, row)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS edges_row ON edges (row);
CREATE TABLE IF NOT EXISTS entries (
  row INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL,
  key TEXT NOT NULL, at INTEGER NOT NULL, speaker TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
  text TEXT NOT NULL, about TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS entries_key ON entries (key);
CREATE UNIQUE INDEX IF NOT EXISTS entries_place ON entries (path, place);
CREATE INDEX IF NOT EXISTS entries_id ON entries (id);
CREATE INDEX IF NOT EXISTS entries_odd ON entries (id) WHERE {ODD};
CREATE TABLE IF NOT EXISTS feed (n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, live INTEGER NOT NULL);
"""

TABLES = _SCHEMA + testimony.SCHEMA + withheld.SCHEMA + pending.SCHEMA + within.SCHEMA
# Catalogs with other tables never share a directory, whoever changed them and forgot the number.
RECIPE = Recipe("catalog", 12, {"tables": hashlib.sha256(TABLES.encode()).hexdigest()[:12]})

NOTE_COLUMNS = """row path blob key id live known_from known_to kind subject scope owner valid_from valid_to
    recorded_at confidence origin taint reviewed classification generated sources supersedes title tags links body
    front_lines problems retention_days legal_hold retention_class seal""".split()
SELECT_NOTE = f"SELECT {', '.join('n.' + name for name in NOTE_COLUMNS)} FROM notes n "
SELECT_ENTRY = "SELECT path, place, id, key, at, speaker, first, last, text, about FROM entries"
SELECT_SAID = (
    "SELECT e.key, e.at, e.path, e.place, coalesce(l.session, ''), e.speaker, l.at, l.taint FROM entries e"
    " LEFT JOIN ledger l ON l.about = e.about "
)
# One statement for all: a statement a span cost more than the rows. CROSS keeps the order of the joins.
SELECT_SPANS = (
    "SELECT e.key, e.at, e.path, e.place, coalesce(l.session, ''), e.speaker, l.at, l.taint FROM (VALUES {}) s"
    " CROSS JOIN entries e ON e.path = s.column1 AND e.place BETWEEN s.column2 AND s.column3"
    " LEFT JOIN ledger l ON l.about = e.about"
)
SELECT_BRIEF = f"SELECT {', '.join('n.' + name for name in Brief._fields[:-3])}, n.taint FROM notes n"
ID, BLOB = Brief._fields.index("id"), Brief._fields.index("blob")

_LONGEST = 1_000_000  # days; what is kept longer is kept


def texts_of(text: str) -> tuple[str, ...]:
    """The texts of a column that holds several."""
    return () if text == "[]" else tuple(json.loads(text))


def _seconds(value: int | None) -> datetime | None:
    return None if value is None else datetime.fromtimestamp(value, UTC)


def note_row(r: Sequence[Any]) -> NoteRow:
    """The row of a note, its columns in the order of `NOTE_COLUMNS`."""
    owner = {} if r[11] == "{}" else json.loads(r[11])
    return NoteRow(
        r[0], r[1], r[2], r[3], r[4], bool(r[5]), datetime.fromtimestamp(r[6], UTC), _seconds(r[7]), r[8], r[9], r[10],
        owner, from_ms(r[12]), from_ms(r[13]), r[14], r[15], r[16], texts_of(r[17]), bool(r[18]), r[19], bool(r[20]),
        texts_of(r[21]), texts_of(r[22]), r[23], texts_of(r[24]), texts_of(r[25]), r[26], r[27], texts_of(r[28]), r[29],
        bool(r[30]), r[31],
    )  # fmt: skip


def entry_row(r: Sequence[Any]) -> EntryRow:
    """The row of an entry, its columns in the order of `SELECT_ENTRY`."""
    at = from_ms(r[4])
    assert at is not None
    return EntryRow(r[0], r[1], r[2], r[3], at, *r[5:10])


def note_key(blob: str, title: str) -> str:
    """The key of a note's document: its bytes, and its title, which a file without one has from its name."""
    return hashlib.sha1(f"{blob}\n{title}".encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def document_title(path: str, note: Any) -> str:
    """The title that people gave; a file name that we built from the note's first words is none."""
    stem = path.rpartition("/")[2].removesuffix(".md")
    return "" if note.title == stem and stem.endswith("-" + note.id[-6:]) else str(note.title)


def seal_of(key: bytes, body: str, told: Sequence[object]) -> bytes:
    """What shows that a row says what the bytes of its blob say: the catalog is a file that others may write.

    `told` are the columns beside the body that a reader is told, as the table keeps them; `key` lies outside the Home.
    """
    seal = hashlib.blake2b(repr(tuple(told)).encode("utf-8", "surrogatepass"), digest_size=16, key=key)
    seal.update(body.encode("utf-8", "surrogatepass"))
    return seal.digest()


def is_sealed(key: bytes, row: Shown) -> bool:
    """Whether the row is as it was made from its blob."""
    told = (
        row.path, row.blob, row.id, row.kind, row.subject, row.scope, row.front_lines, row.origin, row.valid_from,
        row.valid_to, row.recorded_at, row.classification, _list(row.sources), _list(row.supersedes), row.title,
    )  # fmt: skip
    return seal_of(key, row.body, told) == row.seal


_TOLD = (0, 1, 3, 7, 8, 9, 26, 15, 11, 12, 13, 18, 20, 21, 22)  # where these stand among the values of a note
_BODY = 25


def note_values(
    path: str, blob: str, known_from: int, known_to: int | None, note: Any, key: bytes
) -> tuple[object, ...]:
    """The columns of a note's row, in the order of the table; `note` is a `notes.model.Note`, times in seconds."""
    values = _values(path, blob, known_from, known_to, note)
    return *values, seal_of(key, str(values[_BODY]), [values[at] for at in _TOLD])


def _values(path: str, blob: str, known_from: int, known_to: int | None, note: Any) -> tuple[object, ...]:
    title = document_title(path, note)
    return (
        path, blob, note_key(blob, title), note.id, int(known_to is None), known_from, known_to,
        note.kind, note.subject, note.scope, json.dumps(note.owner) if note.owner else "{}",
        to_ms(note.valid_from), to_ms(note.valid_to),
        None if note.recorded_at is None else note.recorded_at.isoformat().replace("+00:00", "Z"), note.confidence,
        note.origin, _list(note.taint), int(note.reviewed), note.classification, int(note.generated),
        _list(note.sources), _list(note.supersedes), title, _list(note.tags), _list(note.links), note.body,
        note.front_lines, _list(note.problems),
        None if note.retention_days is None else min(note.retention_days, _LONGEST), int(note.legal_hold),
        note.retention_class,
    )  # fmt: skip


def _list(values: Sequence[str]) -> str:
    return json.dumps(values) if values else "[]"
