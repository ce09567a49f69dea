"""Secrets by where they stand: in an address, a header, a command, a key block, a line of a password file.

The text is folded already (see folding).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memoranda.notes.lazyre import lazy
from memoranda.trust._hints import OF_12, Hit, anywhere, beginning, is_within, starts
from memoranda.trust._values import is_random, is_stand_in, is_strong, is_uuid, is_variable

_PEM = lazy(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN).){8,}?(?:-----END[^\n]{0,60}|\Z)"
    r"|PuTTY-User-Key-File-\d: (?:.){60,}?Private-MAC: \S+|-----BEGIN OpenVPN Static key V1-----.{40,}?(?:-----END"
    r"|\Z)",
    re.DOTALL,
)
_BODY = lazy(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24}")  # a block without one is a title or a pattern
_PEM_BASE64 = "LS0tLS1CRUdJTi"  # "-----BEGIN " begins with this in base64
_PEM_BLOCK = lazy(r"LS0tLS1CRUdJTi[A-Za-z0-9+/\s]{20,}={0,2}")
_SCHEME = lazy(r"[A-Za-z][A-Za-z0-9+.-]{1,30}$")
_ADDRESS = lazy(r"://(?P<user>[^\s/:@\"'<>?#]{0,80}):(?P<value>[^\s/\"'<>]{3,200}?)@(?=[\w\[%.$-])")
_QUERY = lazy(
    r"[?&;](?P<name>[A-Za-z_.-]{0,30}(?:key|token|secret|password|passwd|pwd|signature|sig"
    r"|auth))=(?P<value>[^&\s\"'<>#]{8,400})",
    2,
)
_HEADER = lazy(
    r"(?:authorization[\"']?\s{0,3}[:=,]\s{0,3}[\"']?(?:(?P<basic>basic|negotiate)|bearer|token|apikey|digest)?"
    r"|bearer|x-[a-z0-9-]{0,30}(?:key|token|crumb|secret)[\"']?\s{0,3}[:=,]|api-?key:|jenkins-crumb:"
    r"|cookie[\"']?\s{0,3}:\s{0,3}[\w.-]{1,40}=)[\"']?\s{0,3}[\"']?(?P<value>[A-Za-z0-9_.~+/=|@-]{12,4000})",
    re.IGNORECASE,
)
_COMMANDS = (
    (
        "curl",
        lazy(
            r"curl\b(?:[^\n]|\\\n|\n\s{1,20}-){0,400}?\s(?:-u|--user)[ =]{0,3}[\"']?(?:[^\s:\"']{1,100}[\"']?:"
            r"(?P<value>\"[^\"]{3,}\"|'[^']{3,}'|[^\s\"']{3,})|(?P<alone>[^\s:\"']{8,100}):[\"'\s])"
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
    ("unseal ", lazy(r"\boperator unseal\s+(?P<value>[A-Za-z0-9+/=]{20,})")),
    ("machine ", lazy(r"machine\s+\S+\s+login\s+\S+\s+password\s+(?P<value>\S{3,})")),
    ("sonar.login", lazy(r"sonar\.login[\"']?\s{0,3}[=:,]\s{0,3}[\"']?(?P<value>(?:sq[apu]_)?[a-f0-9]{40})\b")),
    (
        "postmark",
        lazy(
            r"postmark\w{0,20}[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12})", 2
        ),
    ),
    ("contribsys", lazy(r"BUNDLE_\w*CONTRIBSYS\w*[\"']?\s*[:=]\s*[\"']?(?P<value>[a-f0-9]{8}:[a-f0-9]{8})")),
)  # fmt: skip
# Places that hold a name and a password, and nothing else: there even `password` is one, a variable is not.
_LITERALS = (
    (
        "directoryentry(",
        lazy(r"DirectoryEntry\([^()]{1,100},[^()]{1,100},\s*[\"'](?P<value>[^\"'\n$]{4,})[\"']"),
    ),
    ("->password", lazy(r"->Password\s{0,8}=\s{0,3}[\"'](?P<value>[^\"'\n$]{4,60})[\"']")),
    (
        "username",
        lazy(
            r"username(?<!\wusername)[ \t]+([\"'])[^\"'\n$]{1,60}\1\s+password[ \t]+([\"'])"
            r"(?P<value>[^\"'\n$]{3,60})\2"
        ),
    ),
)
_HASH = lazy(
    r"\$(?<![\w$]\$)(?:2[abxy]?\$\d\d\$[./A-Za-z0-9]{53}"
    r"|[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}"
    r"|1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|[89]\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}"
    r"|y\$[./A-Za-z0-9$]{40,}"
    r"|argon2(?:id?|d)\$[A-Za-z0-9=,$+/]{40,}|krb5(?:asrep|tgs)\$(?:23\$)?\S{60,}|apr1\$\S{8}\$\S{22}"
    r"|scrypt\$\S{40,})"
)
_NAMED_HASH = lazy(r"pbkdf2_sha\d+\$\d+\$[A-Za-z0-9]+\$[A-Za-z0-9+/=]{20,}")
_HEADERS = beginning("authorization", "bearer", "x-", "api-key", "apikey", "jenkins-crumb", "cookie")
_TOOLS = anywhere(
    *(hint for hint, _ in (*_COMMANDS, *_LITERALS)),
    beginning=(
        "curl", "wget", "mysql", "sshpass", "docker login", "psexec", "net use", "redis-cli", "unseal ", "machine ",
        "contribsys", "directoryentry(", "username",
    ),
)  # fmt: skip
ASKED = OF_12 | _TOOLS.mask  # without one of these there is nothing to find


def find(text: str, low: str, held: int, known: Sequence[Hit] = ()) -> Iterator[Hit]:
    """Everything that its place betrays. `low` is the text in lower case, `held` are its hints.

    What lies in a hit that is `known` to be of one maker adds nothing.
    """
    if held & OF_12:
        yield from _long(text, low, held, known)
    if not held & _TOOLS.mask:
        return
    for number in _TOOLS.held(held):
        if number >= len(_COMMANDS):
            yield from _literal(text, low, *_LITERALS[number - len(_COMMANDS)])
            continue
        hint, command = _COMMANDS[number]
        if hint in low:
            for match in command.finditer(text):
                if match["value"] is None:  # `curl -u "KEY:"`
                    if is_strong(match["alone"]) and not _stands_in(match["alone"]):
                        yield "password", *match.span("alone")
                elif not _stands_in(match["value"]):
                    yield "password", *match.span("value")


def _literal(text: str, low: str, hint: str, place: re.Pattern[str]) -> Iterator[Hit]:
    if hint in low:
        for match in place.finditer(text):
            if not is_variable(match["value"]):
                yield "password", *match.span("value")


def _long(text: str, low: str, held: int, known: Sequence[Hit]) -> Iterator[Hit]:
    """What has a word of at least 12 characters in it."""
    yield from _key_blocks(text)
    if "://" in text and "@" in text:
        yield from _addresses(text)
    if "=" in text and ("?" in text or "&" in text):
        yield from _queries(text, known)
    for at in starts(low, held, _HEADERS):
        yield from _header(text, at, known)
    if "$" in text:
        for pattern in (_HASH, _NAMED_HASH):  # apart: each begins with letters of its own
            for match in pattern.finditer(text):
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
        if not _SCHEME.search(text, max(0, match.start() - 31), match.start()):
            continue
        value = match["value"]
        if (value == "secret" or not _stands_in(value)) and value.lower() != match["user"].lower():
            yield "connection_string", *match.span("value")


def _queries(text: str, known: Sequence[Hit]) -> Iterator[Hit]:
    for match in _QUERY.finditer(text):
        if is_within(*match.span("value"), known):
            continue
        value, name = match["value"], match["name"].lower()
        if is_stand_in(value) or "public" in name or "csrf" in name or "page" in name:
            continue
        if is_random(value, 12) or is_uuid(value) or (("pass" in name or "pwd" in name) and is_strong(value)):
            yield "credential", *match.span("value")


def _header(text: str, at: int, known: Sequence[Hit]) -> Iterator[Hit]:
    match = _HEADER.match(text, at)
    if match is None or is_within(*match.span("value"), known) or is_stand_in(value := match["value"]):
        return
    if is_random(value, 16) or is_uuid(value) or (match["basic"] and _is_basic(value)):
        yield "authorization", *match.span("value")


def _is_basic(value: str) -> bool:
    import base64
    import binascii

    try:
        return b":" in base64.b64decode(value, validate=True)
    except binascii.Error:
        return False


def _stands_in(value: str) -> bool:
    value = value.strip("\"'>")
    if value[:1] == "{" and value[-1:] == "}" and is_random(value[1:-1], 12):
        return False  # braces around something that is no variable's name
    return is_stand_in(value) or value.startswith(("$", "%", "<", "{")) or value in ("test", "[PASSWORD]")
