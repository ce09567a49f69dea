"""What a model sent, brought to what a tool takes: near-miss names, numbers written as text, a list with one item.

Nothing is guessed silently: what was understood otherwise than written is said in a hint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.faces.mcp.tools import Tool

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SURROGATE = re.compile("[\ud800-\udfff]")


def understood(tool: Tool, raw: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """(arguments under their right names and of their right types, hints).

    Raises:
        InvalidInput: a needed one is missing, or a value cannot be what the parameter takes.
    """
    taken: dict[str, Any] = {}
    hints: list[str] = []
    given = dict(raw or {})
    for name in sorted(given, key=lambda n: n not in tool.parameters):  # a right name goes before a near one
        key = _key(tool, name)
        if given[name] is None:
            continue
        if key is None:
            hints.append(f"`{_shown(name)}` is no parameter of {tool.name} and was ignored; {_parameters(tool)}")
        elif key in taken:
            hints.append(f"`{_shown(name)}` was ignored, since `{key}` was given too.")
        else:
            taken[key] = _value(key, tool.parameters[key], given[name])
            if key != name:
                hints.append(f"`{_shown(name)}` was taken for `{key}`.")
    for name in tool.required:
        if name not in taken:
            raise InvalidInput(f"{tool.name} needs `{name}`.", remedy=f"Give `{name}`; {_parameters(tool)}")
    return taken, hints


def _key(tool: Tool, name: str) -> str | None:
    if name in tool.parameters:
        return name
    plain = _CAMEL.sub("_", name).lower().replace("-", "_").replace(" ", "_")
    return plain if plain in tool.parameters else tool.near.get(plain)


def _parameters(tool: Tool) -> str:
    return f"its parameters are {', '.join(tool.parameters)}."


def _shown(name: str) -> str:
    return name if len(name) <= 40 and name.isprintable() else "…"


def _value(key: str, schema: Mapping[str, Any], value: Any) -> Any:
    match schema["type"]:
        case "string":
            return _text(key, value, lower="enum" in schema)
        case "integer":
            return _whole(key, value)
        case "number":
            return _number(key, value)
        case "boolean":
            return _flag(key, value)
        case _:
            return _list(key, schema, value)


def _refuse(key: str, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"`{key}` is not {what}.", remedy=remedy)


def _text(key: str, value: Any, *, lower: bool = False) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise _refuse(key, "a text", "Give a string.")
    if not value.isascii() and _SURROGATE.search(value):
        raise _refuse(key, "valid text: it holds half of a surrogate pair", "Send whole characters.")
    return value.strip().lower() if lower else value


def _whole(key: str, value: Any) -> int:
    number = _number(key, value)
    if number != int(number):
        raise _refuse(key, "a whole number", "Give a number such as 8.")
    return int(number)


def _number(key: str, value: Any) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise _refuse(key, "a number", "Give a number.") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15 or value != value:
        raise _refuse(key, "a number", "Give a number.")
    return float(value)


def _flag(key: str, value: Any) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "yes", "1", "false", "no", "0", ""):
        return value.strip().lower() in ("true", "yes", "1")
    if isinstance(value, bool):
        return value
    raise _refuse(key, "true or false", "Give true or false.")


def _list(key: str, schema: Mapping[str, Any], value: Any) -> tuple[str, ...]:
    words = "enum" in schema["items"]
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                value = json.loads(text)
            except ValueError:
                raise _refuse(key, "a list of texts", "Give a list of strings.") from None
        else:
            value = text.split("," if words else None)  # no id and no URI holds white space
    if not isinstance(value, list):
        raise _refuse(key, "a list of texts", "Give a list of strings.")
    return tuple(text for item in value if (text := _text(key, item, lower=words).strip()))
