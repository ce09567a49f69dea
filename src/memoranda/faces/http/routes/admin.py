"""The registry: tenants, users, teams, agents, tokens, relations, floors and freezes. `service.admin` says who may."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response

from memoranda.engines.contract import Name
from memoranda.faces.http import administration as a
from memoranda.faces.http.calls import Call, taking
from memoranda.faces.http.parts import AgentId
from memoranda.governance.policies import Floor
from memoranda.governance.relations import Tuple, agent_name
from memoranda.notes.times import parse_instant
from memoranda.service import admin

router = APIRouter(prefix="/v1/memory/admin", tags=["admin"])
Bare = Annotated[Call[Any], Depends(taking())]
Id = Annotated[Name, Path()]


def _bare(call: Call[Any]) -> Any:
    caller = call.caller
    call.nothing()
    return caller


# Tenants


@router.get("/tenants", summary="Tenants")
def tenants(call: Bare) -> a.Tenants:
    """All of them for a platform_admin, for others their own."""
    return a.Tenants(tenants=tuple(map(_tenant, admin.tenants(call.desk, _bare(call)))))


@router.post("/tenants", status_code=201, summary="Add a tenant")
def add_tenant(call: Annotated[Call[a.NewTenant], Depends(taking(a.NewTenant))]) -> a.Tenant:
    """For platform_admin."""
    caller, new = call.caller, call.body
    return _tenant(admin.add_tenant(call.desk, caller, new.id, new.name, new.organization))


@router.delete("/tenants/{tenant_id}", status_code=204, summary="Remove a tenant", response_class=Response)
def remove_tenant(call: Bare, tenant_id: Id) -> None:
    """Out of the registry, for platform_admin; what its Homes and the audit hold stays."""
    admin.remove_tenant(call.desk, _bare(call), tenant_id)


@router.post("/tenants/{tenant_id}/first-token", status_code=201, summary="The first token of a tenant")
def first_token(call: Annotated[Call[a.FirstToken], Depends(taking(a.FirstToken))], tenant_id: Id) -> a.Secret:
    """For a platform_admin who has just added the tenant and its first user."""
    token_id, secret = admin.first_token(call.desk, call.caller, tenant_id, call.body.user)
    return a.Secret(id=token_id, secret=secret)


def _tenant(one: Any) -> a.Tenant:
    return a.Tenant(id=one.id, name=one.name, organization=one.organization, frozen=one.frozen)


# Users and teams


@router.get("/users", summary="Users")
def users(call: Bare) -> a.Users:
    """Those of the caller's tenant."""
    return a.Users(users=tuple(map(_user, admin.users(call.desk, _bare(call)))))


@router.post("/users", status_code=201, summary="Add a user")
def add_user(call: Annotated[Call[a.NewUser], Depends(taking(a.NewUser))]) -> a.User:
    """Or the same one with other roles; for tenant_admin."""
    caller, new = call.caller, call.body
    return _user(admin.add_user(call.desk, caller, new.id, new.roles, tenant=new.tenant_id))


@router.delete("/users/{user_id}", status_code=204, summary="Remove a user", response_class=Response)
def remove_user(call: Bare, user_id: Id) -> None:
    """With the tokens, and out of teams and relations; 409 while agents are owned."""
    admin.remove_user(call.desk, _bare(call), user_id)


@router.get("/teams", summary="Teams")
def teams(call: Bare) -> a.Teams:
    """Those of the caller's tenant."""
    return a.Teams(teams=tuple(map(_team, admin.teams(call.desk, _bare(call)))))


@router.put("/teams/{team_id}", summary="Set a team")
def add_team(call: Annotated[Call[a.Members], Depends(taking(a.Members))], team_id: Id) -> a.Team:
    """A new team, or the same one with these members; for tenant_admin."""
    return _team(admin.add_team(call.desk, call.caller, team_id, call.body.members))


@router.delete("/teams/{team_id}", status_code=204, summary="Remove a team", response_class=Response)
def remove_team(call: Bare, team_id: Id) -> None:
    """What it remembered stays in the tenant's Home."""
    admin.remove_team(call.desk, _bare(call), team_id)


def _user(one: Any) -> a.User:
    return a.User(id=one.id, roles=tuple(sorted(one.roles)))


def _team(one: Any) -> a.Team:
    return a.Team(id=one.id, members=tuple(sorted(one.members)))


# Agents


@router.get("/agents", summary="Agents")
def agents(call: Bare) -> a.Agents:
    """Those of the caller's tenant."""
    return a.Agents(agents=tuple(map(_agent, admin.agents(call.desk, _bare(call)))))


@router.put("/agents/{agent_id}", summary="Set an agent")
def add_agent(call: Annotated[Call[a.AgentBody], Depends(taking(a.AgentBody))], agent_id: AgentId) -> a.Agent:
    """Adds an agent, or changes its project, owner or name; for tenant_admin, and developers for their own."""
    caller, body = call.caller, call.body
    return _agent(admin.add_agent(call.desk, caller, agent_id, body.project, owner=body.owner, name=body.name))


@router.delete("/agents/{agent_id}", status_code=204, summary="Remove an agent", response_class=Response)
def remove_agent(call: Bare, agent_id: AgentId) -> None:
    """With its tokens, policies and relations; what it remembered stays."""
    admin.remove_agent(call.desk, _bare(call), agent_id)


@router.get("/agents/{agent_id}/relations", summary="Relations on an agent")
def relations(call: Bare, agent_id: AgentId) -> a.Grants:
    """For its owner and tenant_admin."""
    held = admin.relations(call.desk, _bare(call), agent_id)
    return a.Grants(relations=tuple(a.Held(user=one.user, relation=one.relation) for one in held))


@router.post("/agents/{agent_id}/relations", status_code=204, summary="Grant and take back", response_class=Response)
def write_relations(call: Annotated[Call[a.GrantChange], Depends(taking(a.GrantChange))], agent_id: AgentId) -> None:
    """For its owner and tenant_admin."""
    caller, body = call.caller, call.body
    at = agent_name(caller.identity.tenant or "-", agent_id)

    def tuples(grants: Sequence[a.Grant]) -> list[Tuple]:
        return [Tuple(one.user, one.relation, at) for one in grants]

    admin.write_relations(call.desk, caller, agent_id, tuples(body.add), tuples(body.remove))


def _agent(one: Any) -> a.Agent:
    return a.Agent(**{name: getattr(one, name) for name in a.Agent.model_fields})


# Tokens


@router.get("/tokens", summary="Tokens")
def tokens(call: Bare) -> a.Tokens:
    """The caller's own, or for an administrator the tenant's; never a secret."""
    return a.Tokens(tokens=tuple(map(_token, admin.tokens(call.desk, _bare(call)))))


@router.post("/tokens", status_code=201, summary="Issue a token")
def issue_token(call: Annotated[Call[a.NewToken], Depends(taking(a.NewToken))]) -> a.Secret:
    """The secret is shown this once. Everybody may have tokens of their own, and for the agents that they own."""
    caller, new = call.caller, call.body
    expires: datetime | None = None if new.expires_at is None else parse_instant(new.expires_at, what="expires_at")
    token_id, secret = admin.issue_token(
        call.desk, caller, new.user, new.agent, new.roles, expires_at=expires, name=new.name
    )
    return a.Secret(id=token_id, secret=secret)


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token", response_class=Response)
def revoke_token(call: Bare, token_id: Id) -> None:
    """Counts from the next call on."""
    admin.revoke_token(call.desk, _bare(call), token_id)


def _token(one: Any) -> a.Token:
    roles = None if one.roles is None else tuple(sorted(one.roles))
    return a.Token(**{name: getattr(one, name) for name in a.Token.model_fields if name != "roles"}, roles=roles)


# Floors and freezes


@router.get("/floor", summary="The tenant's floor")
def floor(call: Bare) -> Floor:
    """What no agent's policy may fall below."""
    found: Floor = admin.floor(call.desk, _bare(call))
    return found


@router.put("/floor", summary="Set the tenant's floor")
def set_floor(call: Annotated[Call[Floor], Depends(taking(Floor))]) -> Floor:
    """For tenant_admin and security_officer; it bounds every agent from the next call on."""
    made: Floor = admin.set_floor(call.desk, call.caller, call.body)
    return made


@router.put("/freeze", status_code=204, summary="Stop all writes of the tenant", response_class=Response)
def freeze_tenant(call: Bare) -> None:
    """At once; for security_officer."""
    admin.freeze(call.desk, _bare(call))


@router.delete("/freeze", status_code=204, summary="Let the tenant write again", response_class=Response)
def thaw_tenant(call: Bare) -> None:
    """For security_officer."""
    admin.thaw(call.desk, _bare(call))


@router.put("/agents/{agent_id}/freeze", status_code=204, summary="Stop an agent's writes", response_class=Response)
def freeze_agent(call: Bare, agent_id: AgentId) -> None:
    """At once; for security_officer."""
    admin.freeze(call.desk, _bare(call), agent_id)


@router.delete("/agents/{agent_id}/freeze", status_code=204, summary="Let it write again", response_class=Response)
def thaw_agent(call: Bare, agent_id: AgentId) -> None:
    """For security_officer."""
    admin.thaw(call.desk, _bare(call), agent_id)
