"""Regular expressions that are compiled when they are first used.

A fresh process imports dozens of them and uses a few; compiling all took a third of a whole `memoranda recall`.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Lazy:
    """Stands for a compiled pattern; the first use of each method puts the real one in its place."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._made_from = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        pattern, flags = self.__dict__["_made_from"]
        found = getattr(re.compile(pattern, flags), name)  # `re` keeps what it has compiled
        self.__dict__[name] = found
        return found


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`; a mistake in the pattern shows at the first use."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


def lazy_bytes(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """As `lazy`, for bytes."""
    return cast("re.Pattern[bytes]", _Lazy(pattern, flags))
