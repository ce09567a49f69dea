"""Whose retention has ended, as far as it may be believed.

A note that a person accepted ends by what the accepted bytes say: an edit that nobody reviewed, or an agent's, can make
a note live longer or shorter in its file, and takes nothing away from what was reviewed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from memoranda.index import retention
from memoranda.index.catalog import Catalog
from memoranda.index.retention import Ended
from memoranda.trust.reviews import reviewed_blobs

_ROWS = "SELECT blob, known_from, retention_days, retention_class FROM notes WHERE id = ? ORDER BY row"


def ended(catalog: Catalog, now: datetime, ids: Iterable[str] | None = None) -> dict[str, Ended]:
    """The notes whose retention has ended by `now`: of all, or of these ids."""
    found = retention.ended(catalog.db, now, ids)
    if not found or not catalog.ledger.has_reviews():
        return found
    checked = ((note_id, _reviewed(catalog, item)) for note_id, item in found.items())
    return {note_id: item for note_id, item in checked if item is not None and item.at <= now}


def _reviewed(catalog: Catalog, found: Ended) -> Ended | None:
    rows = catalog.db.execute(_ROWS, (found.id,)).fetchall()
    accepted = reviewed_blobs(catalog, (row[0] for row in rows))
    if not accepted:
        return found
    stands = [row for row in rows if row[0] in accepted]
    days = [row[2] for row in stands if row[2] is not None]
    if not days:
        return None
    since = datetime.fromtimestamp(min(row[1] for row in rows), tz=found.at.tzinfo)
    return Ended(found.id, since + timedelta(days=min(days)), any(row[3] == "erase_history" for row in stands))
