"""What happens around every request: its id, its metrics, its span, its line in the log, and a net for defects."""

from __future__ import annotations

import logging
import os
import re
import time
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda.engines.egress import on_behalf
from memoranda.errors import MemorandaError
from memoranda.faces.covering import frames_of
from memoranda.faces.http.metrics import METHODS
from memoranda.faces.http.problems import respond
from memoranda.faces.http.spans import named, span_of

if TYPE_CHECKING:
    from memoranda.faces.http.metrics import Metrics

LOG = logging.getLogger("memoranda.http")
UNMATCHED = "unmatched"
# Hexadecimal, or a UUID: an id, and nothing that could say something.
_REQUEST_ID = re.compile(r"[0-9a-f]{16,32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Outermost:
    """ASGI middleware; `code` in the scope's state is the code of the problem that was answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics, timeout: float) -> None:
        self._app = app
        self._metrics = metrics
        self._timeout = timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value for name, value in scope["headers"] if name in (b"x-request-id", b"traceparent")}
        request_id = _request_id(headers.get(b"x-request-id", b"").decode("latin-1"))
        state = scope.setdefault("state", {})
        deadline = time.monotonic() + self._timeout
        state |= {"request_id": request_id, "code": None, "deadline": deadline}
        traceparent = headers.get(b"traceparent", b"").decode("latin-1") or None
        method = scope["method"] if scope["method"] in METHODS else "other"
        status, started, begun = 500, time.perf_counter(), False
        own = (*_ALWAYS, (b"x-request-id", request_id.encode()))

        async def answer(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        self._metrics.began()
        # What is called outside for this request is called below its span, and ends with it.
        with span_of(method, traceparent) as span, on_behalf(None, deadline):
            try:
                await self._app(scope, receive, answer)
            except ClientDisconnect:
                status = 499  # nobody is there to be answered
            except Exception as error:
                LOG.critical("a defect, request %s\n%s", request_id, frames_of(error))
                state["code"] = MemorandaError.code
                if begun:
                    raise
                defect = MemorandaError("The request broke off.")
                await respond(defect)(scope, receive, answer)
            finally:
                seconds = time.perf_counter() - started
                template = route_of(scope)
                named(span, method, template, status, state["code"])
                self._metrics.ended(method, template, status, seconds, state["code"])
                LOG.info("%s %s %d %.1f ms, request %s", method, template, status, seconds * 1000, request_id)


def route_of(scope: Scope) -> str:
    """The template of the route that took the request."""
    return getattr(scope.get("route"), "path_format", UNMATCHED)


def _request_id(sent: str) -> str:
    return sent if _REQUEST_ID.fullmatch(sent) else os.urandom(16).hex()
