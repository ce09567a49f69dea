"""What people decide beside an agent's memories: that one is held, and that a session has come to its end."""

from __future__ import annotations

from memoranda.engines.mem0 import Mem0
from memoranda.engines.ruling import Ruled
from memoranda.errors import NotFound
from memoranda.governance.instances import BUILTIN
from memoranda.service.answers import HoldAnswer, HoldRequest, SessionsEnded
from memoranda.service.caller import Caller
from memoranda.service.case import Case
from memoranda.service.desk import Desk
from memoranda.service.guards import HOLD_GUARDS, SESSION_GUARDS
from memoranda.service.pipeline import perform


def hold(desk: Desk, caller: Caller, agent_id: str, item_id: str, asked: HoldRequest) -> HoldAnswer:
    """Holds the whole chain of an item, or releases it; for a security officer, who need not be able to read it.

    The item is looked for in the Home of the agent's project and in that of the tenant. NotFound.
    """
    case = Case(
        desk, caller, f"{asked.event}_hold", agent_id, relation="viewer", people_only=True,
        fields=(("reason", asked.reason),),
    )  # fmt: skip
    chain: list[str] = []

    def change(case: Case) -> HoldAnswer:
        told = _held(case, item_id, asked)
        chain[:] = told.chain
        return HoldAnswer(id=item_id, legal_hold=bool(told.held), held=told.held)

    return perform(case, change, items=lambda _: chain, guards=HOLD_GUARDS)


def _held(case: Case, item_id: str, asked: HoldRequest) -> Ruled:
    """In the Homes, or where it is not there in the engine that the agent's memories lie in."""
    desk = case.desk
    try:
        return desk.builtin.hold(case.context, case.where, item_id, asked.event, reason=asked.reason)
    except NotFound:
        current = desk.policies.in_force(case.tenant, case.agent.id)
        instance = desk.instance_for(current, "update", case.where)
        engine = None if instance == BUILTIN else desk.engine_of(instance)
        if not isinstance(engine, Mem0):
            raise
        return engine.hold(case.context, case.where, item_id, asked.event, reason=asked.reason)


def end_session(desk: Desk, caller: Caller, agent_id: str, session_id: str | None = None) -> SessionsEnded:
    """Ends a session of the caller's with an agent, or all of them; what one has met no longer counts for others then.

    Only a person ends one, and only their own. What was written in it keeps its taint, and so does its id.
    """
    case = Case(desk, caller, "end_session", agent_id, session=session_id, people_only=True)

    def end(case: Case) -> SessionsEnded:
        ended, taint = desk.builtin.end_sessions(case.context, case.where)
        return SessionsEnded(ended=ended, taint=taint)

    return perform(case, end, guards=SESSION_GUARDS)
