"""The engines of declared and rendered instances: made when first asked for, kept while the instance stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memoranda.engines.company import Company
from memoranda.engines.connection import Connection
from memoranda.engines.contract import Isolation, ProviderName
from memoranda.engines.egress import Egress
from memoranda.engines.homes import Homes
from memoranda.engines.naming import Naming
from memoranda.engines.outside import Outside
from memoranda.engines.provider import MemoryEngine
from memoranda.engines.records import Records
from memoranda.errors import EngineUnavailable
from memoranda.governance.credentials import Credentials, Secret
from memoranda.governance.instances import Instance, Instances
from memoranda.home.keys import Keys
from memoranda.service.instances import isolation_of
from memoranda.state.database import Database
from memoranda.trust.envelope import Envelope

Maker = Callable[[Outside], MemoryEngine]


class Keyring:
    """Whose key each tenant is served with on one instance: its own where it set one, else the instance's."""

    def __init__(self, instances: Instances, credentials: Credentials, instance: Instance) -> None:
        self._instances, self._credentials, self._instance = instances, credentials, instance

    def _reference(self, tenant: str | None) -> tuple[str | None, bool]:
        if tenant is None:
            return self._instance.credential_ref, False
        return self._instances.credential(tenant, self._instance.id)

    def of(self, tenant: str | None) -> tuple[str, Secret] | None:
        reference, own = self._reference(tenant)
        return None if reference is None else (reference, self._credentials.resolve(reference, tenant if own else None))

    def forget(self, tenant: str | None) -> None:
        reference, _ = self._reference(tenant)
        if reference is not None:
            self._credentials.forget(reference)


class Engines:
    """The engines that this service can reach. Thread-safe."""

    def __init__(
        self, instances: Instances, credentials: Credentials, egress: Egress, database: Database, keys: Keys,
        homes: Homes, makers: dict[ProviderName, Maker],
    ) -> None:  # fmt: skip
        self._instances, self._credentials, self._egress, self._makers = instances, credentials, egress, makers
        self._records, self._naming, self._company = Records(database, keys), Naming(keys), Company(homes)
        self._envelope = Envelope(keys.get("envelope", "engines"))
        self._lock = threading.Lock()
        self._made: dict[str, tuple[Instance, MemoryEngine]] = {}

    def __call__(self, instance: str) -> MemoryEngine:
        """The engine of an instance. NotFound for none; EngineUnavailable for one that nothing here can speak to."""
        found = self._instances.get_for(None, instance)
        with self._lock:
            made = self._made.get(instance)
            if made is None or made[0] != found:
                made = self._made[instance] = (found, self._make(found))
            return made[1]

    def _make(self, found: Instance) -> MemoryEngine:
        maker = self._makers.get(found.provider)
        if maker is None:
            raise EngineUnavailable(
                f"The engine instance {found.id} cannot be reached from here.",
                why=f"Nothing here speaks to {found.provider}.",
                remedy="Give the agent's policy another engine.",
            )

        def isolation(tenant: str) -> Isolation:
            return isolation_of(self._instances, tenant, found)

        connection = Connection(
            self._egress, found.id, found.base_url, Keyring(self._instances, self._credentials, found),
            timeout=found.timeout, tls_verify=found.tls_verify,
        )  # fmt: skip
        return maker(
            Outside(found.id, connection, self._records, self._naming, self._company, self._envelope, isolation)
        )
