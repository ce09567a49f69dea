"""What the catalog has from the log and not yet from a commit: known rows, that can be taken back.

When the commits between two states of the branch are taken in, some of them are records that came from the log before.
They must not come a second time, and what a person committed between them must stand between them, as it would if the
catalog were made anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

from memoranda.index.version import Version

SCHEMA = """
CREATE TABLE IF NOT EXISTS pending (path TEXT NOT NULL, seq INTEGER NOT NULL, row INTEGER);
CREATE INDEX IF NOT EXISTS pending_path ON pending (path);
"""


class Pending:
    """The files, and the rows of notes, that came from records behind the commit that the catalog reflects."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, path: str, seq: int, row: int | None = None) -> None:
        """Record `seq` changed this file; the row is what it made of a note."""
        self._db.execute("INSERT INTO pending VALUES (?, ?, ?)", (path, seq, row))

    def confirm(self, seq: int) -> None:
        """The records up to `seq` are in the commit that the catalog reflects."""
        later = self._db.execute("SELECT 1 FROM pending WHERE seq > ? LIMIT 1", (seq,)).fetchone()
        if later is None:
            self._db.execute("DELETE FROM pending")  # without a condition the table is emptied at one stroke
        else:
            self._db.execute("DELETE FROM pending WHERE seq <= ?", (seq,))

    def paths(self, seq: int) -> set[str]:
        """The files that records up to `seq` changed."""
        return {row[0] for row in self._db.execute("SELECT DISTINCT path FROM pending WHERE seq <= ?", (seq,))}

    def confirm_steps(self, path: str, held: str | None, steps: Sequence[Version]) -> None:
        """The first pending rows of a path, as many as these steps made, are in the commit that is taken in."""
        count = len(_made(held, steps))
        query = "SELECT p.rowid FROM pending p JOIN notes n ON n.row = p.row WHERE n.path = ? ORDER BY n.row LIMIT ?"
        for (row,) in self._db.execute(query, (path, count)).fetchall():
            self._db.execute("DELETE FROM pending WHERE rowid = ?", (row,))

    def says(self, path: str, held: str | None, steps: Sequence[Version]) -> bool:
        """Whether the pending rows of a path are just what these steps make of a file that held the blob `held`."""
        wanted = _made(held, steps)
        query = (
            "SELECT n.blob, n.known_from FROM pending p JOIN notes n ON n.row = p.row WHERE n.path = ? ORDER BY n.row"
        )
        return wanted == self._db.execute(query, (path,)).fetchall()

    def take_back(self, path: str, held: str | None, feed: Callable[[str], None]) -> None:
        """The path is again as it was at the commit that the catalog reflects, where it held the blob `held`."""
        query = "SELECT n.row, n.key FROM pending p JOIN notes n ON n.row = p.row WHERE n.path = ?"
        gone = self._db.execute(query, (path,)).fetchall()
        self._db.execute("DELETE FROM pending WHERE path = ?", (path,))
        for row, _ in gone:
            for table in ("notes", "edges"):
                self._db.execute(f"DELETE FROM {table} WHERE row = ?", (row,))
        keys = [key for _, key in gone]
        if held is None:
            self._db.execute("DELETE FROM files WHERE path = ?", (path,))
        else:
            last = self._db.execute(
                "SELECT max(row), key FROM notes WHERE path = ? AND blob = ?", (path, held)
            ).fetchone()
            self._db.execute("UPDATE notes SET live = 1, known_to = NULL WHERE row = ?", (last[0],))
            self._db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, 0)", (path, held))
            keys += [last[1]] if last[1] else []
        for key in dict.fromkeys(keys):
            feed(key)


def _made(held: str | None, steps: Sequence[Version]) -> list[tuple[str, int]]:
    """The rows (blob, known from) that these steps make of a file that held the blob `held`."""
    made: list[tuple[str, int]] = []
    for step in steps:
        if step.blob is not None and step.blob != held:
            made.append((step.blob, int(step.at.timestamp())))
        held = step.blob
    return made
