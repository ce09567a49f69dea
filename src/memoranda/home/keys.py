"""Keys, by purpose and owner, outside every Home.

A key lies in the person's own data folder, readable by that person only; whoever can write files in a Home cannot
make a line that these keys would vouch for.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from memoranda.home.durable import FileLock, sync_path

PURPOSES = ("envelope", "ledger", "tombstone", "namespace", "cursor", "settings", "audit")
SIZE = 32
_BLOCK = 64  # bytes of a block of SHA-256
_INNER, _OUTER = bytes(n ^ 0x36 for n in range(256)), bytes(n ^ 0x5C for n in range(256))


class Lines(Protocol):
    """What was written down beside the keys, under one name: lines that are only ever added."""

    place: str  # where it lies, for a person

    def mark(self) -> object | None:
        """Changes with every line; None while there is none. Cheap."""

    def read(self) -> bytes:
        """All of it."""

    def add(self, data: bytes) -> None:
        """Adds a line, durably."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else reads and writes these lines meanwhile, in this process or another one."""


class FileLines:
    """Implements `Lines` by a file that its owner only can read."""

    def __init__(self, path: str) -> None:
        self.place = path

    def mark(self) -> tuple[int, int, int] | None:
        if not os.access(self.place, os.F_OK):  # the usual case, and an exception takes five times as long
            return None
        try:
            status = os.stat(self.place)  # noqa: PTH116 - asked at every write
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def read(self) -> bytes:
        try:
            return Path(self.place).read_bytes()
        except FileNotFoundError:
            return b""

    def add(self, data: bytes) -> None:
        folder = Path(self.place).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.place, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        sync_path(folder)

    @contextmanager
    def alone(self) -> Iterator[None]:
        lock = FileLock(Path(self.place).with_suffix(".lock"))
        try:
            lock.acquire()
            yield
        finally:
            lock.close()  # an open file of its own holds the lock, so that threads wait for each other too


class Keys:
    """The keys of one installation, in `folder`; a key is made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # the process may go to another folder
        self._held: dict[tuple[str, str], bytes] = {}
        self._begun: dict[tuple[str, str], tuple[hashlib._Hash, hashlib._Hash]] = {}  # see `mac`
        self._lock = threading.Lock()

    def get(self, purpose: str, owner: str) -> bytes:
        """The key (32 bytes) for a purpose (one of `PURPOSES`) and an owner."""
        held = self._held.get((purpose, owner))
        if held is None:
            with self._lock:  # the name of a fresh key tells processes apart, not threads
                held = self._held[purpose, owner] = self._load(purpose, owner)
        return held

    def settled(self, owner: str) -> Lines:
        """What a person has settled for `owner`."""
        return FileLines(f"{self.folder.parent}/settings/{owner}.jsonl")

    def forgotten(self, home: str) -> Lines:
        """The tombstones of a Home."""
        return FileLines(f"{self.folder}/tombstone/{home}.jsonl")

    def _path(self, purpose: str, owner: str, version: str = "") -> Path:
        if purpose not in PURPOSES:
            raise ValueError(f"no key has the purpose {purpose!r}")
        return self.folder / purpose / f"{plain_owner(owner)}{version}.key"

    def of(self, owner: str) -> list[tuple[str, str, bytes, bool]]:
        """(purpose, owner, key, own) of every key of an owner, and of the owners within it (`owner.…`)."""
        found = []
        for purpose in PURPOSES:
            for path in sorted((self.folder / purpose).glob("*.key")):
                name, plus, _ = path.stem.partition("+")
                if is_within(name, owner):
                    found.append((purpose, name, _checked(path), not plus))
        return found

    def adopt(self, purpose: str, owner: str, key: bytes) -> bool:
        """Makes this the own key, which a Home brings along from elsewhere; False where there is another one."""
        path = self._path(purpose, owner)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            write_privately(path, key)
        with self._lock:
            self._held.clear()
            self._begun.clear()
        return _checked(path) == key

    def versions(self, purpose: str, owner: str) -> dict[str, bytes]:
        """fingerprint -> key of every key that is here for this purpose and owner: the own one, and imported ones.

        Makes none: what another installation has signed cannot be checked with a fresh key.
        """
        found: dict[str, bytes] = {}
        own = self._path(purpose, owner)
        for path in (own, *sorted(own.parent.glob(f"{glob.escape(own.stem)}+*.key"))):
            try:
                key = _checked(path)
            except FileNotFoundError:
                continue
            found[fingerprint(key)] = key
        return found

    def renew(self, purpose: str, owner: str) -> None:
        """Makes a fresh key; the one before stays beside it (`versions`). Other processes see it when they start."""
        with self._lock:
            path, old = self._path(purpose, owner), self._load(purpose, owner)
            kept = self._path(purpose, owner, f"+{fingerprint(old)}")
            if not kept.exists():
                write_privately(kept, old)
            fresh = path.with_name(f"{path.name}.{os.getpid()}")
            fresh.unlink(missing_ok=True)
            write_privately(fresh, os.urandom(SIZE))
            fresh.replace(path)
            sync_path(path.parent)
            self._held.pop((purpose, owner), None)
            self._begun.pop((purpose, owner), None)

    def take_in(self, purpose: str, owner: str, key: bytes) -> bool:
        """Keeps a key that another installation made beside the own one; whether it was not here before."""
        if fingerprint(key) in self.versions(purpose, owner):
            return False
        path = self._path(purpose, owner, f"+{fingerprint(key)}")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_privately(path, key)
        return True

    def _load(self, purpose: str, owner: str) -> bytes:
        path = self._path(purpose, owner)
        try:
            return _checked(path)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = path.with_name(f"{path.name}.{os.getpid()}")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(os.urandom(SIZE))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(fresh, path)  # of two processes, one makes the key and both read it
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
            sync_path(path.parent)  # lines of the ledger that are durable must stay provable
            return _checked(path)

    def mac(self, purpose: str, owner: str, data: bytes) -> str:
        """The first 32 hex digits of an HMAC-SHA256 of `data`."""
        begun = self._begun.get((purpose, owner))
        if begun is None:
            # Both halves of RFC 2104 with the key taken in: two copies in the place of the eight calls of `hmac`.
            key = self.get(purpose, owner).ljust(_BLOCK, b"\0")
            begun = hashlib.sha256(key.translate(_INNER)), hashlib.sha256(key.translate(_OUTER))
            self._begun[purpose, owner] = begun
        inner, outer = begun[0].copy(), begun[1].copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.hexdigest()[:32]


def plain_owner(owner: str) -> str:
    """An owner as keys are named by it."""
    return re.sub(r"[^a-z0-9_]", "-", owner.lower()) or "none"


def is_within(name: str, owner: str) -> bool:
    """Whether a key with this name is the owner's, or that of an owner within it."""
    whose = plain_owner(owner)
    return name == whose or name.startswith(f"{whose}-")


def fingerprint(key: bytes) -> str:
    """What tells keys apart without saying anything of them: 12 hex digits."""
    return hashlib.sha256(b"memoranda key\n" + key).hexdigest()[:12]


def write_privately(path: Path, data: bytes) -> None:
    """Writes a file that only its owner can read, durably; FileExistsError when there is one already."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_path(path.parent)


def _checked(path: Path) -> bytes:
    data = path.read_bytes()
    if len(data) != SIZE:
        raise FileNotFoundError(path)
    return data
