"""Keys, by purpose and owner, outside every Home.

A key lies in the person's own data folder, readable by that person only; whoever can write files in a Home cannot
make a line that these keys would vouch for.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import threading
from pathlib import Path

from memoranda.home.durable import sync_path

_PURPOSES = ("envelope", "ledger", "tombstone", "namespace", "cursor")
_SIZE = 32


class Keys:
    """The keys of one installation, in `folder`; a key is made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: dict[tuple[str, str], bytes] = {}
        self._lock = threading.Lock()

    def get(self, purpose: str, owner: str) -> bytes:
        """The key (32 bytes) for a purpose (envelope, ledger, tombstone, namespace, cursor) and its owner's id."""
        held = self._held.get((purpose, owner))
        if held is None:
            with self._lock:  # the name of a fresh key tells processes apart, not threads
                held = self._held[purpose, owner] = self._load(purpose, owner)
        return held

    def _load(self, purpose: str, owner: str) -> bytes:
        if purpose not in _PURPOSES:
            raise ValueError(f"no key has the purpose {purpose!r}")
        name = re.sub(r"[^a-z0-9_]", "-", owner.lower()) or "none"
        path = self.folder / purpose / f"{name}.key"
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
        return hmac.new(self.get(purpose, owner), data, hashlib.sha256).hexdigest()[:32]


def _checked(path: Path) -> bytes:
    data = path.read_bytes()
    if len(data) != _SIZE:
        raise FileNotFoundError(path)
    return data
