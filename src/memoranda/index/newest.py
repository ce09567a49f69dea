"""The notes of a catalog from the newest to the oldest, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.index.tables import SELECT_NOTE, note_row


def newest(catalog: Catalog, scopes: Sequence[str], before: tuple[int, str] | None, limit: int) -> list[NoteRow]:
    """At most `limit` live notes of these scopes (none: all), newest first.

    `before` is the known time (seconds) and the id of the last one that was given: what came since does not shift what
    follows it, nor does what went.
    """
    where, values = "", list[object]()
    if scopes:
        where += f" AND n.scope IN ({','.join('?' * len(scopes))})"
        values += scopes
    if before is not None:
        where += " AND (n.known_from, n.id) < (?, ?)"
        values += before
    query = f"{SELECT_NOTE}WHERE n.live = 1{where} ORDER BY n.known_from DESC, n.id DESC LIMIT ?"
    return [note_row(row) for row in catalog.db.execute(query, (*values, limit))]
