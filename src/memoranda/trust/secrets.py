"""Secrets in a text: what they are and where, never what they say.

Three sources: `redact-secret`, which knows the formats of many makers; our own formats for what it does not know; and
our own rules for what has no format: a password told in a sentence, a value under a secret's name, a card, an account.
Each runs on the text as an eye reads it (see folding), and once more on what percent-encoding and base64 hide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memoranda.notes.lazyre import lazy
from memoranda.trust import _assignments, _formats, _places, _resources, _told
from memoranda.trust._hints import CARD, DIGIT, IBAN, MIXED, OF_20, OF_24, Heads, Hit, held_by, held_in, is_within
from memoranda.trust._values import is_code, is_dummy, is_ordinary, is_place, is_stand_in
from memoranda.trust.folding import fold
from memoranda.trust.numbers import cards, ibans
from memoranda.values import dataclass

_ENCODED = lazy(r"%[0-9A-Fa-f]{2}")
_WORD = lazy(r"[^\s\"'<>]*")
_BASE64 = lazy(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}(?:\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{8,}){0,200}={0,2}")
# Both alphabets as the first one, all else as spaces.
_AS_BASE64 = bytes(
    {45: 43, 95: 47}.get(code, code if code < 128 and (chr(code).isalnum() or code in b"+/") else 32)
    for code in range(256)
)
_READABLE = bytes(range(32, 127)) + b"\t\r\n"
_TOKENS = OF_20 | MIXED  # words of 20 characters, or of 12 with a digit
_SPECIFIC = ("contextual_secret", "credential", "password")  # what any name will do for: another kind says more


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands: characters `start` to `end` (exclusive) of the text; `line` and `column` count from 1.

    `kind` is a stable word (`password`, `private_key`, `iban`, `slack_token`, …). The value is nowhere in it.
    """

    kind: str
    start: int
    end: int
    line: int
    column: int


def find_secrets(text: str, *, alone: bool = False) -> tuple[Secret, ...]:
    """Every secret in the text, in its order, none inside another. `alone`: it comes by itself, not in a row."""
    if len(text) < 5:
        return ()
    folded = None if text.isascii() else fold(text)
    read = text if folded is None else folded.text
    held, heads = held_by(read) if alone else held_in(read.split())
    found = list(_find(read, held, heads))
    if held & OF_24 or "%" in read:
        found.extend(_unwrapped(read, held, found))
    if not found:
        return ()
    if folded is not None and folded.origin is not None:
        found = [(kind, *folded.span(start, end)) for kind, start, end in found]
    return tuple(_placed(text, found))


def masked(text: str, allows: Callable[[str], bool] | None = None) -> str:
    """The text with `[kind]` in the place of each secret that is not allowed, in as many lines as before."""
    return _masked(text, find_secrets(text), allows)


def masked_path(path: str, allows: Callable[[str], bool] | None = None) -> str:
    """A path with `[kind]` in the place of each secret; its steps are looked at as words."""
    return _masked(path, find_secrets(path.replace("/", " ")), allows)


def _masked(text: str, found: tuple[Secret, ...], allows: Callable[[str], bool] | None) -> str:
    for secret in reversed(found):
        value = text[secret.start : secret.end]
        if allows is None or not allows(value):
            breaks = "\n" * value.count("\n")
            text = f"{text[: secret.start]}[{secret.kind}]{breaks}{text[secret.end :]}"
    return text


def _find(text: str, held: int, heads: Heads) -> Iterator[Hit]:
    low = text.lower()
    if len(low) != len(text):  # the capital İ becomes two characters
        low = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    data = text.encode("utf-8", "replace") if held & DIGIT else b""
    digits = len(data) - len(data.translate(None, b"0123456789"))
    makers: list[Hit] = []
    likely: list[Hit] = []
    if held & _TOKENS or "=" in text or ":" in text:  # no maker's token is shorter, and none of letters alone
        makers, likely = _known_makers(text)
        yield from makers
    named = list(_assignments.find(text, low, held, makers)) if held & _assignments.NAMES.mask else []
    if likely:
        yield from _unnamed(text, likely, named)
    if held & _places.ASKED:
        yield from _places.find(text, low, held, makers)
    if held & _told.ASKED:
        yield from _told.find(text, low, digits, held)
    yield from named
    if held & _resources.HINTS.mask:
        yield from _resources.find(text, held)
    if held & OF_20:
        yield from _formats.find(text, heads, makers)
    if digits >= 12 and held & CARD:
        yield from (("card", *span) for span in cards(text))
    if digits >= 12 and held & IBAN:
        yield from (("iban", *span) for span in ibans(text))


def _known_makers(text: str) -> tuple[list[Hit], list[Hit]]:
    """What `redact-secret` finds, less what only stands for a value: the tokens of makers, and what may be secret."""
    import redact_secret

    makers: list[Hit] = []
    likely: list[Hit] = []
    limits = redact_secret.WholeInputLimits(max_input_bytes=4 * len(text) + 1, max_findings=len(text) + 1)
    for found in redact_secret.scan(text, limits=limits):
        kind, start, end = found.type, found.start, found.end
        if kind == "contextual_secret":
            likely.append((kind, start, end))
        elif (
            not is_dummy(text[start:end])
            and _formats.can_be(text, start)
            and (kind != "okta_api_token" or found.confidence == "high")
        ):
            makers.append((kind, start, end))
    return makers, likely


def _unnamed(text: str, likely: list[Hit], named: list[Hit]) -> Iterator[Hit]:
    """What may be secret for `redact-secret`, less what its name has led to already."""
    for _, start, end in likely:
        if is_within(start, end, named):
            continue
        value, before = text[start:end], text[max(0, start - 60) : start]
        told = is_stand_in(value) or text.startswith("...", end) or is_ordinary(value) or is_place(value)
        told = told or (before[-1:] not in "\"'`" and is_code(value))
        if not told and _assignments.is_secret_name(before):
            yield "credential", start, end


def _unwrapped(text: str, held: int, known: list[Hit]) -> Iterator[Hit]:
    """What is found when percent-encoding or base64 is taken off; the hit is the whole encoded word.

    What lies in a known hit is left wrapped: it is a secret whatever it says.
    """
    if "%" in text and _ENCODED.search(text):
        from urllib.parse import unquote

        for start, end in _encoded_words(text):
            plain = unquote(text[start:end])
            if hit := next(_find(plain, *held_in(plain.split())), None):
                yield hit[0], start, end
    if not held & OF_24:
        return
    import binascii

    runs = text.encode("utf-8", "replace").translate(_AS_BASE64).split()
    if not any(len(run) >= 24 and _readable(binascii.a2b_base64(run[:24])) for run in runs):
        return  # as nearly always: none begins with text
    long = [hit for hit in known if hit[2] - hit[1] >= 24]
    for match in _BASE64.finditer(text):
        plain = _decoded(match.group())
        if not plain or is_within(*match.span(), long):
            continue
        if hit := next(_find(plain, *held_in(plain.split())), None):
            yield hit[0], *match.span()


def _encoded_words(text: str) -> Iterator[tuple[int, int]]:
    """Where words with percent-encoding in them stand, from one quote or space to the next."""
    end = 0
    for encoded in _ENCODED.finditer(text):
        at = encoded.start()
        if at >= end:
            before, after = _WORD.match(text[end:at][::-1]), _WORD.match(text, at)
            if before is not None and after is not None:
                end = after.end()
                yield at - before.end(), end


def _decoded(word: str) -> str:
    """The text that this is base64 of, or nothing."""
    import base64
    import binascii

    try:
        head = word[:24].replace("-", "+").replace("_", "/")  # no break stands in it
        if not _readable(binascii.a2b_base64(head)):
            return ""
        word = "".join(word.split()).rstrip("=").replace("-", "+").replace("_", "/")
        data = base64.b64decode(word[: len(word) // 4 * 4] if len(word) % 4 == 1 else word + "=" * (-len(word) % 4))
    except binascii.Error:
        return ""
    return data.decode("utf-8", "replace") if _readable(data[:400]) else ""


def _readable(data: bytes) -> bool:
    return bool(data) and len(data.translate(None, _READABLE)) <= 0.05 * len(data)


def _placed(text: str, hits: list[Hit]) -> Iterator[Secret]:
    """Overlapping hits become one: its extent is that of all, its kind that of the one which says most."""
    hits.sort(key=lambda hit: (hit[1], -hit[2]))
    merged: list[Hit] = []
    for kind, start, end in hits:
        if merged and start < merged[-1][2]:
            old, first, last = merged[-1]
            merged[-1] = (kind if old in _SPECIFIC and kind not in _SPECIFIC else old, first, max(last, end))
        else:
            merged.append((kind, start, end))
    line, at = 1, 0
    for kind, start, end in merged:
        line += text.count("\n", at, start)
        at = start
        yield Secret(kind, start, end, line, start - text.rfind("\n", 0, start))
