"""Numbers that a state gives to a person. Each has a check of its own, or else needs its name beside it.

A form with a weak check (one number in ten is right by chance) is taken only in its usual groups or after its name, so
that order numbers, versions and timestamps stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memoranda.notes.lazyre import lazy
from memoranda.trust.numbers import luhn

Hit = tuple[str, int, int]  # kind, start, end

_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"  # Spain: by the remainder of 23
_ODD = {
    char: int(value)
    for char, value in zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "1 0 5 7 9 13 15 17 19 21 1 0 5 7 9 13 15 17 19 21 2 4 18 20 11 3 6 8 12 14 16 10 22 25 24 23".split(),
        strict=True,
    )
}


def _nir(text: str) -> bool:
    """France, numéro de sécurité sociale: sex, year, month, place, order, key modulo 97; Corsica is 19 and 18."""
    digits = text.upper().replace("2A", "19").replace("2B", "18") if text[5:7].upper() in ("2A", "2B") else text
    return digits.isdigit() and int(digits[13:]) == 97 - int(digits[:13]) % 97


def _steuer_id(digits: str) -> bool:
    """Germany, Steuer-Identifikationsnummer: ISO 7064 MOD 11,10; one digit of the first ten occurs twice or thrice."""
    counts = sorted(digits[:10].count(digit) for digit in set(digits[:10]))
    if counts[-1] not in (2, 3) or counts[:-1].count(1) != len(counts) - 1 or digits[0] == "0":
        return False
    product = 10
    for char in digits[:10]:
        total = (int(char) + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10 == int(digits[10])


def _ssn(digits: str) -> bool:
    """United States, social security number: the numbers that were never given out are none."""
    return digits[:3] not in ("000", "666") and digits[0] != "9" and digits[3:5] != "00" and digits[5:] != "0000"


def _nino(text: str) -> bool:
    """United Kingdom, national insurance number: the prefixes that are not used are none."""
    return text[:2].upper() not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")


def _dni(text: str) -> bool:
    """Spain, DNI and NIE: the letter is the remainder of 23."""
    number = text[:-1].upper().translate({88: 48, 89: 49, 90: 50})
    return number.isdigit() and _LETTERS[int(number) % 23] == text[-1].upper()


def _codice_fiscale(text: str) -> bool:
    """Italy, codice fiscale: the last letter checks the fifteen before it."""
    text = text.upper()
    even = sum(int(char) if char.isdigit() else ord(char) - 65 for char in text[1:15:2])
    return chr((even + sum(_ODD[char] for char in text[0:15:2])) % 26 + 65) == text[15]


def _rijksregister(digits: str) -> bool:
    """Belgium, national register number: 97 minus the rest of the first nine, with a 2 before it from 2000 on."""
    return int(digits[9:]) in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97)


def _ahv(digits: str) -> bool:
    """Switzerland, AHV number: begins with 756, checked like a bar code."""
    total = sum(int(char) * (3 if place % 2 else 1) for place, char in enumerate(digits[:12]))
    return -total % 10 == int(digits[12])


def _bsn(digits: str) -> bool:
    """Netherlands, burgerservicenummer: weighted sum divisible by eleven."""
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return sum(w * int(char) for w, char in zip(weights, digits, strict=True)) % 11 == 0 and digits != "000000000"


def _pesel(digits: str) -> bool:
    """Poland, PESEL: weighted sum, last digit."""
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)
    return -sum(w * int(char) for w, char in zip(weights, digits[:10], strict=True)) % 10 == int(digits[10])


def _nhs(digits: str) -> bool:
    """United Kingdom, NHS number: weighted sum modulo eleven."""
    check = -sum((10 - place) * int(char) for place, char in enumerate(digits[:9])) % 11
    return check == int(digits[9])


def _rentenversicherung(text: str) -> bool:
    """Germany, Rentenversicherungsnummer: the letter as its two digits, sums of the digits of the products."""
    digits = f"{text[:8]}{ord(text[8].upper()) - 64:02}{text[9:11]}"
    products = (int(char) * weight for char, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1), strict=True))
    return sum(product // 10 + product % 10 for product in products) % 10 == int(text[11])


_BEFORE, _AFTER = r"(?<![\w.,/+-])", r"(?![\w]|[.,/-]\d)"
# Kind, its form, its check, and the name that has to stand before the form (None: the check is strong enough).
_FORMS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool], re.Pattern[str] | None], ...] = tuple(
    (kind, lazy(_BEFORE + form + _AFTER), check, lazy(name, re.IGNORECASE) if name else None)
    for kind, form, check, name in (
        ("fr_nir", r"[1-478] ?\d\d ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d\d|2[ABab]) ?\d{3} ?\d{3} ?\d\d", _nir, None),
        ("de_tax_id", r"[1-9]\d \d{3} \d{3} \d{3}", _steuer_id, None),
        ("de_tax_id", r"[1-9]\d{10}", _steuer_id, r"steuer|\btin\b|tax|\bidnr|\bid-nr"),
        ("de_pension_number", r"\d\d ?[0-3]\d[01]\d{3} ?[A-Za-z] ?\d{3}", _rentenversicherung, None),
        ("uk_nhs", r"\d{3}[ -]?\d{3}[ -]?\d{4}", _nhs, r"\bnhs\b"),
        ("us_ssn", r"\d{3}-\d\d-\d{4}", _ssn, None),
        ("us_ssn", r"\d{3} ?\d\d ?\d{4}", _ssn, r"\bssn\b|social security"),
        (
            "uk_nino",
            r"(?i:[a-ceghj-prstw-z][a-ceghj-nprstw-z])(?: ?\d\d){3} ?[A-Da-d]",
            _nino,
            None,
        ),
        ("es_dni", r"(?:\d{8}|[XYZxyz]-?\d{7})-?[A-Za-z]", _dni, None),
        ("it_codice_fiscale", r"[A-Za-z]{6}\d\d[A-EHLMPR-Ta-ehlmpr-t]\d\d[A-Za-z]\d{3}[A-Za-z]", _codice_fiscale, None),
        ("be_national_number", r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", _rijksregister, None),
        ("ch_ahv", r"756\.\d{4}\.\d{4}\.\d\d", _ahv, None),
        ("ch_ahv", r"756\d{10}", _ahv, r"\bahv|\bavs\b"),
        ("nl_bsn", r"\d{9}", _bsn, r"\bbsn\b|burgerservice|sofi"),
        ("pl_pesel", r"\d{11}", _pesel, r"pesel"),
        ("ca_sin", r"\d{3}[ -]\d{3}[ -]\d{3}", luhn, r"\bsin\b|\bnas\b|social insurance|assurance sociale"),
    )
)


def find(text: str) -> Iterator[Hit]:
    """National numbers in a folded text that has digits."""
    for kind, form, check, name in _FORMS:
        for match in form.finditer(text):
            if name is not None and name.search(text, max(0, match.start() - 40), match.start()) is None:
                continue
            if check(re.sub(r"[ .-]", "", match.group())):
                yield kind, *match.span()
