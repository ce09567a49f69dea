"""The registry from outside: tenants, users, teams, agents, tokens, relations, floors and freezes.

Who may: a platform administrator adds and removes tenants, and the first user of a tenant that has none; a tenant
administrator everything in the own tenant; a user tokens of their own and for the agents that they own; a developer
agents of their own; a security officer floors and freezes. An agent's credential does none of it. Nothing here reads a
memory.

Registry and relations may lie in two places, and either may fail. So what gives comes last and what takes comes first:
after a failure nobody holds more than before, and the same call made again completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.governance.identity import Token
from memoranda.governance.policies import Floor
from memoranda.governance.registry import PLATFORM_ADMIN, Agent, Team, Tenant, User
from memoranda.governance.relations import (
    Tuple,
    agent_name,
    team_name,
    tuple_of_member,
    tuples_of_agent,
    tuples_of_tenant,
    user_name,
)
from memoranda.notes.times import parse_instant
from memoranda.operations.admission import refuse_secrets
from memoranda.service.caller import Caller, actor
from memoranda.service.desk import Desk
from memoranda.service.pipeline import told

T = TypeVar("T")
_AT_ONCE = 100
_ADMIN, _OFFICER = "tenant_admin", "security_officer"
EXAMPLE_TOKEN = "example"  # the name of the tokens that `memoranda serve --example` issues


# Tenants


def add_tenant(desk: Desk, caller: Caller, tenant: str, name: str = "", organization: str | None = None) -> Tenant:
    """A new customer. Conflict where memories of an earlier one of this name lie: whoever got the name would read them.

    At the machine itself a tenant may be put back; a platform administrator reads no memory, and so not by this either.
    """

    def add() -> Tenant:
        _may(caller, PLATFORM_ADMIN in caller.identity.roles)
        refuse_secrets([("name", name)])
        known = any(one.id == tenant for one in desk.registry.tenants())
        if not known and not caller.context.person and desk.homes.has(tenant):
            raise Conflict(
                "A tenant of this name was here before, and its memories still are.",
                why="Whoever gets the name would read them.",
                remedy="Choose another name, or have who runs the service put it back: `memoranda admin tenant`.",
            )
        made = desk.registry.add_tenant(caller.context, tenant, name, organization)
        desk.relations.write(add=tuples_of_tenant(tenant))
        return made

    return _changed(desk, caller, "add_tenant", add)


def tenants(desk: Desk, caller: Caller) -> Sequence[Tenant]:
    """All of them, for a platform administrator; for others their own."""

    def read() -> Sequence[Tenant]:
        if caller.identity.tenant is not None:
            return [desk.registry.tenant(caller.identity.tenant)]
        _may(caller, PLATFORM_ADMIN in caller.identity.roles)
        return desk.registry.tenants()

    return told(desk, caller, "list_tenants", read)


def remove_tenant(desk: Desk, caller: Caller, tenant: str) -> None:
    """Takes a tenant out of the registry; what its Homes and the audit hold stays."""

    def remove() -> None:
        _may(caller, PLATFORM_ADMIN in caller.identity.roles)
        for agent in desk.registry.agents(tenant):
            _take(desk, desk.relations.read(object=agent_name(tenant, agent.id)))
        for team in desk.registry.teams(tenant):
            _take(desk, desk.relations.read(object=team_name(tenant, team.id)))
        _take(desk, tuples_of_tenant(tenant))
        desk.registry.remove_tenant(tenant)

    _changed(desk, caller, "remove_tenant", remove)


# Users and teams


def add_user(desk: Desk, caller: Caller, user: str, roles: tuple[str, ...] = (), tenant: str | None = None) -> User:
    """A user of the caller's tenant, or with `tenant` the first one of a tenant that has none."""

    def add() -> User:
        if caller.identity.tenant is not None:
            return desk.registry.add_user(caller.context, _own(caller, _ADMIN), user, roles)
        _may(caller, PLATFORM_ADMIN in caller.identity.roles)
        if tenant is not None:
            if desk.registry.users(tenant):
                raise Forbidden(
                    "This tenant has users already.",
                    why="A platform administrator adds the first one only.",
                    remedy="Ask the tenant's administrator.",
                )
            _refuse_used(desk, caller, tenant)
        return desk.registry.add_user(caller.context, tenant, user, roles)

    return _changed(desk, caller, "add_user", add)


def _refuse_used(desk: Desk, caller: Caller, tenant: str) -> None:
    """Forbidden where somebody of the tenant was here before: a first user would read what is remembered of them."""
    if caller.context.person:
        return
    if desk.homes.has(tenant) or desk.audit.query(tenant, limit=1)[0]:
        raise Forbidden(
            "This tenant was in use before.",
            why="A first user would read what is remembered here, and who runs the platform reads no memory.",
            remedy="Have who runs the service add one at the machine: `memoranda admin user`.",
        )


def users(desk: Desk, caller: Caller) -> Sequence[User]:
    return told(desk, caller, "list_users", lambda: desk.registry.users(_own(caller, _ADMIN, _OFFICER, "auditor")))


def remove_user(desk: Desk, caller: Caller, user: str) -> None:
    """With all tokens that act for this user, out of all teams, and out of all relations."""

    def remove() -> None:
        tenant = _own(caller, _ADMIN)
        owned = [agent.id for agent in desk.registry.agents(tenant) if agent.owner == user]
        if not owned:  # who owns an agent is refused below, and keeps what is granted
            _take(desk, desk.relations.read(user=user_name(tenant, user)))
        desk.registry.remove_user(tenant, user)

    _changed(desk, caller, "remove_user", remove)


def add_team(desk: Desk, caller: Caller, team: str, members: tuple[str, ...] = ()) -> Team:
    """A new team, or the same one with these members from now on."""

    def add() -> Team:
        tenant = _own(caller, _ADMIN)
        wanted = [tuple_of_member(tenant, team, user) for user in sorted(set(members))]
        held = desk.relations.read(object=team_name(tenant, team))
        _take(desk, [one for one in held if one not in wanted])
        made = desk.registry.add_team(caller.context, tenant, team, members)
        for first in range(0, len(wanted), _AT_ONCE):
            desk.relations.write(add=wanted[first : first + _AT_ONCE])
        return made

    return _changed(desk, caller, "add_team", add)


def teams(desk: Desk, caller: Caller) -> Sequence[Team]:
    return told(desk, caller, "list_teams", lambda: desk.registry.teams(_own(caller, _ADMIN, _OFFICER, "auditor")))


def remove_team(desk: Desk, caller: Caller, team: str) -> None:
    def remove() -> None:
        tenant = _own(caller, _ADMIN)
        held = desk.relations.read(object=team_name(tenant, team))
        granted = desk.relations.read(user=f"{team_name(tenant, team)}#member")
        _take(desk, [*held, *granted])
        desk.registry.remove_team(tenant, team)

    _changed(desk, caller, "remove_team", remove)


# Agents


def add_agent(desk: Desk, caller: Caller, agent: str, project: str, owner: str | None = None, name: str = "") -> Agent:
    """A new agent, or the same one with another project, owner or name. A developer adds agents of their own.

    With another owner the tokens end by which the agent acted for the former one.
    """

    def add() -> Agent:
        tenant = _own(caller, _ADMIN, "developer")
        refuse_secrets([("name", name)])
        before = next((one for one in desk.registry.agents(tenant) if one.id == agent), None)
        who = owner or caller.identity.user
        if _ADMIN not in caller.identity.roles:
            _may(caller, who == caller.identity.user and (before is None or before.owner == who))
        wanted = tuples_of_agent(tenant, agent, who)
        held = desk.relations.read(object=agent_name(tenant, agent))
        _take(desk, [one for one in held if one.relation == "owner" and one not in wanted])
        if before is not None and before.owner != who:
            for token in desk.tokens.list(tenant):
                if token.agent == agent and token.user == before.owner and token.revoked_at is None:
                    desk.tokens.revoke(caller.context, tenant, token.id)
        made = desk.registry.add_agent(caller.context, tenant, agent, project, who, name)
        desk.relations.write(add=wanted)
        return made

    return _changed(desk, caller, "add_agent", add)


def agents(desk: Desk, caller: Caller) -> Sequence[Agent]:
    roles = (_ADMIN, "developer", _OFFICER, "auditor")
    return told(desk, caller, "list_agents", lambda: desk.registry.agents(_own(caller, *roles)))


def remove_agent(desk: Desk, caller: Caller, agent: str) -> None:
    """With its tokens, policies and relations; what it remembered stays."""

    def remove() -> None:
        tenant = _mine(desk, caller, agent)
        _take(desk, desk.relations.read(object=agent_name(tenant, agent)))
        desk.registry.remove_agent(tenant, agent)

    _changed(desk, caller, "remove_agent", remove)


def _mine(desk: Desk, caller: Caller, agent: str) -> str:
    """The caller's tenant, when the caller owns this agent of it or administers it."""
    tenant = _tenant(caller)
    owned = desk.registry.agent(tenant, agent).owner == caller.identity.user and caller.identity.kind == "user"
    _may(caller, owned or _ADMIN in caller.identity.roles)
    return tenant


# Tokens


def issue_token(
    desk: Desk,
    caller: Caller,
    user: str | None = None,
    agent: str | None = None,
    roles: tuple[str, ...] | None = None,
    expires_at: datetime | None = None,
    name: str = "",
) -> tuple[str, str]:
    """A token's id and its secret, which is shown this once.

    Everybody may have tokens of their own, and for the agents that they own; those of others are for an administrator.
    """
    if name == EXAMPLE_TOKEN and desk.environment != "development":
        raise InvalidInput(
            "The name of a token cannot be `example`.",
            why="Where a token of the example is in force, the service does not start.",
            remedy="Name it by what it is for.",
        )

    def issue() -> tuple[str, str]:
        own, who = caller.identity, user or caller.identity.user
        refuse_secrets([("name", name)])
        if own.tenant is None:
            _may(caller, who == own.user or PLATFORM_ADMIN in own.roles)
        else:
            if agent is not None:
                _mine(desk, caller, agent)
            _may(caller, who == own.user or _ADMIN in own.roles)
        narrowed, until = roles, _no_later(desk, caller, expires_at, own=who == own.user)
        if who == own.user and agent is None:  # a narrowed token makes no wider one
            narrowed = tuple(own.roles if roles is None else own.roles & set(roles))
        return desk.tokens.issue(caller.context, own.tenant, who, agent, narrowed, until, name)

    return _changed(desk, caller, "issue_token", issue)


def _no_later(desk: Desk, caller: Caller, wanted: datetime | None, *, own: bool) -> datetime | None:
    """When a token ends that the caller issues: as wanted, and for themselves not after the one that it is asked with.

    Who came by an identity provider issues none that lasts for long: nobody here sees when they are to come no more.
    """
    if caller.context.person:
        return wanted  # the operator, at the machine
    mine = caller.identity.token_id
    with_it = next((token for token in desk.tokens.list(caller.identity.tenant) if token.id == mine), None)
    latest = None
    if with_it is None:
        latest = caller.context.now() + desk.longest_token
    elif own and with_it.expires_at is not None:
        latest = parse_instant(with_it.expires_at, what="expires_at")
    return min((at for at in (wanted, latest) if at is not None), default=None)


def first_token(desk: Desk, caller: Caller, tenant: str, user: str) -> tuple[str, str]:
    """The first token of a tenant's first user, for a platform administrator who has just added both."""

    def issue() -> tuple[str, str]:
        _may(caller, caller.identity.tenant is None and PLATFORM_ADMIN in caller.identity.roles)
        there = desk.registry.users(tenant)
        if not there:
            raise InvalidInput("This tenant has no user yet.", remedy="Add its first user, with `tenant_id`.")
        if desk.tokens.list(tenant) or len(there) != 1:
            raise Forbidden("This tenant has its users and tokens already.", remedy="Ask the tenant's administrator.")
        _refuse_used(desk, caller, tenant)
        return desk.tokens.issue(caller.context, tenant, user, expires_at=_no_later(desk, caller, None, own=False))

    return _changed(desk, caller, "issue_token", issue)


def tokens(desk: Desk, caller: Caller) -> Sequence[Token]:
    """The caller's own; an administrator's tenant's. Never a secret."""

    def read() -> Sequence[Token]:
        own = caller.identity
        _may(caller, own.kind == "user")
        found = desk.tokens.list(own.tenant)
        everybody = own.roles & {_ADMIN, _OFFICER, "auditor", PLATFORM_ADMIN}
        return found if everybody else [token for token in found if token.user == own.user]

    return told(desk, caller, "list_tokens", read)


def revoke_token(desk: Desk, caller: Caller, token_id: str) -> None:
    """Counts from the next call on."""

    def revoke() -> None:
        own = caller.identity
        found = next((token for token in desk.tokens.list(own.tenant) if token.id == token_id), None)
        if found is None:
            raise NotFound("No such token.")
        _may(caller, found.user == own.user or bool(own.roles & {_ADMIN, _OFFICER, PLATFORM_ADMIN}))
        desk.tokens.revoke(caller.context, own.tenant, token_id)

    _changed(desk, caller, "revoke_token", revoke)


# Relations


def write_relations(desk: Desk, caller: Caller, agent: str, add: Sequence[Tuple], remove: Sequence[Tuple]) -> None:
    """Grants on an agent and takes back; for its owner and the tenant's administrator. Tuples name this agent only."""

    def write() -> None:
        at = agent_name(_mine(desk, caller, agent), agent)
        for one in (*add, *remove):
            _may(caller, one.object == at and one.relation in ("viewer", "editor", "can_invoke"))
        desk.relations.write(add=add, remove=remove)

    _changed(desk, caller, "write_relations", write)


def relations(desk: Desk, caller: Caller, agent: str) -> Sequence[Tuple]:
    """What is granted on an agent."""
    return told(
        desk, caller, "list_relations",
        lambda: desk.relations.read(object=agent_name(_mine(desk, caller, agent), agent)),
    )  # fmt: skip


# Floors and freezes


def floor(desk: Desk, caller: Caller) -> Floor:
    return told(desk, caller, "get_floor", lambda: desk.policies.floor(_own(caller, _ADMIN, _OFFICER, "auditor")))


def set_floor(desk: Desk, caller: Caller, wanted: Floor) -> Floor:
    """Holds for every agent of the tenant from the next call on."""

    def put() -> Floor:
        tenant = _own(caller, _ADMIN, _OFFICER)
        desk.policies.set_floor(caller.context, tenant, wanted, actor(caller.identity))
        return desk.policies.floor(tenant)

    return _changed(desk, caller, "set_floor", put)


def freeze(desk: Desk, caller: Caller, agent: str | None = None) -> None:
    """Stops all writes of an agent, or of the tenant, at once."""

    def stop() -> None:
        desk.registry.freeze(caller.context, _own(caller, _OFFICER), agent, by=actor(caller.identity))

    _changed(desk, caller, "freeze", stop)


def thaw(desk: Desk, caller: Caller, agent: str | None = None) -> None:
    _changed(desk, caller, "thaw", lambda: desk.registry.thaw(_own(caller, _OFFICER), agent))


# Who may


def _take(desk: Desk, tuples: Sequence[Tuple]) -> None:
    """Takes tuples away, in pieces of the size that OpenFGA takes; after a failure the same call goes on."""
    for first in range(0, len(tuples), _AT_ONCE):
        desk.relations.write(remove=tuples[first : first + _AT_ONCE])


def _changed(desk: Desk, caller: Caller, operation: str, work: Callable[[], T]) -> T:
    return told(desk, caller, operation, work, writes=True)


def _own(caller: Caller, *roles: str) -> str:
    """The caller's tenant, when the caller is a person with one of these roles in it."""
    tenant = _tenant(caller)
    _may(caller, bool(caller.identity.roles & set(roles)))
    return tenant


def _tenant(caller: Caller) -> str:
    if caller.identity.tenant is None:
        raise Forbidden("This caller belongs to no tenant.", remedy="Use a credential of the tenant that is meant.")
    return caller.identity.tenant


def _may(caller: Caller, allowed: bool) -> None:
    if caller.identity.kind != "user" or not allowed:
        raise Forbidden(
            "The caller may not do this.",
            why="It is for a person with another role, or for the owner.",
            remedy="docs/service.md says who may do what.",
        )
