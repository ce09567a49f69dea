"""Signed reviews: with allowed signers configured, only what one of them signed counts, whoever wrote the line.

The setting is the person's own and lies outside every Home. A signature is OpenSSH's (`ssh-keygen -Y`, namespace
`memoranda-review`) over the whole decision: the Home, the note, its exact bytes, the verdict, the time.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import ReviewUnsigned
from memoranda.home.durable import write_durably
from memoranda.home.keys import Keys
from memoranda.index.testimony import Review
from memoranda.values import dataclass

NAMESPACE = "memoranda-review"
_NOT_SIGNED = ("n", "at", "mac", "signature")  # what the ledger adds to a decision, and the signature itself
_DATED = b"valid-"  # an allowed signer of whom a time is said: what was verified once may end
_PATIENCE = 20  # seconds for what no person has a part in


@dataclass(frozen=True, slots=True)
class Signing:
    """A person's setting: the file of allowed signers (as `ssh-keygen` takes it), and the key to sign with, if any."""

    allowed: Path
    key: Path | None = None

    def trouble(self, home: Path) -> str | None:
        """Why no review of this Home can count under this setting, None when they can."""
        file = self.allowed.resolve()
        if file.is_relative_to(home.resolve()):
            return f"the allowed signers ({file}) lie in the Home, where a merge or an agent can write them"
        if not file.is_file():
            return f"the allowed signers ({file}) cannot be read"
        return None


def payload(home_id: str, decision: Mapping[str, Any]) -> bytes:
    """What is signed of a decision: all of it, in one spelling, and the Home that it is about."""
    told = {name: value for name, value in decision.items() if name not in _NOT_SIGNED}
    return json.dumps({"home_id": home_id, **told}, sort_keys=True, separators=(",", ":")).encode()


class Verifier:
    """Tells which reviews of one Home count. A verified signature is remembered in `cache`, under the Home's key."""

    def __init__(self, signing: Signing, home: Path, home_id: str, keys: Keys, cache: Path) -> None:
        self._signing = signing
        self._home = home
        self._home_id = home_id
        self._keys = keys
        self._file = cache / "signatures"
        self._held: dict[str, bool] | None = None

    def __call__(self, review: Review) -> bool:
        """Whether an allowed signer signed this very decision."""
        if review.signature is None or self._signing.trouble(self._home) is not None:
            return False
        allowed = self._signing.allowed.read_bytes()
        data = payload(self._home_id, review.fields)
        told = b"\n".join(hashlib.sha256(part).digest() for part in (data, review.signature.encode(), allowed))
        name = self._keys.mac("ledger", self._home_id, b"verified signature\n" + told)
        held = self._read()
        if name not in held:
            held[name] = verify(self._signing.allowed, data, review.signature)
            if held[name] and _DATED not in allowed:
                self._remember(held)
        return held[name]

    def rule(self) -> object:
        """Equal to what it gave before while the same reviews count: the allowed signers, none of whom has a time."""
        if (trouble := self._signing.trouble(self._home)) is not None:
            return trouble
        allowed = self._signing.allowed.read_bytes()
        return object() if _DATED in allowed else allowed

    def _read(self) -> dict[str, bool]:
        if self._held is None:
            try:
                text = self._file.read_text(encoding="ascii", errors="replace")
            except (FileNotFoundError, NotADirectoryError):
                text = ""
            self._held = dict.fromkeys(text.split(), True)
        return self._held

    def _remember(self, held: Mapping[str, bool]) -> None:
        if self._file.parent.is_dir():  # the cache may be deleted at any moment
            write_durably(self._file, "".join(f"{name}\n" for name, good in held.items() if good).encode("ascii"))


def verify(allowed: Path, data: bytes, signature: str) -> bool:
    """Whether one of the allowed signers signed these bytes for reviews."""
    with tempfile.TemporaryDirectory(prefix="memoranda-") as folder:
        file = Path(folder) / "signature"
        file.write_text(signature, encoding="utf-8")
        found = _ssh_keygen(["find-principals", "-s", str(file), "-f", str(allowed)], b"")
        if found.returncode != 0:
            return False
        for name in found.stdout.decode("utf-8", "replace").splitlines():
            words = ["verify", "-f", str(allowed), "-I", name, "-n", NAMESPACE, "-s", str(file)]
            if _ssh_keygen(words, data).returncode == 0:
                return True
    return False


def sign(signing: Signing, home: Path, home_id: str, decision: Mapping[str, Any]) -> dict[str, Any]:
    """The decision with its signature; the key may ask for a passphrase or for somebody's presence.

    Raises:
        ReviewUnsigned: there is no key, it did not sign, or whoever it belongs to is no allowed signer.
    """
    trouble = signing.trouble(home)
    if trouble is not None:
        raise _unsigned(f"Because {trouble}.", "Put the file where only you write, and name it in config.toml.")
    if signing.key is None:
        raise _unsigned("No signing key is configured.", "Set `signing_key` under [reviews] in config.toml.")
    data = payload(home_id, decision)
    done = _ssh_keygen(["sign", "-q", "-f", str(signing.key), "-n", NAMESPACE], data, patient=True)
    signature = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0 or "SSH SIGNATURE" not in signature:
        raise _unsigned("ssh-keygen could not sign with the configured key.", "Try `ssh-keygen -Y sign` with it.")
    if not verify(signing.allowed, data, signature):
        raise _unsigned("The key belongs to no allowed signer.", f"Add it to {signing.allowed}, or use another key.")
    return {**decision, "signature": signature}


def _unsigned(why: str, remedy: str) -> ReviewUnsigned:
    return ReviewUnsigned(
        "The review is not signed, so it would not count; nothing was written.", why=why, remedy=remedy
    )


def _ssh_keygen(words: list[str], data: bytes, *, patient: bool = False) -> subprocess.CompletedProcess[bytes]:
    """Runs `ssh-keygen -Y …`. Only a `patient` run may wait for a person, and tell the person what it waits for."""
    env = dict(os.environ) if patient else {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *words],
            input=data,
            stdout=subprocess.PIPE,
            stderr=None if patient else subprocess.DEVNULL,
            env=env,
            timeout=None if patient else _PATIENCE,
            check=False,
        )
    except FileNotFoundError as error:
        raise _unsigned("There is no ssh-keygen here.", "Install OpenSSH 8.2 or newer.") from error
    except subprocess.TimeoutExpired as error:
        raise _unsigned("ssh-keygen does not answer.", "Look at the allowed signers and the key.") from error
