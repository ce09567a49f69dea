"""Whose retention has ended, as far as it may be believed.

A note that a person accepted ends by what the accepted bytes say: an edit that nobody reviewed, or an agent's, can make
a note live longer or shorter in its file, and takes nothing away from what was reviewed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from memoranda.index import retention
from memoranda.index.catalog import Catalog
from memoranda.index.retention import Ended
from memoranda.trust.reviews import reviewed_blobs

_ROWS = "SELECT blob, known_from, retention_days, retention_class FROM notes WHERE id = ? ORDER BY row"


def ended(catalog: Catalog, now: datetime, ids: Iterable[str] | None = None) -> dict[str, Ended]:
    """The notes whose retention has ended by `now`: of all, or of these ids."""
    found = retention.ended(catalog.db, now, ids, catalog.keep_days)
    if not found or not catalog.ledger.has_reviews():
        return found
    checked = ((note_id, _reviewed(catalog, item)) for note_id, item in found.items())
    return {note_id: item for note_id, item in checked if item is not None and item.at <= now}


def overdue(catalog: Catalog, now: datetime, limits: Mapping[str, int]) -> dict[str, Ended]:
    """The notes that are older than their writers may keep anything: `limits` is agent -> days; "" is all others."""
    if not limits:
        return {}
    old = retention.ended(catalog.db, now, None, min(limits.values()))
    rows = [row for note_id in old for row in catalog.by_id(note_id)]
    wrote = catalog.ledger.wrote(row.blob for row in rows)
    since: dict[str, datetime] = {}
    for row in rows:
        since[row.id] = min(row.known_from, since.get(row.id, row.known_from))
    found: dict[str, Ended] = {}
    for row in rows:
        line = wrote.get(row.blob)
        days = limits.get(line.agent or "", limits.get("")) if line is not None and line.vouched else None
        if days is not None and (at := since[row.id] + timedelta(days=days)) <= now:
            found[row.id] = Ended(row.id, at, False)
    return found


def _reviewed(catalog: Catalog, found: Ended) -> Ended | None:
    rows = catalog.db.execute(_ROWS, (found.id,)).fetchall()
    accepted = reviewed_blobs(catalog, (row[0] for row in rows))
    if not accepted:
        return found
    stands = [row for row in rows if row[0] in accepted]
    days = [row[2] for row in stands if row[2] is not None]
    if catalog.keep_days is not None:  # whatever a person has accepted
        days.append(catalog.keep_days)
    if not days:
        return None
    since = datetime.fromtimestamp(min(row[1] for row in rows), tz=found.at.tzinfo)
    return Ended(found.id, since + timedelta(days=min(days)), any(row[3] == "erase_history" for row in stands))
