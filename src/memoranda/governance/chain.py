"""The chain of audit lines that one process writes, and the tip that shows where it ended.

Each line bears an HMAC over the line before it and itself, under a key that lies outside the database: whoever can
write in the database can neither change a line nor add one. What the HMAC cannot show, lines missing at the end, the
tip shows: a small signed file beside the key, which names the newest line, and the newest that is known to be on the
disk. It is locked while its process lives, so that others know whose intents have come to nothing.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import ComponentUnavailable
from memoranda.home.durable import FileLock, sync_data
from memoranda.home.keys import Keys, fingerprint
from memoranda.state import tables
from memoranda.state.database import Database
from memoranda.state.sqlite import SqliteDatabase
from memoranda.values import dataclass

OWNER = "service"
SIGNED = tuple(c.name for c in tables.audit_events.c if c.name not in ("n", "mac"))  # what the HMAC covers, in order
_COLUMNS = (*SIGNED, "mac")
_INSERT = f"INSERT INTO audit_events ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_ITEM = "INSERT OR IGNORE INTO audit_items (tenant, item, event, at) VALUES (?, ?, ?, ?)"
_OPEN = "INSERT INTO audit_open (event, tenant, chain) VALUES (?, ?, ?)"
_CLOSE = "DELETE FROM audit_open WHERE event = ?"
_LAST = (
    "SELECT chain, seq, mac FROM audit_events WHERE chain = "
    "(SELECT chain FROM audit_events WHERE phase = 'chain' ORDER BY n DESC LIMIT 1) ORDER BY seq DESC LIMIT 1"
)
_LONG = 4 << 20  # bytes of the database's log from which on it is carried over in the background
_TOO_LONG = 20_000  # pages of it, 80 MB, from which on the next writer does it
_KEEP = 1.0  # seconds after which a line that nobody waits for is on the disk, and under the tip

Line = dict[str, Any]  # a row of `audit_events` by the names of `SIGNED`; `items` is a JSON array


def signature(key: bytes, before: str, line: Mapping[str, Any]) -> str:
    """What vouches for a line behind the one whose signature is `before` ("" for the first of a chain)."""
    told = {name: line[name] for name in SIGNED if line[name] is not None}
    body = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return hmac.digest(key, f"{before}\n{body}".encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


class Chain:
    """One process's chain, in `database`; opened by its first line. `told` is given every line that was written."""

    def __init__(self, database: Database, keys: Keys, name: str, told: Callable[[list[Line]], None]) -> None:
        assert isinstance(database, SqliteDatabase)
        self.name = name
        self._key = keys.get("audit", OWNER)
        self._told = told
        self._database = database
        self._connection = database.raw()
        self._connection.execute("PRAGMA synchronous = NORMAL")  # lines that are waited for are synced by `_sync`
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {_TOO_LONG}")  # nobody waits for it, unless it is late
        # SQLite lets processes that wait for each other sleep, up to 100 ms at a time; a lock of files wakes them.
        self._turn = FileLock(database.path.with_name(f"{database.path.name}-turn"))
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket] = deque()
        self._newest: tuple[int, str] = (-1, "")  # seq and signature of the last line
        self._synced = -1
        self._syncing = threading.Lock()
        self._broken = False
        self._tip = Tip(tips_of(keys) / name, self._key)
        self._log: int | None = None
        self._keeper: threading.Thread | None = None
        self._stopping = threading.Event()
        self._dirty = threading.Event()

    def append(self, lines: list[Line], *, durable: bool) -> None:
        """Writes lines, in their order; with `durable` they survive a loss of power when it returns, else a kill.

        ComponentUnavailable when they cannot be written: then none of them is there.
        """
        ticket = _Ticket(lines)
        self._waiting.append(ticket)
        with self._lock:  # whoever comes in first writes for all who wait
            if not ticket.done:
                self._turn.acquire()
                try:
                    self._write(list(_drained(self._waiting)))
                finally:
                    self._turn.release()
        if ticket.error is not None:
            raise _unwritten(ticket.error) from ticket.error
        if durable:
            self._sync(ticket.upto)
        else:
            self._dirty.set()
            if self._keeper is None:
                self._begin_keeping()

    def _write(self, tickets: list[_Ticket]) -> None:
        seq, mac = self._newest
        connection = self._connection
        written: list[Line] = []
        try:
            if seq < 0:
                self._tip.write()  # before the first line: who finds a line finds whether its process lives
            connection.execute("BEGIN IMMEDIATE")
            if seq < 0:
                tickets = [_Ticket([self._opening(connection, tickets[0].lines[0])]), *tickets]
            for ticket in tickets:
                for line in ticket.lines:
                    seq += 1
                    line["chain"], line["seq"] = self.name, seq
                    mac = line["mac"] = signature(self._key, mac, line)
                    connection.execute(_INSERT, [line[name] for name in _COLUMNS])
                    _index(connection, line)
                    written.append(line)
                ticket.upto = seq
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            for ticket in tickets:
                ticket.done, ticket.error = True, error
            return
        self._newest = (seq, mac)
        for ticket in tickets:
            ticket.done = True
        try:
            self._tip.write(newest=self._newest)
        except OSError:
            self._broken = True  # `ready` says so before the next event
        self._told(written)

    def _opening(self, connection: sqlite3.Connection, like: Line) -> Line:
        """The first line: which key signs this chain, and where the chain that was opened before it stands by now."""
        before = connection.execute(_LAST).fetchone()
        opening: Line = dict.fromkeys(SIGNED)
        opening.update(
            tenant=tables.PLATFORM, id=self.name, phase="chain", at=like["at"], operation="audit.chain",
            code=fingerprint(self._key), items=json.dumps([] if before is None else list(before)),
        )  # fmt: skip
        return opening

    def _sync(self, upto: int) -> None:
        with self._syncing:
            if self._broken:
                raise _unwritten(None)
            if self._synced >= upto:
                return
            newest = self._newest
            try:
                if self._log is None:  # SQLite keeps this file while it has a connection
                    self._log = os.open(f"{self._database.path}-wal", os.O_RDWR | os.O_CLOEXEC)
                sync_data(self._log)
                self._tip.write(synced=newest[0])
            except OSError as error:
                self._broken = True  # what a failed sync has left behind is not known: only a new chain goes on
                raise _unwritten(error) from error
            self._synced = newest[0]

    def _begin_keeping(self) -> None:
        with self._syncing:
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="audit-tip", daemon=True)
                self._keeper.start()

    def _keep(self) -> None:
        connection = self._database.raw()
        try:
            while not self._stopping.wait(_KEEP):
                self._dirty.wait()
                self._dirty.clear()
                self._sync(self._newest[0])
                if Path(f"{self._database.path}-wal").stat().st_size > _LONG:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # no writer waits for it
        except (ComponentUnavailable, OSError, sqlite3.Error):
            self._broken = True  # `ready` says so before the next event
        finally:
            connection.close()

    def ready(self) -> None:
        """ComponentUnavailable once lines can no longer be made durable."""
        if self._broken:
            raise _unwritten(None)

    def close(self) -> None:
        self._stopping.set()
        self._dirty.set()
        if self._keeper is not None:
            self._keeper.join()
        try:
            if self._newest[0] > self._synced and not self._broken:
                self._sync(self._newest[0])
        finally:
            if self._log is not None:
                os.close(self._log)
            self._connection.close()
            self._tip.close()
            self._turn.close()


@dataclass(slots=True)
class _Ticket:
    lines: list[Line]
    done: bool = False
    upto: int = -1
    error: Exception | None = None


def _drained(waiting: deque[_Ticket]) -> Iterator[_Ticket]:
    while waiting:
        yield waiting.popleft()


def _index(connection: sqlite3.Connection, line: Line) -> None:
    if line["phase"] == "chain":
        return
    if line["items"] != "[]":
        items = json.loads(line["items"])
        connection.executemany(_ITEM, [(line["tenant"], item, line["id"], line["at"]) for item in items])
    if line["phase"] == "intent":
        connection.execute(_OPEN, (line["id"], line["tenant"], line["chain"]))
    elif line["phase"] == "outcome":
        connection.execute(_CLOSE, (line["id"],))


class Tip:
    """A file that names the newest line of a chain, and the newest durable one, signed; locked while its process lives.

    It is not synced: after a loss of power it may say less than the chain holds, or name lines that were not durable
    and are gone, which is what it is for.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self._path, self._key = path, key
        self._file: FileLock | None = None
        self._lock = threading.Lock()
        self._newest, self._synced = (-1, ""), -1

    def write(self, *, newest: tuple[int, str] = (-1, ""), synced: int = -1) -> None:
        """Moves on, never back; OSError when the file cannot be written."""
        with self._lock:
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = FileLock(self._path)
                self._file.acquire()
            self._newest, self._synced = max(self._newest, newest), max(self._synced, synced)
            body = f"{self._newest[0]:020d} {self._synced:020d} {self._newest[1] or '-'}"
            os.pwrite(self._file.descriptor, f"{body} {_tip_mac(self._key, self._path.name, body)}\n".encode(), 0)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_tip(path: Path, keys: Mapping[str, bytes]) -> tuple[int, str, int] | None:
    """seq and signature of the newest line, and the seq of the newest durable one (-1: none yet).

    None when no key here vouches for it.
    """
    body, _, mac = path.read_text("ascii", "replace").split("\n")[0].rpartition(" ")
    for key in keys.values():
        if hmac.compare_digest(_tip_mac(key, path.name, body), mac):
            seq, synced, line = body.split(" ")
            return int(seq), line, int(synced)
    return None


def tips_of(keys: Keys) -> Path:
    """The folder of the tips, one file a chain, beside the key."""
    return keys.folder / "audit" / "tips"


def _tip_mac(key: bytes, chain: str, body: str) -> str:
    return hmac.digest(key, f"tip\n{chain}\n{body}".encode("utf-8", "replace"), "sha256").hex()[:32]


def _unwritten(error: Exception | None) -> ComponentUnavailable:
    return ComponentUnavailable(
        "The audit cannot be written, so nothing is done.",
        why=f"Its database reports {type(error).__name__}." if error else "A sync of its file has failed.",
        remedy="Look at the disk of the service's state, then start the service again.",
    )
