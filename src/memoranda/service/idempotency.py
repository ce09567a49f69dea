"""`Idempotency-Key`: a change that is asked for twice under one key is made once.

What is kept is the id of what came of it, never a word: a repeated call reads the item as it stands. A key belongs to
one caller, agent and operation; nobody else's request finds it. A repeated call passes the guards as the first one did,
by the policy and the relations in force now, and stands in the audit. It writes nothing, so that a freeze does not stop
it: whoever lost an answer learns that what was asked had been done.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from memoranda.errors import Conflict, InvalidInput
from memoranda.governance.replays import Key, Replay
from memoranda.service.caller import actor
from memoranda.service.case import Case
from memoranda.service.pipeline import perform

M = TypeVar("M", bound=BaseModel)
_LONGEST = 200  # characters
_PATIENCE = 60  # seconds after which a call that was begun and never ended may be made again


def once(
    case: Case,
    key: str | None,
    asked: object,
    kind: type[M],
    work: Callable[[], M],
    again: Callable[[str], M] | None = None,
) -> M:
    """What `work` gives; without doing it again where the same was asked under this key before.

    With `again` only the id of the answer is kept, and `again` reads it; without it the answer itself, which then holds
    no words of a memory.

    Raises:
        InvalidInput: the key is empty or too long.
        Conflict: the key came with another request before, or the first one is still under way.
    """
    if key is None:
        return work()
    if not key.strip() or len(key) > _LONGEST or not key.isprintable():
        raise InvalidInput(
            "The Idempotency-Key cannot be used.", remedy=f"Send 1 to {_LONGEST} printable characters, or none."
        )
    desk, context = case.desk, case.caller.context
    tenant = case.caller.identity.tenant or "-"
    mac = desk.keys.get("cursor", tenant)
    name = Key(tenant, actor(case.caller.identity), f"{case.operation} {case.agent_id}", _mac(mac, key))
    told = desk.replays.begin(context, name, _mac(mac, repr(asked)), _PATIENCE)
    case.replays = told.state != "fresh"
    if told.state == "done" and again is not None:
        return again(told.answer)
    if told.state != "fresh":
        return perform(case, lambda _: _settled(told, kind))
    try:
        answer = work()
    except BaseException:
        desk.replays.drop(name)
        raise
    kept = answer.model_dump_json() if again is None else str(getattr(answer, "id"))  # noqa: B009 - every item has one
    desk.replays.end(name, kept)
    return answer


def _settled(told: Replay, kind: type[M]) -> M:
    """The answer that was given before; Conflict where there is none for this request."""
    if told.state == "other":
        raise Conflict(
            "This Idempotency-Key came with another request before.", remedy="Use a fresh key for another request."
        )
    if told.state == "under_way":
        raise Conflict(
            "The first request with this Idempotency-Key is still under way.",
            remedy=f"Ask again in a moment; after {_PATIENCE} seconds it is made anew.",
        )
    return kind.model_validate_json(told.answer)


def _mac(key: bytes, *parts: str) -> str:
    return hmac.new(key, "\n".join(parts).encode(), hashlib.sha256).hexdigest()
