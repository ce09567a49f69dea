"""What is never kept: secrets. Looked for on every way in, and named by kind and position, never by value."""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.errors import SecretRefused
from memoranda.trust.secrets import Secret, find_secrets

_REMEDY = "Take it out and keep it where secrets are kept; say in the note where that is."


def refuse_secrets(fields: Iterable[tuple[str, str]]) -> None:
    """SecretRefused when one of these (name, text) pairs holds a secret."""
    for name, text in fields:
        if text and (found := find_secrets(text)):
            raise SecretRefused(f"The {name} holds what looks like a secret.", why=_told(found[0]), remedy=_REMEDY)


def _told(secret: Secret) -> str:
    return f"It is taken for a {secret.kind.replace('_', ' ')} at line {secret.line}, column {secret.column}."


def admit(data: bytes, path: str) -> str | None:
    """Why the bytes of a file may not be taken in, None when they may; the name of the file counts too."""
    for name, text in (("name of the file", path.replace("/", " ")), ("file", data.decode("utf-8", "replace"))):
        if found := find_secrets(text):
            where = _told(found[0]) if name == "file" else f"It is taken for a {found[0].kind.replace('_', ' ')}."
            return f"the {name} holds what looks like a secret. {where}"
    return None
