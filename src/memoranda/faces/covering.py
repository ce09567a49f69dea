"""What a caller's own words hold that an answer must not say again: secrets, covered wherever they would be printed.

A refusal never names a value. This is for everything else that repeats what was given: a query in its answer, an id
that nobody knows, a path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

# Where none of these stands, no long word and no long number, no rule finds anything, and loading the rules, which
# costs a quick command half of its time, is spared. The second are looked for as whole words only.
_SIGNS = (
    "pass", "pwd", "contrase", "senha", "kennwort", "wifi", "wi-fi", "secret", "token", "crumb", "jeton", "credential",
    "licen", "login", "identifiant", "compte", "account", "connexion", "connecte", "mnemonic", "wallet", "digicode",
    "backup", "recovery", "rescue", "scratch", "authorization", "postgres", "_sid", "key=", "_key", "-key", "://", "%",
)  # fmt: skip
_WORDS = frozenset(
    "mdp psw pw wpa wpa2 cred creds cle clef key keys auth pat srt pin puk cvv cvc nip code codes 2fa mfa seed phrase"
    " bip39 acces root admin administrator user guest demo sa log sign".split()
)
_APART = str.maketrans(dict.fromkeys("_-.,;:!?=/|()[]{}<>\"'`*#", " "))
_LONG = 16  # characters of a word


def secrets_in(given: Iterable[object]) -> dict[str, str]:
    """value -> kind of each secret in these words, alone or one after the other; longest first."""
    texts = list(_texts(given))
    texts.append(" ".join(texts))
    texts = [text for text in texts if _may_hold(text)]
    if not texts:
        return {}
    from memoranda.trust.secrets import find_secrets

    found = {text[item.start : item.end]: item.kind for text in texts for item in find_secrets(text)}
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def covered(text: str, secrets: Mapping[str, str]) -> str:
    """The text with `[kind]` in the place of each of these secrets, also where it stands as JSON writes it."""
    for value, kind in secrets.items():
        for form in (value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]):
            text = text.replace(form, f"[{kind}]").replace(form.lower(), f"[{kind}]")  # some words are lowered
    return text


def covered_data(data: Any, secrets: Mapping[str, str]) -> Any:
    """The same for every text in a document."""
    if not secrets:
        return data
    if isinstance(data, str):
        return covered(data, secrets)
    if isinstance(data, Mapping):
        return {covered(str(key), secrets): covered_data(value, secrets) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [covered_data(value, secrets) for value in data]
    return data


def _texts(given: Iterable[object]) -> Iterable[str]:
    for value in given:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from _texts(value)
        elif isinstance(value, Mapping):
            yield from _texts(value.values())


def _may_hold(text: str) -> bool:
    if len(text) < 5:
        return False
    low = text.lower()
    return (
        any(sign in low for sign in _SIGNS)
        or not _WORDS.isdisjoint(low.translate(_APART).split())
        or any(_is_long(word) for word in text.split())
        or sum(map(str.isdigit, text)) >= 12
        or not text.isascii()
    )


def _is_long(word: str) -> bool:
    """Whether a word is long enough for a key; of a path a step, which then has a digit in it as well."""
    if word[:1] in "/~.":
        return any(len(step) >= _LONG and any(map(str.isdigit, step)) for step in word.split("/"))
    return len(word) >= _LONG


def frames_of(error: BaseException) -> str:
    """Where an error came from, without its words: they may repeat what must not be said."""
    import traceback

    lines: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        lines = [*traceback.format_tb(seen.__traceback__), f"{type(seen).__name__}\n", *lines]
        seen = seen.__cause__ or seen.__context__
    return "Traceback (most recent call last):\n" + "".join(lines)
