"""How long notes are kept, and which are held: as every state of their files says together, not only the last one.

A note counts from the moment in which it was known first. Of several retentions the shortest wins, so that an edit
makes no note live longer; a hold that a file once showed stands until a person releases it, whatever the file says now.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from memoranda.index.among import among
from memoranda.index.withheld import held_ids, holds
from memoranda.values import dataclass

_DAY = 86_400
_SPAN = (
    "SELECT id, min(known_from), min(retention_days), max(retention_class = 'erase_history') FROM notes WHERE {}"
    " GROUP BY id HAVING min(retention_days) IS NOT NULL AND min(known_from) + min(retention_days) * 86400 <= ?"
)
_AT_MOST = (
    "SELECT id, min(known_from), min(coalesce(min(retention_days), {most}), {most}),"
    " max(retention_class = 'erase_history') FROM notes WHERE {{}}"
    " GROUP BY id HAVING min(known_from) + min(coalesce(min(retention_days), {most}), {most}) * 86400 <= ?"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A note whose retention has ended: when, and whether its class asks for its history to go with it."""

    id: str
    at: datetime
    erase_history: bool


def any_retention(db: sqlite3.Connection) -> bool:
    """Whether any note here is kept for a time only: most questions about it end with this."""
    return db.execute("SELECT 1 FROM notes WHERE retention_days IS NOT NULL LIMIT 1").fetchone() is not None


def ended(
    db: sqlite3.Connection, now: datetime, ids: Iterable[str] | None = None, most: int | None = None
) -> dict[str, Ended]:
    """The notes whose retention has ended by `now`: of all, or of these ids. `most`: the days that any is kept."""
    if most is None and not any_retention(db):
        return {}
    at = int(now.timestamp())
    span = _SPAN if most is None else _AT_MOST.format(most=int(most))
    if ids is None:
        where = "id IN (SELECT id FROM notes WHERE retention_days IS NOT NULL)" if most is None else "1"
        return _read(db.execute(span.format(where), (at,)))
    return _read(among(db, span.format("id IN (?*)"), ids, at))


def _read(rows: Iterable[tuple[str, int, int, int | None]]) -> dict[str, Ended]:
    return {
        note_id: Ended(note_id, datetime.fromtimestamp(known + days * _DAY, UTC), bool(erase))
        for note_id, known, days, erase in rows
    }


def gone_with(supersedes: Mapping[str, Iterable[str]], gone: Iterable[str]) -> set[str]:
    """These notes and all that they supersede, at any distance: no predecessor comes back to life."""
    found: set[str] = set()
    todo = list(gone)
    while todo:
        now = todo.pop()
        if now not in found:
            found.add(now)
            todo += supersedes.get(now, ())
    return found


def held(db: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Those of these notes that are under legal hold, in their order."""
    wanted = list(dict.fromkeys(ids))
    told = held_ids(db)
    shown = {row[0] for row in db.execute("SELECT DISTINCT id FROM notes WHERE legal_hold = 1")}
    return [note_id for note_id in wanted if note_id in (told | shown) and _is_held(db, note_id)]


def _is_held(db: sqlite3.Connection, note_id: str) -> bool:
    """The last event counts: a file that begins to show the hold, a line that sets it, a person's release."""
    events: list[tuple[float, int, bool]] = []
    before: dict[str, bool] = {}
    query = "SELECT path, known_from, legal_hold FROM notes WHERE id = ? ORDER BY row"
    for path, known_from, flag in db.execute(query, (note_id,)):
        if flag and not before.get(path):
            events.append((float(known_from), 0, True))
        before[path] = bool(flag)
    for hold in holds(db, note_id):
        events.append((hold.at.timestamp() if hold.at else 0.0, 1, hold.event == "set"))
    return bool(events) and max(events)[2]
