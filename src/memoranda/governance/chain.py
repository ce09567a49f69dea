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
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import ComponentUnavailable
from memoranda.governance.pages import FAILURES, SIGNED, Last, Line, pages_of
from memoranda.home.durable import FileLock
from memoranda.home.keys import Keys, fingerprint
from memoranda.state import tables
from memoranda.state.database import Database
from memoranda.values import dataclass

OWNER = "service"
_KEEP = 1.0  # seconds after which a line that nobody waits for is on the disk, and under the tip


def signature(key: bytes, before: str, line: Mapping[str, Any]) -> str:
    """What vouches for a line behind the one whose signature is `before` ("" for the first of a chain)."""
    told = {name: line[name] for name in SIGNED if line[name] is not None}
    body = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return hmac.digest(key, f"{before}\n{body}".encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


class Chain:
    """One process's chain, in `database`; opened by its first line. `told` is given every line that was written.

    Where a server has the lines, and did not say whether it took one, a chain ends and another one, under the next
    name of `named`, goes on: nobody can tell which line would be the next of the old one.
    """

    def __init__(
        self, database: Database, keys: Keys, named: Callable[[], str], told: Callable[[list[Line]], None]
    ) -> None:
        self._named = named
        self.name = named()
        self._key = keys.get("audit", OWNER)
        self._keys = keys
        self._told = told
        self._pages = pages_of(database)
        self._lock = threading.Lock()
        self._waiting: deque[_Ticket] = deque()
        self._newest: tuple[int, str] = (-1, "")  # seq and signature of the last line
        self._synced = -1
        self._syncing = threading.Lock()
        self._broken = False
        self._doubtful = False  # only where a server has the lines
        self._tip = Tip(tips_of(keys) / self.name, self._key)
        self._ended: list[tuple[str, Tip]] = []
        self._keeper: threading.Thread | None = None
        self._stopping = threading.Event()
        self._dirty = threading.Event()

    def append(self, lines: list[Line], *, durable: bool) -> None:
        """Writes lines, in their order; with `durable` they survive a loss of power when it returns, else a kill.

        ComponentUnavailable when they cannot be written: then none of them is there.
        """
        ticket = _Ticket(lines, durable)
        self._waiting.append(ticket)
        with self._lock:  # whoever comes in first writes for all who wait
            if not ticket.done:
                self._write(list(_drained(self._waiting)))
        if ticket.error is not None:
            raise _unwritten(ticket.error) from ticket.error
        if durable:
            self._sync(ticket.upto)
        else:
            self._dirty.set()
            if self._keeper is None:
                self._begin_keeping()

    @property
    def names(self) -> frozenset[str]:
        """The chains that this process has written."""
        return frozenset({self.name, *(name for name, _ in self._ended)})

    def _begin_another(self) -> None:
        self._ended.append((self.name, self._tip))  # stays locked: its intents are not those of a dead process
        self.name = self._named()
        self._tip = Tip(tips_of(self._keys) / self.name, self._key)
        self._newest, self._synced, self._doubtful = (-1, ""), -1, False

    def _write(self, tickets: list[_Ticket]) -> None:
        written: list[Line] = []
        if self._doubtful:
            self._begin_another()

        def lines(last: Callable[[], Last | None]) -> list[Line]:
            seq, mac = self._newest
            if seq < 0:
                tickets.insert(0, _Ticket([self._opening(last(), tickets[0].lines[0])]))
            for ticket in tickets:
                for line in ticket.lines:
                    seq += 1
                    line["chain"], line["seq"] = self.name, seq
                    mac = line["mac"] = signature(self._key, mac, line)
                    written.append(line)
                ticket.upto = seq
            return written

        try:
            if self._newest[0] < 0:
                self._tip.write()  # before the first line: who finds a line finds whether its process lives
            synced = self._pages.write(lines, durable=any(ticket.durable for ticket in tickets))
        except FAILURES as error:
            if self._pages.on_server and (self._pages.left_open or self._newest[0] > self._synced):
                self._doubtful = True  # this one may have come in, or one before it may be gone with the server
            for ticket in tickets:
                ticket.done, ticket.error = True, error
            return
        self._newest = (written[-1]["seq"], written[-1]["mac"])
        for ticket in tickets:
            ticket.done = True
        try:
            self._tip.write(newest=self._newest, synced=self._newest[0] if synced else -1)
        except OSError:
            self._broken = True  # `ready` says so before the next event
        if synced:
            self._synced = self._newest[0]
        self._told(written)

    def _opening(self, before: Last | None, like: Line) -> Line:
        """The first line: which key signs this chain, and where the chain that was opened before it stands by now."""
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
                self._pages.sync()
                self._tip.write(synced=newest[0])
            except FAILURES as error:
                # What a failed sync has left behind is not known: only a new chain goes on.
                self._broken, self._doubtful = not self._pages.on_server, self._pages.on_server
                raise _unwritten(error) from error
            self._synced = max(self._synced, newest[0])

    def _begin_keeping(self) -> None:
        with self._syncing:
            if self._keeper is None:
                self._keeper = threading.Thread(target=self._keep, name="audit-tip", daemon=True)
                self._keeper.start()

    def _keep(self) -> None:
        try:
            while not self._stopping.wait(_KEEP):
                self._dirty.wait()
                self._dirty.clear()
                self._sync(self._newest[0])
                self._pages.tidy()
        except FAILURES:
            self._broken = not self._pages.on_server  # `ready` says so before the next event
        finally:
            self._keeper = None

    def ready(self) -> None:
        """ComponentUnavailable once lines can no longer be made durable."""
        if self._broken:
            raise _unwritten(None)

    def close(self) -> None:
        self._stopping.set()
        self._dirty.set()
        if (keeper := self._keeper) is not None:
            keeper.join()
        try:
            if self._newest[0] > self._synced and not self._broken:
                self._sync(self._newest[0])
        finally:
            self._pages.close()
            for tip in (self._tip, *(tip for _, tip in self._ended)):
                tip.close()


@dataclass(slots=True)
class _Ticket:
    lines: list[Line]
    durable: bool = False
    done: bool = False
    upto: int = -1
    error: Exception | None = None


def _drained(waiting: deque[_Ticket]) -> Iterator[_Ticket]:
    while waiting:
        yield waiting.popleft()


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
