"""The state in one file: SQLite in WAL mode, where readers never wait and writers wait for each other.

Every transaction names the tenant that it is for; here nothing hangs on it.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import create_engine, event
from sqlalchemy.engine import URL, Connection, Engine

from memoranda.state.database import Database, refused, translated
from memoranda.state.migrating import understood, upgrade

_BUSY = 10  # seconds that a writer waits for another one
_POOL = 8
_MORE = 56  # connections beyond the pool, closed after use: no thread of a server's pool waits for one
_HEADER = 48  # bytes at the head of SQLite's WAL index; every commit changes them


class SqliteDatabase(Database):
    """The state in a file."""

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
            with translated():
                _bring_up(self._engine, self._writing)
            self._watch = _Watch(self.path)
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def begin(self, tenant: str | None = None, *, durable: bool = True) -> Iterator[Connection]:  # noqa: ARG002
        """As `Database.begin`; durable in any case."""
        with translated(), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def read(self, tenant: str | None = None) -> Iterator[Connection]:  # noqa: ARG002
        """As `Database.read`."""
        with translated(), self._engine.connect() as connection, connection.begin():
            yield connection

    def mark(self) -> int:
        """As `Database.mark`; costs less than a microsecond."""
        return self._watch.mark()

    def beside(self, name: str) -> SqliteDatabase:
        """A file beside this one."""
        path = self.path.with_name(f"{self.path.stem}-{name}{self.path.suffix}")
        return SqliteDatabase(self._url.set(database=str(path)))

    def raw(self) -> sqlite3.Connection:
        """A connection of the driver's own, for statements by the thousand; the caller closes it."""
        return _connected(self.path)

    def close(self) -> None:
        """As `Database.close`."""
        self._engine.dispose()
        self._watch.close()


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
            with translated(), self._lock:
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
        if understood(connection):
            return
    with writing.begin() as connection:  # of several processes that open it, one does it and the others wait
        upgrade(connection)


def _make_private(path: Path) -> None:
    """The file, readable by its owner only; SQLite gives the files beside it the same rights."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():  # one that is open here is not touched: closing it again would give up SQLite's locks
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise refused("The state's file cannot be opened for writing.", f"{path}: {error.strerror}.") from error
