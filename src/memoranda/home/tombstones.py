"""By what forgotten content is known again: a keyed hash of it, under a key of the scope's owner. Never the text.

The keys lie outside every Home. Who has a Home without its keys can neither read the content out of the hashes nor
tell whether something is forgotten; `memoranda key export` lets the keys travel.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping

from memoranda.home.keys import Keys, fingerprint
from memoranda.home.ledger import read_lines
from memoranda.notes.sameness import same_text
from memoranda.values import dataclass

# A session's is its agent's: every key costs a hash of every text that is looked at.
_OWNERS = {"user": "user", "agent": "agent", "session": "agent", "project": "project", "team": "team"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One content under one key: 32 hex digits, whose key it is, and which version of it."""

    hash: str
    owner: str
    key: str


def owner_of(scope: str, owner: Mapping[str, str]) -> str:
    """Whose key a note of this scope is marked with, such as `user.dana`."""
    name = owner.get(_OWNERS.get(scope, ""), "")
    return f"{scope}.{name}" if name else scope


class Seals:
    """Marks content for one Home.

    Args:
        keys: the installation's keys.
        home: the Home's id.
    """

    def __init__(self, keys: Keys, home: str) -> None:
        self._keys = keys
        self._home = home
        self._held: dict[str, dict[str, bytes]] = {}

    def mark(self, owner: str, text: str) -> Mark:
        """The mark of a text that is to be forgotten; the owner's key is made when there is none yet."""
        key = self._keys.get("tombstone", f"{self._home}.{owner}")
        return Mark(_hash(key, same_text(text)), owner, fingerprint(key))

    def held(self, owner: str) -> dict[str, bytes]:
        """fingerprint -> key of the owner's keys that are here."""
        found = self._held.get(owner)
        if found is None:
            found = self._held[owner] = self._keys.versions("tombstone", f"{self._home}.{owner}")
        return found

    def hashes(self, owners: Iterable[str], same: str) -> list[str]:
        """What a text, as `same_text` gives it, is under every key of these owners that is here."""
        return [_hash(key, same) for owner in owners for key in self.held(owner).values()]


class Mirror:
    """What is forgotten in one Home, kept beside the keys: whoever writes in the Home, in Git's folder or in a cache
    takes no tombstone away.

    One line of JSON for each change: the marks, when, and whether they are set or lifted.
    """

    def __init__(self, keys: Keys, home: str) -> None:
        self._lines = keys.forgotten(home)

    def read(self) -> dict[str, Mirrored]:
        """mark -> what was said of it last."""
        state = self._lines.mark()
        if state is None:
            return {}
        known = _READ.get(self._lines.place)
        if known is None or known[0] != state:
            known = _READ[self._lines.place] = (state, self._read())
        return known[1]

    def _read(self) -> dict[str, Mirrored]:
        found: dict[str, Mirrored] = {}
        for fields in read_lines(self._lines.read()):
            told = Mirrored(
                str(fields.get("event")) == "lift", _text(fields.get("at")), _text(fields.get("owner")),
                _text(fields.get("key")), tuple(fields.get("stays") or ()),
            )  # fmt: skip
            found.update((str(mark), told) for mark in fields.get("marks") or ())
        return found

    def add(self, marks: Iterable[str], told: Mirrored) -> None:
        """Keeps one more change, durably."""
        fields = {
            "marks": sorted(marks), "event": "lift" if told.lifted else "set", "at": told.at, "owner": told.owner,
            "key": told.key, "stays": list(told.stays),
        }  # fmt: skip
        # A line that a loss of power cut short is passed over, and the next one begins on its own.
        self._lines.add(b"\n" + json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n")


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What was said of a mark: lifted or set, when (ISO 8601), under whose key; `stays` as in the ledger."""

    lifted: bool
    at: str | None
    owner: str | None = None
    key: str | None = None
    stays: tuple[str, ...] = ()


_READ: dict[str, tuple[object, dict[str, Mirrored]]] = {}  # every catch-up asks, and it seldom changes


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _hash(key: bytes, same: str) -> str:
    return hmac.new(key, same.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]
