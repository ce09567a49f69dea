"""Who asks, in few words."""

from __future__ import annotations

from memoranda.engines.contract import OperationContext, Place, Scope

ORGANIZATION = "org"
TEAM = "sales"


def place_of(scope: Scope, user: str, agent: str, project: str, session: str | None) -> Place:
    """The caller's own part of a scope."""
    owner = {
        "session": session or "", "user": user, "agent": agent, "shared_agents": agent, "project": project,
        "team": TEAM, "organization": ORGANIZATION, "global": "",
    }[scope]  # fmt: skip
    return Place(scope=scope, owner=owner)


def asking(
    user: str = "ana",
    agent: str = "cleo",
    *,
    tenant: str = "acme",
    project: str = "web",
    session: str | None = None,
    reads: tuple[Scope, ...] = ("user", "agent", "shared_agents", "project", "team", "organization", "global"),
    writes: Scope | None = None,
    beside: tuple[Place, ...] = (),
) -> OperationContext:
    """The context of a call: reads its own part of these scopes and the places `beside`, writes its own of one."""
    scopes: tuple[Scope, ...] = (*reads, "session") if session else reads
    return OperationContext(
        tenant=tenant, organization=ORGANIZATION, project=project, user=user, agent=agent, session=session, team=TEAM,
        scope=writes, reads=(*(place_of(s, user, agent, project, session) for s in scopes), *beside),
        writes=None if writes is None else place_of(writes, user, agent, project, session),
    )  # fmt: skip
