"""Personal data in a text: what it is and where, never what it says.

Mail addresses, telephone numbers, accounts, cards, national numbers and IP addresses. What merely looks like one (a
version, a date, an id, a hash, a coordinate) is not taken: each kind has a check, a grouping or a word beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.notes.lazyre import lazy
from memoranda.trust import _national
from memoranda.trust.folding import fold
from memoranda.trust.numbers import cards, ibans
from memoranda.values import dataclass

Hit = tuple[str, int, int]  # kind, start, end

_MAIL = lazy(r"(?<![\w.+%-])[\w+%-](?:[\w.+%-]{0,62}[\w+%-])?@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_SPELT = lazy(
    r"(?<![\w.])[\w.+-]{2,64} ?[\[({] ?(?:at|arobase|@|chez) ?[\])}] ?[\w-]{2,63}"
    r"(?: ?[\[({] ?(?:dot|point|\.) ?[\])}] ?|\.)[a-z]{2,24}(?!\w)",
    re.IGNORECASE,
)
_NOT_A_DOMAIN = frozenset("png jpg jpeg gif svg webp ico css js mjs ts py md html json yaml yml txt zip gz whl".split())
_DOMAINS = frozenset("com org net edu gov info eu fr de uk us ch at be nl lu it es pt pl ie ca io".split())
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_FOUR = lazy(rf"(?<![\w.-])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w-]|\.\d)", re.ASCII)
_HOST = lazy(
    r"(?:\bip|ipv4|address|adresse|host|server|serveur|client|remote|peer|dns|gateway|ffff)\w{0,10}:$", re.IGNORECASE
)
_VERSION = lazy(
    r"(?:\bv|version|release|build|revision|firmware|driver|chapter|section|§|article|rule|step|update|[=~<>]=|@)\W{0,3}$",
    re.IGNORECASE,
)
_SIX = lazy(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:]|\.\d)", re.ASCII)
_PHONE = lazy(
    r"(?:(?<![\w+.,:/#=@$€£-])|(?<=[A-Za-z][:=]))(?:\+|00)?[(]?\d(?:[ .()/\u00a0-]{0,2}\d){6,15}(?![\w]|[.,:/-]\d)",
    re.ASCII,
)
_CALLS = lazy(
    r"(?:\bt[ée]l|phone|mobile?\b|handy|\bfax|\bcall|appel|whatsapp|signal|\bsms|\bjoindre|contact|num[ée]ro|rufnummer"
    r"|\bcell\b|\bring\b|\bportable|☎|📞)\w*[^\d\n]{0,20}$",
    re.IGNORECASE,
)
_DATE = lazy(r"\d{1,2}[-./ ]\d{1,2}[-./ ]\d{4}|\d{4}[-./ ]\d\d[-./ ]\d\d.*|(?:19|20)\d\d-(?:19|20)\d\d")
# How a number is written at home; the region is asked whether it is one of its numbers.
_AT_HOME = (
    ("FR", lazy(r"0[1-9](?:([ .-]?)\d\d)(?:\1\d\d){3}"), True),
    ("US", lazy(r"(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}"), True),
    ("GB", lazy(r"\(?0(?:[127]\d{1,4}|3\d{2,3}|800)\)?(?: \d{3,6}){1,2}(?: \d{3,4})?"), True),
    ("GB", lazy(r"07\d{9}"), True),
    ("DE", lazy(r"01[567]\d{8,9}|\(0[1-9]\d{1,4}\) ?\d{3,8}"), True),
    ("DE", lazy(r"\(?0[1-9]\d{1,4}\)?(?: ?[/-] ?| )\d{2,}(?:[ -]?\d{2,}){0,4}"), False),
)
_BARE = lazy(r"1?[2-9]\d{9}")  # in the United States, after a word that says what it is


@dataclass(frozen=True, slots=True)
class Personal:
    """Where personal data stands: characters `start` to `end` (exclusive); `line` and `column` count from 1.

    `kind` is a stable word (`email`, `phone`, `iban`, `card`, `ip_address`, `fr_nir`, …). The value is nowhere in it.
    """

    kind: str
    start: int
    end: int
    line: int
    column: int


def find_personal(text: str) -> tuple[Personal, ...]:
    """All personal data in the text, in its order, none inside another."""
    folded = fold(text)
    hits = sorted(((kind, *folded.span(a, b)) for kind, a, b in _find(folded.text)), key=lambda hit: (hit[1], -hit[2]))
    found: list[Personal] = []
    line = at = last = 0
    for kind, start, end in hits:
        if start < last:
            continue
        line += text.count("\n", at, start)
        at, last = start, end
        found.append(Personal(kind, start, end, line + 1, start - text.rfind("\n", 0, start)))
    return tuple(found)


def _find(text: str) -> Iterator[Hit]:
    if "@" in text:
        yield from _mail(text)
    if "(" in text or "[" in text or "{" in text:
        yield from (("email", *match.span()) for match in _SPELT.finditer(text))
    digits = sum(map(text.count, "0123456789"))
    if digits >= 4:
        yield from _addresses(text)
    if digits >= 6:
        yield from _national.find(text)
        yield from (("card", *span) for span in cards(text))
        yield from (("iban", *span) for span in ibans(text))
        yield from _phones(text)


def _mail(text: str) -> Iterator[Hit]:
    for match in _MAIL.finditer(text):
        name, _, domain = match.group().partition("@")
        rest, _, last = domain.rpartition(".")
        named = last.lower() == "md" and rest.rpartition(".")[2].lower() in _DOMAINS  # a note that is named by it
        if last.lower() in _NOT_A_DOMAIN and not named:
            continue
        before = text[max(0, match.start() - 60) : match.start()]
        address = before[before.rindex("://") + 3 :] if "://" in before else " "
        if not any(char.isspace() or char in "/?" for char in address):
            continue  # `https://user:word@host.org`
        if name == "git" and text[match.end() : match.end() + 1] in (":", "/"):
            continue
        yield "email", *match.span()


def _addresses(text: str) -> Iterator[Hit]:
    for match in _FOUR.finditer(text):
        first = match.group().split(".")[0]
        before, after = text[max(0, match.start() - 24) : match.start()], text[match.end() : match.end() + 1]
        if (after == "/" and not before.endswith("://")) or (before.endswith(":") and not _HOST.search(before)):
            continue  # a network or a part of a path; a version of an image
        if first in ("0", "127", "255") or _VERSION.search(text[max(0, match.start() - 14) : match.start()]):
            continue
        yield "ip_address", *match.span()
    for match in _SIX.finditer(text):
        if _is_address(match.group()):
            yield "ip_address", *match.span()


def _is_address(text: str) -> bool:
    groups = [group for group in text.split(":") if group]
    if len(groups) < 3 or ("::" not in text and len(groups) != 8) or not any(c.isdigit() for c in text):
        return False
    import ipaddress

    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


def _phones(text: str) -> Iterator[Hit]:
    for match in _PHONE.finditer(text):
        found = match.group()
        if _DATE.fullmatch(found) or found in "01234567890123456789":
            continue
        before = text[max(0, match.start() - 40) : match.start()]
        called = _CALLS.search(before) is not None
        if before.endswith((":", "=")) and not (called or found.startswith("+")):
            continue
        if _is_phone(found, called):
            yield "phone", *match.span()


def _is_phone(text: str, called: bool) -> bool:
    """Whether it is a telephone number: as written abroad, or as written at home in one of four countries."""
    if text.startswith("+"):
        return _exists(text, None)
    if text.startswith("00"):
        return _exists("+" + text[2:], None)
    for region, form, grouped in _AT_HOME:
        if form.fullmatch(text) and (grouped or called or sum(map(str.isdigit, text)) >= 10) and _exists(text, region):
            return True
    if called:
        if _BARE.fullmatch(text) and _exists(text, "US"):
            return True
        if _AT_HOME[1][1].fullmatch(text):  # (555) 123-4567: no such area, and yet nothing else
            return True
        return text.startswith("0") and any(_exists(text, region) for region in ("FR", "GB", "DE"))
    return False


def _exists(text: str, region: str | None) -> bool:
    import phonenumbers

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text, region))
    except phonenumbers.NumberParseException:
        return False
