"""Where the lines of an audit chain are laid down: a file of SQLite's, or the database of all nodes."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import text

from memoranda.errors import MemorandaError
from memoranda.home.durable import FileLock, sync_data
from memoranda.state import tables
from memoranda.state.database import Database
from memoranda.state.sqlite import SqliteDatabase

Line = dict[str, Any]  # a row of `audit_events` by the names of `SIGNED`; `items` is a JSON array
Last = tuple[str, int, str]  # chain, seq and signature of a line

SIGNED = tuple(c.name for c in tables.audit_events.c if c.name not in ("n", "mac"))  # what the HMAC covers, in order
_COLUMNS = (*SIGNED, "mac")
_LAST = (
    "SELECT chain, seq, mac FROM every_audit_events WHERE chain = "
    "(SELECT chain FROM every_audit_events WHERE phase = 'chain' ORDER BY n DESC LIMIT 1) ORDER BY seq DESC LIMIT 1"
)
_LONG = 4 << 20  # bytes of SQLite's log from which on it is carried over in the background
_TOO_LONG = 20_000  # pages of it, 80 MB, from which on the next writer does it

FAILURES = (sqlite3.Error, OSError, MemorandaError)  # what writing and syncing raise


class Pages(Protocol):
    """Takes lines. All methods raise what is in `FAILURES`."""

    on_server: bool  # whether a failure may be one of reaching them
    left_open: bool  # whether it is not known if the last lines were written

    def write(self, lines: Callable[[Callable[[], Last | None]], Sequence[Line]], *, durable: bool) -> bool:
        """Writes in one transaction what `lines` gives; they survive a kill of the process.

        `lines` may ask where the chain that was opened last stands by now. Gives whether they are known to survive a
        loss of power too; with `durable` that is tried where it costs nothing more.
        """
        ...

    def sync(self) -> None:
        """What was written so far survives a loss of power when this returns."""
        ...

    def tidy(self) -> None:
        """What has to be done now and then, behind the writers' backs."""
        ...

    def close(self) -> None: ...


def pages_of(database: Database) -> Pages:
    """Where this database has the audit's lines."""
    return FilePages(database) if isinstance(database, SqliteDatabase) else SharedPages(database)


class FilePages:
    """The lines in a SQLite file, which all processes of a machine write."""

    on_server = False
    left_open = False

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._connection = database.raw()
        self._connection.execute("PRAGMA synchronous = NORMAL")  # lines that are waited for are synced by `sync`
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {_TOO_LONG}")  # nobody waits for it, unless it is late
        # SQLite lets processes that wait for each other sleep, up to 100 ms at a time; a lock of files wakes them.
        self._turn = FileLock(database.path.with_name(f"{database.path.name}-turn"))
        self._log: int | None = None
        self._tidying: sqlite3.Connection | None = None

    def write(self, lines: Callable[[Callable[[], Last | None]], Sequence[Line]], *, durable: bool) -> bool:  # noqa: ARG002
        connection = self._connection
        self._turn.acquire()
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                for statement, rows in _rows(lines(self._last), "?", "INSERT OR IGNORE", ""):
                    connection.executemany(statement, rows)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        finally:
            self._turn.release()
        return False

    def _last(self) -> Last | None:
        found: Last | None = self._connection.execute(_LAST).fetchone()
        return found

    def sync(self) -> None:
        if self._log is None:  # SQLite keeps this file while it has a connection
            self._log = os.open(f"{self._database.path}-wal", os.O_RDWR | os.O_CLOEXEC)
        sync_data(self._log)

    def tidy(self) -> None:
        if Path(f"{self._database.path}-wal").stat().st_size > _LONG:
            if self._tidying is None:
                self._tidying = self._database.raw()
            self._tidying.execute("PRAGMA wal_checkpoint(PASSIVE)")  # no writer waits for it

    def close(self) -> None:
        if self._log is not None:
            os.close(self._log)
        if self._tidying is not None:
            self._tidying.close()
        self._connection.close()
        self._turn.close()


class SharedPages:
    """The lines in PostgreSQL, which processes of all nodes write beside each other."""

    on_server = True

    def __init__(self, database: Database) -> None:
        self._database = database
        self.left_open = False

    def write(self, lines: Callable[[Callable[[], Last | None]], Sequence[Line]], *, durable: bool) -> bool:
        self.left_open = False
        with self._database.begin(tables.AUDIT, durable=durable) as connection:

            def last() -> Last | None:
                row = connection.execute(text(_LAST)).first()
                return None if row is None else (str(row.chain), int(row.seq), str(row.mac))

            for statement, rows in _rows(lines(last), "%s", "INSERT", " ON CONFLICT DO NOTHING"):
                connection.exec_driver_sql(statement, rows)
            self.left_open = True  # from here on a failure is one of committing
        self.left_open = False
        return durable

    def sync(self) -> None:
        # A commit that is waited for takes all before it to the disk, if it has something to write itself.
        with self._database.begin(tables.AUDIT) as connection:
            connection.execute(text("SELECT pg_logical_emit_message(true, 'memoranda', '')"))

    def tidy(self) -> None:
        pass

    def close(self) -> None:
        pass


def _rows(lines: Sequence[Line], mark: str, insert: str, conflict: str) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """The statements that write these lines, and the lists by which they are found."""
    events, items, opened, closed = [], [], [], []
    for line in lines:
        events.append(tuple(line[name] for name in _COLUMNS))
        if line["phase"] == "chain":
            continue
        if line["items"] != "[]":
            items += [(line["tenant"], item, line["id"], line["at"]) for item in json.loads(line["items"])]
        if line["phase"] == "intent":
            opened.append((line["id"], line["tenant"], line["chain"]))
        elif line["phase"] == "outcome":
            closed.append((line["id"],))
    marks = ", ".join([mark] * len(_COLUMNS))
    four, three = ", ".join([mark] * 4), ", ".join([mark] * 3)
    told = [
        (f"INSERT INTO audit_events ({', '.join(_COLUMNS)}) VALUES ({marks})", events),
        (f"{insert} INTO audit_items (tenant, item, event, at) VALUES ({four}){conflict}", items),
        (f"INSERT INTO audit_open (event, tenant, chain) VALUES ({three})", opened),
        (f"DELETE FROM audit_open WHERE event = {mark}", closed),
    ]
    return [(statement, rows) for statement, rows in told if rows]
