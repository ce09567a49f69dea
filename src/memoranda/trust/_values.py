"""What a value looks like: a stand-in, an ordinary word, a name in code, or something that nobody can guess."""

from __future__ import annotations

import math

from memoranda.notes.lazyre import lazy

# English and French words that stand where a value would, and say that there is none, or what it has to be.
_WORDS = frozenset(
    """
    a an the my your our his her their this that these those not no none null nil undefined empty blank missing
    unknown n/a na tbd todo true false yes on off here there in at by for from with without via per to of and or
    but if as so string str text bytes int integer number bool boolean object any optional required mandatory
    needed never always only also same different wrong right correct incorrect invalid valid weak strong secure
    insecure safe unsafe good bad easy hard simple complex long short too very case sensitive old new current
    previous next default private public password passwords passwd pwd pass passphrase secret secrets token tokens
    key keys login username user value credential credentials auth code pin hidden kept set reset sent given asked
    known written shown lost forgotten stolen been being gone going done part one two what when where how why who
    which something nothing anything everything important critical essential personal confidential example sample
    placeholder dummy fake mock foo bar baz foobar changeme change-me change_me input prompt field form hash bcrypt
    argon2 argon2id sha256 sha512 md5 pbkdf2 scrypt base64 hex uuid jwt oauth oauth2 sso keychain keyring vault
    bitwarden keepass keepassxc lastpass 1password dashlane env environment file config settings unset unique
    random alphanumeric numeric mixed up down out ok okay fine it he she we they i you is are was has have will
    must should can could may might needs expires works protects policy manager reset
    un une le la les l mon ma mes ton ta tes son sa ses notre votre leur ce cette ces pas non aucun aucune vide
    inconnu ici là dans sur avec sans pour par de du des et ou mais si que qui quoi toujours jamais trop très plus
    moins faux fausse bon bonne mauvais mauvaise faible fort forte sûr sûre long longue court courte différent
    identique même ancien ancienne nouveau nouvelle actuel actuelle perdu perdue connu connue transmis transmise
    requis requise obligatoire unique important personnel personnelle confidentiel confidentielle il elle on nous
    vous ils elles inscrit inscrite écrit écrite noté est sont doit peut expire aussi bien encore déjà
    """.split()
)
_ENDINGS = ("ed", "ing", "able", "ible", "ful", "less", "ous", "ive", "ly", "ment", "tion", "sion", "é", "ée", "és",
            "ées", "ante", "ile", "aire", "eux", "euse", "igé", "ié", "iée")  # fmt: skip
_VARIABLE = lazy(r"\\?(?:\$[A-Za-z_{(\[]|%[A-Za-z_(]|%\d*\$?[sd]\b|\{|<|\[|&[a-z]+;|@[({A-Z]|\(|#\{)|[A-Z_]+%$")
# Alternatives that begin with a letter or sign of their own are tried where one of those stands, and nowhere else.
_INSIDE = lazy(
    r"\{\{|\$\{|#\{|<%|%\(\w+\)|\$\(\w|\.\.\.|…|\*\*\*|••|\[hidden|\[HIDDEN|&lt;|&gt;|<[A-Za-z _-]+>|%[a-z_]+%"
)
_RUN = lazy(r"(.)\1{7}")
_TWICE = lazy(r"(.)\1")
_ROUND = lazy(r"(..?.)\1{5}")
_SAYS_SO = lazy(  # few alternatives: each is tried at every letter
    r"your[-_ ]?[a-z]|re(?:dacted|moved|place)|ex(?:ample|emple)|env(?:iron|\[)|p(?:laceholder|ut[_-]|rocess\.env)"
    r"|g(?:oes.?here|etenv)|insert|dummy|change.?(?:me|it)|votre|lorem|sample|fake(?:[-_]|(?<=\bfake))"
    r"|n(?:/a$|ot(?:[-_ ]?set|asecret|-a-secret))|m(?:asqu|y[-_]?(?:api[-_]?key|token|secret))"
    r"|test[-_]?(?:key|token|secret|password)$|<.*>$"
)
_CODE = lazy(
    r"[A-Za-z_]\w*(?:(?:\.|->|::|\?\.)[A-Za-z_]\w*)+[\[(]?.*|[A-Za-z_][\w.:>-]*[\[(].*|[a-z]+(?:[A-Z][a-z]+)+"
    r"|_*[A-Za-z]+(?:_[A-Za-z]+)+|_*[A-Z][a-z]+(?:[A-Z][a-z]+)+"
)
_ORDINARY = lazy(
    r"(?:https?|ftp|file|nas)://\S*|www\.\S+|~?/[\w./-]+|[A-Za-z]:\\\S*|\.{0,2}/\S+|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|[A-Za-z]+(?:[-'/&+.][A-Za-z]+)*|\d[\d.,:/-]*(?:[A-Za-z%°€$]{1,5})?|v\d[\w.]*|[A-Za-z]{1,3}-?\d{1,3}"
    r"|\d+(?:st|nd|rd|th|er|e|ème|eme)|[\w-]+\.[a-z]{2,5}|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\d+-[a-z]+(?:-[a-z]+)*"
    r"|[a-z]+-\d+|#\S+|[A-Z]{2,}-\d+|(?i:sha|md|oauth|ipv|utf|base|argon|python|http|https|rsa|aes|windows|gpt|saml"
    r"|ed|secp|tls|mod|level|version|win|id|rfc|iso|ps|web|id|log4j)-?\d+\w*"
)
_NUMBERED = lazy(r"[a-z]{1,12}\d{0,2}(?:[-_.][a-z]{1,12}\d{0,2})*[-_.]\d{1,20}")  # `deploy-qa-20261002`
_LETTER, _DIGIT = lazy(r"[^\W\d_]"), lazy(r"\d")
_PARTS = lazy(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_UUID = lazy(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_UNSAYABLE = lazy(r"q[^u]|[jvwxz][bcdfghjkmnpqtvwxz]|[bcdfgmpqtvwz]x|[bcdfghjklmnprstvwxz]{2}[jqvwxz]|^[a-f]+$")
_CONSONANTS = lazy(r"[^aeiouyAEIOUY]{5}")
# All bytes but these as spaces.
_SMALL, _DIGITS = (
    bytes(code if code in kept else 32 for code in range(256))
    for kept in (b"abcdefghijklmnopqrstuvwxyz", b"0123456789")
)
_N_LOG_N = [0.0, *(n * math.log2(n) for n in range(1, 513))]


def is_stand_in(value: str) -> bool:
    """Whether it stands for a value and is none: a variable, a template, `xxxx`, `your-key-here`, `None`."""
    value = value.strip("\"'")
    return is_form(value) or (_SAYS_SO.search(value.lower()) is not None and not is_random(value, 16))


def is_form(value: str) -> bool:
    """Whether it is a variable, a masked form or a word that says that there is none; for what is random anyway."""
    return is_masked(value) or is_variable(value) or value.strip(".,;:!?").lower() in _WORDS


def is_variable(value: str) -> bool:
    """Whether a variable or a template fills it: `$password`, `{{ password }}`, `%s`, `<password>`."""
    return _VARIABLE.match(value) is not None


def is_masked(value: str, kinds: int = 0) -> bool:
    """Whether a form was filled with one character over and over, or with dots; `kinds` of characters if known."""
    kinds = kinds or len(set(value))
    if kinds <= 2:
        return True
    # Of eight in a row two of every fourth are neighbours; what comes later are zeros in base64.
    if len(value) - kinds >= 7 and _TWICE.search(value[3:80:4]) and _RUN.search(value, 0, 80):
        return True
    if _INSIDE.search(value) is not None:
        return True
    low = value.lower()
    return "xxxx" in low or "redacted" in low or "removed" in low or "censur" in low


def is_dummy(token: str) -> bool:
    """Whether a token is filled so, or with two or three characters over and over."""
    kinds = len(set(token))
    if is_masked(token, kinds):
        return True
    return len(token) >= 12 and kinds * 3 <= len(token) and _ROUND.search(token, 0, 80) is not None


def is_code(value: str) -> bool:
    """Whether an unquoted value reads like an expression: a call, an attribute, an identifier of several words."""
    return _CODE.fullmatch(value) is not None


def is_ordinary(value: str) -> bool:
    """Whether it is a number, a date, an address, a path, a version, a name of something."""
    return _ORDINARY.fullmatch(value) is not None


def is_place(value: str) -> bool:
    """Whether it is an address or begins as a path does: where a key is, perhaps, and none itself."""
    return "://" in value or value.startswith(("/", "./", "../", "~/"))


def is_word(value: str) -> bool:
    """Whether it is a word that says something about a password (wrong, expired, obligatoire) instead of being"
    " one."""
    word = value.lower()
    return word in _WORDS or (len(word) > 4 and word.endswith(_ENDINGS))


def is_strong(value: str) -> bool:
    """Whether it is made like a password and not like a word, a number, a date, an address or a name of something."""
    if not 5 <= len(value) <= 128 or is_ordinary(value):
        return False
    return _LETTER.search(value) is not None and (_DIGIT.search(value) is not None or not value[1:].isalnum())


def is_random(value: str, least: int) -> bool:
    """Whether at least `least` characters look drawn at random: no words, few repetitions, not an identifier."""
    if len(value) < least or not value.isascii() or " " in value or _NUMBERED.fullmatch(value):
        return False
    if not _is_restless(value) and len(parts := _PARTS.findall(value)) * 4 < len(value):
        wordy = sum(len(part) for part in parts if len(part) >= 4 and _is_wordlike(part))
        if wordy * 2 > len(value) or not _DIGIT.search(value):
            return False
    elif len(value) < 20 and not _DIGIT.search(value):
        return False
    return _is_varied(value, 2.8 if least < 20 else 3.1)


def _is_restless(value: str) -> bool:
    """Whether it changes between letters and digits as no word does: then its parts need not be looked at."""
    data = value.encode()
    return (len(data.translate(_SMALL).split()) + len(data.translate(_DIGITS).split())) * 4 >= len(data)


def is_uuid(value: str) -> bool:
    return _UUID.fullmatch(value) is not None


def _is_varied(value: str, bits: float) -> bool:
    """Whether the entropy is at least so many bits. Most often it cannot be less, and nothing has to be counted."""
    size, kinds = len(value), len(set(value))
    most = size - kinds + 1  # how often one character occurs at most
    if 0 < most < len(_N_LOG_N) and math.log2(size) - _N_LOG_N[most] / size >= bits:
        return True
    return entropy(value) >= bits


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs."""
    value = value[:512]
    size = len(value)
    return math.log2(size) - sum(map(_N_LOG_N.__getitem__, map(value.count, set(value)))) / size


def _is_wordlike(part: str) -> bool:
    """Letters that could be pronounced: never more than four consonants in a row, no `qx` and the like."""
    return part.isalpha() and not _CONSONANTS.search(part) and not _UNSAYABLE.search(part.lower())
