"""Single values of front matter: what a plain word means, and how a value is written so that it comes back the same.

A plain word is text unless it is plainly something else: `null`, `true`, `false`, a whole number, a decimal number.
YAML 1.1 also turns `no`, `on`, `12:30`, `0x1f` and dates into other things; a person who wrote them meant the words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from json.encoder import encode_basestring

from memoranda.errors import InvalidNote
from memoranda.notes.lazyre import lazy
from memoranda.notes.times import format_day_or_instant

_WORD = 40  # characters up to which a text is looked at once
_NUMBERS_BEGIN = frozenset("0123456789+-.")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = lazy(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_DECIMAL = lazy(r"[-+]?(?:[0-9]{1,30}\.[0-9]{0,30}|\.[0-9]{1,30}|[0-9]{1,30}(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?")

# What we leave without quotation marks; anything else gets them. Narrower than YAML, on purpose.
_PLAIN_LINE = lazy(r"[^\W_][\w ./()@+;=,'-]*(?::[\w./()@+;=,'-][\w ./()@+;=,'-]*)*(?:(?<! )#[\w./-]+)?")
_PLAIN_ITEM = lazy(r"[A-Za-z_][\w./-]*")
_DAY = lazy(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+Z)?")
# YAML 1.1, which other programs speak, takes these words and numbers of bases 2, 8, 16 and 60 for something else.
_MISREAD = lazy(r"(?:y|n|yes|no|on|off|true|false|null)|[0-9][-+0-9._,:eExXoOa-fA-F]*", re.IGNORECASE)
_UNPRINTABLE = lazy("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def resolve_plain(text: str) -> object:
    """What a word without quotation marks means: None, a bool, an int, a float, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _NUMBERS_BEGIN:
        if _WHOLE.fullmatch(text):
            return int(text)
        if _DECIMAL.fullmatch(text):
            number = float(text)
            return number if math.isfinite(number) else text
    return text


def plain_data(value: object) -> object:
    """The value as it reads back: times become text, tuples lists, mappings dicts with text keys.

    Raises:
        InvalidNote: a value that front matter cannot hold.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if type(value) is tuple or type(value) is list:  # before `Mapping`, whose question is a slow one
        return [plain_data(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _cannot_hold("It is not a finite number.")
        return value
    if isinstance(value, datetime):
        return format_day_or_instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain_data(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [plain_data(item) for item in value]
    raise _cannot_hold(f"It is of the type {type(value).__name__}.")


def write_text(text: str) -> str:
    """One line of YAML for this text: plain where that is safe everywhere, else in double quotation marks.

    Raises:
        InvalidNote: it holds half of a surrogate pair, which no UTF-8 can carry.
    """
    return _word(text) if len(text) <= _WORD else _line(text)


@lru_cache(maxsize=256)  # the same kinds, scopes, names and days again and again
def _word(text: str) -> str:
    return _line(text)


def _line(text: str) -> str:
    if _PLAIN_LINE.fullmatch(text) and text[-1] != " " and (not _MISREAD.fullmatch(text) or _DAY.fullmatch(text)):
        return text
    return quoted(text)


def write_item(text: str) -> str:
    """The same inside of `[…]` or `{…}`, where more characters have a meaning."""
    if _PLAIN_ITEM.fullmatch(text) and not _MISREAD.fullmatch(text):
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """The text in double quotation marks, with escapes for what YAML does not take as it is."""
    line = encode_basestring(text)
    return _UNPRINTABLE.sub(_escape, line) if not line.isascii() or "\x7f" in line else line


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xD800 <= code <= 0xDFFF:
        raise InvalidNote(
            "This text cannot be written.",
            why="It holds half of a surrogate pair, which is not a character.",
            remedy="Decode the text properly before handing it over.",
        )
    return f"\\u{code:04x}"


def write_value(value: object, *, inside: bool = False) -> str:
    """One line of YAML for a value of `plain_data`; `inside` of brackets or braces when told."""
    if isinstance(value, str):
        return write_item(value) if inside else write_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        pairs = (f"{write_item(key)}: {write_value(item, inside=True)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([write_value(item, inside=True) for item in value]) + "]"
    return _number(value)


def _number(value: object) -> str:
    text = repr(value)
    if resolve_plain(text) != value:
        raise _cannot_hold("The number is too large.")
    return text


def _cannot_hold(why: str) -> InvalidNote:
    return InvalidNote(
        "Front matter cannot hold this value.", why=why, remedy="Give text, numbers, true, false, null or lists."
    )
