"""When two texts say the same: what is forgotten is known again by its words, however they are set."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\w+")
_SAYS_SOMETHING = 24  # characters; shorter turns of a conversation ("yes, please") are everybody's


def same_text(text: str) -> str:
    """The words of a text as they are compared: compatible forms, no case, no invisible characters, single spaces.

    A text without a word is compared as it stands, with single spaces.
    """
    plain = text.casefold()
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text).casefold()
        plain = unicodedata.normalize("NFC", "".join(c for c in plain if unicodedata.category(c) != "Cf"))
    return " ".join(_WORD.findall(plain)) or " ".join(plain.split())


def says_something(same: str) -> bool:
    """Whether a turn of a conversation, as `same_text` gives it, is its speaker's own and not everybody's."""
    return len(same) >= _SAYS_SOMETHING
