"""The place of a note: its scope and whose it is, as one text by which it is decided who may read it.

Two notes lie in one place when all of both is the same, character by character. A note without the owner that its scope
asks for, or with one more, lies in no place that anybody is given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from memoranda.notes.model import OWNERS


def belongs_to(scope: str, owner: Mapping[str, str]) -> str:
    """The place of a note of this scope with these owner fields, as the catalog and the indexes have it."""
    return f"{scope} {json.dumps({name: owner[name] for name in OWNERS if name in owner})}"
