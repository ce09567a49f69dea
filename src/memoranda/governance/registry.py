"""Tenants, users, teams and agents, and what is frozen: what every derived context stands on.

What is read here is remembered in the process, and forgotten as soon as any process changes who may do what
(`state.database.Remembered`), so that a removal or a freeze counts from the next call on.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Table, delete, select
from sqlalchemy.engine import Connection

from memoranda.context import Context
from memoranda.errors import Conflict, InvalidInput, NotFound
from memoranda.governance.names import checked, column, moment
from memoranda.state import tables as t
from memoranda.state.database import Database, Remembered, insert
from memoranda.values import dataclass

PLATFORM_ADMIN = "platform_admin"
ROLES = (PLATFORM_ADMIN, "tenant_admin", "developer", "security_officer", "auditor")


@dataclass(frozen=True, slots=True)
class Tenant:
    """A customer; `frozen` when a security officer has stopped all of its writes."""

    id: str
    name: str
    organization: str | None
    frozen: bool


@dataclass(frozen=True, slots=True)
class User:
    """A person of a tenant, or of the platform (`tenant` None)."""

    tenant: str | None
    id: str
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class Team:
    """Users of one tenant."""

    tenant: str
    id: str
    members: frozenset[str]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent of a tenant: its project, and the user who owns it; `frozen` when it or its tenant is."""

    tenant: str
    id: str
    name: str
    project: str
    owner: str
    organization: str | None
    frozen: bool


class Registry:
    """What there is in one state."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._remembered = Remembered(database)

    # Tenants

    def add_tenant(self, context: Context, tenant: str, name: str = "", organization: str | None = None) -> Tenant:
        """Conflict when there is one, in whichever case it is written: a disk may not tell Acme from acme."""
        checked("tenant", tenant)
        if organization is not None:
            checked("organization", organization)
        row = {"tenant": tenant, "folded": tenant.casefold(), "name": name or tenant, "organization": organization}
        with self._database.changing(tenant) as connection:
            connection.execute(t.tenants.insert().values(**row, created_at=moment(context)))
        return self.tenant(tenant)

    def tenant(self, tenant: str) -> Tenant:
        """NotFound when there is none."""
        known = self._remembered.now()
        found: Tenant | None = known.get(("tenant", tenant))
        if found is None:
            with self._database.read(tenant) as connection:
                found = known[("tenant", tenant)] = _tenant(connection, tenant)
        return found

    def tenants(self) -> list[Tenant]:
        """All of them, by id."""
        with self._database.read() as connection:
            stopped, every = t.every_freezes, t.every_tenants
            frozen = set(connection.execute(select(stopped.c.tenant).where(stopped.c.agent == "")).scalars())
            rows = connection.execute(select(every).order_by(every.c.tenant)).all()
        return [Tenant(row.tenant, row.name, row.organization, row.tenant in frozen) for row in rows]

    def remove_tenant(self, tenant: str) -> None:
        """With its users, agents, tokens, policies and relations; what the Homes and the audit hold stays.

        Conflict while an engine instance is dedicated to it.
        """
        with self._database.changing(tenant) as connection:
            _tenant(connection, tenant)
            if connection.execute(select(t.instances.c.id).where(t.instances.c.tenant == tenant)).first():
                raise Conflict(
                    f"The tenant {tenant} has an engine instance of its own.",
                    remedy="Withdraw the instance first: DELETE /v1/memory/engines/{engine_id}.",
                )
            kept = (t.audit_events, t.audit_items, t.audit_open, t.instances, t.projects)
            for table in t.metadata.sorted_tables:
                if "tenant" in table.c and table not in kept:
                    connection.execute(delete(table).where(table.c.tenant == tenant))

    # Users

    def add_user(self, context: Context, tenant: str | None, user: str, roles: tuple[str, ...] = ()) -> User:
        """A new user, or the same one with these roles from now on. A tenant's user is never a platform_admin."""
        checked("user", user)
        _check_roles(tenant, roles)
        row = {"tenant": column(tenant), "id": user, "roles": sorted(set(roles)), "created_at": moment(context)}
        with self._database.changing(tenant) as connection:
            if tenant is not None:
                _tenant(connection, tenant)
            adding = insert(connection, t.users).values(**row)
            same = [t.users.c.tenant, t.users.c.id]
            connection.execute(adding.on_conflict_do_update(index_elements=same, set_={"roles": row["roles"]}))
        return User(tenant, user, frozenset(roles))

    def user(self, tenant: str | None, user: str) -> User:
        """NotFound when there is none."""
        known = self._remembered.now()
        found: User | None = known.get(("user", tenant, user))
        if found is None:
            with self._database.read(tenant) as connection:
                found = known[("user", tenant, user)] = find_user(connection, tenant, user)
        return found

    def users(self, tenant: str | None) -> list[User]:
        """Those of a tenant (None: of the platform), by id."""
        with self._database.read(tenant) as connection:
            of = select(t.users).where(t.users.c.tenant == column(tenant)).order_by(t.users.c.id)
            return [User(tenant, row.id, frozenset(row.roles)) for row in connection.execute(of)]

    def remove_user(self, tenant: str | None, user: str) -> None:
        """With all tokens that act for this user, and out of all teams. Conflict while the user owns an agent."""
        with self._database.changing(tenant) as connection:
            find_user(connection, tenant, user)
            owned = select(t.agents.c.id).where(t.agents.c.tenant == column(tenant), t.agents.c.owner == user)
            if first := connection.execute(owned).scalar():
                raise Conflict(f"{user} owns the agent {first}.", remedy="Give the agent another owner first.")
            _remove(connection, t.members, tenant, user_id=user)
            _remove(connection, t.tokens, tenant, user_id=user)
            _remove(connection, t.users, tenant, id=user)

    # Teams

    def add_team(self, context: Context, tenant: str, team: str, members: tuple[str, ...] = ()) -> Team:
        """A new team, or the same one with these members from now on. NotFound when one of them is no user."""
        checked("team", team)
        with self._database.changing(tenant) as connection:
            _tenant(connection, tenant)
            for member in members:
                find_user(connection, tenant, member)
            row = {"tenant": tenant, "id": team, "created_at": moment(context)}
            connection.execute(insert(connection, t.teams).values(**row).on_conflict_do_nothing())
            _remove(connection, t.members, tenant, team=team)
            for member in sorted(set(members)):
                connection.execute(t.members.insert().values(tenant=tenant, team=team, user_id=member))
        return Team(tenant, team, frozenset(members))

    def team(self, tenant: str, team: str) -> Team:
        """NotFound when there is none."""
        for found in self.teams(tenant):
            if found.id == team:
                return found
        raise _missing("team")

    def teams(self, tenant: str) -> list[Team]:
        """Those of a tenant, by id."""
        with self._database.read(tenant) as connection:
            ids = connection.execute(select(t.teams.c.id).where(t.teams.c.tenant == tenant).order_by(t.teams.c.id))
            members: dict[str, set[str]] = {name: set() for name in ids.scalars()}
            for row in connection.execute(select(t.members).where(t.members.c.tenant == tenant)):
                members[row.team].add(row.user_id)
        return [Team(tenant, name, frozenset(inside)) for name, inside in members.items()]

    def remove_team(self, tenant: str, team: str) -> None:
        """What the team remembered stays in its Home; nobody is in the team any more."""
        with self._database.changing(tenant) as connection:
            if not _remove(connection, t.teams, tenant, id=team):
                raise _missing("team")
            _remove(connection, t.members, tenant, team=team)

    def teams_of(self, tenant: str, user: str) -> frozenset[str]:
        """The teams of this tenant that the user is in; none for somebody whom it does not know."""
        known = self._remembered.now()
        found: frozenset[str] | None = known.get(("teams", tenant, user))
        if found is None:
            of = select(t.members.c.team).where(t.members.c.tenant == tenant, t.members.c.user_id == user)
            with self._database.read(tenant) as connection:
                found = known[("teams", tenant, user)] = frozenset(connection.execute(of).scalars())
        return found

    # Agents

    def add_agent(self, context: Context, tenant: str, agent: str, project: str, owner: str, name: str = "") -> Agent:
        """A new agent, or the same one with this project, owner and name from now on. NotFound: no such owner."""
        checked("agent", agent)
        checked("project", project)
        row = {"name": name or agent, "project": project, "owner": owner}
        with self._database.changing(tenant) as connection:
            _tenant(connection, tenant)
            find_user(connection, tenant, owner)
            adding = insert(connection, t.agents).values(tenant=tenant, id=agent, created_at=moment(context), **row)
            same = [t.agents.c.tenant, t.agents.c.id]
            connection.execute(adding.on_conflict_do_update(index_elements=same, set_=row))
            known = insert(connection, t.projects).values(tenant=tenant, project=project)
            connection.execute(known.on_conflict_do_nothing())
        return self.agent(tenant, agent)

    def agent(self, tenant: str, agent: str) -> Agent:
        """NotFound when the tenant has none of this name, whoever else has."""
        known = self._remembered.now()
        found: Agent | None = known.get(("agent", tenant, agent))
        if found is None:
            with self._database.read(tenant) as connection:
                found = known[("agent", tenant, agent)] = find_agent(connection, tenant, agent)
        return found

    def agents(self, tenant: str) -> list[Agent]:
        """Those of a tenant, by id."""
        with self._database.read(tenant) as connection:
            of = _tenant(connection, tenant)
            frozen = set(connection.execute(select(t.freezes.c.agent).where(t.freezes.c.tenant == tenant)).scalars())
            rows = connection.execute(select(t.agents).where(t.agents.c.tenant == tenant).order_by(t.agents.c.id)).all()
        return [_agent(row, of, row.id in frozen) for row in rows]

    def projects(self, tenant: str) -> list[str]:
        """Every project of a tenant that has an agent, or had one, by name: what was remembered there stays."""
        of = select(t.projects.c.project).where(t.projects.c.tenant == tenant).order_by(t.projects.c.project)
        with self._database.read(tenant) as connection:
            return list(connection.execute(of).scalars())

    def remove_agent(self, tenant: str, agent: str) -> None:
        """With its tokens and policies. A freeze stays, so that making it again thaws nothing; so does what it
        remembered. Who held a relation on it is known to the relations, which the caller tells."""
        with self._database.changing(tenant) as connection:
            find_agent(connection, tenant, agent)
            _remove(connection, t.tokens, tenant, agent=agent)
            _remove(connection, t.policies, tenant, agent=agent)
            _remove(connection, t.agents, tenant, id=agent)

    # Freezes

    def freeze(self, context: Context, tenant: str, agent: str | None = None, *, by: str) -> None:
        """Stops all writes of an agent, or of the whole tenant, for every process, from the next call on."""
        with self._database.changing(tenant) as connection:
            _tenant(connection, tenant)
            if agent is not None:
                find_agent(connection, tenant, agent)
            row = {"tenant": tenant, "agent": agent or "", "frozen_by": by, "frozen_at": moment(context)}
            connection.execute(insert(connection, t.freezes).values(**row).on_conflict_do_nothing())

    def thaw(self, tenant: str, agent: str | None = None) -> None:
        """Lets it write again. A frozen tenant's agents stay stopped until the tenant is thawed, too."""
        with self._database.changing(tenant) as connection:
            _tenant(connection, tenant)
            _remove(connection, t.freezes, tenant, agent=agent or "")


def find_user(connection: Connection, tenant: str | None, user: str) -> User:
    """The user as the state has it in this transaction; NotFound when there is none."""
    of = select(t.users.c.roles).where(t.users.c.tenant == column(tenant), t.users.c.id == user)
    row = connection.execute(of).first()
    if row is None:
        raise _missing("user")
    return User(tenant, user, frozenset(row.roles))


def find_agent(connection: Connection, tenant: str, agent: str) -> Agent:
    """The agent as the state has it in this transaction; NotFound when there is none."""
    of = select(t.agents).where(t.agents.c.tenant == tenant, t.agents.c.id == agent)
    row = connection.execute(of).first()
    if row is None:
        raise _missing("agent")
    frozen = select(t.freezes.c.agent).where(t.freezes.c.tenant == tenant, t.freezes.c.agent == agent)
    return _agent(row, _tenant(connection, tenant), connection.execute(frozen).first() is not None)


def _tenant(connection: Connection, tenant: str) -> Tenant:
    row = connection.execute(select(t.tenants).where(t.tenants.c.tenant == tenant)).first()
    if row is None:
        raise _missing("tenant")
    frozen = select(t.freezes.c.agent).where(t.freezes.c.tenant == tenant, t.freezes.c.agent == "")
    return Tenant(row.tenant, row.name, row.organization, connection.execute(frozen).first() is not None)


def _agent(row: Any, tenant: Tenant, frozen: bool) -> Agent:
    return Agent(tenant.id, row.id, row.name, row.project, row.owner, tenant.organization, frozen or tenant.frozen)


def _remove(connection: Connection, table: Table, tenant: str | None, **named: str) -> int:
    where = [table.c.tenant == column(tenant), *(table.c[name] == value for name, value in named.items())]
    return connection.execute(delete(table).where(*where)).rowcount


def roles_of(tenant: str | None) -> frozenset[str]:
    """The roles that somebody of a tenant (None: of the platform) may have."""
    return frozenset((PLATFORM_ADMIN, "auditor") if tenant is None else ROLES[1:])


def _check_roles(tenant: str | None, roles: tuple[str, ...]) -> None:
    known = [role for role in ROLES if role in roles_of(tenant)]
    for role in roles:
        if role not in known:
            raise InvalidInput(
                f"roles: {role!r} cannot be given here.",
                why="A platform_admin stands outside every tenant."
                if role == PLATFORM_ADMIN
                else "It is a role in a tenant, and this user belongs to none."
                if role in ROLES
                else "",
                remedy=f"Known here: {', '.join(known)}.",
            )


def _missing(what: str) -> NotFound:
    return NotFound(f"No such {what}.", remedy=f"Look at the {what}s that there are.")
