"""Engine instances: which there are for a tenant, what they can do, how they are, and who may declare them."""

from __future__ import annotations

from memoranda.engines.contract import Check, CredentialBody, Health, InstanceCapabilities, InstanceDeclaration
from memoranda.engines.provider import MemoryEngine, Probing
from memoranda.errors import Conflict, NotFound
from memoranda.governance import instances as governed
from memoranda.governance.instances import BUILTIN
from memoranda.service.answers import CredentialSet, Declared, Engines, Instance
from memoranda.service.caller import Caller, actor
from memoranda.service.desk import Desk
from memoranda.service.instances import announced
from memoranda.service.pipeline import needs, told
from memoranda.values import replace

_HEALTH = frozenset(("tenant_admin", "developer", "security_officer", "auditor"))


def list_engines(desk: Desk, caller: Caller) -> Engines:
    """builtin, the rendered and the declared instances; another tenant's dedicated one is not among them."""

    def read() -> Engines:
        there = desk.instances.list_for(caller.identity.tenant)
        return Engines(engines=tuple(_shown(desk, caller, found) for found in there))

    return told(desk, caller, "list_engines", read)


def _shown(desk: Desk, caller: Caller, found: governed.Instance) -> Instance:
    tenant = caller.identity.tenant
    own = tenant is not None and found.id != BUILTIN and desk.instances.credential(tenant, found.id)[1]
    return Instance(
        id=found.id, provider=found.provider, origin=found.origin, dedicated=desk.instances.dedicated(found),
        tenant_credential=own,
    )  # fmt: skip


def capabilities(desk: Desk, caller: Caller, engine_id: str) -> InstanceCapabilities:
    """What an instance can do, and what the caller's tenant is guaranteed there; no credential, no call."""

    def read() -> InstanceCapabilities:
        return announced(desk, caller.identity.tenant, engine_id)

    return told(desk, caller, "get_capabilities", read, engine_id)


def health(desk: Desk, caller: Caller, engine_id: str) -> Health:
    """How an instance is; for tenant_admin, developer, security_officer and auditor."""

    def read() -> Health:
        needs(caller, *_HEALTH)
        own = replace(caller.context, tenant=caller.identity.tenant)  # with the key that the tenant is served with
        return _engine(desk, caller, engine_id).health(own)

    return told(desk, caller, "get_health", read, engine_id)


def _engine(desk: Desk, caller: Caller, engine_id: str) -> MemoryEngine:
    if engine_id == BUILTIN:
        return desk.builtin
    desk.instances.get_for(caller.identity.tenant, engine_id)  # NotFound for what this tenant may not know of
    return desk.engine_of(engine_id)


def declare(desk: Desk, caller: Caller, new: InstanceDeclaration) -> Declared:
    """Declares an instance of Mem0 or Cognee; for platform administrators. Says what was found out about it.

    It is declared whether or not it can be reached yet; but not with access control that it was found not to have, nor
    where nothing may be called.
    """

    def write() -> Declared:
        needs(caller, "platform_admin")
        made = desk.instances.declare(caller.context, new, actor(caller.identity))
        try:
            checks = _checked(desk, caller, new)
        except BaseException:
            desk.instances.remove(new.id)
            raise
        return Declared(**_shown(desk, caller, made).model_dump(), checks=checks)

    return told(desk, caller, "declare_engine", write, new.id, writes=True)


def _checked(desk: Desk, caller: Caller, new: InstanceDeclaration) -> tuple[Check, ...]:
    """What can be found out; nothing where engines are not reached from here."""
    if not desk.reaches:
        return ()
    engine = desk.engine_of(new.id)
    checks = engine.probe(caller.context) if isinstance(engine, Probing) else ()
    if new.access_control and any(check.name == "access_control" and check.ok is False for check in checks):
        raise Conflict(
            "access_control: the instance was found not to separate its users.",
            why="Declared so, tenants would be promised what nothing keeps.",
            remedy="Turn its access control on, or declare it without.",
        )
    return checks


def remove(desk: Desk, caller: Caller, engine_id: str) -> None:
    """Withdraws a declared instance; Conflict while a policy uses it, and always for builtin and rendered ones."""

    def write() -> None:
        needs(caller, "platform_admin")
        desk.instances.remove(engine_id)

    told(desk, caller, "remove_engine", write, engine_id, writes=True)


def set_credential(desk: Desk, caller: Caller, engine_id: str, body: CredentialBody) -> CredentialSet:
    """A tenant's own key on a shared instance, as a reference below the tenant's own prefix."""

    def write() -> CredentialSet:
        tenant = _tenant_admin(caller)
        desk.instances.set_credential(caller.context, tenant, engine_id, body, actor(caller.identity))
        return CredentialSet(engine_id=engine_id, set=True)

    return told(desk, caller, "set_credential", write, engine_id, writes=True)


def remove_credential(desk: Desk, caller: Caller, engine_id: str) -> CredentialSet:
    """Takes the tenant's key away."""

    def write() -> CredentialSet:
        tenant = _tenant_admin(caller)
        desk.instances.remove_credential(tenant, engine_id)
        return CredentialSet(engine_id=engine_id, set=False)

    return told(desk, caller, "remove_credential", write, engine_id, writes=True)


def _tenant_admin(caller: Caller) -> str:
    needs(caller, "tenant_admin")
    if caller.identity.tenant is None:
        raise NotFound("There is no tenant to act for.", remedy="Use a credential of the tenant.")
    return caller.identity.tenant
