"""Secrets as people write them down: a name and a password, a code, the words of a wallet.

The text is folded already (see folding). Each pattern is tried where one of its first words stands, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.notes.lazyre import lazy
from memoranda.trust._hints import Group, beginning, starts
from memoranda.trust._values import is_stand_in, is_strong, is_word

Hit = tuple[str, int, int]  # kind, start, end

_ACCOUNTS = beginning(
    "login", "log in with", "logins", "credential", "creds", "identifiant", "compte", "account", "accès", "acces",
    "connexion", "connecte", "se connecter avec", "sign in with", "auth",
)  # fmt: skip
_PAIR = lazy(
    r"(?:logins?|credentials?|creds|identifiants?|compte|account|acc[eè]s|connexion|log ?in with|sign ?in with"
    r"|connecte(?:r|z)?(?: avec)?|connecte-toi avec|se connecter avec|auth)\b[^\n:]{0,40}?[ \t]*(?::|=|with|avec|are|is"
    r"|sont|est|as)?[ \t]+[\"'`]?[\w.@+-]{2,40}[\"'`]?[ \t]{0,2}(?:/|\||,|:|;|->|and|et|&)[ \t]{0,2}[\"'`]?"
    r"(?P<value>[^\s\"'`]{6,64})",
    re.IGNORECASE,
)
_ROOTS = beginning("root", "admin", "user", "guest", "demo", "sa/", "sa /", "postgres", "invité")
_ROOT = lazy(
    r"(?:root|admin(?:istrator)?|user|guest|demo|sa|postgres|invité)[ \t]?[/:|][ \t]?(?P<value>[^\s\"'`]{6,64})", 2
)
_PINS = beginning("pin", "digicode", "passcode", "cvv", "cvc", "puk", "nip", "code", "secret code")
_PIN = lazy(
    r"(?:pin(?:[ -]?code)?|digicode|passcode|cvv|cvc|puk|nip|secret code|code(?:[ -]?pin| secret| wifi"
    r"| de (?:la )?(?:porte|carte|sécurité|déverrouillage|l'alarme|l'entrée|l'immeuble)"
    r"| d'(?:entrée|accès|alarme|immeuble)| du (?:coffre|portail|digicode|garage|portable|téléphone)|(?P<bare>)))\b"
    r"(?:[ \t]+(?!is\b|est\b)[^\s:=.!?]{1,20}){0,6}?[ \t]*(?:\bis\b|\best\b|:|=|was\b|now\b|changed to\b)"
    r"[ \t]*(?:now |désormais |maintenant |changed to |set to |le |:)?[ \t]*[\"'`#*]?"
    r"(?P<value>[A-D]?\d(?:[ -]?[\dA-D]){2,9}[#*]?)(?![\w/:.,-]\d|\w)",
    re.IGNORECASE,
)
_CODE_OF = lazy(r"\b(?:door|gate|alarm|safe|entry|access|lock|garage|locker|vault|sim|unlock|security)[ -]$")
_SHORT_PIN = lazy(r"\b(?:PIN|PUK|CVV|CVC|NIP)\b[ \t]+(?P<value>\d{3,8})(?![\w:.,/-]\d|\w)")
_BACKUPS = beginning("backup", "back-up", "recovery", "rescue", "scratch", "2fa", "mfa", "codes de", "code de")
_BACKUP = lazy(
    r"(?:(?:back-?up|recovery|rescue|scratch|2fa|mfa)[ -](?:backup )?codes?|codes? de (?:secours|récupération))"
    r"[^:\n(]{0,40}?(?::|are|sont|=)\s{0,3}"
    r"(?P<value>(?=[a-z-]{0,11}\d)[a-z0-9]{4,8}(?:-[a-z0-9]{4,8})?(?:[\s,;]{1,3}(?=[a-z-]{0,11}\d)[a-z0-9]{4,8}"
    r"(?:-[a-z0-9]{4,8})?){0,20})",
    re.IGNORECASE,
)
_PHRASES = beginning("seed", "recovery", "mnemonic", "backup", "secret", "wallet", "phrase", "bip")
_PHRASE = lazy(
    r"(?:(?:seed|recovery|mnemonic|backup|secret|wallet)[ _-](?:phrase|words|seed|recovery phrase)"
    r"|phrase (?:de récupération|secrète|mnémonique|de passe)|mnemonic|bip-?39)"
    r"[^\n]{0,60}?[:=\n][\s\"'`]{0,4}(?P<value>(?:(?:\d{1,2}[.)]\s?)?[a-zà-ÿ]{3,10}[\s,]{1,3}){11,23}[a-zà-ÿ]{3,10})",
    re.IGNORECASE,
)
ASKED = _ACCOUNTS.mask | _ROOTS.mask | _PINS.mask | _BACKUPS.mask | _PHRASES.mask  # without these nothing is found


def find(text: str, low: str, digits: int, held: int) -> Iterator[Hit]:
    """What people write down. `low` is the text in lower case, `digits` how many digits it has, `held` its hints."""
    if digits and held & (_ACCOUNTS.mask | _ROOTS.mask):
        yield from _pairs(text, low, held, _ACCOUNTS, _PAIR)
        yield from _pairs(text, low, held, _ROOTS, _ROOT)
    if digits >= 3:
        for at in starts(low, held, _PINS):
            yield from _pin(text, low, at)
        for at in starts(low, held, _BACKUPS):
            if match := _BACKUP.match(text, at):
                yield "backup_code", *match.span("value")
    for at in starts(low, held, _PHRASES):
        yield from _phrase(text, at)


def _pairs(text: str, low: str, held: int, words: Group, pattern: re.Pattern[str]) -> Iterator[Hit]:
    """`login: dana / Sunny42!`: a name and a password."""
    for at in starts(low, held, words):
        match = pattern.match(text, at)
        if match is None:
            continue
        value = match["value"].rstrip(".,;:)")
        if is_strong(value) and any(c.isdigit() for c in value) and not is_stand_in(value) and "/" not in value:
            yield "password", *match.span("value")


def _pin(text: str, low: str, at: int) -> Iterator[Hit]:
    match = _PIN.match(text, at) or _SHORT_PIN.match(text, at)
    if match is None:
        return
    if match.re.groups > 1 and match["bare"] is not None and not _CODE_OF.search(low, max(0, at - 12), at):
        return  # a code of anything, not of a door
    yield "pin", *match.span("value")


def _phrase(text: str, at: int) -> Iterator[Hit]:
    """The words from which a wallet can be made again."""
    match = _PHRASE.match(text, at)
    if match is None:
        return
    words = match["value"].split()
    if len(set(words)) > len(words) // 2 and sum(is_word(word.strip(",")) for word in words) <= 2:
        yield "recovery_phrase", *match.span("value")
