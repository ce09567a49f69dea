"""What is imported already, and can be used without waiting for it."""

from __future__ import annotations

import sys
from types import ModuleType


def numpy_at_hand() -> ModuleType | None:
    """numpy where somebody has imported it; None while another thread is still at it: half of it is missing then."""
    found = sys.modules.get("numpy")
    return None if found is None or getattr(found.__spec__, "_initializing", False) else found
