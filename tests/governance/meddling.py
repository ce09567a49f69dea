"""Whoever can write in the audit's database, past the service: in its file, or as PostgreSQL's superuser."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from memoranda.state.database import Database
from memoranda.state.postgres import PostgresDatabase
from memoranda.state.sqlite import SqliteDatabase
from tests.postgres import connect


class Meddler:
    """Runs statements with `?` for values; rows are read by name."""

    def __init__(self, connection: sqlite3.Connection | psycopg.Connection[Any]) -> None:
        self._connection: Any = connection

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        if not isinstance(self._connection, sqlite3.Connection):
            statement = statement.replace("%", "%%").replace("?", "%s")
        done = self._connection.execute(statement, tuple(values))
        return [dict(row) for row in done.fetchall()] if done.description else []

    def one(self, statement: str, values: Sequence[object] = ()) -> Any:
        """The first value of the first row."""
        return next(iter(self.execute(statement, values)[0].values()))


@contextmanager
def meddling(database: Database) -> Iterator[Meddler]:
    if isinstance(database, SqliteDatabase):
        file = sqlite3.connect(database.path)
        file.row_factory = sqlite3.Row
        with file:
            yield Meddler(file)
        file.close()
        return
    assert isinstance(database, PostgresDatabase)
    role = re.compile(r"//[^@]*@")
    with connect(role.sub("//postgres:none@", database._url.render_as_string(False))) as server:
        server.row_factory = dict_row  # type: ignore[assignment]
        server.execute("SET search_path = memoranda")
        yield Meddler(server)


def everything_in(database: Database, folder: Path) -> bytes:
    """All that the state's files hold, or all rows of all tables."""
    if isinstance(database, SqliteDatabase):
        return b"".join(path.read_bytes() for path in folder.iterdir())
    with meddling(database) as db:
        names = [
            row["tablename"] for row in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memoranda'")
        ]
        return "\n".join(str(row) for name in names for row in db.execute(f"SELECT * FROM {name}")).encode()
