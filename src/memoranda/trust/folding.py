"""Text as an eye reads it: without invisible characters, look-alikes as the letters that they look like.

What is hidden from a pattern by a zero-width space, a full-width letter or a Cyrillic `а` is found in the folded text;
every place in it leads back to the text as it stands.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from memoranda.notes.glyphs import LOOK_ALIKES, is_invisible
from memoranda.values import dataclass

_PUNCTUATION = {
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"',
    "‹": "<", "〈": "<", "⟨": "<", "❮": "<", "❬": "<", "《": "<<", "«": "<<", "≪": "<<", "⟪": "<<", "⋘": "<<<",
    "›": ">", "〉": ">", "⟩": ">", "❯": ">", "❭": ">", "》": ">>", "»": ">>", "≫": ">>", "⟫": ">>", "⋙": ">>>",
    "⁄": "/", "∕": "/", "⧸": "/", "╱": "/", "∖": "\\", "⧵": "\\", "‐": "-", "‑": "-", "‒": "-", "–": "-", "−": "-",
    "ː": ":", "∶": ":", "꞉": ":", "ǀ": "|", "∣": "|", "⁎": "*", "∗": "*",
}  # fmt: skip
_SMALL_CAPITALS = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True))
_KNOWN: dict[str, str] = {}  # what each character seen so far folds to


@dataclass(frozen=True, slots=True)
class Folded:
    """The folded text; `origin[i]` is where its character i stands in the original (None: at the same place)."""

    text: str
    origin: Sequence[int] | None
    changed: bool

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original that these characters of the folded text came from; end exclusive."""
        if self.origin is None or start >= end:
            return start, end
        return self.origin[start], self.origin[end - 1] + 1


def fold(text: str) -> Folded:
    """The text as it is read. What was plain stays as it is: the same characters at the same places."""
    if text.isascii():
        return Folded(text, None, False)
    strange = {char: short for char in set(text) if not char.isascii() and (short := fold_char(char)) != char}
    if not strange:
        return Folded(text, None, False)
    if all(len(short) == 1 for short in strange.values()):
        return Folded(text.translate({ord(char): short for char, short in strange.items()}), None, True)
    parts: list[str] = []
    origin: list[int] = []
    for place, char in enumerate(text):
        short = strange.get(char, char)
        parts.append(short)
        origin.extend((place,) * len(short))
    return Folded("".join(parts), origin, True)


def fold_char(char: str) -> str:
    """What one character is read as: itself, a plain one, several, or nothing when it is invisible."""
    known = _KNOWN.get(char)
    if known is None:
        if len(_KNOWN) > 20_000:
            _KNOWN.clear()
        known = _KNOWN[char] = _fold_char(char)
    return known


def _fold_char(char: str) -> str:
    if is_invisible(char):
        return ""
    for table in (LOOK_ALIKES, _PUNCTUATION, _SMALL_CAPITALS):
        if char in table:
            return table[char]
    if "\ud800" <= char <= "\udfff":
        return "\ufffd"  # half a character: nothing that scans text has to meet it
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain.isascii() else char


def is_look_alike(char: str) -> bool:
    """Whether this letter of another script is drawn like a Latin one."""
    return char in LOOK_ALIKES
