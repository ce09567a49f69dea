"""What the tests of forgetting share."""

from __future__ import annotations

from memoranda.context import Context
from memoranda.operations.forgetting import Selection
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import Remembered
from memoranda.operations.space import Space

TEXT = "Kowalskoff lives in Zebrafisch Lane 12."


def one(note: Remembered) -> Selection:
    return Selection((note.id,))


def shown(context: Context, space: Space, words: str = "kowalskoff zebrafisch plimsolquark") -> list[str]:
    """The ids that any question about these words shows, in any of its forms."""
    found = {item.id for item in recall(context, space, words).items}
    found |= {item.id for item in recall(context, space, words, history=True).items}
    found |= {item.id for item in recall(context, space, words, known_at=context.now()).items}
    return sorted(found)
