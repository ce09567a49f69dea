"""Payment cards and bank accounts: digits with a check of their own, told from the many that have none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.notes.lazyre import lazy

_CARD = lazy(r"\d(?<![\w.,+/=-]\d)(?:[ -]?\d){13,18}(?![\w]|[.,/=-]\d)", re.ASCII)
_GROUPS = lazy(r"\d{14,19}|(\d{4})([ -])\d{4}\2\d{4}\2\d{2,4}(?:\2\d{1,3})?|\d{4}([ -])\d{6}\3\d{4,5}", re.ASCII)
_IBAN = lazy(r"[A-Za-z]{2}\d\d(?:[ -]?[A-Za-z0-9]){11,34}", re.ASCII)
# Each byte as what it is beside a number: a digit, a letter, a dash, a sign that goes on, anything else.
_SHAPES = (
    bytes(
        ord(
            "0"
            if char.isdigit()
            else "a"
            if char.isalpha()
            else "-"
            if char == "-"
            else "."
            if char in "_.,+/="
            else " "
        )
        for char in map(chr, range(128))
    )
    + b" " * 128
)
# What is in every card: a long run, two groups with a sign between, or a group between two spaces.
_CARD_RUN, _CARD_GROUPS = b" " + b"0" * 14, b" 0000-0000"
_IBAN_BEGIN = lazy(r"\d\d(?<=[A-Za-z]{2}\d\d)(?<![A-Za-z0-9][A-Za-z]{2}\d\d)", re.ASCII)  # digits are rare
_LENGTHS = {
    country: int(length)
    for country, length in (
        entry.split(":")
        for entry in (
            "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 "
            "DJ:27 DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HN:28 "
            "HR:21 HU:28 IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 "
            "MC:27 MD:24 ME:22 MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 "
            "RO:24 RS:22 RU:33 SA:24 SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 "
            "VA:22 VG:24 XK:20 YE:30"
        ).split()
    )
}
# First digits and lengths of each scheme: from, to (inclusive), how many digits the card has.
_RANGES = (
    ("4", "4", (16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("300", "305", (14,)),  # Diners
    ("36", "36", (14,)),
    ("38", "39", (14, 16)),
    ("3528", "3589", (16,)),  # JCB
    ("6011", "6011", (16, 19)),  # Discover
    ("644", "659", (16, 19)),
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("5018", "5018", (16, 18, 19)),  # Maestro
    ("5020", "5020", (16, 18, 19)),
    ("5038", "5038", (16, 18, 19)),
    ("5893", "5893", (16, 18, 19)),
    ("6304", "6304", (16, 18, 19)),
    ("6759", "6763", (16, 18, 19)),
    ("8171", "8171", (16,)),  # RuPay
    ("9792", "9792", (16,)),  # Troy
    ("2200", "2204", (16,)),  # Mir
)


def luhn(digits: str) -> bool:
    """Whether the last digit is right by the formula of Luhn."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        number = ord(char) - 48
        if place % 2:
            number = number * 2 - 9 if number > 4 else number * 2
        total += number
    return total % 10 == 0


def mod97(code: str) -> bool:
    """Whether letters and digits are right by ISO 7064 MOD 97-10, as an IBAN is (its first four moved to the end)."""
    return int("".join(str(int(char, 36)) for char in code)) % 97 == 1


def is_card(digits: str) -> bool:
    """Whether these digits are the number of a payment card: a known range, its length, a right last digit."""
    return (
        any(low <= digits[: len(low)] <= high and len(digits) in lengths for low, high, lengths in _RANGES)
        and len(set(digits)) > 1
        and luhn(digits)
    )


def cards(text: str) -> Iterator[tuple[int, int]]:
    """Where payment cards stand (start, end): in one run, or in the groups in which they are printed."""
    for match in _CARD.finditer(text):
        group = _GROUPS.match(match.group())
        if group and group.end() == len(match.group()) and is_card(_only_digits(match.group())):
            yield match.span()


def shape(text: str) -> bytes:
    """The text as what stands beside numbers: told in one step, and a fiftieth of what a pattern takes to go by."""
    return b" " + text.encode("utf-8", "replace").translate(_SHAPES)


def may_be_card(word: bytes) -> bool:
    """Whether a payment card can lie in a word of this shape or reach into it; most without a long number cannot."""
    return word in (b" 0000", b" 000000") or _CARD_RUN in word or _CARD_GROUPS in word


def may_be_account(word: bytes) -> bool:
    """Whether an account number can begin in a word of this shape."""
    return b"aa00" in word and (b" aa00" in word or b".aa00" in word or b"-aa00" in word)


def ibans(text: str) -> Iterator[tuple[int, int]]:
    """Where account numbers stand (start, end): a known country, its length, right modulo 97."""
    last = 0
    for begin in _IBAN_BEGIN.finditer(text):
        match = _IBAN.match(text, begin.start() - 2) if begin.start() - 2 >= last else None
        if match is None:
            continue
        last = match.end()
        country = match.group()[:2].upper()
        length = _LENGTHS.get(country)
        if length is None:
            continue
        taken, end = "", 0
        for end, char in enumerate(match.group(), 1):  # noqa: B007 - where it ends is what is asked
            if char.isalnum():
                taken += char
            if len(taken) == length:
                break
        after = text[match.start() + end : match.start() + end + 1]
        if len(taken) == length and not (after.isascii() and after.isalnum()) and mod97(taken[4:] + taken[:4]):
            yield match.start(), match.start() + end


def _only_digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())
