"""What many routes share: the parameters of paths, queries and headers, and how an etag is read and told."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Path, Query, Response
from pydantic import BeforeValidator

from memoranda.engines.contract import ItemId, Name, SessionId

AgentId = Annotated[Name, Path(description="The agent whose memory it is.")]
EngineId = Annotated[Name, Path(description="The engine instance.")]
ItemPath = Annotated[ItemId, Path(description="The item, or any of its chain.")]
DatasetPath = Annotated[ItemId, Path(description="The dataset.")]
SessionPath = Annotated[SessionId, Path(description="The session.")]
SessionQuery = Annotated[SessionId | None, Query(description="The session that the call belongs to.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
Cursor = Annotated[
    str | None,
    Query(min_length=1, max_length=1000, description="`next_cursor` of the page before; for the same list only."),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$",
        description="The same key and body again give the first answer again, and nothing is done twice.",
    ),
]  # fmt: skip
IfMatch = Annotated[
    str | None,
    Header(
        pattern=r'^(\*|"[\x21\x23-\x7e]{1,200}")$',
        description="The `ETag` that was seen, in its quotes; 412 when it has changed meanwhile.",
    ),
]


def _switch(value: Any) -> Any:
    if value not in ("true", "false", True, False):
        raise ValueError
    return value


Switch = Annotated[bool, BeforeValidator(_switch), Query()]


def matching(if_match: str | None) -> str | None:
    """The etag of an `If-Match`; None when there is none, or `*`."""
    return None if if_match is None or if_match == "*" else if_match[1:-1]


def tagged(response: Response, etag: str) -> None:
    """Tells the state of what is answered."""
    if etag:
        response.headers["etag"] = f'"{etag}"'
