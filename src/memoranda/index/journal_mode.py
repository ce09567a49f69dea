"""One way to open a cache in SQLite that several processes may open at once, and to name what goes wrong with it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.errors import IndexBusy, IndexDamaged, MemorandaError, Unavailable

PATIENCE = 60.0  # seconds for which another process that writes is waited for
_PAUSE = 0.02


def open_cache(path: Path, schema: str, form: int, what: str) -> sqlite3.Connection:
    """The file, made with this schema where there is none; `form` is its format, `what` its name in errors.

    Raises:
        IndexDamaged: it cannot be read, or has another format.
        IndexBusy, Unavailable: another process holds it, or it cannot be used now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with named_errors(what):
        db = connect(path)
        try:
            write_ahead(db)
            # A killed process loses nothing by OFF; a power cut may damage the file, and NORMAL costs one sync
            # a checkpoint against it.
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA journal_size_limit=4194304")
            if db.execute("PRAGMA user_version").fetchone()[0] != form:
                _create(db, schema, form)
        except sqlite3.Error:
            db.close()
            raise
    return db


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for others, begins no transaction by itself, and may go from thread to thread."""
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=512)


def write_ahead(db: sqlite3.Connection) -> None:
    """Sets the journal mode. SQLite does not wait here for another process that opens the same fresh file."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE)


def _create(db: sqlite3.Connection, schema: str, form: int) -> None:
    db.execute("BEGIN EXCLUSIVE")
    if db.execute("PRAGMA user_version").fetchone()[0] == form:
        db.execute("COMMIT")  # another process was first
        return
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        db.execute("ROLLBACK")
        raise sqlite3.DatabaseError("it has another format")
    for statement in schema.split(";"):
        if statement.strip():
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {form}")
    db.execute("COMMIT")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """One change of a cache: all that is done inside it, or nothing when it raises."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_PASSING = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")


@contextmanager
def named_errors(what: str) -> Iterator[None]:
    """Errors of SQLite as ours: IndexBusy, Unavailable for what else will pass; the rest says that it is damaged."""
    try:
        yield
    except sqlite3.Error as error:
        if _is_busy(error):
            raise IndexBusy(
                f"{what} is busy.",
                why=f"Another process has been writing to it for more than {PATIENCE:.0f} seconds.",
                remedy="Try again when it has finished; nothing is damaged.",
            ) from error
        if _name(error).startswith(_PASSING):
            raise Unavailable(
                f"{what} cannot be used at the moment.",
                why=f"The system says: {error}.",
                remedy="Look whether the disk is full and its folder may be written, then try again; nothing is lost.",
            ) from error
        raise damaged(what, str(error)) from error


def named(error: BaseException) -> MemorandaError | None:
    """What an error of SQLite says of the index that was asked; None when it tells of a defect, or is another's."""
    if not isinstance(error, sqlite3.Error):
        return None
    try:
        with named_errors("An index"):
            raise error
    except IndexDamaged as told:
        return told if is_broken(told) else None
    except MemorandaError as told:
        return told


def is_broken(error: IndexDamaged) -> bool:
    """Whether SQLite said that the file itself is broken, and not that something could not be asked of it.

    A table that is missing is one: somebody deleted the file while it was being made.
    """
    cause = error.__cause__
    told = _name(cause) if isinstance(cause, sqlite3.Error) else "SQLITE_CORRUPT"
    return told.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or any(
        word in str(cause) for word in ("decode", "no such table")
    )


def _is_busy(error: sqlite3.Error) -> bool:
    return _name(error).startswith(_BUSY)


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


def damaged(what: str, why: str) -> IndexDamaged:
    return IndexDamaged(
        f"{what} cannot be read.", why=why, remedy="Run `memoranda index rebuild`: an index is a cache."
    )
