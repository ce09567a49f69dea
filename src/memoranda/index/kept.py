"""What was read of a database, for as long as nobody writes to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key. `most` are kept, then all are forgotten.

    `turned` is asked when somebody has written: the keys whose values may be others since it was asked last, None for
    all. Without it none outlives a change.
    """

    def __init__(
        self, db: sqlite3.Connection, most: int, turned: Callable[[], Iterable[K] | None] = lambda: None
    ) -> None:
        self._db = db
        self._most = most
        self._turned = turned
        self._mark: tuple[int, int] | None = None
        self._held: dict[K, V] = {}

    def of(self, keys: Iterable[K], read: Callable[[list[K]], Iterable[tuple[K, V]]]) -> dict[K, V]:
        """The values of those of the keys that have one, in the order of the keys; `read` gives those that are new."""
        wanted = list(dict.fromkeys(keys))
        # What is read inside a transaction may never be committed.
        if self._db.in_transaction or len(wanted) > self._most:
            found = dict(read(wanted))
            return {key: found[key] for key in wanted if key in found}
        mark = self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes
        if mark != self._mark or len(self._held) > self._most:
            turned = self._turned()  # before anything is read again: what turns meanwhile is told the next time
            if turned is None or len(self._held) > self._most:
                self._held = {}
            else:
                for key in turned:
                    self._held.pop(key, None)
            self._mark = mark
        held = self._held
        if missing := [key for key in wanted if key not in held]:
            held.update(read(missing))
        return {key: held[key] for key in wanted if key in held}
