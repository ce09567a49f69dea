"""Secrets by where they stand: in an address, a header, a command, a key block, a line of a password file.

The text is folded already (see folding).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memoranda.notes.lazyre import lazy
from memoranda.trust._values import is_random, is_stand_in, is_strong, is_uuid, is_word

Hit = tuple[str, int, int]  # kind, start, end

_PEM = lazy(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN).){8,}?(?:-----END[^\n]{0,60}|\Z)"
    r"|PuTTY-User-Key-File-\d: (?:.){60,}?Private-MAC: \S+|-----BEGIN OpenVPN Static key V1-----.{40,}?(?:-----END"
    r"|\Z)",
    re.DOTALL,
)
_BODY = lazy(r"[A-Za-z0-9+/]{24}")  # a block without one is a title or a pattern
_PEM_BASE64 = "LS0tLS1CRUdJTi"  # "-----BEGIN " begins with this in base64
_PEM_BLOCK = lazy(r"LS0tLS1CRUdJTi[A-Za-z0-9+/\s]{20,}={0,2}")
_ADDRESS = lazy(
    r"[A-Za-z][A-Za-z0-9+.-]{1,30}://(?P<user>[^\s/:@\"'<>?#]{0,80}):(?P<value>[^\s/\"'<>]{3,200}?)@(?=[\w\[%.$-])"
)
_QUERY = lazy(
    r"[?&;](?P<name>[A-Za-z_.-]{0,30}(?:key|token|secret|password|passwd|pwd|signature|sig"
    r"|auth))=(?P<value>[^&\s\"'<>#]{8,400})",
    2,
)
_HEADER = lazy(
    r"(?:authorization[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?:(?P<basic>basic|negotiate)|bearer|token|apikey|digest)?"
    r"|\bbearer|x-[a-z0-9-]{0,30}(?:key|token|crumb|secret)[\"']?\s{0,3}[:=,]|[\"'\s]api-?key:|jenkins-crumb:)"
    r"[\"']?\s{0,3}[\"']?(?P<value>[A-Za-z0-9_.~+/=|-]{12,4000})",
    re.IGNORECASE,
)
_COMMANDS = (
    (
        "curl",
        lazy(
            r"curl\b(?:[^\n]|\\\n|\n\s{1,20}-){0,400}?\s(?:-u|--user)[ =]{0,3}[\"']?(?P<user>[^\s:\"']{1,100}):"
            r"(?P<value>\"[^\"]{3,}\"|'[^']{3,}'|[^\s\"']{3,})"
        ),
    ),
    ("wget", lazy(r"wget\b[^\n]{0,200}?--(?:http-|ftp-)?password[= ][\"']?(?P<value>[^\s\"']{4,})")),
    ("mysql", lazy(r"\bmysql(?:dump|admin)?\b[^\n]{0,100}?\s-p(?P<value>[^\s\"'-][^\s\"']{3,})")),
    ("sshpass", lazy(r"\bsshpass\s+-p\s*[\"']?(?P<value>[^\s\"']{4,})")),
    ("docker login", lazy(r"docker login\b[^\n]{0,100}?\s-p[ =]?[\"']?(?P<value>[^\s\"']{4,})")),
    ("psexec", lazy(r"(?i:psexec)[^\n]{0,120}?\s-u\s+\S+\s+-p\s+(?P<value>[^\s]{4,})")),
    ("net use", lazy(r"net use [^\n]{0,100}?/user:\S+\s+(?P<value>[^\s/]{4,})")),
    ("redis-cli", lazy(r"redis-cli\b[^\n]{0,100}?\s-a\s+[\"']?(?P<value>[^\s\"']{4,})")),
    (
        "credential(",
        lazy(r"NetworkCredential\([^()]{1,100},\s*[\"'](?P<value>[^\"'\n]{4,})[\"']"),
    ),
    (
        "directoryentry(",
        lazy(r"DirectoryEntry\([^()]{1,100},[^()]{1,100},\s*[\"'](?P<value>[^\"'\n]{4,})[\"']"),
    ),
    ("unseal ", lazy(r"\boperator unseal\s+(?P<value>[A-Za-z0-9+/=]{20,})")),
    ("machine ", lazy(r"machine\s+\S+\s+login\s+\S+\s+password\s+(?P<value>\S{3,})")),
    ("contribsys", lazy(r"BUNDLE_\w*CONTRIBSYS\w*[\"']?\s*[:=]\s*[\"']?(?P<value>[a-f0-9]{8}:[a-f0-9]{8})")),
)  # fmt: skip
_HASH = lazy(
    r"(?<![\w$])(?:\$2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"
    r"|\$[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}"
    r"|\$1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|\$[89]\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}"
    r"|\$y\$[./A-Za-z0-9$]{40,}"
    r"|\$argon2(?:id?|d)\$[A-Za-z0-9=,$+/]{40,}|\$krb5(?:asrep|tgs)\$(?:23\$)?\S{60,}|\$apr1\$\S{8}\$\S{22}"
    r"|\$scrypt\$\S{40,}|pbkdf2_sha\d+\$\d+\$[A-Za-z0-9]+\$[A-Za-z0-9+/=]{20,})"
)
_PAIR = lazy(
    r"\b(?:login|logins|credentials?|creds|identifiants?|compte|account|acc[eè]s|connexion|log ?in with|sign ?in with"
    r"|connecte(?:r|z)?(?: avec)?|se connecter avec|auth)\b(?P<gap>[^\n:]{0,40}?)[ \t]*(?::|=|with|avec|are|is|sont"
    r"|est|as)?[ \t]+"
    r"[\"'`]?(?P<user>[\w.@+-]{2,40})[\"'`]?[ \t]{0,2}(?:/|\||,|:|;|->|and|et"
    r"|&)[ \t]{0,2}[\"'`]?(?P<value>[^\s\"'`]{6,64})",
    re.IGNORECASE,
)
_PIN = lazy(
    r"\b(?:pin|pin[ -]?code|code[ -]?pin|digicode|passcode|code secret|secret code|cvv|cvc|puk|nip"
    r"|(?:door|gate|alarm|safe|entry|access|lock|garage|locker|vault|sim|unlock|security)[ -]code"
    r"|code (?:de (?:la )?(?:porte|carte|sécurité|déverrouillage|l'alarme|l'entrée|l'immeuble)|d'entrée|d'accès"
    r"|du (?:coffre|portail|digicode|garage|portable|téléphone)|d'alarme|d'immeuble|wifi))\b"
    r"(?:[ \t]+(?!is\b|est\b)[^\s:=.!?]{1,20}){0,6}?[ \t]*(?:\bis\b|\best\b|:|=|was\b|now\b|changed to\b)"
    r"[ \t]*(?:now |désormais |maintenant |changed to |set to |le |:)?[ \t]*[\"'`#*]?"
    r"(?P<value>[A-D]?\d(?:[ -]?[\dA-D]){2,9}[#*]?)(?![\w/:.,-]\d|\w)",
    re.IGNORECASE,
)
_SHORT_PIN = lazy(r"\b(?:PIN|PUK|CVV|CVC|NIP)\b[ \t]+(?P<value>\d{3,8})(?![\w:.,/-]\d|\w)")
_ROOT = lazy(
    r"\b(?:root|admin(?:istrator)?|user|guest|demo|sa|postgres|invité)[ \t]?[/:|][ \t]?(?P<value>[^\s\"'`]{6,64})"
)
_PHRASE = lazy(
    r"(?:(?:seed|recovery|mnemonic|backup|secret|wallet)[ _-](?:phrase|words|seed|recovery phrase)"
    r"|phrase (?:de récupération|secrète|mnémonique|de passe)|mnemonic|bip-?39)"
    r"[^\n]{0,60}?[:=\n][\s\"'`]*(?P<value>(?:(?:\d{1,2}[.)]\s*)?[a-zà-ÿ]{3,10}[\s,]+){11,23}[a-zà-ÿ]{3,10})",
    re.IGNORECASE,
)


_BACKUP = lazy(
    r"\b(?:(?:back-?up|recovery|rescue|scratch|2fa|mfa)[ -]codes?|codes? de (?:secours"
    r"|récupération))[^:\n(]{0,40}?(?::|are|sont|=)"
    r"\s*(?P<value>(?=[a-z-]{0,11}\d)[a-z0-9]{4,8}(?:-[a-z0-9]{4,8})?(?:[\s,;]+(?=[a-z-]{0,11}\d)[a-z0-9]{4,8}(?:-[a-z0-9]{4,8})?)*)",
    re.IGNORECASE,
)
_ACCOUNT_WORDS = ("login", "log in", "logins", "credential", "creds", "identifiant", "compte", "account", "acc", "auth",
                  "connexion", "connecte", "sign in")  # fmt: skip
_ROOT_WORDS = ("root", "admin", "user", "guest", "demo", "sa/", "sa /", "postgres", "invité")
_PIN_WORDS = (" pin", "pin ", "pin:", "code", "cvv", "cvc", "puk", "nip ", "nip:")
_PHRASE_WORDS = ("phrase", "mnemonic", "bip", "seed", "words")


def find(text: str, low: str, longest: int, digits: int) -> Iterator[Hit]:
    """Everything that its place betrays.

    Args:
        text: folded.
        low: the text in lower case, of the same length.
        longest: the length of its longest word.
        digits: how many digits it has.
    """
    if longest >= 12:
        yield from _long(text, low)
    for hint, command in _COMMANDS:
        if hint in low:
            for match in command.finditer(text):
                if not _stands_in(match["value"]):
                    yield "password", *match.span("value")
    if digits and any(word in low for word in _ACCOUNT_WORDS):
        yield from _pairs(text, _PAIR)
    if digits and any(word in low for word in _ROOT_WORDS):
        yield from _pairs(text, _ROOT)
    if digits >= 3 and any(word in low for word in _PIN_WORDS):
        for match in _PIN.finditer(text):
            yield "pin", *match.span("value")
        for match in _SHORT_PIN.finditer(text):
            yield "pin", *match.span("value")
        for match in _BACKUP.finditer(text):
            yield "backup_code", *match.span("value")
    if any(word in low for word in _PHRASE_WORDS):
        yield from _phrases(text)


def _long(text: str, low: str) -> Iterator[Hit]:
    """What has a word of at least 12 characters in it."""
    yield from _key_blocks(text)
    if "://" in text:
        yield from _addresses(text)
    if "=" in text and ("?" in text or "&" in text):
        yield from _queries(text)
    if any(word in low for word in ("auth", "bearer", "x-", "apikey:", "api-key", "crumb:")):
        yield from _headers(text)
    if "$" in text:
        for match in _HASH.finditer(text):
            yield "password_hash", *match.span()


def _key_blocks(text: str) -> Iterator[Hit]:
    if "PRIVATE KEY" in text or "PuTTY-User-Key" in text or "OpenVPN Static" in text:
        for match in _PEM.finditer(text):
            if _BODY.search(match.group()):
                yield "private_key", *match.span()
    if _PEM_BASE64 in text:
        for match in _PEM_BLOCK.finditer(text):
            if _is_private(match.group()):
                yield "private_key", *match.span()


def _is_private(block: str) -> bool:
    """Whether base64 of a key block, with line breaks or without, is that of a private key."""
    import base64

    head = "".join(block.split())[:96]
    return b"PRIVATE KEY" in base64.b64decode(head[: len(head) // 4 * 4])


def _addresses(text: str) -> Iterator[Hit]:
    for match in _ADDRESS.finditer(text):
        value = match["value"]
        if (value == "secret" or not _stands_in(value)) and value.lower() != match["user"].lower():
            yield "connection_string", *match.span("value")


def _queries(text: str) -> Iterator[Hit]:
    for match in _QUERY.finditer(text):
        value, name = match["value"], match["name"].lower()
        if is_stand_in(value) or "public" in name or "csrf" in name or "page" in name:
            continue
        if is_random(value, 12) or is_uuid(value) or (("pass" in name or "pwd" in name) and is_strong(value)):
            yield "credential", *match.span("value")


def _headers(text: str) -> Iterator[Hit]:
    for match in _HEADER.finditer(text):
        value = match["value"]
        if is_stand_in(value):
            continue
        if is_random(value, 16) or is_uuid(value) or (match["basic"] and _is_basic(value)):
            yield "authorization", *match.span("value")


def _is_basic(value: str) -> bool:
    import base64
    import binascii

    try:
        return b":" in base64.b64decode(value, validate=True)
    except binascii.Error:
        return False


def _pairs(text: str, pattern: re.Pattern[str]) -> Iterator[Hit]:
    """`login: dana / Sunny42!`: a name and a password, as people write them."""
    for match in pattern.finditer(text):
        value = match["value"].rstrip(".,;:)")
        if is_strong(value) and any(c.isdigit() for c in value) and not is_stand_in(value) and "/" not in value:
            yield "password", *match.span("value")


def _phrases(text: str) -> Iterator[Hit]:
    """The words from which a wallet can be made again."""
    for match in _PHRASE.finditer(text):
        words = match["value"].split()
        if len(set(words)) > len(words) // 2 and sum(is_word(word.strip(",")) for word in words) <= 2:
            yield "recovery_phrase", *match.span("value")


def _stands_in(value: str) -> bool:
    return is_stand_in(value.strip("\"'>")) or value.startswith(("$", "%", "<", "{")) or value in ("test", "[PASSWORD]")
