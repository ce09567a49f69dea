"""The protocol around the tools: the official SDK's low-level server on standard input and output.

The low-level server hands arguments over as they came, so that near misses are understood and every error reaches the
model. Work is synchronous and runs in a few threads. While it serves, the SDK keeps standard output for itself: what a
library prints lands on standard error.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memoranda import __version__
from memoranda.errors import MemorandaError
from memoranda.faces.mcp.asking import ask, asked_again
from memoranda.faces.mcp.service import Answer, Service
from memoranda.faces.mcp.tools import CONTEXT_URI, FORGET, INSTRUCTIONS, TOOLS, Tool
from memoranda.faces.mcp.unreadable import Answering

_THREADS = 4
_START = 3  # seconds
_CONTEXT = types.Resource(
    name="context",
    title="What a person reviewed",
    uri=CONTEXT_URI,
    description="The notes that a person has reviewed and that hold now: what to know before the first question.",
    mime_type="text/markdown",
)


def run(home: str | None, agent: str | None, session: str | None) -> int:
    """Serves one connection; returns the exit code."""
    service = Service(home, agent, session)
    try:
        anyio.run(_serve, service)
    except* (BrokenPipeError, ConnectionError):
        pass  # the client went away without closing our input: there is nobody to tell
    finally:
        service.close()
    return 0


async def _serve(service: Service) -> None:
    instructions = INSTRUCTIONS
    with anyio.move_on_after(_START):  # a Home that is indexed for the first time must not keep the client waiting
        instructions = await anyio.to_thread.run_sync(service.instructions, abandon_on_cancel=True)
    server = build(service, instructions)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, service)
        async with stdio_server() as (read, write):
            await server.run(Answering(read, write), write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _end_on_signal(service: Service) -> None:
    """Closes the Homes and ends the process: the reader of standard input is a thread that nothing else can wake."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            service.close()
            sys.stderr.flush()
            os._exit(0)


def build(service: Service, instructions: str = INSTRUCTIONS) -> Server[Any]:
    """The server; also without a pipe, for a client in the same process."""
    limiter = anyio.CapacityLimiter(_THREADS)

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        client = _client_of(context)
        if params.request_state is not None:  # what it wrote is written: making the call again writes nothing
            return _result(await asked_again(service, params))
        work = partial(service.call, params.name, params.arguments, client)
        answer = await anyio.to_thread.run_sync(work, limiter=limiter)
        if answer.review is not None or answer.asked is not None:
            came = await ask(context, service, answer, client)
            return came if isinstance(came, types.InputRequiredResult) else _result(came)
        return _result(answer)

    async def list_resources(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[_CONTEXT])

    async def read_resource(
        context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        if str(params.uri) != CONTEXT_URI:
            raise MCPError(types.INVALID_PARAMS, f"The one resource is {CONTEXT_URI}.")
        try:
            work = partial(service.context_resource, _client_of(context))
            text = await anyio.to_thread.run_sync(work, limiter=limiter)
        except (MemorandaError, OSError) as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        found = types.TextResourceContents(uri=CONTEXT_URI, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[found])

    @asynccontextmanager
    async def lifespan(_server: Server[Any]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(service.close)

    server: Server[Any] = Server(
        "memoranda",
        version=__version__,
        title="Memoranda",
        instructions=instructions,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )
    server.middleware.clear()  # spans for OpenTelemetry, to which nothing listens here
    return server


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title, read_only_hint=not tool.writes, destructive_hint=tool is FORGET, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema(),
        output_schema=tool.answer_schema(),
        annotations=hints,
    )


def _client_of(context: ServerRequestContext[Any]) -> str:
    """The name by which the client introduced itself."""
    params = context.session.client_params
    return params.client_info.name if params is not None else ""


def _result(answer: Answer) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(text=answer.text)]
    return types.CallToolResult(content=content, structured_content=answer.data, is_error=answer.is_error)
