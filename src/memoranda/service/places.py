"""From a policy to places: which owners' parts of which scopes a call may read, and which one it writes to.

Everything here comes from the identity, the registry and the policies in force; what a caller sends only narrows it.
Sharing reaches the agents of one project, teams the agents whose policy names them for the users who belong to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from memoranda.engines.contract import MODE_OF, OperationContext, Place, PolicyVersion, Scope
from memoranda.errors import Forbidden, InvalidInput
from memoranda.governance.registry import Agent
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk


def where_of(
    desk: Desk,
    caller: Caller,
    agent: Agent,
    current: PolicyVersion,
    *,
    writes: bool,
    scope: Scope | None,
    scopes: tuple[Scope, ...],
    team: str | None,
    session: str | None,
) -> OperationContext:
    """The derived context of one operation.

    Args:
        writes: whether it writes to `scope`, or to the default one where none is named.
        scopes: only these are read; empty: all that the policy lets this agent read.

    Raises:
        Forbidden: a scope, mode, team or session that this caller may not use through this agent.
        InvalidInput: a scope that needs a session or a team, and none was named.
    """
    policy, user = current.policy, caller.identity.user
    teams = _teams(desk, agent, current, user)
    if team is not None and team not in teams:
        raise Forbidden(
            "This team is not open to this call.",
            why="The caller does not belong to it, or the agent's policy does not name it.",
            remedy="Name one of the agent's teams to which you belong, or ask an editor of the agent.",
        )
    for asked in scopes:
        _allowed(asked, policy.read_scopes, current, "read")
    written: Place | None = None
    if writes:
        scope = scope or policy.default_scope
        _allowed(scope, policy.write_scopes, current, "written")
        written = _written(scope, agent, user, team, session)
    elif scope is not None:
        _allowed(scope, policy.read_scopes, current, "read")
        scopes = (scope,)
    read = scopes or _usable(policy.read_scopes, current)
    places = dict.fromkeys(
        place for s in read for place in _places(desk, agent, s, user, teams if team is None else {team}, session)
    )
    return OperationContext(
        tenant=agent.tenant, organization=agent.organization, project=agent.project, user=user, agent=agent.id,
        session=session, scope=scope, team=team, reads=tuple(places), writes=written, request_id=caller.request_id,
    )  # fmt: skip


def writable(
    desk: Desk, caller: Caller, agent: Agent, current: PolicyVersion, session: str | None
) -> tuple[Place, ...]:
    """All places that this caller may write to through this agent: where items may be changed and forgotten."""
    policy, user = current.policy, caller.identity.user
    teams = _teams(desk, agent, current, user)
    return tuple(
        place for scope in _usable(policy.write_scopes, current) for place in _own(agent, scope, user, teams, session)
    )


def _teams(desk: Desk, agent: Agent, current: PolicyVersion, user: str) -> frozenset[str]:
    """The teams that the policy names and the user belongs to."""
    return frozenset(current.policy.teams) & desk.registry.teams_of(agent.tenant, user)


def _usable(scopes: tuple[Scope, ...], current: PolicyVersion) -> tuple[Scope, ...]:
    """Those of these scopes whose mode is active and which are open."""
    return tuple(s for s in scopes if MODE_OF[s] in current.policy.modes and _open(s, current))


def _allowed(scope: Scope, scopes: tuple[Scope, ...], current: PolicyVersion, done: str) -> None:
    policy = current.policy
    if scope not in scopes:
        why = f"The agent's policy names {', '.join(scopes) or 'none'}."
    elif MODE_OF[scope] not in policy.modes:
        why = f"It belongs to the mode {MODE_OF[scope]}, which the agent's policy does not have active."
    elif not _open(scope, current):
        why = "The agent's policy has `global_access` false."
    else:
        return
    raise Forbidden(
        f"The scope {scope} may not be {done} by this agent.", why=why,
        remedy="Use another scope, or ask an editor of the agent to change its policy.",
    )  # fmt: skip


def _open(scope: Scope, current: PolicyVersion) -> bool:
    return scope != "global" or current.policy.global_access


def _written(scope: Scope, agent: Agent, user: str, team: str | None, session: str | None) -> Place:
    if scope == "session" and session is None:
        raise InvalidInput("The scope session needs a session.", remedy="Send `session_id`.")
    if scope == "team" and team is None:
        raise InvalidInput("The scope team needs a team.", remedy="Send `team`.")
    if scope == "organization" and agent.organization is None:
        raise InvalidInput(
            "This agent belongs to no organization.", remedy="Use another scope, or have the agent registered in one."
        )
    return next(_own(agent, scope, user, frozenset() if team is None else {team}, session))


def _own(
    agent: Agent, scope: Scope, user: str, teams: frozenset[str] | set[str], session: str | None
) -> Iterator[Place]:
    """The places of a scope that are this agent's, this user's, or theirs together."""
    if scope == "team":
        yield from (Place(scope=scope, owner=team) for team in sorted(teams))
        return
    owner = {
        "session": session, "user": user, "agent": agent.id, "shared_agents": agent.id, "project": agent.project,
        "organization": agent.organization, "global": "",
    }[scope]  # fmt: skip
    if owner is not None:
        yield Place(scope=scope, owner=owner)


def _places(
    desk: Desk, agent: Agent, scope: Scope, user: str, teams: frozenset[str] | set[str], session: str | None
) -> Iterator[Place]:
    yield from _own(agent, scope, user, teams, session)
    if scope == "shared_agents":
        for other in desk.policies.sharing_with(agent.tenant, agent.id):
            if desk.registry.agent(agent.tenant, other).project == agent.project:
                yield Place(scope=scope, owner=other)
