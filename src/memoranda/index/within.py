"""What lies in a stretch of time: notes that begin to hold in it, and journal entries that were said in it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

# A note without a beginning counts from when it became known; the schema has an index for each.
NOTE_AT = "coalesce(valid_from, known_from * 1000)"
SCHEMA = f"""
CREATE INDEX IF NOT EXISTS notes_at ON notes ({NOTE_AT});
CREATE INDEX IF NOT EXISTS entries_at ON entries (at);
"""
_OF_NOTES = f"SELECT key FROM notes WHERE {NOTE_AT} >= ? AND {NOTE_AT} < ? AND live >= ? ORDER BY {NOTE_AT} DESC, key"
_OF_ENTRIES = "SELECT key FROM entries WHERE at >= ? AND at < ? ORDER BY at DESC, path DESC, place DESC"


def notes_within(db: sqlite3.Connection, start: int, end: int, *, former: bool) -> Iterator[str]:
    """The documents of notes from `start` to before `end` (milliseconds since 1970), the latest first, a key again for
    every file that shares it. `former` also gives the states that no file has any more."""
    return (key for (key,) in db.execute(_OF_NOTES, (start, end, 0 if former else 1)))


def entries_within(db: sqlite3.Connection, start: int, end: int) -> Iterator[str]:
    """The documents of journal entries, in the same way."""
    return (key for (key,) in db.execute(_OF_ENTRIES, (start, end)))
