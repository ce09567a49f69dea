"""Secrets by what they are called: `DB_PASSWORD=…`, "the password for the router is …", « mot de passe : … ».

A name is looked for first, then what connects it to a value, then it is asked whether that value can be a secret. The
text is folded already (see folding), so that quotes are plain ones and letters are what they look like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from memoranda.notes.lazyre import lazy
from memoranda.trust._hints import Hit, anywhere, is_within
from memoranda.trust._values import is_code, is_form, is_place, is_random, is_stand_in, is_strong, is_uuid, is_word

# What a key is for, when it is a secret.
_KEYS = [
    kind + join
    for kind in (
        "api access account private master encryption signing insert query license product deploy stream service unseal"
        " storage shared".split()
    )
    for join in ("", "[-_. ]")
    if join or kind not in ("master", "service", "product")
]
# The core of each name, and what it has to be part of; `p` names a password, `k` a key, `w` is a weak sign. Letters are
# looked for one after the other (a microsecond each) and not by one pattern (a hundred).
_CORES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (core, kind, lazy(pattern))
    for core, kind, pattern in (
        ("pass", "p", r"passw(?:[o0]r)?d|passcode|passwort|passphrase|pass[ _-]phrase|(?<=[ _-]de[ _-])passe"
         r"|(?<![a-z])pass(?![a-z])"),
        ("pwd", "p", r"pwd"),
        ("mdp", "p", r"(?<![a-z])mdp(?![a-z])"),
        ("psw", "p", r"(?<![a-z])psw(?![a-z])"),
        ("pw", "p", r"(?<![a-z])pw(?![a-z])"),
        ("contrase", "p", r"contrase(?:ñ|n)a"),
        ("senha", "p", r"(?<![a-z])senha(?![a-z])"),
        ("kennwort", "p", r"kennwort"),
        ("wifi", "p", r"(?<=cl[ée] )wifi|(?<=clef )wifi|(?<=code )wifi|wifi (?:key|code)"),
        ("wi-fi", "p", r"(?<=cl[ée] )wi-fi|(?<=clef )wi-fi|(?<=code )wi-fi|wi-fi (?:key|code)"),
        ("wpa", "p", r"wpa2? key|(?<=cl[ée] )wpa2?"),
        ("secret", "k", r"secret(?:[ _-]?(?:access[ _-]?)?key)?"),
        ("token", "k", r"token"),
        ("crumb", "k", r"(?<=-)crumb"),
        ("jeton", "k", r"jeton"),
        ("credential", "k", r"credential"),
        ("clé", "k", r"clés? (?:d'api|api|secrète|privée|d'accès|de (?:chiffrement|licence|produit))"),
        ("clef", "k", r"clefs? (?:d'api|api|secrète|privée|d'accès|de (?:chiffrement|licence|produit))"),
        ("cle", "k", r"cle_(?:api|secrete|privee)"),
        ("key", "k", "(?:" + "|".join(f"(?<={kind})" for kind in _KEYS) + r")key(?: \d)?"),
        ("key", "w", r"key(?![a-z])"),
        ("authorization", "w", r"authorization"),
        ("pat", "w", r"(?<![a-z])pat(?![a-z])"),
        ("licen", "w", r"(?<![a-z])licen[sc]e"),
        ("auth", "w", r"(?<![a-z])auth(?![a-z])"),
        ("login", "w", r"login(?![a-z])"),
        ("srt", "w", r"(?<![a-z])srt(?![a-z])"),
        ("_sid", "w", r"_sid(?![a-z])"),
        ("reporter_id", "w", r"reporter_id"),
        ("sourcegraph", "w", r"sourcegraph"),
    )
)  # fmt: skip
# What a name may have around it, and what makes it the name of something else.
_AROUND = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_NOT_SECRET = lazy(
    r"public|csrf|xsrf|(?:key|token|secret)[-_]?(?:id|name|length|size|path|file|url|uri|type|count|alias|arn|version"
    r"|usage|code|pair|store|ring|chars|spec|selector|expir|ttl|limit|field|label|prefix|regex|pattern|policy|hash)"
    r"|(?:pass\w*|pwd|mdp)[-_]?(?:file|path|url|uri|length|min|max|policy|field|label|hint|reset|regex|pattern|expir"
    r"|strength|input|placeholder|id|name|prompt|confirm|column|type|age|valid|manager|less)"
    r"|foreign|primary|sort|cache|sequence|partition|keyboard|kms|author|monkey|turkey|hockey|pagination|next|page"
    r"|(?:cre\w*|secret|token)id$|tokeniz|max_token|accessor|authenticity|jsonwebtoken|keying|keyed"
    r"|credentials?[-_.]?(?:url|uri|id|file|path|type|provider|name)|\.(?:url|host|port)$"
)
_CONNECTS = lazy(
    r"""["'`\])}*]{0,4}(?:[ \t]*:[ \t]*[A-Za-z][\w.\[\]|? ]{0,30}?(?=[ \t]*=[^=]))?"""
    r"""[ \t]{0,12}\*{0,2}(?P<sign>:=|=>|->|!?={1,3}|:{1,2}|\||-{3,})\*{0,2}[ \t]{0,12}"""
    r"""|["'][ \t]*\{\s*default[ \t]*=[ \t]*(?=["'])|["'][ \t]*,[ \t]*\[?[ \t]*(?=\\?["'])"""
    r"""|["'][ \t]+value[ \t]*=[ \t]*(?=["'])|>(?=[^<>\s]{4,}</)|[ \t]+(?=["'])"""
    r"""|(?P<space>[ \t]+)"""
)
_VALUE = lazy(
    r"""(?:(?:[\w.]*env|ENV)\(\s*["'][^"'\n]{1,60}["']\s*,\s*)?(?:new\s+)?[bBrRuUfF@]{0,2}"""
    r"""(?:"(?P<double>[^"\n]{1,400})\"|'(?P<single>[^'\n]{1,400})'|`(?P<back>[^`\n]{1,400})`"""
    r"""|(?P<q>\\["'`])(?P<escaped>(?:(?!(?P=q))[^\n]){1,400})(?P=q))|(?P<bare>[^\s"'`<>,;|\\)\]}]{1,400})"""
)
_USER = lazy(
    r"""(?:user(?:[-_ ]?(?:name|id))?|login|uid|usr|machine|host|identifiant|email)["']?\s*(?:=>|[:=]|\s)""", 2
)
_NAMES = lazy(r"[\w.-]{3,}")
_VERB = lazy(
    r"(?P<gap>,?(?:[ \t]+(?!(?:is|was|are|est|sont|ist|es"
    r"|it's)\b)[^\s:=!?;]{0,23}[^\s:=.!?;]){0,10}?)[ \t]*\)?[ \t]*\(?"
    r"(?:(?P<is>\b(?:is|was|it's|will be|would be|has been|becomes|became|remains|stays|set to|changed to|reset to"
    r"|est|sera|serait|reste|était|devient|c'est|ist|lautet|es)\b"
    r"(?:[ \t]+(?:now|still|set to|changed to|reset to|currently|just|actually|maintenant|toujours|désormais|juste"
    r"|simplement|resté|devenu|le suivant|la suivante|ceci|this|as follows))?[ \t]*:?)|(?P<colon>:|=|->"
    r"|=>))[ \t*]*\n{0,2}"
    r"[ \t*]*(?:(?P<q>[\"'`]|<<[ ]?)(?P<quoted>[^\"'`\n<>]{4,80}?)[ ]?(?:(?P=q)|>>)"
    r"|(?P<bare>[^\s\"`<>]{4,128})(?P<after>[^\n]{0,60}))",
    re.IGNORECASE,
)
# Words after "key" or "token" that make it the name of something else: "API key id: …".
_OF_IT = lazy(
    r"[ \t](?:ids?|names?|length|type|count|size|format|prefix|salt|fingerprint|hash|policy|rules?|file|path)\b", 2
)
_NUMBERED_WORD = lazy(r"(?!sha|md|utf|rfc|iso|log|step|rule|item|page)[a-z]{4,}[-_.]\d{2,}")  # `password toucan-42`
_APPOSED = lazy(r",[ \t]+(?P<value>[^\s,;:]{8,40})(?=[ \t]*[,.)]|[ \t]*$)")  # `his password, dragonfly88, …`
_NEAR = lazy(r"[ \t(\"'](?P<value>[^\s\"'`(),;:]{6,40})")
_DIGIT = lazy(r"\d")
_SPECIAL = lazy(r"[!@#$%^&*+=~?_]")
_BEFORE = lazy(
    r"(?:^|[\s\"'(])(?P<value>[^\s\"'`()]{5,64})[\"'`)]{0,2}[ \t]+(?:is|was|as|est|comme|for)[ \t]+"
    r"(?:the|my|our|your|his|her|their|its|le|mon|notre|son|leur|votre)(?:[ \t]+[\w'-]{1,20}){0,3}?[ \t]+$",
    2,
)
_IS = lazy(r"[ \t](?:is|was|as|est|comme|for)[ \t]", 2)  # without which that is not tried
_ENDS = lazy(r"[.!?;,)]*\s*(?:$|\n|[.!?;)](?:\s|$)|,? (?:and|but|so|for|et|mais|pour)\b)", 2)


NAMES = anywhere(*(core for core, _, _ in _CORES))


def find(text: str, low: str, held: int, known: Sequence[Hit] = ()) -> Iterator[Hit]:
    """What names of secrets lead to. `low` is the text in lower case, of the same length, `held` are its hints.

    A value in a hit that is `known` is not asked what it looks like.
    """
    if not held & NAMES.mask:
        return
    settled: set[int] = set()  # where names begin that led to something: they hold one secret, whatever else they say
    keys: set[int] = set()  # where names of keys begin that led to none: a weak sign leads to less
    begins: dict[int, int] = {}  # where the name of a core begins: `key` is looked for twice
    for number in NAMES.held(held):
        core, kind, whole = _CORES[number]
        at = low.find(core)
        while at >= 0:
            match = whole.match(low, at)
            if match is not None:
                begin = match.start()
                start = begins.get(begin, -1)
                if start < 0:
                    start = begins[begin] = _name_begins(text, begin)
                if start not in settled and (kind != "w" or start not in keys):
                    hit = _led_to(text, start, match.end(), kind, known)
                    if hit is not None:
                        settled.add(start)
                        yield hit
                    elif kind != "p":
                        keys.add(start)
            at = low.find(core, at + len(core))


def _name_begins(text: str, core: int) -> int:
    least = max(0, core - 40)
    return least + len(text[least:core].rstrip(_AROUND))


def _led_to(text: str, start: int, after: int, kind: str, known: Sequence[Hit]) -> Hit | None:
    tail = text[after : after + 40]
    end = after + len(tail) - len(tail.lstrip(_AROUND))
    name = text[start:end].rstrip(".-")
    if _is_another(name.lower()):
        return None
    end = start + len(name)
    if text[end : end + 1] in " \t" and _OF_IT.match(text, end):
        return None
    hit = _assigned(text, name, start, end, kind, known)
    if hit is not None or kind == "w" or name.lower() == "pass":  # "one pass is enough"
        return hit
    return _said(text, start, after, kind)


@lru_cache(2048)
def _is_another(name: str) -> bool:
    """Whether a name in lower case is that of something else, though that of a secret is in it."""
    return _NOT_SECRET.search(name) is not None


def is_secret_name(before: str) -> bool:
    """Whether the last name in the text before a value can be that of a secret (`public_key` cannot)."""
    names = _NAMES.findall(before)
    return not names or not _is_another(names[-1].lower())


def _assigned(text: str, name: str, start: int, end: int, kind: str, known: Sequence[Hit]) -> Hit | None:
    connects = _CONNECTS.match(text, end)
    if connects is None:
        return None
    value = _VALUE.match(text, connects.end())
    if value is None:
        return None
    place = value.lastgroup or "bare"
    group = "bare" if place == "bare" else "quoted"
    found, (a, b) = value[place], value.span(place)
    if group == "quoted" and start and text[start - 1] in "\"'`" and connects.group()[:1] != text[start - 1]:
        return None  # `"Password:", "…"`: the name is the end of one text, and what is quoted is another
    if not connects["sign"] and group == "quoted" and name.lower() == "pass":
        return None  # "pass 'HEAD' to it"
    if connects["space"] is not None and not _spaced(text, name, start, kind, found):
        return None
    if is_within(a, b, known):
        good = True
    elif kind == "p":
        good = _is_password(text, start, found, group, connects["sign"] or " ", connects.group())
    elif connects["sign"] in ("==", "!=") and group == "quoted":
        good = name.lower().endswith("secret") and len(found) >= 6 and _can_be_quoted(found)
    else:
        good = _is_key(name, found, group, kind)
    return (("password" if kind == "p" else "credential"), a, b) if good else None


def _spaced(text: str, name: str, start: int, kind: str, found: str) -> bool:
    """Whether a space alone connects: after `--password`, in a netrc, or before what can only be a password."""
    if name.startswith("-"):
        return kind == "p" or is_random(found[:200], 12)
    if kind == "p":
        return (
            _is_mixed(found)
            or _NUMBERED_WORD.fullmatch(found.rstrip(".,;")) is not None
            or ("\n" in text[:start] and _after_login(text, start))
        )
    return kind == "k" and is_random(found, 16)


def _after_login(text: str, start: int) -> bool:
    return re.search(r"(?:^|\s)login\s+\S+\s+$", text[max(0, start - 100) : start]) is not None


def _is_mixed(value: str) -> bool:
    value = value.rstrip(".,;:!?")
    return (
        len(value) >= 6
        and _DIGIT.search(value) is not None
        and is_strong(value)
        and not is_stand_in(value)
        and not is_code(value)
    )


def _is_password(text: str, start: int, value: str, group: str, sign: str, connects: str) -> bool:
    value = value.strip()
    if group == "bare":
        value = value.rstrip(".,;:")
    if len(value) < 4 or is_stand_in(value) or (sign == "|" and not is_strong(value)):
        return False
    if group == "quoted":
        return not _is_part(value) and ("," not in connects or is_strong(value))
    if is_strong(value) and not is_code(value):
        return not (_names_itself(value) or value.startswith("/"))
    if _near_user(text, start):
        return not ("." in value or "(" in value or _names_itself(value) or is_word(value))
    if sign in ("=", "==") and " " not in connects:
        return value.isascii() and not is_code(value) and not is_word(value)
    return value.isdigit() and len(value) >= 4


def _can_be_quoted(value: str) -> bool:
    """Whether what stands between quotes can be a password."""
    return not (is_stand_in(value) or _is_part(value))


def _is_part(value: str) -> bool:
    """Whether what stands between quotes is a label, a selector, a path or a piece of code."""
    return (
        value.endswith(":")
        or value.startswith(("#", "/", "--", "+", ",", ")", " ", ".$", ". "))
        or _names_itself(value)
        or _is_path(value)
    )


def _is_path(value: str) -> bool:
    return "/" in value and all(char.isalpha() or char in "/_-#:." for char in value)


def _near_user(text: str, start: int) -> bool:
    """Whether a user is named right before: then even a plain word is the password that belongs to it."""
    return _USER.search(text, max(0, start - 120), start) is not None


def _names_itself(value: str) -> bool:
    """`user_password`, `passwordInput`, `forgot-password`: what a thing is called and not what it holds."""
    low = value.lower()
    return (
        value.isascii()
        and any(word in low for word in ("password", "passwd", "passwort"))
        and (
            not any(char.isdigit() for char in value)
            and not any(char in "!@#$^*+" for char in value[1:])
            and ("_" in value or "-" in value or " " in value or (value[0].islower() and not value.islower()))
        )
    )


def _is_key(name: str, value: str, group: str, kind: str) -> bool:
    is_cut = value.endswith("...")  # `sk_live_4f0a...`
    value = value.strip().rstrip(".,;:" if group == "bare" else "")
    if is_cut or is_place(value) or (group == "bare" and "=" in value.rstrip("=")):
        return False
    least = 32 if kind == "w" else 10 if group == "quoted" else 12
    if len(value) < least:
        return False
    if is_uuid(value):
        return kind == "k" and not name.lower().endswith("id") and not is_stand_in(value)
    if group == "bare" and not _DIGIT.search(value) and is_code(value):
        return False
    if not is_random(value, least):
        return False
    return not (is_form(value.strip("\"'")) if len(value) >= 18 else is_stand_in(value))


def _said(text: str, start: int, end: int, kind: str) -> Hit | None:
    """A password or a key told in a sentence, in English or French."""
    while end < len(text) and text[end].isalpha():
        end += 1  # "passwords"
    match = _VERB.match(text, end)
    if match is not None and len(match["gap"]) < 90 and not _is_another_name(match):
        group = "quoted" if match["quoted"] is not None else "bare"
        if kind == "k":
            value = match[group].strip(".,;:!?)")
            good = not is_place(value) and not match[group].endswith("...")
            good = good and not is_stand_in(value) and (is_random(value, 12) or is_uuid(value))
        elif group == "quoted":
            good = _can_be_quoted(match[group]) and not is_word(match[group])
        else:
            good = _is_told(match, "phrase" in text[max(0, start - 10) : end].lower())
        if good:
            return ("password" if kind == "p" else "credential", *match.span(group))
    if kind == "k":
        return None
    before = _IS.search(text, max(0, start - 100), start) and _BEFORE.search(text, max(0, start - 100), start)
    if before is not None and _is_mixed(before["value"]):
        return ("password", *before.span("value"))
    apposed = _APPOSED.match(text, end)
    if apposed is not None and _is_mixed(apposed["value"]):
        return ("password", *apposed.span("value"))
    special = _SPECIAL.search(text, end, end + 90)
    if special is None:
        return None
    at = special.start()
    for near in _NEAR.finditer(text, end, end + 90):
        if near.end() > at and _is_made_up(near):
            return ("password", *near.span("value"))
    return None


def _is_made_up(near: re.Match[str]) -> bool:
    """Whether a word after "password", though nothing connects them, can hardly be anything else."""
    value = near["value"].rstrip(".!?")
    if _SPECIAL.search(value, 1) is None:
        return False
    return _is_mixed(value) and (not value.islower() or "_" not in value) and not is_random(value, 16)


def _is_another_name(match: re.Match[str]) -> bool:
    """Whether a `=` belongs to a later name: `password, stream=stream`."""
    gap = match["gap"].strip()
    return bool(gap) and match["colon"] == "=" and ("," in gap or not _is_mixed(match["bare"] or ""))


def _is_told(match: re.Match[str], phrase: bool) -> bool:
    bare, after = match["bare"], match["after"]
    value = bare.rstrip(".,;:!?)")
    words = [value, *(word.strip(".,!") for word in after.split())]
    if (phrase or match["colon"]) and 4 <= len(words) <= 8 and all(word.isalpha() and word.islower() for word in words):
        known = [word for word in words if is_word(word)]
        return len(known) <= 1 and all(len(word) > 3 for word in words)  # a phrase of words, none of them a small one
    if is_stand_in(value) or is_word(value) or len(value) < 4:
        return False
    if is_strong(bare.rstrip(".,;:?)")) or (value.isdigit() and _ENDS.match(after)):
        return not is_code(value)
    one = value.isalpha() and (bare != value or _ENDS.match(after) is not None)
    near = match["gap"].count(" ") <= 6 and not any(char.isdigit() for char in match["gap"])
    return one and near and (match["is"] is not None or not after.strip())
