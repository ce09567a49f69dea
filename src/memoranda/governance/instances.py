"""Engine instances: which there are, whose they are, and where the keys to them lie (never the keys).

There is always `builtin`; the Manager renders some into the configuration; a platform administrator declares others.
An instance that is dedicated to another tenant is, to everybody else, not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import urlsplit

from sqlalchemy import and_, delete, or_, select
from sqlalchemy.engine import Connection

from memoranda.context import Context
from memoranda.engines.contract import CredentialBody, InstanceDeclaration, ProviderName
from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.governance.inventory import Inventory
from memoranda.governance.names import column, moment
from memoranda.state import tables as t
from memoranda.state.database import Database, Remembered, insert
from memoranda.values import dataclass

BUILTIN = "builtin"
_RESERVED = (BUILTIN, "hybrid")
_OPENBAO = re.compile(r"openbao://[A-Za-z0-9._@+-]+(/[A-Za-z0-9._@+-]+)+#[A-Za-z0-9._-]+")
_ENV = re.compile(r"env://EAI_CRED_[A-Z0-9_]+")


@dataclass(frozen=True, slots=True)
class Instance:
    """An engine instance. `tenant` is the one that it is dedicated to, None for a shared one; `timeout` in seconds."""

    id: str
    provider: ProviderName
    origin: Literal["builtin", "rendered", "declared"]
    base_url: str
    tenant: str | None
    credential_ref: str | None
    access_control: bool
    tls_verify: bool
    timeout: float
    manager_cluster: str | None
    manager_service: str | None


class Instances:
    """All instances of one service. `rendered` are those of the configuration; `prefix` is where a tenant's own keys
    lie in OpenBao, with `{tenant}` in it, ending with a slash."""

    def __init__(
        self,
        database: Database,
        rendered: Iterable[InstanceDeclaration] | Inventory = (),
        prefix: str = "openbao://secret/tenants/{tenant}/",
    ) -> None:
        self._database = database
        self._prefix = prefix
        self._inventory = rendered if isinstance(rendered, Inventory) else Inventory(rendered)
        self._rendered: tuple[int, dict[str, Instance]] = (-1, {})
        self._remembered = Remembered(database)
        self._fixed  # noqa: B018 - references that cannot be are refused at once

    @property
    def _fixed(self) -> dict[str, Instance]:
        """builtin, and what the Manager has rendered by now."""
        n, there = self._inventory.now()
        held = self._rendered
        if held[0] != n:
            fixed = [Instance(BUILTIN, "builtin", "builtin", "", None, None, True, True, 0, None, None)]
            for one in there:
                _check_reference(one.credential_ref)
                fixed.append(_instance(one.model_dump(exclude={"tenant_id"}), one.tenant_id, "rendered"))
            held = self._rendered = (n, {one.id: one for one in fixed})
        return held[1]

    def declare(self, context: Context, declaration: InstanceDeclaration, by: str) -> Instance:
        """A new instance. Conflict when one of that id exists; InvalidInput names the field that cannot stand."""
        _check_reference(declaration.credential_ref)
        if declaration.id in self._fixed or declaration.id in _RESERVED:
            raise Conflict(f"There is an instance {declaration.id} already.", remedy="Choose another id.")
        row = declaration.model_dump(exclude={"tenant_id"})
        declared = _instance(row, declaration.tenant_id, "declared")
        for other in self.list_for(None):
            if other.base_url and _place(other) == _place(declared) and other.tenant != declared.tenant:
                raise Conflict(
                    "base_url: another instance lies there, and one of the two is for one tenant alone.",
                    why="What is dedicated to a tenant is nobody else's.",
                    remedy="Declare the place of an instance that was installed for it.",
                )
        with self._database.changing() as connection:
            named = select(t.every_tenants.c.tenant).where(t.every_tenants.c.tenant == declaration.tenant_id)
            if declaration.tenant_id is not None and connection.execute(named).first() is None:
                raise InvalidInput("tenant_id: there is no such tenant.", remedy="Add the tenant first.")
            connection.execute(
                t.instances.insert().values(
                    **row, tenant=column(declaration.tenant_id), created_at=moment(context), created_by=by
                )
            )
        return declared

    def remove(self, instance: str) -> None:
        """With every tenant's key on it. Conflict: builtin, rendered, or named by the policy in force of an agent."""
        if instance in self._fixed:
            raise Conflict(
                f"{instance} cannot be withdrawn here.",
                why="It is part of the service, or rendered by the Manager.",
                remedy="Take a rendered instance out where the Manager renders it.",
            )
        with self._database.changing() as connection:
            found = connection.execute(select(t.seen_instances).where(t.seen_instances.c.id == instance)).first()
            if found is None:
                raise _missing()
            if (agents := _users(connection, instance)) > 0:
                raise Conflict(
                    f"{instance} is in use.",
                    why=f"The policies of {agents} agents name it.",
                    remedy="Give these agents another engine first.",
                )
            keys, every = t.instance_credentials, t.every_instance_credentials
            holders = select(every.c.tenant).where(every.c.instance == instance)
            for tenant in connection.execute(holders).scalars().all():
                self._database.become(connection, tenant)
                connection.execute(delete(keys).where(keys.c.tenant == tenant, keys.c.instance == instance))
            self._database.become(connection, found.tenant or None)
            connection.execute(delete(t.instances).where(t.instances.c.id == instance))

    def list_for(self, tenant: str | None) -> list[Instance]:
        """Those that a tenant may see: builtin, the shared ones, its own; for the platform (None) all of them."""
        with self._database.read(tenant) as connection:
            rows = connection.execute(select(t.seen_instances).order_by(t.seen_instances.c.id)).all()
        there = [*self._fixed.values(), *(_from_row(row) for row in rows)]
        return [one for one in there if tenant is None or one.tenant in (None, tenant)]

    def get_for(self, tenant: str | None, instance: str) -> Instance:
        """NotFound when there is none, or when it is another tenant's."""
        known, n = self._remembered.now(), self._inventory.now()[0]
        found: Instance | None = known.get((tenant, instance, n))
        if found is None:
            with self._database.read(tenant) as connection:
                found = known[tenant, instance, n] = self.find(connection, tenant, instance)
        return found

    def dedicated(self, instance: Instance) -> bool:
        """Whether the Manager has installed an instance for its tenant alone.

        A tenant in a declaration alone is none: the same place has to stand in the inventory, for the same tenant, as
        the same service of the same cluster; and nobody else's instance may lie there.
        """
        if instance.tenant is None or instance.origin == "builtin":
            return False
        known, n = self._remembered.now(), self._inventory.now()[0]
        told: bool | None = known.get((instance, n, "dedicated"))
        if told is None:
            others = [one for one in self.list_for(None) if one.base_url and _place(one) == _place(instance)]
            own = all(one.tenant == instance.tenant for one in others)
            told = known[instance, n, "dedicated"] = own and any(
                one.origin == "rendered" and _service(one) == _service(instance) and None not in _service(one)
                for one in others
            )
        return told

    def find(self, connection: Connection, tenant: str | None, instance: str) -> Instance:
        """The same, as the state has it in this transaction."""
        found = self._fixed.get(instance)
        if found is None:
            row = connection.execute(select(t.seen_instances).where(t.seen_instances.c.id == instance)).first()
            found = None if row is None else _from_row(row)
        if found is None or (tenant is not None and found.tenant not in (None, tenant)):
            raise _missing()
        return found

    # Keys of tenants

    def set_credential(self, context: Context, tenant: str, instance: str, body: CredentialBody, by: str) -> None:
        """The tenant's own key on a shared instance. Conflict on an instance that is not shared, Forbidden for a
        reference outside the tenant's own prefix."""
        own = self._prefix.format(tenant=tenant)
        _check_reference(body.credential_ref)
        if not body.credential_ref.startswith(own):
            raise Forbidden(
                "This reference is not the tenant's own.",
                why="A tenant's keys lie under the tenant's own prefix.",
                remedy=f"Put the key below {own} and name it so.",
            )
        row = {"credential_ref": body.credential_ref, "set_at": moment(context), "set_by": by}
        with self._database.changing(tenant) as connection:
            found = self.find(connection, tenant, instance)
            if found.tenant is not None or found.origin == "builtin":
                raise Conflict(
                    f"No tenant sets a key of its own on {instance}.",
                    why="builtin has no keys."
                    if found.origin == "builtin"
                    else "It is dedicated: its key is declared.",
                    remedy="A platform administrator declares the key of a dedicated instance.",
                )
            adding = insert(connection, t.instance_credentials).values(tenant=tenant, instance=instance, **row)
            same = [t.instance_credentials.c.tenant, t.instance_credentials.c.instance]
            connection.execute(adding.on_conflict_do_update(index_elements=same, set_=row))

    def remove_credential(self, tenant: str, instance: str) -> None:
        """NotFound when the tenant has no key there."""
        table = t.instance_credentials
        with self._database.changing(tenant) as connection:
            self.find(connection, tenant, instance)
            where = (table.c.tenant == tenant, table.c.instance == instance)
            if connection.execute(delete(table).where(*where)).rowcount == 0:
                raise NotFound("The tenant has no key of its own on this instance.")

    def credential(self, tenant: str, instance: str) -> tuple[str | None, bool]:
        """The reference by which this tenant is served there, and whether it is the tenant's own."""
        known = self._remembered.now()
        found: tuple[str | None, bool] | None = known.get((tenant, instance, "key"))
        if found is None:
            table = t.instance_credentials
            of = select(table.c.credential_ref).where(table.c.tenant == tenant, table.c.instance == instance)
            with self._database.read(tenant) as connection:
                declared = self.find(connection, tenant, instance).credential_ref
                own = connection.execute(of).scalar()
            found = known[tenant, instance, "key"] = (declared, False) if own is None else (own, True)
        return found


def _place(instance: Instance) -> tuple[str, int]:
    """The host and the port that an instance lies at: what shares these is one server."""
    parts = urlsplit(instance.base_url)
    return (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


def _service(instance: Instance) -> tuple[str | None, ...]:
    return instance.provider, instance.tenant, instance.manager_cluster, instance.manager_service


def _check_reference(reference: str | None) -> None:
    """InvalidInput unless it names a variable for keys, or a field at a path that cannot climb."""
    if reference is None or _ENV.fullmatch(reference):
        return
    if _OPENBAO.fullmatch(reference) and not re.search(r"/\.+(/|#)", reference):
        return
    raise InvalidInput(
        "credential_ref: not a reference that can be resolved.",
        remedy="Write `openbao://mount/path#field`, or for the platform's own keys `env://EAI_CRED_…`.",
    )


def _users(connection: Connection, instance: str) -> int:
    """How many agents' newest policies have an engine that this instance serves."""
    every = t.every_policies
    later = every.alias()
    newest = (
        ~select(later.c.version)
        .where(
            later.c.tenant == every.c.tenant,
            later.c.agent == every.c.agent,
            later.c.version > every.c.version,
        )
        .exists()
    )
    engine = every.c.body["engine"].as_string()
    named = [
        and_(engine.in_([provider, "hybrid"]), every.c.body[f"{provider}_instance"].as_string() == instance)
        for provider in ("mem0", "cognee")
    ]
    return len(connection.execute(select(every.c.agent).where(newest, or_(*named))).all())


def _instance(row: dict[str, Any], tenant: str | None, origin: Literal["rendered", "declared"]) -> Instance:
    return Instance(
        row["id"], row["provider"], origin, row["base_url"], tenant, row["credential_ref"], row["access_control"],
        row["tls_verify"], row["timeout_seconds"], row["manager_cluster"], row["manager_service"],
    )  # fmt: skip


def _from_row(row: Any) -> Instance:
    return _instance(row._mapping, row.tenant or None, "declared")


def _missing() -> NotFound:
    return NotFound("No such engine instance.", remedy="Look at GET /v1/memory/engines.")
