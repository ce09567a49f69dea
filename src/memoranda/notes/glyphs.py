"""What a character looks like: nothing at all, or like a letter of another script."""

from __future__ import annotations

import unicodedata

# Letters of other scripts that are drawn like a Latin one. Capitals and small letters apart, since they differ.
LOOK_ALIKES = dict(
    zip(
        "АВЕЅІЈКМНОРСТХҮԌԚԜЗЬаеѕіјоԛԝрсухһԁɡӏѵԍкмтвнг" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳοραινυκχτγε" + "ՕօսոցᎪᏴᏟᎬᏀᎻᏦᏞᎷᏢᏒᏚᎢᏔᏃ",
        "ABESIJKMHOPCTXYGQW3baesijoqwpcyxhdglvgkmtBHr" + "ABEZHIKMNOPTYXCjopaivukxtye" + "OounqABCEGHKLMPRSTWZ",
        strict=True,
    )
)
# Invisible, though their category does not say so: fillers, the grapheme joiner, variation selectors.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u180b\u180c\u180d\u180f")


def is_invisible(char: str) -> bool:
    """Whether nothing is drawn for it: zero-width and bidirectional marks, tag characters, fillers, selectors."""
    code = ord(char)
    if code < 0xAD:
        return False
    return (
        unicodedata.category(char) == "Cf" or char in _BLANK or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF
    )
