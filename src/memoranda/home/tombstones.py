"""By what forgotten content is known again: a keyed hash of it, under a key of the scope's owner. Never the text.

The keys lie outside every Home. Who has a Home without its keys can neither read the content out of the hashes nor
tell whether something is forgotten; `memoranda key export` lets the keys travel.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping

from memoranda.home.keys import Keys, fingerprint
from memoranda.notes.sameness import same_text
from memoranda.values import dataclass

_OWNERS = {"user": "user", "agent": "agent", "session": "session", "project": "project", "team": "team"}


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


def _hash(key: bytes, same: str) -> str:
    return hmac.new(key, same.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]
