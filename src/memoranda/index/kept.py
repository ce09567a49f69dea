"""What was read of a database, for as long as nobody writes to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Moment:
    """One moment of a database, for who reads several things that have to fit together."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._since: int | None = None  # the changes of this connection before the moment that it is in

    @contextmanager
    def steady(self) -> Iterator[None]:
        """All that is read inside is of one moment, whatever others write. Inside a transaction it is that one's."""
        inside = self._db.in_transaction
        if not inside:
            self._db.execute("BEGIN")
            self._since = self._db.total_changes
        try:
            yield
        finally:
            if not inside:
                self._since = None
                if self._db.in_transaction:
                    self._db.execute("COMMIT")

    def may_be_undone(self) -> bool:
        """Whether what is read now may never be committed: in a transaction that is not known to have only read."""
        return self._db.in_transaction and self._db.total_changes != self._since


class Kept(Generic[K, V]):
    """Values by key. `most` are kept, then all are forgotten.

    `turned` is asked when somebody has written: the keys whose values may be others since it was asked last, None for
    all. Without it none outlives a change. `moment` is the connection's.
    """

    def __init__(
        self, db: sqlite3.Connection, most: int, turned: Callable[[], Iterable[K] | None] = lambda: None, *,
        moment: Moment,
    ) -> None:  # fmt: skip
        self._db = db
        self._moment = moment
        self._most = most
        self._turned = turned
        self._mark: tuple[int, int] | None = None
        self._held: dict[K, V] = {}

    def of(self, keys: Iterable[K], read: Callable[[list[K]], Iterable[tuple[K, V]]]) -> dict[K, V]:
        """The values of those of the keys that have one, in the order of the keys; `read` gives those that are new."""
        wanted = list(dict.fromkeys(keys))
        if self._moment.may_be_undone() or len(wanted) > self._most:
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
