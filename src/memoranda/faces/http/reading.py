"""How the value of a setting is read. A reader raises ValueError with the end of a sentence that begins with "It"."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from memoranda.engines.contract import InstanceDeclaration

_STEP = r"[A-Za-z0-9._@+-]+"
_PREFIX = re.compile(rf"openbao://(?:{_STEP}/)*\{{tenant\}}/(?:{_STEP}/)*")
CREDENTIALS = "EAI_CRED_"  # how the variables begin that hold credentials
POSTGRES = "postgresql+psycopg://"
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


def a_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("is a text")
    return value.strip()


def one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"is one of {', '.join(words)}")
        return str(value)

    return read


def a_path(value: Any) -> Path:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("is a path")
    return Path(value).expanduser()


def a_file(value: Any) -> Path:
    path = a_path(value)
    if not path.is_file():
        raise ValueError("names a file that is not there")
    return path


def switch(value: Any) -> bool:
    told = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.strip().lower() not in told:
        raise ValueError("is true or false")
    return told[value.strip().lower()]


def number(kind: type[int] | type[float], least: float, most: float) -> Callable[[Any], int | float]:
    def read(value: Any) -> int | float:
        try:
            told = None if isinstance(value, bool) else kind(value)
        except (TypeError, ValueError):
            told = None
        if told is None or not least <= told <= most or (kind is int and isinstance(value, float)):
            raise ValueError(f"is a number from {least:g} to {most:g}")
        return told

    return read


def listen(value: Any) -> str:
    host, colon, port = a_text(value).rpartition(":")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ValueError("is HOST:PORT, such as 127.0.0.1:8080")
    return a_text(value)


def url(*schemes: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        told = a_text(value)
        if not told:
            return ""
        parts = urlsplit(told)
        if parts.scheme not in schemes or not parts.hostname or parts.username or parts.password or parts.fragment:
            raise ValueError(f"is a URL ({', '.join(schemes)}) without a name or password in it")
        return told.rstrip("/")

    return read


def claim(value: Any) -> str:
    told = a_text(value)
    if not told or len(told) > 200:
        raise ValueError("is the name of a claim")
    return told


def database(value: Any) -> str:
    told = a_text(value)
    if told and not told.startswith(("sqlite:///", POSTGRES)):
        raise ValueError(f"begins with sqlite:/// or {POSTGRES}")
    if told.startswith(POSTGRES):
        try:
            parts = urlsplit(told)
        except ValueError:
            raise ValueError("is no URL") from None
        if not parts.username or not parts.path.strip("/"):
            raise ValueError(f"names its role and its database: {POSTGRES}role@host/name")
        if parts.password or "password=" in parts.query:
            raise ValueError("holds a password; `database.credential` is a reference to it")
    return told


def reference(value: Any) -> str:
    told = a_text(value)
    if told and not told.startswith((f"env://{CREDENTIALS}", "openbao://")):
        raise ValueError(f"is env://{CREDENTIALS}… or openbao://mount/path#field, never the credential itself")
    return told


def tenant_prefix(value: Any) -> str:
    told = a_text(value)
    if not _PREFIX.fullmatch(told) or any(not step.strip(".") for step in told[10:-1].split("/")):
        raise ValueError(
            "is such as openbao://secret/tenants/{tenant}/, with {tenant} once as a whole step of the path"
        )
    return told


def algorithms(value: Any) -> tuple[str, ...]:
    told = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(told, list) or not told or not set(told) <= set(_ALGORITHMS):
        raise ValueError(f"is one or more of {', '.join(_ALGORITHMS)}")
    return tuple(told)


def instances(value: Any) -> tuple[InstanceDeclaration, ...] | Path:
    """A list as it is; of a file, which is watched for change and may be made later, its path."""
    if isinstance(value, str):
        path = a_path(value)
        if not path.parent.is_dir():
            raise ValueError("names a file in a folder that is not there")
        return path
    if not isinstance(value, list):
        raise ValueError("is a list of instances, or a TOML file with [[instances]]")
    try:
        return tuple(InstanceDeclaration.model_validate(one) for one in value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"has an instance whose {'.'.join(map(str, first['loc']))} is wrong: {first['msg']}") from None


SECONDS = number(float, 0.05, 600)
HTTP = url("https", "http")
