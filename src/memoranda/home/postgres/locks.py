"""Locks that have a name: who holds one holds it until its transaction ends."""

from __future__ import annotations

import hashlib
from typing import Any


def lock(cursor: Any, about: str) -> None:
    """Nobody else does what is named so until this transaction ends."""
    cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_number(about),))


def may_lock(cursor: Any, about: str) -> bool:
    """As `lock`, but False at once where somebody else holds it."""
    return bool(cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", (_number(about),)).fetchone()[0])


def _number(about: str) -> int:
    return int.from_bytes(hashlib.sha256(about.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)
