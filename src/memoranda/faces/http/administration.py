"""What the admin surface takes and gives. None of it says anything of a memory."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from memoranda.engines.contract import Model, Name

Role = Literal["platform_admin", "tenant_admin", "developer", "security_officer", "auditor"]
Title = Annotated[str, StringConstraints(max_length=200)]
Roles = Annotated[tuple[Role, ...], Field(max_length=5)]
Subject = Annotated[
    str, StringConstraints(pattern=r"^(user|agent|team|role):[A-Za-z0-9._@+-]+(/[A-Za-z0-9._@+-]+)?(#[a-z]+)?$")
]


class NewTenant(Model):
    """A customer."""

    id: Name
    name: Title = ""
    organization: Name | None = None


class Tenant(NewTenant):
    """A customer; `frozen` while all of its writes are stopped."""

    frozen: bool


class Tenants(Model):
    """By id."""

    tenants: tuple[Tenant, ...]


class NewUser(Model):
    """A user and the roles from now on. `tenant_id` is for a platform administrator: the first user of that tenant."""

    id: Name
    roles: Roles = ()
    tenant_id: Name | None = None


class User(Model):
    """A person of the caller's tenant, or of the platform."""

    id: str
    roles: tuple[str, ...]


class Users(Model):
    """By id."""

    users: tuple[User, ...]


class Members(Model):
    """Who is in a team from now on."""

    members: Annotated[tuple[Name, ...], Field(max_length=10_000)] = ()


class Team(Members):
    """Users of one tenant."""

    id: str


class Teams(Model):
    """By id."""

    teams: tuple[Team, ...]


class AgentBody(Model):
    """An agent from now on; without `owner` it is the caller's."""

    project: Name
    owner: Name | None = None
    name: Title = ""


class Agent(Model):
    """An agent; `frozen` while its writes, or all of its tenant's, are stopped."""

    id: str
    name: str
    project: str
    owner: str
    organization: str | None
    frozen: bool


class Agents(Model):
    """By id."""

    agents: tuple[Agent, ...]


class NewToken(Model):
    """For whom: the caller, another user, or an agent that acts for a user. Without `roles` it has the user's."""

    user: Name | None = None
    agent: Name | None = None
    roles: Roles | None = None
    expires_at: str | None = Field(None, description="A time (RFC 3339); it does not expire without one.")
    name: Title = ""


class FirstToken(Model):
    """The first user of a tenant, for whom its first token is."""

    user: Name


class Secret(Model):
    """A new token. The secret is shown this once, and nowhere kept."""

    id: str
    secret: str


class Token(Model):
    """A token, without its secret."""

    id: str
    kind: Literal["user", "agent", "service"]
    user: str
    agent: str | None
    roles: tuple[str, ...] | None
    name: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    used_at: str | None


class Tokens(Model):
    """By the time they were made."""

    tokens: tuple[Token, ...]


class Grant(Model):
    """A relation on the agent, for `user:acme/ana`, `team:acme/sales#member` or `role:acme/developer#assignee`."""

    user: Annotated[Subject, StringConstraints(max_length=200)]
    relation: Literal["viewer", "editor", "can_invoke"]


class Held(Model):
    """One relation that stands, also those that ownership brings."""

    user: str
    relation: str


class Grants(Model):
    """What is held on an agent."""

    relations: tuple[Held, ...]


class GrantChange(Model):
    """What to grant on the agent, and what to take back."""

    add: Annotated[tuple[Grant, ...], Field(max_length=100)] = ()
    remove: Annotated[tuple[Grant, ...], Field(max_length=100)] = ()
