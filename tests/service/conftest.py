"""A service on the embedded defaults with two tenants that do not know of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.engines.contract import Policy, PolicyBody
from memoranda.service import admin, policies
from memoranda.service.caller import Caller, authenticate
from memoranda.service.desk import Desk
from memoranda.service.opening import open_desk
from tests import stores

USERS = {
    "acme": {
        "ana": ("tenant_admin", "developer"),
        "bob": ("developer",),
        "sam": ("security_officer",),
        "ada": ("auditor",),
    },
    "globex": {"zoe": ("tenant_admin", "security_officer", "auditor"), "bob": ()},
}
AGENTS = {"acme": {"cleo": ("shop", "ana"), "max": ("shop", "bob")}, "globex": {"cleo": ("shop", "zoe")}}


SECRETS = (b"what seals the keys of Homes in PostgreSQL",)


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """The URL of the state; empty: SQLite, with Homes in folders. On PostgreSQL Homes lie there, too.

    A file whose tests run on both gives them `on_both`; `MEMORANDA_TEST_STORES=postgres` has all others run there.
    """
    return str(request.getfixturevalue("postgres").service) if stores.STORES == "postgres" else ""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def on_both(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("postgres").service if request.param == "postgres" else ""


@pytest.fixture
def lying(database: str) -> dict[str, Any]:
    """Where the service has its things, as `open_desk` is told it."""
    return {"database": database, "homes_secrets": SECRETS if database else ()}


@pytest.fixture
def desk(tmp_path: Path, context: Context, lying: dict[str, Any]) -> Iterator[Desk]:
    desk = open_desk(context, tmp_path / "service", **lying)
    people(desk, context)
    yield desk
    desk.close()


def people(desk: Desk, context: Context) -> None:
    """Both tenants, with all who belong to them."""
    for tenant, users in USERS.items():
        desk.registry.add_tenant(context, tenant, organization=f"{tenant}-group")
        desk.relations.write(add=admin.tuples_of_tenant(tenant))
        for user, roles in users.items():
            desk.registry.add_user(context, tenant, user, roles)
        for agent, (project, owner) in AGENTS[tenant].items():
            desk.registry.add_agent(context, tenant, agent, project, owner)
            desk.relations.write(add=admin.tuples_of_agent(tenant, agent, owner))
    desk.registry.add_user(context, None, "root", ("platform_admin",))


@pytest.fixture
def caller(desk: Desk, context: Context) -> Callable[..., Caller]:
    """The caller whose token this is: `caller("acme", "ana")`, `caller("acme", "ana", "cleo")` for an agent's."""

    def made(tenant: str | None, user: str, agent: str | None = None) -> Caller:
        _, secret = desk.tokens.issue(context, tenant, user, agent)
        return authenticate(desk, context, secret)

    return made


@pytest.fixture
def set_policy(desk: Desk, caller: Callable[..., Caller]) -> Callable[..., None]:
    """Gives an agent a policy with these fields."""

    def put(tenant: str, agent: str, **fields: object) -> None:
        owner = AGENTS[tenant][agent][1]
        policies.put_policy(desk, caller(tenant, owner), agent, PolicyBody(policy=Policy(**fields)))  # type: ignore[arg-type]

    return put
