"""Reading the audit: for auditors and security officers, of their own tenant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field, StringConstraints

from memoranda.faces.http.calls import Call, taking
from memoranda.service import audits
from memoranda.service.answers import AuditPage, AuditQuery

router = APIRouter(prefix="/v1/memory/audit", tags=["audit"])


class AuditAsked(AuditQuery):
    """Which events, and which page of them."""

    limit: Annotated[int, Field(ge=1, le=200)] = 100
    cursor: Annotated[str, StringConstraints(min_length=1, max_length=1000)] | None = None


@router.get("", summary="The audit")
def query(call: Annotated[Call[Any], Depends(taking())], asked: Annotated[AuditAsked, Query()]) -> AuditPage:
    """Events, newest first. `item` asks who touched one memory, with `operation=recall` who recalled it."""
    caller = call.caller
    call.nothing()
    wanted = AuditQuery(**asked.model_dump(exclude={"limit", "cursor"}))
    page: AuditPage = audits.query(call.desk, caller, wanted, cursor=asked.cursor, limit=asked.limit)
    return page
