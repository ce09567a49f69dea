"""The versions of the tables: which one a database has, whether this program understands it, and the way to the newest.

A newer version says which older programs may go on using it (`compatible.oldest`), so that nodes of both run side by
side while one after the other is replaced.
"""

from __future__ import annotations

from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection

from memoranda.errors import ConfigRefused
from memoranda.state import tables


def version(connection: Connection) -> str | None:
    """The version of the tables; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def understood(connection: Connection) -> bool:
    """Whether the tables are this program's, or newer ones that it may go on using; False where they are older.

    ConfigRefused when a newer program has written what this one would misread.
    """
    found = version(connection)
    if found == tables.HEAD:
        return True
    if found is None or found < tables.HEAD:
        return False
    oldest = None
    if inspect(connection).has_table("compatible"):
        oldest = connection.execute(text("SELECT oldest FROM compatible")).scalar()
    if oldest is not None and str(oldest) <= tables.HEAD:
        return True
    raise _foreign(found)


def upgrade(connection: Connection, to: str = "head") -> None:
    """Brings the tables to this program's version, in the transaction of the caller, who has begun a writing one.

    An older version than the newest is gone `to` in tests.
    """
    if understood(connection):
        return
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "memoranda.state:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, to)
    except CommandError as error:
        raise _foreign(version(connection)) from error


def _foreign(found: str | None) -> ConfigRefused:
    return ConfigRefused(
        "The state was written by another version.",
        why=f"Its tables are of version {found!r}, and this program knows {tables.HEAD!r}.",
        remedy="Run the newest version of Memoranda on it.",
    )
