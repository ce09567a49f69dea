"""How a client is asked to open the page of a review, in both generations of the protocol.

Up to 2025-11-25 the server asks the client while the call goes on; from 2026-07-28 on the call ends with what is
needed, and the client makes it again. That the client agrees to open the page is no answer: only the page gives one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext

from memoranda.errors import NotFound
from memoranda.faces.mcp.service import Answer, Service, failed

PATIENCE = 45  # seconds that a call waits for a person; hosts give up after a minute
MANY_ROUNDS = "2026-07-28"  # from this version on a server sends no requests of its own
_MESSAGE = "Review what is to be remembered. The page is on this machine and shows the exact text."
_PERMISSION = "Allow or refuse one operation. The page is on this machine and shows every word of it."
_NAME = "review"


async def ask(
    context: ServerRequestContext[Any], service: Service, answer: Answer, client: str
) -> Answer | types.InputRequiredResult:
    """The answer with what came of asking the person, or what the client has to do before it makes the call again."""
    able = context.session.client_capabilities
    if able is None or able.elicitation is None or able.elicitation.url is None:
        return answer.reviewed("queued")
    message = _PERMISSION if answer.asked else _MESSAGE
    page = await anyio.to_thread.run_sync(partial(service.offer, answer, client))
    if context.protocol_version >= MANY_ROUNDS:
        wanted = types.ElicitRequest(params=types.ElicitRequestURLParams(message=message, url=page.url))
        return types.InputRequiredResult(input_requests={_NAME: wanted}, request_state=page.number)
    ends = anyio.current_time() + PATIENCE
    consent = None
    with anyio.move_on_after(PATIENCE):
        try:
            consent = await context.session.elicit_url(message, page.url, page.number, context.request_id)
        except MCPError:  # it cannot be asked after all
            consent = None
    if consent is None:
        service.withdraw(page.number)
        return answer.reviewed("queued")
    came = await _came(service, page.number, consent, ends - anyio.current_time())
    if came in ("accept", "reject"):
        await context.session.send_elicit_complete(page.number, context.request_id)
    return answer.reviewed(came)


async def asked_again(service: Service, params: types.CallToolRequestParams) -> Answer:
    """The answer of a call that was made again with the client's consent."""
    number = params.request_state or ""
    answer = service.pending(number)
    if answer is None:
        gone = NotFound(
            "The page of this review is gone.",
            why="Its time is over, or the server was started anew.",
            remedy="What was to be remembered is written and waits: `memoranda review list` at a terminal.",
        )
        return failed(gone, ())
    consent = (params.input_responses or {}).get(_NAME)
    given = consent if isinstance(consent, types.ElicitResult) else None
    return answer.reviewed(await _came(service, number, given, PATIENCE))


async def _came(service: Service, number: str, consent: types.ElicitResult | None, seconds: float) -> str:
    if consent is None or consent.action != "accept":
        service.withdraw(number)
        return "declined"
    wait = partial(service.wait, number, max(0.0, seconds))
    return await anyio.to_thread.run_sync(wait, abandon_on_cancel=True) or "open"
