"""What is under legal hold in a tenant: for its security officers. One is set and released at the memory itself."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from memoranda.faces.http.calls import Call, taking
from memoranda.faces.http.parts import Cursor, Limit
from memoranda.service import standing
from memoranda.service.answers import HoldsPage

router = APIRouter(prefix="/v1/memory/holds", tags=["holds"])


@router.get("", summary="Legal holds")
def holds(call: Annotated[Call[Any], Depends(taking())], limit: Limit = 50, cursor: Cursor = None) -> HoldsPage:
    """For security_officer: everything that is held in the tenant, by id, with labels and no word of it."""
    caller = call.caller
    call.nothing()
    page: HoldsPage = standing.holds(call.desk, caller, cursor=cursor, limit=limit)
    return page
