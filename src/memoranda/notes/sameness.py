"""When two texts say the same: what is forgotten is known again by its words, however they are set."""

from __future__ import annotations

import re
import unicodedata

from memoranda.notes.glyphs import LOOK_ALIKES, is_invisible

_WORD = re.compile(r"[^\W_]+")
_SAYS_SOMETHING = 24  # characters; shorter turns of a conversation ("yes, please") are everybody's


def same_text(text: str) -> str:
    """The words of a text as they are compared: compatible forms, no case, no invisible characters, single spaces, and
    letters of other scripts as the Latin ones that they look like.

    A text without a word is compared as it stands, with single spaces.
    """
    plain = text.casefold()
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text).casefold()
        plain = "".join(LOOK_ALIKES.get(c, c) for c in plain if not is_invisible(c)).casefold()
        plain = unicodedata.normalize("NFC", plain)
    return " ".join(_WORD.findall(plain)) or " ".join(plain.split())


def says_something(same: str) -> bool:
    """Whether a turn of a conversation, as `same_text` gives it, is its speaker's own and not everybody's."""
    return len(same) >= _SAYS_SOMETHING
