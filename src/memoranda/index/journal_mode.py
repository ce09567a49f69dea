"""One way to open a cache in SQLite that several processes may open at once."""

from __future__ import annotations

import sqlite3
import time

_TRIES = 250


def write_ahead(db: sqlite3.Connection) -> None:
    """Sets the journal mode. SQLite does not wait here for another process that opens the same fresh file."""
    for left in reversed(range(_TRIES)):
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if left == 0 or "locked" not in str(error):
                raise
            time.sleep(0.02)
