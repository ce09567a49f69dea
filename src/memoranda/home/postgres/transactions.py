"""A tenant's transactions, and what a thread does in the one that it has open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from memoranda.errors import Conflict, HomeBusy, RefMoved
from memoranda.state.database import Database, unavailable

Cursor = psycopg.Cursor[Any]
SendOne = Callable[[str, Sequence[object]], None]


class Transactions:
    """Those of one tenant in one database. Threads may share it."""

    def __init__(self, database: Database, tenant: str) -> None:
        self._database = database
        self.tenant = tenant
        self._own = threading.local()

    def _opened(self) -> Cursor | None:
        """What this thread reads in, when it has a transaction open."""
        own: Cursor | None = getattr(self._own, "cursor", None)
        return own

    def become(self, cursor: Cursor) -> None:
        """From now on this thread reads in the transaction of `cursor`, until it leaves `within`."""
        self._own.cursor = cursor

    @contextmanager
    def reading(self) -> Iterator[Cursor]:
        """A transaction to read in, or the one that this thread has open."""
        own = self._opened()
        if own is not None:
            with answered():
                yield own
            return
        with self._database.read(self.tenant) as connection, answered():
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            yield driver.cursor(binary=True)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of one statement in plain SQL, by one message; in the transaction that this thread has open, if any.

        Nothing that anybody has written may stand in it other than as hexadecimal digits.
        """
        own = self._opened()
        if own is None:
            return self._database.ask(self.tenant, query)
        with answered():
            return own.connection.execute(query.encode()).fetchall()

    @contextmanager
    def writing(self) -> Iterator[Cursor]:
        """A transaction to write in; what this thread reads meanwhile, it reads in it."""
        with self._database.begin(self.tenant) as connection, answered():
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            yield driver.cursor(binary=True)

    @contextmanager
    def within(self, cursor: Cursor) -> Iterator[None]:
        """This thread reads in the transaction of `cursor` until the end."""
        self._own.cursor = cursor
        try:
            yield
        finally:
            self._own.cursor = None


@contextmanager
def sending(cursor: Cursor) -> Iterator[SendOne]:
    """What is executed on the connection meanwhile is sent without waiting for each answer. What is given to the
    function has to change one row; RefMoved at the end when it did not."""
    sent: list[Cursor] = []

    def each_one(query: str, values: Sequence[object]) -> None:
        sent.append(cursor.connection.cursor(binary=True))
        sent[-1].execute(query.encode(), values)

    with cursor.connection.pipeline():
        yield each_one
    if any(one.rowcount != 1 for one in sent):
        raise RefMoved("Somebody else has written in the Home.", remedy="It is tried again by itself.")


@contextmanager
def answered() -> Iterator[None]:
    """The driver's errors as our own."""
    try:
        yield
    except psycopg.IntegrityError as error:
        raise Conflict("This exists already, or what it stands on is gone.", remedy="Read it again.") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        raise HomeBusy("The Home is being written all the time.", why=str(error), remedy="Try again.") from error
    except psycopg.Error as error:
        raise unavailable(error) from error
