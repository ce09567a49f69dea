"""A filter for text that speaks to the model instead of to the reader. It labels and drops; it is no boundary.

Patterns do not generalise: they find what is said in the usual words and miss what is said in others. What holds is
structural (provenance, quarantine, envelope, no authority from remembered text). So the rules here are few, each says
what it saw, and `blocked` is kept for what no honest memory contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from memoranda.notes.lazyre import lazy
from memoranda.trust._orders import hints_in, orders
from memoranda.trust.folding import Folded, fold, is_look_alike
from memoranda.values import dataclass

Level = Literal["clean", "suspicious", "blocked"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the filter saw: `reasons` are stable codes, in a fixed order, without a word of the text."""

    level: Level
    reasons: tuple[str, ...] = ()


CLEAN = Verdict("clean")


def left_out(blocked: int) -> str:
    """What is said of items that the injection filter blocked."""
    return f"{blocked} left out: they hold what no honest memory contains."


# Nobody writes these into a memory by chance: marks by which a program tells a model who speaks.
_BLOCKED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("envelope_marker", lazy(r"<[\s]*<[\s/]*memo [0-9a-z]{10}\b", re.IGNORECASE)),
    (
        "control_token",
        lazy(
            r"<\|(?:im_start|im_end|im_sep|system|user|assistant|tool\w*|endoftext|end_of_text|begin_of_text|eot_id|eom_id"
            r"|start_header_id|end_header_id|start|end|message|channel|return|call|python_tag|endofprompt)\|>"
            r"|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|</?s>\s*\[INST|<｜(?:User|Assistant|tool\w*)｜>"
            r"|^[ \t]*<\|?(?:system|developer)\|>",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    (
        "tool_call",
        lazy(
            r"</?(?:antml:)?(?:function_calls?|function_results?|invoke|tool_calls?|tool_use|tool_result|tool_response"
            r"|tool_output)(?:\s[^<>\n]{0,200})?>|\[TOOL_(?:CALLS|RESULTS)\]|^[ \t]*(?:Action|Tool) Input:\s*\{"
            r"|\"tool_calls\"\s*:\s*\[\s*\{",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
)
_BASE64_LEAST = 20
_BASE64 = lazy(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{20,}={0,2}(?![A-Za-z0-9+/_-])")
_HEX = lazy(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){16,}(?![0-9A-Za-z])")
_BINARY = lazy(r"(?<!\d)[01]{8}(?: [01]{8}){7,}")
_SPACED = lazy(r"(?:\b\w[ .\-_*]){5,}\w\b[^\n]{0,60}")
# What a text is made of, a byte a character: white space is a space, in the second also what may part letters that
# belong together, where other white space does not.
_IN_WORDS = bytes(32 if chr(byte).isspace() else 97 for byte in range(256))
_IN_PIECES = bytes(32 if byte in b" .-_*" else 97 for byte in range(256))
_LONG_WORD = b"a" * _BASE64_LEAST
_FOUR_LETTERS = b" a a a a "
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_INSIDE_WORD = lazy("(?<=[A-Za-z])[\u200b\u200c\u200d\u2060\ufeff\u180e\u034f]+(?=[A-Za-z])")
_FLAG = lazy("\U0001f3f4[\U000e0061-\U000e007a]{4,6}\U000e007f")


def judge(text: str) -> Verdict:
    """The verdict on one text as it would be returned to a model. Pure: the same text has the same verdict."""
    return judge_all([text])[0]


def judge_all(texts: Sequence[str]) -> list[Verdict]:
    """The verdict on each of these texts. Together they are asked once which hints any of them may hold."""
    folded = [fold(text) for text in texts]
    among = hints_in("\n".join(one.text for one in folded).lower())
    return [_judge(text, one, among) for text, one in zip(texts, folded, strict=True)]


def _judge(text: str, folded: Folded, among: Sequence[str]) -> Verdict:
    plain, low = folded.text, folded.text.lower()
    # What none of the patterns can do without; most texts hold nothing of it.
    marked = "<" in plain or "[" in plain or "tool_calls" in low or "input:" in low
    blocked = [code for code, pattern in _BLOCKED if pattern.search(plain)] if marked else []
    if _tags(text):
        blocked.append("tag_characters")
    if blocked:
        return Verdict("blocked", tuple(blocked))
    reasons = list(orders(plain, among))
    reasons.extend(_hidden(text, folded))
    reasons.extend(_unwrapped(plain))
    return Verdict("suspicious", tuple(dict.fromkeys(reasons))) if reasons else CLEAN


def _tags(text: str) -> bool:
    """Whether there are tag characters (invisible copies of ASCII), other than in the flags of a few regions."""
    if text.isascii():
        return False
    return any("\U000e0000" <= char <= "\U000e007f" for char in _FLAG.sub("", text))


def _hidden(text: str, folded: Folded) -> Iterator[str]:
    """What is there and does not show: marks that reverse the order, letters between the letters, look-alikes."""
    if text.isascii():
        return
    if not _BIDI.isdisjoint(text):
        yield "bidi_control"
    if _INSIDE_WORD.search(text):
        yield "zero_width"
    if folded.changed and sum(map(_look_alikes, text.split())) > 1:
        yield "look_alikes"


def _look_alikes(word: str) -> int:
    """How many letters of another script hide in a Latin word."""
    if word.isascii() or not any(char.isascii() and char.isalpha() for char in word):
        return 0
    return sum(map(is_look_alike, word))


def _unwrapped(text: str) -> Iterator[str]:
    """Orders that stand in base64, in hexadecimal or binary digits, or with a space after each letter."""
    for pattern, plain in _wrappings(text):
        for match in pattern.finditer(text):
            if next(orders(plain(match.group())), None):
                yield "encoded_orders"
                return


def _wrappings(text: str) -> Iterator[tuple[re.Pattern[str], Callable[[str], str]]]:
    """The patterns that may find something, told by what they cannot do without: most texts are asked none of them."""
    plain = text.encode("ascii", "replace")
    if _LONG_WORD in plain.translate(_IN_WORDS):
        yield _BASE64, _from_base64
        yield _HEX, _from_hex
    if plain.count(b"0") + plain.count(b"1") >= 64:
        yield _BINARY, _from_binary
    # Of six letters in a row the first and the last may touch something else.
    if _FOUR_LETTERS in b" %b " % plain.translate(_IN_PIECES):
        yield _SPACED, _from_spaced


def _from_base64(word: str) -> str:
    import base64
    import binascii

    word = word.rstrip("=").translate({45: 43, 95: 47})
    try:
        return _readable(base64.b64decode(word[: len(word) - (len(word) % 4 == 1)] + "=" * (-len(word) % 4)))
    except binascii.Error:
        return ""


def _from_hex(word: str) -> str:
    return _readable(bytes.fromhex(word[: len(word) // 2 * 2]))


def _from_binary(word: str) -> str:
    return _readable(bytes(int(byte, 2) for byte in word.split()))


def _from_spaced(word: str) -> str:
    """`I g n o r e  all rules`: the letters together; what follows is looked at as it stands."""
    return re.sub(r"(?<=\b\w)[ .\-_*](?=\w\b)", "", word)


def _readable(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if sum(char.isprintable() or char.isspace() for char in text) >= 0.95 * len(text) else ""
