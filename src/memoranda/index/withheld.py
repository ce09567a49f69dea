"""What the ledger withholds: content and notes that are forgotten, and notes that may not be removed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memoranda.errors import InvalidTime
from memoranda.notes.times import from_ms, parse_instant, to_ms
from memoranda.values import dataclass

SCHEMA = """
CREATE TABLE IF NOT EXISTS tombstones (
  mark TEXT PRIMARY KEY, owner TEXT, key TEXT, at INTEGER, reason TEXT, stays TEXT NOT NULL, lifted INTEGER NOT NULL,
  vouched INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS holds (
  line TEXT PRIMARY KEY, id TEXT NOT NULL, event TEXT NOT NULL, at INTEGER, user TEXT, reason TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS holds_id ON holds (id);
"""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """One thing that is forgotten: `mark` is the keyed hash of its content, or the id of a note or an entry.

    `owner` and `key` say under whose key a hash was made and which one; both are None for an id. `stays` are the ids
    of the notes and entries that say the same and were not to be forgotten.
    """

    mark: str
    owner: str | None
    key: str | None
    at: datetime | None
    reason: str | None
    stays: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold on a note that was set or released in the ledger: `event` is set or release."""

    id: str
    event: str
    at: datetime | None
    user: str | None
    reason: str | None


def tombstones(db: sqlite3.Connection) -> list[Tombstone]:
    """All that is forgotten and not allowed again."""
    query = "SELECT mark, owner, key, at, reason, stays FROM tombstones WHERE lifted = 0 ORDER BY mark"
    return [Tombstone(r[0], r[1], r[2], from_ms(r[3]), r[4], frozenset(json.loads(r[5]))) for r in db.execute(query)]


def holds(db: sqlite3.Connection, note_id: str) -> list[Hold]:
    """What was said about holding a note, oldest first."""
    query = "SELECT id, event, at, user, reason FROM holds WHERE id = ? ORDER BY at, event"
    return [Hold(r[0], r[1], from_ms(r[2]), r[3], r[4]) for r in db.execute(query, (note_id,))]


def held_ids(db: sqlite3.Connection) -> set[str]:
    """The notes about whose holding anything was said."""
    return {row[0] for row in db.execute("SELECT DISTINCT id FROM holds")}


def take_tombstone(db: sqlite3.Connection, f: Mapping[str, Any], vouched: bool) -> None:
    """A hash proves that whoever made it has the owner's key, so it counts from any installation; a lift does not."""
    lift = f.get("event") == "lift"
    if lift and not vouched:
        return
    stays = json.dumps(_texts(f, "stays"))
    common = (instant_in(f.get("at")) or 0, text_in(f, "reason"), stays, int(lift), int(vouched))
    owner = (text_in(f, "owner"), text_in(f, "key"))
    rows = [(mark, *owner, *common) for mark in _texts(f, "hashes")]
    rows += [(mark, None, None, *common) for mark in _texts(f, "ids")]
    for row in rows:
        held = db.execute("SELECT at, lifted, vouched FROM tombstones WHERE mark = ?", row[:1]).fetchone()
        if held is None or _later(row[3], vouched, lift, *held):
            db.execute("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _later(at: int, vouched: bool, lift: bool, held_at: int, lifted: int, held_vouched: int) -> bool:
    """Whether a line replaces what is known: nobody's word undoes a lift, nor keeps a person from lifting."""
    if lifted and not lift:
        return vouched and at >= held_at
    if lift and not lifted:
        return not held_vouched or at >= held_at
    return (vouched, at) >= (bool(held_vouched), held_at)


def take_hold(db: sqlite3.Connection, f: Mapping[str, Any], name: str, vouched: bool) -> None:
    event = f.get("event")
    if not isinstance(f.get("id"), str) or event not in ("set", "release") or (event == "release" and not vouched):
        return
    values = (name, f["id"], event, instant_in(f.get("at")), text_in(f, "user"), text_in(f, "reason"))
    db.execute("INSERT OR IGNORE INTO holds VALUES (?, ?, ?, ?, ?, ?)", values)


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    values = fields.get(name)
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def text_in(fields: Mapping[str, Any], name: str) -> str | None:
    """A field of a line of the ledger; None for what is no text, since anybody may have written the line."""
    value = fields.get(name)
    return value if isinstance(value, str) else None


def instant_in(value: object) -> int | None:
    """Milliseconds; None for what is no time, for the same reason."""
    try:
        return to_ms(parse_instant(value)) if isinstance(value, str) else None
    except InvalidTime:
        return None
