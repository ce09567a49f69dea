"""Memories: for the agent itself, and for whoever may invoke it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response

from memoranda.engines.contract import (
    ExportRequest,
    Gone,
    Item,
    Purged,
    PurgeRequest,
    RecallRequest,
    RememberRequest,
    Scope,
    UpdateRequest,
)
from memoranda.faces.http.calls import Call, taking
from memoranda.faces.http.parts import (
    AgentId,
    Cursor,
    IdempotencyKey,
    IfMatch,
    ItemPath,
    Limit,
    SessionPath,
    SessionQuery,
    Switch,
    matching,
    tagged,
)
from memoranda.service import memories, standing
from memoranda.service.answers import (
    History,
    HoldAnswer,
    HoldRequest,
    Page,
    RecallAnswer,
    ReviewRequest,
    SearchAnswer,
    SessionsEnded,
    TaintAnswer,
    TaintRequest,
)

router = APIRouter(prefix="/v1/memory/agents/{agent_id}", tags=["memories"])
Bare = Annotated[Call[Any], Depends(taking())]


@router.post("/memories", status_code=201, summary="Remember")
def remember(
    call: Annotated[Call[RememberRequest], Depends(taking(RememberRequest))],
    response: Response,
    agent_id: AgentId,
    idempotency_key: IdempotencyKey = None,
) -> Item:
    """Keeps one memory; durable when it answers. A scope that is left out is the policy's `default_scope`."""
    item: Item = memories.remember(call.desk, call.caller, agent_id, call.body, idempotency_key=idempotency_key)
    tagged(response, item.etag)
    return item


@router.get("/memories", summary="List")
def list_items(
    call: Bare,
    agent_id: AgentId,
    scope: Annotated[Scope | None, Query(description="Only this scope.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    include_content: Switch = False,
    session_id: SessionQuery = None,
) -> Page:
    """What holds now, newest first, a page at a time. A page stays right while memories come and go."""
    caller = call.caller
    call.nothing()
    page: Page = memories.list_items(
        call.desk, caller, agent_id, scope=scope, limit=limit, cursor=cursor, include_content=include_content,
        session_id=session_id,
    )  # fmt: skip
    return page


@router.post("/recall", summary="Recall")
def recall(call: Annotated[Call[RecallRequest], Depends(taking(RecallRequest))], agent_id: AgentId) -> RecallAnswer:
    """What is remembered about a question, as segments of type `memory`: data between markers, never instructions."""
    answer: RecallAnswer = memories.recall(call.desk, call.caller, agent_id, call.body)
    return answer


@router.post("/memories/search", summary="Search")
def search(call: Annotated[Call[RecallRequest], Depends(taking(RecallRequest))], agent_id: AgentId) -> SearchAnswer:
    """What is found for a question, best first, with scores."""
    answer: SearchAnswer = memories.search(call.desk, call.caller, agent_id, call.body)
    return answer


@router.post("/memories/purge", summary="Purge")
def purge(
    call: Annotated[Call[PurgeRequest], Depends(taking(PurgeRequest))],
    agent_id: AgentId,
    idempotency_key: IdempotencyKey = None,
) -> Purged:
    """Empties one scope of what is the caller's there; 409 without `confirm`, and then nothing is removed."""
    gone: Purged = memories.purge(call.desk, call.caller, agent_id, call.body, idempotency_key=idempotency_key)
    return gone


_EXPORTED: dict[str, Any] = {"application/zip": {}, "application/x-ndjson": {}, "application/x-git-bundle": {}}


@router.post(
    "/memories/export", summary="Export", response_class=Response,
    responses={200: {"description": "The file.", "content": _EXPORTED}},
)  # fmt: skip
def export(call: Annotated[Call[ExportRequest], Depends(taking(ExportRequest))], agent_id: AgentId) -> Response:
    """What the caller may have: a zip of Markdown that opens as a Home, NDJSON, or a Git bundle."""
    made = memories.export(call.desk, call.caller, agent_id, call.body)
    headers = {"content-disposition": f'attachment; filename="{made.name}"'}
    return Response(made.data, media_type=made.media_type, headers=headers)


@router.get("/memories/{item_id}", summary="Get")
def get(
    call: Bare,
    response: Response,
    agent_id: AgentId,
    item_id: ItemPath,
    version: Annotated[Literal["exact"] | None, Query(description="`exact`: that very item.")] = None,
    session_id: SessionQuery = None,
) -> Item:
    """One item: the head of its chain, whichever of the chain is named."""
    caller = call.caller
    call.nothing()
    item: Item = memories.get(call.desk, caller, agent_id, item_id, exact=version == "exact", session_id=session_id)
    tagged(response, item.etag)
    return item


@router.patch("/memories/{item_id}", summary="Update")
def update(
    call: Annotated[Call[UpdateRequest], Depends(taking(UpdateRequest))],
    response: Response,
    agent_id: AgentId,
    item_id: ItemPath,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
    session_id: SessionQuery = None,
) -> Item:
    """Supersedes the head of the item's chain; answers the new item, under its new id."""
    item: Item = memories.update(
        call.desk, call.caller, agent_id, item_id, call.body, if_match=matching(if_match),
        idempotency_key=idempotency_key, session_id=session_id,
    )  # fmt: skip
    tagged(response, item.etag)
    return item


@router.delete("/memories/{item_id}", summary="Forget")
def forget(
    call: Bare,
    agent_id: AgentId,
    item_id: ItemPath,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
    session_id: SessionQuery = None,
) -> Gone:
    """Ends the whole chain of the item."""
    caller = call.caller
    call.nothing()
    gone: Gone = memories.forget(
        call.desk, caller, agent_id, item_id, if_match=matching(if_match), idempotency_key=idempotency_key,
        session_id=session_id,
    )  # fmt: skip
    return gone


@router.post("/memories/{item_id}/review", summary="Review")
def review(
    call: Annotated[Call[ReviewRequest], Depends(taking(ReviewRequest))],
    response: Response,
    agent_id: AgentId,
    item_id: ItemPath,
) -> Item:
    """A person's verdict on exactly the content that `etag` names. No agent reviews."""
    item: Item = memories.review(call.desk, call.caller, agent_id, item_id, call.body)
    tagged(response, item.etag)
    return item


@router.post("/memories/{item_id}/hold", summary="Set or release a legal hold")
def hold(
    call: Annotated[Call[HoldRequest], Depends(taking(HoldRequest))], agent_id: AgentId, item_id: ItemPath
) -> HoldAnswer:
    """For security_officer: on the item's whole chain, whoever's it is in the agent's project or its tenant."""
    answer: HoldAnswer = standing.hold(call.desk, call.caller, agent_id, item_id, call.body)
    return answer


@router.get("/memories/{item_id}/history", summary="History")
def history(call: Bare, agent_id: AgentId, item_id: ItemPath, session_id: SessionQuery = None) -> History:
    """The chain of the item, oldest first."""
    caller = call.caller
    call.nothing()
    chain: History = memories.history(call.desk, caller, agent_id, item_id, session_id=session_id)
    return chain


@router.post("/sessions/{session_id}/taint", summary="Taint a session")
def taint(
    call: Annotated[Call[TaintRequest], Depends(taking(TaintRequest))], agent_id: AgentId, session_id: SessionPath
) -> TaintAnswer:
    """Says that a session met content from outside; no agent can take it back."""
    answer: TaintAnswer = memories.taint(call.desk, call.caller, agent_id, session_id, call.body)
    return answer


@router.delete("/sessions/{session_id}", summary="End a session")
def end_session(call: Bare, agent_id: AgentId, session_id: SessionPath) -> SessionsEnded:
    """Ends one of the caller's own; for people. What it has met does not go on in the caller's other sessions then."""
    caller = call.caller
    call.nothing()
    ended: SessionsEnded = standing.end_session(call.desk, caller, agent_id, session_id)
    return ended


@router.delete("/sessions", summary="End all sessions")
def end_sessions(call: Bare, agent_id: AgentId) -> SessionsEnded:
    """Ends all of the caller's own with the agent, also what goes on without a session's id; for people."""
    caller = call.caller
    call.nothing()
    ended: SessionsEnded = standing.end_session(call.desk, caller, agent_id)
    return ended
