"""Keys, by purpose and owner, outside every Home.

A key lies in the person's own data folder, readable by that person only; whoever can write files in a Home cannot
make a line that these keys would vouch for.
"""

from __future__ import annotations

import glob
import hashlib
import hmac
import os
import re
import threading
from pathlib import Path

from memoranda.home.durable import sync_path

_PURPOSES = ("envelope", "ledger", "tombstone", "namespace", "cursor", "settings", "audit")
_SIZE = 32


class Keys:
    """The keys of one installation, in `folder`; a key is made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # the process may go to another folder
        self.settings = f"{self.folder.parent}/settings/"  # what a person has settled lies beside the keys
        self._held: dict[tuple[str, str], bytes] = {}
        self._begun: dict[tuple[str, str], hmac.HMAC] = {}
        self._lock = threading.Lock()

    def get(self, purpose: str, owner: str) -> bytes:
        """The key (32 bytes) for a purpose (one of `_PURPOSES`) and an owner."""
        held = self._held.get((purpose, owner))
        if held is None:
            with self._lock:  # the name of a fresh key tells processes apart, not threads
                held = self._held[purpose, owner] = self._load(purpose, owner)
        return held

    def _path(self, purpose: str, owner: str, version: str = "") -> Path:
        if purpose not in _PURPOSES:
            raise ValueError(f"no key has the purpose {purpose!r}")
        name = re.sub(r"[^a-z0-9_]", "-", owner.lower()) or "none"
        return self.folder / purpose / f"{name}{version}.key"

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
                file.write(os.urandom(_SIZE))
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
            begun = self._begun[purpose, owner] = hmac.new(self.get(purpose, owner), digestmod="sha256")
        mac = begun.copy()  # half of what `hmac.digest` takes, which looks for its algorithm at every call
        mac.update(data)
        return mac.hexdigest()[:32]


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
    if len(data) != _SIZE:
        raise FileNotFoundError(path)
    return data
