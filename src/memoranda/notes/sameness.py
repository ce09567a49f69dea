"""When two texts say the same: what is forgotten is known again in another case, spacing or width of its letters."""

from __future__ import annotations

import unicodedata

_SAYS_SOMETHING = 24  # characters; shorter turns of a conversation ("yes, please") are everybody's


def same_text(text: str) -> str:
    """The text as it is compared: compatible forms, no case, no invisible characters, single spaces."""
    if text.isascii():
        return " ".join(text.casefold().split())
    plain = unicodedata.normalize("NFKC", text).casefold()
    seen = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    return " ".join(unicodedata.normalize("NFC", seen).split())


def says_something(same: str) -> bool:
    """Whether a turn of a conversation, as `same_text` gives it, is its speaker's own and not everybody's."""
    return len(same) >= _SAYS_SOMETHING
