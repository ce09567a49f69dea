"""Lines that are no message: answered with a JSON-RPC error. The SDK drops them, and the client would wait for ever."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage


class Answering:
    """What the SDK reads from, less what it could not read: that is answered on `write`, and never handed on."""

    def __init__(self, read: Any, write: Any) -> None:
        self._read = read
        self._write = write

    async def receive(self) -> Any:
        """The next message. anyio.EndOfStream."""
        while True:
            item = await self._read.receive()
            if not isinstance(item, Exception):
                return item
            if (answer := _answer(item)) is not None:
                await self._write.send(SessionMessage(answer))

    @property
    def last_context(self) -> Any:
        """The SDK's own: in which context the last message was read."""
        return getattr(self._read, "last_context", None)

    def close(self) -> None:
        self._read.close()

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> Answering:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Answering:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()


def _answer(error: Exception) -> types.JSONRPCError | None:
    """The error for a line, under its id when one can be read: half a character does not hide it. No word of it.

    None for an empty line, and for what answers a request of ours.
    """
    given = _given(error)
    if isinstance(given, str) and not given.strip():
        return None
    sys.stderr.write("memoranda: a line on standard input is no message; it was answered with an error.\n")
    code, said, told = types.PARSE_ERROR, "This line is no JSON-RPC message in UTF-8.", given
    if isinstance(given, str):
        try:
            told = json.loads(given)
            said = "The line holds half a character (a lone surrogate); send whole ones."
        except (ValueError, RecursionError):
            told = None  # then nobody can tell its id
    else:
        code, said = types.INVALID_REQUEST, "This is JSON, and no JSON-RPC message."
    if not isinstance(told, dict):
        return types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=said))
    if "method" not in told and ("result" in told or "error" in told):
        return None
    error_data = types.ErrorData(code=code, message=said)
    return types.JSONRPCError(jsonrpc="2.0", id=_id(told.get("id")), error=error_data)


def _id(found: object) -> int | str | None:
    if isinstance(found, str):
        return found if found.isascii() else None  # half a character could not be said again
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _given(error: Exception) -> object:
    """What could not be read, as the SDK's error keeps it: the line, or what it says when it is JSON."""
    errors = getattr(error, "errors", None)
    told = errors(include_url=False, include_context=False) if callable(errors) else []
    return told[0].get("input") if told else None
