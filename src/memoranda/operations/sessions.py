"""Which session a call belongs to."""

from __future__ import annotations

import hashlib

from memoranda.context import Context
from memoranda.operations.space import OpenHome


def session_of(context: Context, home: OpenHome) -> str:
    """The session that the caller named, else the ambient one of this Home, user and agent, which never ends."""
    if context.session is not None:
        return context.session
    told = f"{home.repository.marker.id}\n{context.user}\n{context.agent}"
    return f"ses_{hashlib.sha256(told.encode()).hexdigest()[:16]}"
