"""Every error as a problem document (RFC 9457): what happened, why, what to do next; never what was sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from memoranda.engines.contract import Problem
from memoranda.errors import (
    ComponentUnavailable,
    EngineUnavailable,
    InvalidInput,
    MediaTypeUnknown,
    MemorandaError,
    MethodUnknown,
    NotFound,
    TooLarge,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "2"  # seconds
_SAYABLE = re.compile(r"[a-z][a-z_]{0,31}")  # the name of an unknown field, where it cannot be a secret
_EXPLAINED = (EngineUnavailable, ComponentUnavailable)


def problem(error: MemorandaError) -> Problem:
    """The document. What is damaged on our side is told by its class: its words name places of this machine."""
    told = error.problem()
    document = {name: told.get(name) for name in Problem.model_fields}
    if error.status >= 500 and not isinstance(error, _EXPLAINED):
        document |= {
            "detail": f"{error.title}.",
            "why": None,
            "remedy": "Try again, or tell the operator.",
        }
    return Problem.model_validate(document)


def respond(error: MemorandaError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that ended with `error`."""
    more = dict(headers or {})
    if error.status == 401:
        more.setdefault("www-authenticate", "Bearer")
    if error.status == 503:
        more["retry-after"] = RETRY_AFTER
    if isinstance(error, Unavailable) and error.retry_after is not None:
        more["retry-after"] = str(ceil(error.retry_after))
    return Response(problem(error).model_dump_json(), error.status, more, MEDIA_TYPE)


def invalid(errors: Sequence[Mapping[str, Any]]) -> InvalidInput:
    """The error for the findings of pydantic: names the field and the reason, and repeats no value."""
    first = errors[0]
    where, kind = list(first["loc"]), str(first["type"])
    part = where.pop(0) if where and where[0] in ("path", "query", "header", "cookie") else "body"
    if kind == "json_invalid":
        return InvalidInput("The body is not JSON.", why=f"{_reason(first)}.", remedy="Send one JSON object in UTF-8.")
    if kind == "extra_forbidden":
        return unknown_field(str(where.pop()), _named(where))
    name = _named(where)
    said = (
        f"The field `{name}`" if part == "body" and name else f"The {part} parameter `{name}`" if name else "The body"
    )
    if kind == "missing":
        return InvalidInput(f"{said} is missing.", remedy="The OpenAPI document says what is needed.")
    return InvalidInput(f"{said} cannot be taken.", why=f"{_reason(first)}.", remedy="Send a value of that form.")


def unknown_field(name: str, inside: str = "", part: str = "field") -> InvalidInput:
    """The error for a field or a parameter that nothing knows; its name is said where it is plainly a name."""
    where = f" in `{inside}`" if inside else ""
    named = f"The {part} `{name}`" if _SAYABLE.fullmatch(name) else f"A {part}"
    return InvalidInput(
        f"{named}{where} is not known here.", why="What is not understood is refused rather than left out.",
        remedy="The OpenAPI document lists what is known.",
    )  # fmt: skip


def _named(where: Sequence[str | int]) -> str:
    name = ""
    for step in where:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else step
    return name


def _reason(found: Mapping[str, Any]) -> str:
    return "It has no possible value" if found["type"] in ("value_error", "assertion_error") else str(found["msg"])


def of_framework(error: HTTPException) -> MemorandaError:
    """What the framework refuses on its own: an unknown address, another method."""
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return MethodUnknown(
            "This address does not take that method.", remedy=f"It takes {allowed}." if allowed else ""
        )
    if error.status_code == 413:
        return TooLarge("The body is too large.")
    if error.status_code == 415:
        return MediaTypeUnknown("The body is not JSON.")
    if error.status_code == 404:
        return NotFound("There is nothing at this address.", remedy="The OpenAPI document lists all addresses.")
    return InvalidInput("The request cannot be understood.")
