"""What an engine instance announces and guarantees to a tenant, told without calling it and without a credential."""

from __future__ import annotations

from memoranda.engines.announced import ANNOUNCED, guaranteed
from memoranda.engines.contract import InstanceCapabilities, Isolation
from memoranda.governance.instances import BUILTIN, Instance, Instances
from memoranda.service.desk import Desk


def announced(desk: Desk, tenant: str | None, engine_id: str) -> InstanceCapabilities:
    """NotFound for an instance that this tenant may not know of, like for none at all."""
    if engine_id == BUILTIN:
        document = desk.builtin.document()
        isolation = desk.builtin.isolation(tenant or "")
        return InstanceCapabilities(**document.model_dump(), isolation=isolation, session_memory=True)
    found = desk.instances.get_for(tenant, engine_id)
    return InstanceCapabilities(
        provider=found.provider,
        engine_instance=found.id,
        capabilities=ANNOUNCED[found.provider],
        isolation=isolation_of(desk.instances, tenant, found),
        session_memory=False,
    )


def isolation_of(instances: Instances, tenant: str | None, found: Instance) -> Isolation:
    """What a tenant is guaranteed on an instance that is not builtin."""
    own = tenant is not None and instances.credential(tenant, found.id)[1]
    return guaranteed(
        found.provider, dedicated=instances.dedicated(found), access_control=found.access_control, own_key=own
    )
