"""One state of one file, as catching up passes it on."""

from __future__ import annotations

from datetime import datetime

from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Version:
    """One state of one file: `blob` None where it was deleted; `at` is when the Home knew it.

    `seq` is the record that says so, None for what a commit says.
    """

    path: str
    blob: str | None
    at: datetime
    seq: int | None = None
