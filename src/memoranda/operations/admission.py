"""What is never kept: secrets, and personal data where the policy says so. Looked for on every way in.

What is found is named by kind and position, never by value. A person may allow one such text by its keyed hash, which
the refusal names; what is allowed lies outside every Home (see `allowing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from memoranda.errors import PersonalDataRefused, SecretRefused
from memoranda.home.keys import Keys
from memoranda.home.settings import Settings, settled
from memoranda.notes.frontmatter import HEAD_LIMIT, split
from memoranda.trust.personal import Personal
from memoranda.trust.secrets import Secret, find_secrets
from memoranda.values import dataclass

_SHORT = 80  # characters up to which what was found is kept
_LONG_HEAD = "its front matter is larger than 256 KiB, which no note needs. Move what is long into the text."
_REMEDY = "Take it out and keep it where secrets are kept; say in the note where that is."
_WAY_OUT = "If it is none, a person can allow this one text at a terminal: `memoranda allow add text {} --reason …`."


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person has settled for what comes into the Home with the id `home`, or into none that is known yet."""

    keys: Keys
    home: str = ""

    def mark(self, text: str) -> str:
        """The keyed hash by which a person allows this text."""
        return Settings(self.keys).mark(text)

    def allows(self, text: str) -> bool:
        """Whether a person has allowed exactly this text, wherever it stands."""
        settings = Settings(self.keys)
        return ("text", settings.mark(text)) in settings.standing()

    def keeps_personal_data(self, agent: str | None = None) -> bool:
        """Whether personal data may be kept: the policy of the Home, and of this agent in it."""
        if not self.home or not settled(self.keys, self.home):
            return True
        standing = Settings(self.keys, self.home).standing()
        return not standing or not {("refuse", "personal_data"), ("refuse", f"personal_data {agent}")} & standing.keys()


def refuse_secrets(fields: Iterable[tuple[str, str]], rules: Rules | None = None, *, alone: bool = False) -> None:
    """SecretRefused when one of these (name, text) pairs holds a secret that nobody has allowed.

    `alone`: they are those of one call, and not of one of many files.
    """
    for name, text in fields:
        secrets = _short(text) if len(text) <= _SHORT else find_secrets(text, alone=alone)
        for found in _not_allowed(text, secrets, rules) if secrets else ():
            raise SecretRefused(
                f"The {name} holds what looks like a secret.", why=_told(found), remedy=_remedy(text, found, rules)
            )


@lru_cache(maxsize=256)  # the same subjects and sources again and again
def _short(text: str) -> tuple[Secret, ...]:
    return find_secrets(text)


def refuse_personal(fields: Iterable[tuple[str, str]], rules: Rules | None, agent: str | None = None) -> None:
    """PersonalDataRefused when one of these pairs holds personal data and the policy keeps none."""
    if rules is None or rules.keeps_personal_data(agent):
        return
    from memoranda.trust.personal import find_personal

    for name, text in fields:
        for found in _not_allowed(text, find_personal(text), rules):
            raise PersonalDataRefused(
                f"The {name} holds what looks like personal data, and the policy here is to keep none.",
                why=_told(found),
                remedy=_remedy(text, found, rules),
            )


@lru_cache(maxsize=1024)
def innocent(name: str) -> bool:
    """Whether a name, which comes with call after call, holds no secret."""
    return not find_secrets(name)


def admitter(rules: Rules) -> Callable[[bytes, str], str | None]:
    """`admit` under these rules."""
    return lambda data, path: admit(data, path, rules)


def admit_many(files: Iterable[tuple[bytes, str]], rules: Rules) -> list[str | None]:
    """`admit` for each; what a person has settled is read once."""
    personal = not rules.keeps_personal_data()
    return [_admit(data, path, rules, personal=personal) for data, path in files]


def admit(data: bytes, path: str, rules: Rules | None = None) -> str | None:
    """Why the bytes of a file may not be taken in, None when they may; the name of the file counts too."""
    return _admit(data, path, rules, personal=True)


def _admit(data: bytes, path: str, rules: Rules | None, *, personal: bool) -> str | None:
    if len(data) > HEAD_LIMIT and len(split(data).head or b"") > HEAD_LIMIT:
        return _LONG_HEAD
    fields = (("name of the file", path.replace("/", " ")), ("file", data.decode("utf-8", "replace")))
    try:
        refuse_secrets(fields, rules)
        if personal:
            refuse_personal(fields, rules)
    except (SecretRefused, PersonalDataRefused) as error:
        return " ".join((f"{error.what[:1].lower()}{error.what[1:]}", error.why, error.remedy))
    return None


def _not_allowed(text: str, found: Iterable[Secret | Personal], rules: Rules | None) -> Iterator[Secret | Personal]:
    for item in found:
        if rules is None or not rules.allows(text[item.start : item.end]):
            yield item


def _told(found: Secret | Personal) -> str:
    kind = found.kind.replace("_", " ")
    article = "an" if kind[0] in "aeiou" else "a"
    return f"It is taken for {article} {kind} at line {found.line}, column {found.column}."


def _remedy(text: str, found: Secret | Personal, rules: Rules | None) -> str:
    return _REMEDY if rules is None else f"{_REMEDY} {_WAY_OUT.format(rules.mark(text[found.start : found.end]))}"
