"""What the person does who runs the service, at its machine: through the same operations, on record as `operator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.governance.identity import Identity
from memoranda.governance.names import checked
from memoranda.service import admin
from memoranda.service.caller import Caller
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.service.desk import Desk

OPERATOR = "operator"
EXAMPLE = ("example", "ana", "cleo")  # tenant, user, agent
_PLATFORM = frozenset({"platform_admin", "auditor"})
_TENANT = frozenset({"tenant_admin", "developer", "security_officer", "auditor"})


def operator(tenant: str | None) -> Caller:
    """The caller at the machine: an administrator of the tenant, or without one of the platform. Reads no memory.

    InvalidInput, SecretRefused: no tenant can be called so. What is on record must be a name and nothing else.
    """
    if tenant is not None:
        checked("tenant", tenant)
    identity = Identity(
        tenant=tenant, kind="user", user=OPERATOR, agent=None, roles=_PLATFORM if tenant is None else _TENANT,
        organization=None, token_id=None,
    )  # fmt: skip
    return Caller(Context(user=OPERATOR, agent="cli", person=True), identity, "")


@dataclass(frozen=True, slots=True)
class Made:
    """What a start in development made; each secret is told once. Empty texts where it was there before."""

    administrator: str
    user: str
    agent: str

    def json(self) -> dict[str, Any]:
        return {name: getattr(self, name) or None for name in ("administrator", "user", "agent")}


def first(desk: Desk, *, example: bool) -> Made:
    """A first administrator where there is none, and with `example` a tenant with a user and an agent."""
    platform = operator(None)
    administrator = user = agent = ""
    if not desk.registry.users(None):
        admin.add_user(desk, platform, "admin", ("platform_admin",))
        administrator = admin.issue_token(desk, platform, user="admin", name=admin.EXAMPLE_TOKEN)[1]
    tenant, who, which = EXAMPLE
    if example and all(one.id != tenant for one in desk.registry.tenants()):
        admin.add_tenant(desk, platform, tenant, "An example")
        own = operator(tenant)
        admin.add_user(desk, own, who, ("tenant_admin", "developer", "security_officer", "auditor"))
        admin.add_agent(desk, own, which, "demo", owner=who)
        user = admin.issue_token(desk, own, user=who, name=admin.EXAMPLE_TOKEN)[1]
        agent = admin.issue_token(desk, own, user=who, agent=which, name=admin.EXAMPLE_TOKEN)[1]
    return Made(administrator, user, agent)
