"""Cursors: where the next page begins, sealed so that nobody else's request can go on with it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

from memoranda.errors import InvalidInput
from memoranda.home.keys import Keys

_MAC = 16


def seal(keys: Keys, tenant: str, about: tuple[str, ...], after: tuple[str, str]) -> str:
    """A cursor for the list that `about` names (whose it is, of what, with which filters) after the place `after`."""
    body = json.dumps(after, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_mac(keys, tenant, about, body) + body).decode().rstrip("=")


def unseal(keys: Keys, tenant: str, about: tuple[str, ...], cursor: str) -> tuple[str, str]:
    """The place in a cursor; InvalidInput for one that was not given for exactly this list."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        mac, body = raw[:_MAC], raw[_MAC:]
        if hmac.compare_digest(mac, _mac(keys, tenant, about, body)):
            first, second = json.loads(body)
            return str(first), str(second)
    except ValueError:
        pass  # not one of ours, which is what is said below
    raise InvalidInput(
        "This cursor belongs to another list.",
        why="It was not given out for this caller, agent and filter, or it was changed.",
        remedy="Begin again without a cursor.",
    )


def _mac(keys: Keys, tenant: str, about: tuple[str, ...], body: bytes) -> bytes:
    told = json.dumps([tenant, *about]).encode() + b"\n" + body
    return hmac.new(keys.get("cursor", tenant), told, hashlib.sha256).digest()[:_MAC]
