"""Relations: who is viewer or editor of an agent, and who may invoke it. In process, or asked of OpenFGA.

Users and objects are OpenFGA's strings, and their ids begin with the tenant: `user:acme/ana`, `agent:acme/cleo`,
`team:acme/sales#member`, `role:acme/developer#assignee`, `tenant:acme`. No tuple joins two tenants, and no question
does. Both implementations hold that, before anybody is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, Protocol

from memoranda.errors import InvalidInput
from memoranda.governance.relation_model import Rewrite, evaluate, fits, parse

AgentRelation = Literal["viewer", "editor", "can_invoke"]

MOST = 100  # tuples that are written at once

# Roles that are relations, and what they are to their tenant. platform_admin is none: it reads no memory.
RELATED_ROLES = frozenset({"tenant_admin", "developer", "security_officer", "auditor"})
_OF_TENANT = (("tenant_admin", "admin"), ("security_officer", "overseer"), ("auditor", "overseer"))


class Tuple(NamedTuple):
    """One stored relation, in OpenFGA's strings and OpenFGA's order."""

    user: str
    relation: str
    object: str


class Relations(Protocol):
    """Who stands in which relation. Every method raises ComponentUnavailable where nobody answers; nothing allows."""

    def check(self, user: str, relation: str, object: str, held: Sequence[Tuple] = ()) -> bool:
        """Whether `user` stands in `relation` to `object`; `held` are tuples that count for this question only."""
        ...

    def write(self, add: Sequence[Tuple] = (), remove: Sequence[Tuple] = ()) -> None:
        """All of it or nothing. What is there already, or gone already, is no error; InvalidInput: not in the model."""
        ...

    def read(self, *, object: str | None = None, user: str | None = None) -> list[Tuple]:
        """The stored tuples of this object, of this user, or of both together; InvalidInput without an object or user.

        With `user` alone only the types that hold users are looked at.
        """
        ...

    def ready(self) -> None:
        """Returns where questions can be answered."""
        ...


class TupleStore(Protocol):
    """Where tuples lie for the evaluation in process. Thread-safe; `write` is all or nothing."""

    def relevant(self, object: str, user: str) -> Iterable[tuple[str, str]]:
        """(relation, user) of the tuples of `object` whose user is `user`, or is anything but a plain `user:…`."""
        ...

    def read(self, *, object: str | None = None, user: str | None = None) -> list[Tuple]:
        """The tuples of this object, of this user, or of both together."""
        ...

    def write(self, add: Sequence[Tuple], remove: Sequence[Tuple]) -> None:
        """Stores and removes; what is there already, or gone already, is no error."""
        ...


@cache
def shipped_text() -> str:
    """The relation model, as it is given to OpenFGA."""
    return (files("memoranda.governance") / "shipped" / "relations.fga").read_text("utf-8")


@cache
def shipped_model() -> dict[str, dict[str, Rewrite]]:
    """The relation model, read."""
    return parse(shipped_text())


# What the registry writes


def user_name(tenant: str, user: str) -> str:
    """A person of a tenant."""
    return f"user:{tenant}/{user}"


def agent_name(tenant: str, agent: str) -> str:
    """An agent of a tenant."""
    return f"agent:{tenant}/{agent}"


def team_name(tenant: str, team: str) -> str:
    """A team of a tenant; its people are this with `#member` behind it."""
    return f"team:{tenant}/{team}"


def tuples_of_tenant(tenant: str) -> tuple[Tuple, ...]:
    """What makes the roles of a tenant count in it; written once, when it is added."""
    return tuple(Tuple(f"role:{tenant}/{role}#assignee", of, f"tenant:{tenant}") for role, of in _OF_TENANT)


def tuples_of_agent(tenant: str, agent: str, owner: str) -> tuple[Tuple, ...]:
    """What makes an agent its tenant's and its owner's; written when it is added."""
    at = agent_name(tenant, agent)
    return (Tuple(f"tenant:{tenant}", "tenant", at), Tuple(user_name(tenant, owner), "owner", at))


def tuples_of_roles(tenant: str, user: str, roles: Iterable[str]) -> tuple[Tuple, ...]:
    """The roles that a person holds: stored for the registry's, given as `held` for those that came with a token."""
    held = sorted(RELATED_ROLES.intersection(roles))
    return tuple(Tuple(user_name(tenant, user), "assignee", f"role:{tenant}/{role}") for role in held)


def tuple_of_member(tenant: str, team: str, user: str) -> Tuple:
    """A person in a team."""
    return Tuple(user_name(tenant, user), "member", team_name(tenant, team))


# What holds for both implementations


def tenant_of(name: str) -> str:
    """The tenant that a user or an object belongs to; empty where its id begins with none."""
    kind, _, rest = name.partition(":")
    rest = rest.partition("#")[0]
    if kind == "tenant":
        return rest if "/" not in rest else ""
    tenant, slash, own = rest.partition("/")
    return tenant if slash and own else ""


def one_tenant(*names: str) -> bool:
    """Whether all of these belong to the same tenant."""
    tenants = {tenant_of(name) for name in names}
    return len(tenants) == 1 and "" not in tenants


def checked(tuples: Iterable[Tuple]) -> None:
    """Refuses (InvalidInput) what the model does not allow to be stored, what joins two tenants, and platform_admin."""
    for user, relation, object in tuples:
        roles = [name for name in (user, object) if name.startswith("role:")]
        if (
            not fits(shipped_model(), user, relation, object)
            or not one_tenant(user, object)
            or any(role.partition("#")[0].rpartition("/")[2] not in RELATED_ROLES for role in roles)
        ):
            raise InvalidInput(
                f"This relation cannot be stored: {user[:100]!r} as {relation[:50]!r} of {object[:100]!r}.",
                why="The model does not know it, it would join two tenants, or it names a role of the platform.",
                remedy="Name users, teams#member and roles#assignee of the same tenant; see policies/relations.fga.",
            )


def together(add: Sequence[Tuple], remove: Sequence[Tuple]) -> None:
    """Refuses to write more at once than OpenFGA takes in one piece."""
    if len(add) + len(remove) > MOST:
        raise InvalidInput(
            f"At most {MOST} relations are written at once, and here are {len(add) + len(remove)}.",
            why="Only so many are written as a whole or not at all.",
            remedy="Write them in several steps.",
        )


def asked_for(object: str | None, user: str | None) -> None:
    """Refuses to read all tuples of everybody."""
    if not (object or user):
        raise InvalidInput("Relations are read of an object or of a user, and neither was named.")


class EmbeddedRelations:
    """The model evaluated in process, over tuples of our own."""

    def __init__(self, store: TupleStore) -> None:
        self._store = store
        self._model = shipped_model()

    def check(self, user: str, relation: str, object: str, held: Sequence[Tuple] = ()) -> bool:
        """As `Relations.check`."""
        checked(held)
        if not one_tenant(user, object, *(one.object for one in held)):
            return False

        def read(of: str, about: str) -> list[tuple[str, str]]:
            told = [(one.relation, one.user) for one in held if one.object == of]
            return [*told, *self._store.relevant(of, about)]

        return evaluate(self._model, read, user, relation, object)

    def write(self, add: Sequence[Tuple] = (), remove: Sequence[Tuple] = ()) -> None:
        """As `Relations.write`."""
        checked(add)
        together(add, remove)
        self._store.write(add, remove)

    def read(self, *, object: str | None = None, user: str | None = None) -> list[Tuple]:
        """As `Relations.read`."""
        asked_for(object, user)
        return self._store.read(object=object, user=user)

    def ready(self) -> None:
        """As `Relations.ready`: one look into the store."""
        self._store.read(object="tenant:-", user="user:-/-")
