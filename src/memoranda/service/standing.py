"""What people decide beside an agent's memories: that one is held, and that a session has come to its end."""

from __future__ import annotations

from memoranda.engines.mem0 import Mem0
from memoranda.engines.records import Records
from memoranda.engines.ruling import OnHold, Ruled
from memoranda.errors import Forbidden, NotFound
from memoranda.governance.instances import BUILTIN
from memoranda.service.answers import HeldItem, HoldAnswer, HoldRequest, HoldsPage, SessionsEnded
from memoranda.service.caller import Caller
from memoranda.service.case import Case
from memoranda.service.cursors import seal, unseal
from memoranda.service.desk import Desk
from memoranda.service.guards import HOLD_GUARDS, SESSION_GUARDS
from memoranda.service.pipeline import needs, perform, told
from memoranda.values import replace


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


def holds(desk: Desk, caller: Caller, *, cursor: str | None = None, limit: int = 50) -> HoldsPage:
    """One page of all that is held in the caller's tenant, by id; for its security officers, who need not read it.

    The Homes of every project that has or had an agent, that of the tenant, and engines elsewhere. Forbidden.
    """

    def read() -> HoldsPage:
        needs(caller, "security_officer")
        tenant = caller.identity.tenant
        if tenant is None or caller.identity.kind != "user":
            raise Forbidden("Only a security officer of a tenant may do this.", remedy="Ask the one of the tenant.")
        after = "" if cursor is None else unseal(desk.keys, tenant, ("holds",), cursor)[1]
        rest = sorted((one for one in _all_held(desk, caller, tenant) if one.id > after), key=lambda one: one.id)
        more = seal(desk.keys, tenant, ("holds",), ("", rest[limit - 1].id)) if len(rest) > limit else None
        shown = (HeldItem(**{**one._asdict(), "project": one.project or None}) for one in rest[:limit])
        return HoldsPage(holds=tuple(shown), next_cursor=more)

    return told(desk, caller, "list_holds", read)


def _all_held(desk: Desk, caller: Caller, tenant: str) -> list[OnHold]:
    own = replace(caller.context, user=caller.identity.user, tenant=tenant)
    elsewhere = Records(desk.database, desk.keys)
    return [
        *desk.builtin.holds(own, tenant, desk.registry.projects(tenant)),
        *(OnHold(row.id, row.instance, row.project, row.scope, row.owner) for row in elsewhere.held(tenant)),
        *(OnHold(row.id, row.instance, row.project, row.scope, row.owner) for row in elsewhere.datasets.held(tenant)),
    ]


def end_session(desk: Desk, caller: Caller, agent_id: str, session_id: str | None = None) -> SessionsEnded:
    """Ends a session of the caller's with an agent, or all of them; what one has met no longer counts for others then.

    Only a person ends one, and only their own. What was written in it keeps its taint, and so does its id.
    """
    case = Case(desk, caller, "end_session", agent_id, session=session_id, people_only=True)

    def end(case: Case) -> SessionsEnded:
        ended, taint = desk.builtin.end_sessions(case.context, case.where)
        return SessionsEnded(ended=ended, taint=taint)

    return perform(case, end, guards=SESSION_GUARDS)
