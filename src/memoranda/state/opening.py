"""Opens the state where its URL says that it lies."""

from __future__ import annotations

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from memoranda.state.database import Database, refused


def open_database(url: str) -> Database:
    """Opens the state at `sqlite:///path` or `postgresql+psycopg://role:password@host/database`.

    A file is made when it is not there, and its tables are brought to this version's; on PostgreSQL the owner of the
    tables does that (`memoranda db upgrade`).

    ConfigRefused when the URL names no database that can be used, one that a newer version has written, or a role that
    could see past its tenant; ComponentUnavailable when it cannot be reached.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise refused("The state's database is not a URL that can be read.") from None
    if parsed.drivername == "postgresql+psycopg":
        from memoranda.state.postgres import PostgresDatabase  # only where it is asked for: its driver takes a while

        return PostgresDatabase(parsed)
    if parsed.get_backend_name() != "sqlite":
        raise refused(f"The state cannot lie in {parsed.drivername!r} in this version.")
    if not parsed.database or parsed.database.startswith((":", "file:")):
        raise refused("The state needs a file that outlives the process.")
    from memoranda.state.sqlite import SqliteDatabase

    return SqliteDatabase(parsed.set(drivername="sqlite+pysqlite"))
