"""Where the secrets of an engine lie between its starts: in OpenBao, or in a file that a key file opens.

A sealed file is of no use without the key file, which is readable by its owner alone and may lie elsewhere. Each value
is bound to its engine and its name: moved to another place in the file, it does not open.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memoranda.errors import ConfigRefused, NotFound, Unavailable
from memoranda.governance.credentials import OpenBao
from memoranda.home.keys import write_privately

MOUNT, UNDER = "secret", "engines"


class Vault(Protocol):
    """Keeps the named secrets of engines."""

    def put(self, engine: str, secrets: Mapping[str, str]) -> None:
        """Keeps these, and nothing that was kept of this engine before."""
        ...

    def get(self, engine: str) -> dict[str, str]:
        """NotFound when there are none; Unavailable when they cannot be opened."""
        ...

    def remove(self, engine: str) -> None:
        """Takes them away, with all their earlier values."""
        ...

    def reference(self, engine: str, name: str, /) -> str | None:
        """How the service may ask for one itself; None where it cannot."""
        ...


class FileVault:
    """Sealed files in `folder`, opened by the key in `key_file`; that is made, with mode 0600, when it is not there."""

    def __init__(self, folder: Path, key_file: Path, random: Callable[[int], bytes] = os.urandom) -> None:
        self._folder, self._key_file, self._random = folder, key_file, random

    def put(self, engine: str, secrets: Mapping[str, str]) -> None:
        cipher, sealed = self._cipher(make=True), {}
        for name, value in secrets.items():
            nonce = self._random(12)
            closed = cipher.encrypt(nonce, value.encode(), f"{engine}\n{name}".encode())
            sealed[name] = base64.b64encode(nonce + closed).decode()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._path(engine).with_suffix(".new")
        fresh.unlink(missing_ok=True)
        write_privately(fresh, json.dumps(sealed, indent=1).encode())
        fresh.replace(self._path(engine))

    def get(self, engine: str) -> dict[str, str]:
        try:
            sealed = json.loads(self._path(engine).read_bytes())
        except FileNotFoundError:
            raise _none(engine) from None
        cipher, opened = self._cipher(make=False), {}
        for name, value in sealed.items():
            closed = base64.b64decode(value)
            try:
                opened[name] = cipher.decrypt(closed[:12], closed[12:], f"{engine}\n{name}".encode()).decode()
            except InvalidTag:
                raise Unavailable(
                    f"The secrets of {engine} cannot be opened.",
                    why=f"{self._key_file} is another key, or the sealed file was changed.",
                    remedy="Put the key file back that they were sealed with.",
                ) from None
        return opened

    def remove(self, engine: str) -> None:
        self._path(engine).unlink(missing_ok=True)
        self._path(engine).with_suffix(".new").unlink(missing_ok=True)

    def reference(self, _engine: str, _name: str) -> str | None:
        return None

    def _path(self, engine: str) -> Path:
        return self._folder / f"{engine}.sealed"

    def _cipher(self, *, make: bool) -> AESGCM:
        try:
            if make and not self._key_file.exists():
                self._key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_privately(self._key_file, self._random(32))
            told = self._key_file.stat()
            key = self._key_file.read_bytes()
        except OSError as error:
            raise Unavailable(
                f"The key file {self._key_file} cannot be read.", why=f"{error.strerror}.", remedy="Put it back."
            ) from None
        if told.st_mode & 0o077 or told.st_uid != os.getuid():
            raise ConfigRefused(
                f"The key file {self._key_file} can be read by others.", remedy=f"chmod 600 {self._key_file}"
            )
        if len(key) != 32:
            raise ConfigRefused(f"The key file {self._key_file} is no key.", why="It has to have 32 bytes.")
        return AESGCM(key)


class BaoVault:
    """In OpenBao, below `secret/engines/`, where the service may read what it needs."""

    def __init__(self, openbao: OpenBao) -> None:
        self._openbao = openbao

    def put(self, engine: str, secrets: Mapping[str, str]) -> None:
        self._openbao.write(MOUNT, f"{UNDER}/{engine}", secrets)

    def get(self, engine: str) -> dict[str, str]:
        found = self._openbao.fields(MOUNT, f"{UNDER}/{engine}")
        if found is None:
            raise _none(engine)
        return found

    def remove(self, engine: str) -> None:
        self._openbao.remove(MOUNT, f"{UNDER}/{engine}")

    def reference(self, engine: str, name: str) -> str | None:
        return f"openbao://{MOUNT}/{UNDER}/{engine}#{name}"


def _none(engine: str) -> NotFound:
    return NotFound(f"There are no secrets of {engine}.", remedy=f"`memoranda engine install {engine}` makes them.")
