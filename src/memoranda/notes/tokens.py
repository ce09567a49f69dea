"""How much a text costs a reader: a count that needs no model and is the same on every machine."""

from __future__ import annotations


def count_tokens(text: str) -> int:
    """ASCII characters / 4, rounded up, plus one for each other code point."""
    if text.isascii():
        return (len(text) + 3) // 4
    ascii_count = len(text.encode("ascii", "ignore"))
    return (ascii_count + 3) // 4 + len(text) - ascii_count
