"""The state on PostgreSQL: any number of nodes on one database, which itself keeps tenants apart.

Each transaction says and proves whose it is (`isolation`); each connection that is given back forgets all it knew.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from memoranda.errors import ConfigRefused
from memoranda.state.database import Database, not_known, refused, translated, unavailable
from memoranda.state.isolation import SCHEMA, check_role, grant, key_of, proof, register, service_of
from memoranda.state.migrating import understood, upgrade, version
from memoranda.state.tables import HEAD, PLATFORM

_PATIENCE = 15.0  # seconds that one answer of the server may take
_CONNECT = 5  # seconds until a connection stands
_POOL = 16  # connections that are kept, once so many were needed: to make one costs more than ten questions
_MOST = 32  # at most; those beyond what is kept are closed after use
_MARK = f"SELECT n FROM {SCHEMA}.changes"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# `DISCARD ALL` in its parts, as PostgreSQL's manual lists them: itself it may not stand in one message with others.
_FORGET = (
    "CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ALL; DEALLOCATE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all();"
    " DISCARD PLANS; DISCARD TEMP; DISCARD SEQUENCES"
)
_FORGOTTEN = "memoranda_forgotten"
_NAME = "memoranda"
_PROCESS = f"{_NAME} {secrets.token_hex(6)}"  # what the server calls the connections of this process
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user"
    f" AND application_name LIKE '{_NAME} %' AND application_name <> '{_PROCESS}'"
)


class PostgresDatabase(Database):
    """The state of all nodes."""

    def __init__(self, url: URL, kept: int = _POOL) -> None:
        role, password = service_of(url)
        self._url = url
        self._key = key_of(role, password)
        self._engine = create_engine(
            url,
            creator=_creator(url),
            pool_size=kept,
            max_overflow=_MOST - kept,
            pool_timeout=_CONNECT,
            pool_use_lifo=True,  # what is not needed stays unused
            pool_reset_on_return=None,
            use_native_hstore=False,
            hide_parameters=True,  # an error's text must show nobody's hashes
        )
        event.listen(self._engine, "reset", _forget)
        event.listen(self._engine, "begin", self._on_begin)
        self._watch = _Watch(_creator(url))
        try:
            with translated(), self._transaction("BEGIN READ ONLY", None) as connection:
                if not understood(connection):
                    raise refused(
                        "The database has no tables for this version yet.",
                        remedy="Let their owner make them: `memoranda db upgrade --owner postgresql+psycopg://…`.",
                    )
                check_role(connection, role)
                self._check_proof(connection)
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def begin(self, tenant: str | None = None, *, durable: bool = True) -> Iterator[Connection]:
        """As `Database.begin`; transactions of several nodes go on beside each other (READ COMMITTED)."""
        beginning = "BEGIN" if durable else "BEGIN; SET LOCAL synchronous_commit = off"
        with translated(), self._transaction(beginning, tenant) as connection:
            yield connection

    @contextmanager
    def read(self, tenant: str | None = None) -> Iterator[Connection]:
        """As `Database.read`."""
        with translated(), self._transaction(_READ, tenant) as connection:
            yield connection

    def ask(self, tenant: str | None, query: str) -> list[tuple[Any, ...]]:
        """As `Database.ask`; the transaction is one message, from its beginning to what is forgotten after it."""
        with translated():
            try:
                return self._asked(PLATFORM if tenant is None else tenant, query)
            except _Cut:  # while nobody used it, perhaps; to ask again changes nothing
                return super().ask(tenant, query)
            except psycopg.Error as error:
                raise unavailable(error) from error

    def _asked(self, tenant: str, query: str) -> list[tuple[Any, ...]]:
        held = self._engine.raw_connection()
        try:
            driver = held.driver_connection
            assert isinstance(driver, psycopg.Connection)
            try:
                told = self._telling(driver, tenant)
                cursor = driver.execute(f"{_READ}; {told}; {query}; COMMIT; {_FORGET}".encode())
            except psycopg.OperationalError as error:
                if driver.closed:
                    held.invalidate()
                    raise _Cut from error
                raise
            held.info[_FORGOTTEN] = True
            cursor.nextset()
            cursor.nextset()
            return cursor.fetchall()
        finally:
            held.close()

    def others(self) -> int:
        """As `Database.others`."""
        return int(self.ask(None, _OTHERS)[0][0])

    def mark(self) -> int:
        """As `Database.mark`; one question to the server, which threads that ask at the same time share."""
        try:
            return self._watch.mark()
        except psycopg.Error as error:
            raise unavailable(error) from error

    def beside(self, name: str) -> Database:  # noqa: ARG002 rows do not disturb each other here
        """The same database, by connections of its own."""
        return PostgresDatabase(self._url, kept=2)

    def close(self) -> None:
        """As `Database.close`."""
        self._engine.dispose()
        self._watch.close()

    @contextmanager
    def _transaction(self, beginning: str, tenant: str | None) -> Iterator[Connection]:
        with self._begun(beginning, PLATFORM if tenant is None else tenant) as connection:
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            if connection.in_transaction():
                try:
                    _run(connection, f"COMMIT; {_FORGET}")  # one message less to wait for
                except DBAPIError as error:
                    if error.connection_invalidated and beginning != _READ:
                        raise not_known() from error
                    raise
                connection.connection.info[_FORGOTTEN] = True
            connection.commit()

    def _begun(self, beginning: str, tenant: str) -> Connection:
        """A connection in a transaction of the tenant's."""
        try:
            return self._begin_once(beginning, tenant)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        return self._begin_once(beginning, tenant)  # it had been cut while nobody used it; nothing was done by it

    def _begin_once(self, beginning: str, tenant: str) -> Connection:
        connection = self._engine.connect()
        try:
            connection.execution_options(memoranda_beginning=beginning, memoranda_tenant=tenant)
            connection.begin()
        except BaseException:
            connection.close()
            raise
        return connection

    def _on_begin(self, connection: Connection) -> None:
        options = connection.get_execution_options()
        told = self.becoming(connection, options["memoranda_tenant"])
        # One message to the server, so that the tenant costs no waiting of its own.
        _run(connection, f"{options['memoranda_beginning']}; {told}")

    def become(self, connection: Connection, tenant: str | None) -> None:
        """As `Database.become`."""
        _run(connection, self.becoming(connection, PLATFORM if tenant is None else tenant))

    def becoming(self, connection: Connection, tenant: str) -> str:
        """The statement that makes the rest of a transaction, or of a savepoint in it, this tenant's."""
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        return self._telling(driver, tenant)

    def _telling(self, driver: psycopg.Connection[Any], tenant: str) -> str:
        proven = proof(self._key, driver.info.backend_pid, tenant)
        asked = "SELECT set_config('memoranda.tenant', {}, true), set_config('memoranda.proof', {}, true)"
        return sql.SQL(asked).format(tenant, proven).as_string(driver)

    def _check_proof(self, connection: Connection) -> None:
        if connection.exec_driver_sql(f"SELECT {SCHEMA}.tenant()").scalar() is None:
            raise refused(
                "The setting `database.url` is refused: its password is not the one that the database was told of.",
                why="What proves to PostgreSQL which tenant a transaction is for is made from that password.",
                remedy="Let the owner of the tables tell it: `memoranda db upgrade`.",
            )


class _Cut(Exception):
    """A connection of the pool was cut."""


class _Watch:
    """Reads the count in `changes`, by a connection of its own."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connect = connect
        self._connection: psycopg.Connection[Any] | None = None
        self._lock = threading.Lock()
        self._begun = 0  # questions that were begun, and of the last one its number and answer
        self._answered: tuple[int, int] = (0, -1)

    def mark(self) -> int:
        before = self._begun
        with self._lock:
            number, answer = self._answered
            if number > before:  # begun after this call was: as new as an answer of our own
                return answer
            self._begun += 1
            try:
                answer = self._ask()
            except psycopg.OperationalError:
                self._drop()
                answer = self._ask()  # it had been cut while nobody used it
            self._answered = (self._begun, answer)
            return answer

    def _ask(self) -> int:
        if self._connection is None:
            self._connection = self._connect()
        row = self._connection.execute(_MARK).fetchone()
        assert row is not None
        return int(row[0])

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        with self._lock:
            self._drop()


class _Bounded(psycopg.Connection[Any]):
    """A connection that waits for no answer longer than `_PATIENCE`: a server that stands still is as good as gone."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, interval, _PATIENCE if timeout is None else timeout)
        except psycopg.errors._WaitTimeout:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer within {_PATIENCE:g} seconds") from None


def _creator(url: URL) -> Callable[[], psycopg.Connection[Any]]:
    _, told = url.get_dialect()().create_connect_args(url)
    ours = {
        "search_path": SCHEMA,
        "statement_timeout": int(_PATIENCE * 900),  # ms: before we give up ourselves
        "idle_in_transaction_session_timeout": 60_000,
    }
    told = {
        "connect_timeout": _CONNECT,
        "application_name": _PROCESS,
        **told,
        "options": " ".join([told.get("options", ""), *(f"-c {name}={value}" for name, value in ours.items())]).strip(),
    }

    def connect() -> psycopg.Connection[Any]:
        # Transactions are begun by us, in words; no statement is prepared, since none outlives its transaction.
        return _Bounded.connect(autocommit=True, prepare_threshold=None, **told)

    return connect


def _forget(driver: psycopg.Connection[Any], record: ConnectionPoolEntry, _state: object) -> None:
    """What one transaction left behind, the next one does not find; one that cannot forget is closed by the pool."""
    if not record.info.pop(_FORGOTTEN, False) and not driver.closed:
        driver.rollback()
        driver.execute("DISCARD ALL")


def _run(connection: Connection, statements: str) -> None:
    connection.exec_driver_sql(statements, execution_options={"no_parameters": True, "stream_results": False})


def upgrade_as_owner(owner: str, service: str, *, alone: bool = False) -> str:
    """Makes the tables at the URL `owner`, or brings them to this version, for the role of the URL `service`; as
    whoever owns them. Gives their version. `alone`: no older program runs on them any more, nor shall one; tables that
    were not there before have none.

    ConfigRefused when the role is not there, or a newer version wrote the tables; ComponentUnavailable.
    """
    role, password = service_of(make_url(service))
    url = make_url(owner)
    _, told = url.get_dialect()().create_connect_args(url)
    told["options"] = f"{told.get('options', '')} -c search_path={SCHEMA}".strip()
    engine = create_engine(url, connect_args=told, poolclass=NullPool, use_native_hstore=False, hide_parameters=True)
    with translated(), engine.begin() as connection:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('memoranda upgrade'))")
        there = connection.execute(text("SELECT FROM pg_roles WHERE rolname = :role"), {"role": role}).first()
        if there is None:
            raise ConfigRefused(
                f"The role {role} of the setting `database.url` is not there.",
                remedy=f"Make it: CREATE ROLE {role} LOGIN PASSWORD '…' NOSUPERUSER NOBYPASSRLS;",
            )
        connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        alone = alone or version(connection) is None
        upgrade(connection)
        if alone:
            connection.execute(text("UPDATE compatible SET oldest = :head"), {"head": HEAD})
            connection.exec_driver_sql("DROP TABLE IF EXISTS sessions")  # the programs before 0007 empty it
        register(connection, key_of(role, password))
        grant(connection, role)
        return str(version(connection))
