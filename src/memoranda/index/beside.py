"""How a content index stands beside a catalog that it has not followed, found out some documents at a time.

A million keys at once would take hundreds of megabytes; in the order of the catalog's rows their texts lie side by
side as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from memoranda.index.among import among
from memoranda.index.catalog import Catalog

_BATCH = 2000  # rows
# What is forgotten of a journal keeps its place in the catalog, and no words.
_ROWS = (
    "SELECT row, key, live FROM notes WHERE row > ? ORDER BY row LIMIT ?",
    "SELECT row, key, 1 FROM entries WHERE row > ? AND text != '' ORDER BY row LIMIT ?",
)


class Beside:
    """What an index that holds the keys `held` has to do to become like `catalog`.

    When `missing` has come to its end, `again` are the documents that it holds and that are live, `gone` those that it
    holds and the catalog does not.
    """

    def __init__(self, catalog: Catalog, held: set[str]) -> None:
        self._catalog = catalog
        self._former: dict[str, None] = {}
        self.again: list[str] = []
        self.gone = held

    def missing(self) -> Iterator[str]:
        """The documents, former states among them, that it does not hold; some may be named twice."""
        for query in _ROWS:
            last = 0
            while rows := self._catalog.db.execute(query, (last, _BATCH)).fetchall():
                last = rows[-1][0]
                for _, key, live in rows:
                    if not live:
                        self._former[key] = None
                    if key not in self.gone:
                        yield key
                        continue
                    self.gone.remove(key)
                    if live:
                        self.again.append(key)

    def former(self) -> list[str]:
        """Of what `missing` has come by, the documents that are kept for history only."""
        live = {
            key
            for table, condition in (("notes", "live = 1"), ("entries", "text != ''"))
            for (key,) in among(
                self._catalog.db, f"SELECT key FROM {table} WHERE {condition} AND key IN (?*)", self._former
            )
        }
        return [key for key in self._former if key not in live]
