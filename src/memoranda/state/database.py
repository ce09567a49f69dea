"""The state of the service in a database: opened, brought to the newest tables, and read and written by transactions.

SQLite in WAL mode is what there is by default: readers never wait, writers wait for each other at most `_BUSY` seconds.
Every transaction names the tenant that it is for; on SQLite nothing hangs on it.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from memoranda.errors import ComponentUnavailable, ConfigRefused, Conflict
from memoranda.state import tables

_BUSY = 10  # seconds that a writer waits for another one
_POOL = 8
_MORE = 56  # connections beyond the pool, closed after use: no thread of a server's pool waits for one
_HEADER = 48  # bytes at the head of SQLite's WAL index; every commit changes them


def open_database(url: str) -> Database:
    """Opens the state at `sqlite:///path`, makes it when it is not there, and brings its tables to this version's.

    ConfigRefused when the URL names no database that can be used, or one that a newer version has written;
    ComponentUnavailable when it cannot be reached.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _refused("The state's database is not a URL that can be read.") from None
    if parsed.get_backend_name() != "sqlite":
        raise _refused(f"The state cannot lie in {parsed.get_backend_name()!r} in this version.")
    if not parsed.database or parsed.database.startswith((":", "file:")):
        raise _refused("The state needs a file that outlives the process.")
    return Database(parsed.set(drivername="sqlite+pysqlite"))


class Database:
    """The state, shared by all threads of a process; made by `open_database`."""

    def __init__(self, url: URL) -> None:
        self._url = url
        self.path = Path(url.database or "").absolute()
        _make_private(self.path)
        self._engine = create_engine(
            url.set(database=str(self.path)),
            connect_args={"timeout": _BUSY, "check_same_thread": False},
            pool_size=_POOL,
            max_overflow=_MORE,
            hide_parameters=True,  # an error's text must show nobody's hashes
        )
        event.listen(self._engine, "connect", _on_connect)
        event.listen(self._engine, "begin", _on_begin)
        self._writing = self._engine.execution_options(memoranda_writing=True)
        try:
            with _translated():
                _bring_up(self._engine, self._writing)
            self._watch = _Watch(self.path)
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def begin(self, tenant: str | None = None) -> Iterator[Connection]:  # noqa: ARG002 where a database can enforce it
        """One writing transaction for a tenant (None: for the platform), durable when it ends without an error.

        Conflict when what is written exists already; ComponentUnavailable when the database does not take it in time.
        """
        with _translated(), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def changing(self, tenant: str | None = None) -> Iterator[Connection]:
        """A writing transaction that changes who may do what: every process sees it at once, by `mark`."""
        with self.begin(tenant) as connection:
            connection.execute(tables.changes.update().values(n=tables.changes.c.n + 1))
            yield connection

    @contextmanager
    def read(self, tenant: str | None = None) -> Iterator[Connection]:  # noqa: ARG002
        """One snapshot to read from; waits for no writer."""
        with _translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    def mark(self) -> int:
        """A number that differs after each `changing`, of whichever process. Costs less than a microsecond."""
        return self._watch.mark()

    def beside(self, name: str) -> Database:
        """Another database for what is written so often that it would be in the way here: a file beside this one."""
        return Database(self._url.set(database=str(self.path.with_name(f"{self.path.stem}-{name}{self.path.suffix}"))))

    def raw(self) -> sqlite3.Connection:
        """A connection of the driver's own, for statements by the thousand; the caller closes it."""
        return _connected(self.path)

    def ready(self) -> None:
        """ComponentUnavailable when the database cannot be read."""
        with self.read() as connection:
            connection.execute(text("SELECT 1"))

    def close(self) -> None:
        """Gives all connections back; nothing is lost when this is never called."""
        self._engine.dispose()
        self._watch.close()

    def __enter__(self) -> Database:
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


class _Watch:
    """Tells when the count in `changes` has moved, without asking the database each time.

    Every commit of every process changes the head of the WAL index, which SQLite keeps in a file that all processes
    map. While it stays as it was, so does the count. The connection keeps SQLite from deleting that file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection = _connected(path)
        self._count()
        self._index = _map_index(path)
        self._seen: tuple[bytes, int] = (b"", -1)

    def mark(self) -> int:
        head = self._index[:_HEADER]  # before the count: a commit in between is seen the next time
        seen = self._seen
        if seen[0] != head:
            with _translated(), self._lock:
                seen = self._seen = (head, self._count())
        return seen[1]

    def _count(self) -> int:
        count: int = self._connection.execute("SELECT n FROM changes").fetchone()[0]
        return count

    def close(self) -> None:
        """After every other connection to the file."""
        with self._lock:
            self._connection.close()
            _unmap_index(self._path)


# To close any descriptor of a file is, by POSIX, to give up all locks that the process has on it, SQLite's too; and a
# process that finds no locks takes itself for the first one and empties the WAL index. So a WAL index is opened once
# for all that use it in this process, and closed when nobody here has the database open any more.
_mapped: dict[Path, tuple[mmap.mmap, int, int]] = {}  # path -> the map, its descriptor, by how many it is used
_mapping = threading.Lock()


def _map_index(path: Path) -> mmap.mmap:
    with _mapping:
        if path not in _mapped:
            descriptor = os.open(f"{path}-shm", os.O_RDONLY | os.O_CLOEXEC)
            _mapped[path] = (mmap.mmap(descriptor, _HEADER, access=mmap.ACCESS_READ), descriptor, 0)
        index, descriptor, used = _mapped[path]
        _mapped[path] = (index, descriptor, used + 1)
    return index


def _unmap_index(path: Path) -> None:
    with _mapping:
        index, descriptor, used = _mapped.pop(path)
        if used > 1:
            _mapped[path] = (index, descriptor, used - 1)
        else:
            index.close()
            os.close(descriptor)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
    _on_connect(connection, None)
    return connection


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # acknowledged means durable


def _on_begin(connection: Connection) -> None:
    # A transaction that reads first and writes later could not wait for another writer: it says at once what it is.
    writing = connection.get_execution_options().get("memoranda_writing")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _bring_up(reading: Engine, writing: Engine) -> None:
    with reading.connect() as connection, connection.begin():
        if _version(connection) == tables.HEAD:
            return
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    with writing.begin() as connection:  # of several processes that open it, one does it and the others wait
        if _version(connection) == tables.HEAD:
            return
        config = Config()
        config.set_main_option("script_location", "memoranda.state:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise _refused(
                "The state was written by another version.", f"Its tables are of version {_version(connection)!r}."
            ) from error


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _make_private(path: Path) -> None:
    """The file, readable by its owner only; SQLite gives the files beside it the same rights."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():  # one that is open here is not touched: closing it again would give up SQLite's locks
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise _refused("The state's file cannot be opened for writing.", f"{path}: {error.strerror}.") from error


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError) as error:
        raise Conflict(
            "This exists already, or what it stands on is gone.",
            remedy="Read it again, then repeat the change.",
        ) from error
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise ComponentUnavailable(
            "The service's state cannot be read or written.",
            why=f"The database reports {type(error).__name__}.",
            remedy="Nothing was changed; try again, and look at the database's disk and locks if it stays so.",
        ) from error


def _refused(what: str, why: str = "") -> ConfigRefused:
    return ConfigRefused(what, why=why, remedy="Set `state.url` to `sqlite:////absolute/path/state.db`.")
