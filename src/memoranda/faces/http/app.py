"""The application, put together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from memoranda import __version__
from memoranda.context import Context
from memoranda.errors import MemorandaError
from memoranda.faces.http import openapi, spans
from memoranda.faces.http.calls import Call
from memoranda.faces.http.config import Config, load
from memoranda.faces.http.mcp import serving as mcp
from memoranda.faces.http.metrics import Metrics
from memoranda.faces.http.outermost import LOG, Outermost
from memoranda.faces.http.problems import invalid, of_framework, respond
from memoranda.faces.http.routes import admin, audit, engines, holds, knowledge, memories, policies, standing
from memoranda.service.upkeep import expire_due, tidy

if TYPE_CHECKING:
    from memoranda.service.desk import Desk

_FIRST, _EVERY = 600.0, 3600.0  # seconds until what is past its retention is looked for, and then looked for again
_QUIET: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def create(config: Config | None, desk: Any) -> FastAPI:
    """What `memoranda.faces.http.create_app` gives."""
    if config is None:
        file = os.environ.get("MEMORANDA_CONFIG")
        config = load(Path(file) if file else None, os.environ)
    spans.set_up()
    metrics = Metrics()
    own = desk is None
    if own:
        from memoranda.faces.http.assembling import assemble

        desk = assemble(config, metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = config.threads
        async with mcp.running(app), anyio.create_task_group() as tasks:
            tasks.start_soon(_keep_up, app.state.desk)
            yield
            tasks.cancel_scope.cancel()
        if own:
            await run_in_threadpool(app.state.desk.close)

    app = FastAPI(
        title="Memoranda", version=__version__, description=openapi.ABOUT, lifespan=lifespan,
        docs_url=None, redoc_url=None, openapi_url="/openapi.json", redirect_slashes=False,
        telemetry=_QUIET,  # its own spans and logs would say what was sent
    )  # fmt: skip
    app.state.config, app.state.desk, app.state.metrics = config, desk, metrics
    for area in (engines, policies, memories, knowledge, holds, audit, admin, standing):
        app.router.routes.extend(area.router.routes)  # as they are, so that a request's route knows its whole path
    app.add_middleware(Outermost, metrics=metrics, timeout=config.timeout)
    app.add_exception_handler(MemorandaError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _unrouted)
    openapi.install(app)
    mcp.install(app, config)
    return app


async def _keep_up(desk: Desk) -> None:
    """Removes what is past its retention, now and then, which is hidden on time whether this has run or not; and keeps
    Homes small."""
    await anyio.sleep(_FIRST)
    while True:
        for what, job in (("expiry", _expire), ("joining old objects", tidy)):
            try:
                await run_in_threadpool(job, desk)
            except Exception as error:  # noqa: BLE001 - whatever it was, requests go on, and the next round tries again
                LOG.error("%s failed: %s", what, type(error).__name__)
        await anyio.sleep(_EVERY)


def _expire(desk: Desk) -> None:
    if failed := expire_due(desk, Context(user="service", agent="service")):
        LOG.warning("expiry failed in %d Homes, which the audit names", failed)


def _answer(request: Request, error: MemorandaError) -> Response:
    request.state.code = error.code
    return respond(error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, MemorandaError)
    return _answer(request, error)


async def _malformed(request: Request, error: Exception) -> Response:
    """A parameter of the path, the query or a header is wrong; who asks is looked at first, as everywhere."""
    assert isinstance(error, RequestValidationError)
    try:
        await run_in_threadpool(lambda: Call[Any](request, None, b"").caller)
    except MemorandaError as refused:
        return _answer(request, refused)
    return _answer(request, invalid(error.errors()))


async def _unrouted(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refused = of_framework(error)
    request.state.code = refused.code
    allow = (error.headers or {}).get("Allow")
    return respond(refused, {"allow": allow} if allow else None)
