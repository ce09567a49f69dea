"""The state of the service in a database: opened, brought to the newest tables, and read and written by transactions.

Every transaction names the tenant that it is for. On SQLite nothing hangs on it; on PostgreSQL the database itself
gives a transaction no row of another tenant.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Self

from sqlalchemy import Table, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from memoranda.errors import ComponentUnavailable, ConfigRefused, Conflict, InvalidInput
from memoranda.state import tables


class Database(ABC):
    """The state, shared by all threads of a process; made by `opening.open_database`."""

    def others(self) -> int:
        """How many connections other processes of the service have open here, as far as that can be known."""
        return 0

    @abstractmethod
    def begin(self, tenant: str | None = None, *, durable: bool = True) -> AbstractContextManager[Connection]:
        """One writing transaction for a tenant (None: for the platform), durable when it ends without an error.

        What is not to be `durable` outlives this process when it ends, and the machine's power a little later.

        Conflict when what is written exists already; ComponentUnavailable when the database does not take it in time.
        """

    @abstractmethod
    def read(self, tenant: str | None = None) -> AbstractContextManager[Connection]:
        """One snapshot to read from; waits for no writer."""

    def ask(self, tenant: str | None, query: str) -> list[tuple[Any, ...]]:
        """The rows of one statement in plain SQL that only reads: a transaction of the tenant's with nothing else."""
        with self.read(tenant) as connection:
            told = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
            return [tuple(row) for row in told.all()]

    @contextmanager
    def changing(self, tenant: str | None = None) -> Iterator[Connection]:
        """A writing transaction that changes who may do what: every process sees it at once, by `mark`.

        One follows the other, on whichever node: what is read in it is not changed before it ends.
        """
        with self.begin(tenant) as connection:
            connection.execute(tables.changes.update().values(n=tables.changes.c.n + 1))
            yield connection

    def become(self, connection: Connection, tenant: str | None) -> None:  # noqa: B027
        """Makes the rest of a transaction another tenant's, for what concerns several and has to happen as one."""

    @abstractmethod
    def mark(self) -> int:
        """A number that differs after each `changing`, of whichever process."""

    @abstractmethod
    def beside(self, name: str) -> Database:
        """Where that lies which is written so often that it would be in the way here; the caller closes it."""

    def ready(self) -> None:
        """ComponentUnavailable when the database cannot be read."""
        with self.read() as connection:
            connection.execute(text("SELECT 1"))

    @abstractmethod
    def close(self) -> None:
        """Gives all connections back; nothing is lost when this is never called."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Remembered:
    """What was read from the state and still holds: forgotten as soon as anybody changes who may do what."""

    def __init__(self, database: Database, most: int = 20_000) -> None:
        self._database = database
        self._most = most
        self._held: tuple[int, dict[Any, Any]] = (-1, {})

    def now(self) -> dict[Any, Any]:
        """The values that hold at this moment. What is read from the state after this call may be put into it."""
        mark = self._database.mark()  # before anything is read: what is remembered is at least as new as its mark
        held = self._held
        if held[0] != mark or len(held[1]) > self._most:
            held = self._held = (mark, {})
        return held[1]


def insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that can say what happens `on_conflict_…`, in the words of the database."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


@contextmanager
def translated() -> Iterator[None]:
    """What the database says, as our own errors."""
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError) as error:
        raise Conflict(
            "This exists already, or what it stands on is gone.",
            remedy="Read it again, then repeat the change.",
        ) from error
    except DataError as error:
        raise InvalidInput("There is a character in a name that no name has.", remedy="Leave it out.") from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise unavailable(error) from error


def unavailable(error: BaseException) -> ComponentUnavailable:
    """What a driver's error means for whoever wanted something of the state."""
    driver = getattr(error, "orig", None) or error
    return ComponentUnavailable(
        "The service's state cannot be read or written.",
        why=f"The database reports {type(driver).__name__}.",
        remedy="Nothing was changed; try again, and look at the database's disk and locks if it stays so.",
    )


def not_known() -> ComponentUnavailable:
    """For a change whose end the database did not confirm: it had been told to commit."""
    return ComponentUnavailable(
        "It is not known whether this was written.",
        why="The database went away while it was being committed.",
        remedy="Look for it before you repeat it.",
    )


def refused(what: str, why: str = "", remedy: str = "") -> ConfigRefused:
    """A setting of the state's that cannot stand."""
    remedy = remedy or (
        "Set `database.url` to `sqlite:////absolute/path/state.db` or `postgresql+psycopg://role:password@host/name`."
    )
    return ConfigRefused(what, why=why, remedy=remedy)
