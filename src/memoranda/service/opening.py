"""A service on the embedded defaults: everything in process, everything below one folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.cognee import Cognee
from memoranda.engines.contract import InstanceDeclaration, ProviderName
from memoranda.engines.egress import Egress
from memoranda.engines.homes import MOST, Homes
from memoranda.engines.mem0 import Mem0
from memoranda.engines.provider import MemoryEngine
from memoranda.engines.shelves import CACHES, PostgresShelf
from memoranda.errors import EngineUnavailable
from memoranda.governance.audit import Audit
from memoranda.governance.credentials import Credentials
from memoranda.governance.decisions import Decisions, EmbeddedDecisions
from memoranda.governance.identity import Authenticator, Tokens
from memoranda.governance.injection import Filter, LocalFilter
from memoranda.governance.instances import Instances
from memoranda.governance.inventory import Inventory
from memoranda.governance.policies import Policies
from memoranda.governance.registry import Registry
from memoranda.governance.relations import EmbeddedRelations, Relations
from memoranda.governance.replays import Replays
from memoranda.governance.sinks import Sink
from memoranda.governance.tuples import StoredTuples
from memoranda.home.keys import Keys
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.store import PostgresStore
from memoranda.service.desk import Desk
from memoranda.service.reaching import Engines, Maker
from memoranda.state.opening import open_database
from memoranda.state.tables import PLATFORM

# How the engine of each provider is made.
MAKERS: dict[ProviderName, Maker] = {"mem0": Mem0, "cognee": Cognee}


def open_desk(
    context: Context,
    folder: Path,
    *,
    database: str = "",
    rendered: Iterable[InstanceDeclaration] | Inventory = (),
    relations: Relations | None = None,
    decisions: Decisions | None = None,
    injection: Filter | None = None,
    authenticators: Sequence[Authenticator] = (),
    sinks: Sequence[Sink] = (),
    egress: Egress | None = None,
    credentials: Credentials | None = None,
    environment: str = "production",
    homes_secrets: tuple[bytes, ...] = (),
    homes_open: int = MOST,
    caches: int = CACHES,
) -> Desk:
    """Everything that the operations need; what is not given is the embedded default.

    Args:
        folder: where Homes, state and keys lie; made when it is not there, readable by its owner only.
        database: the URL of the state; empty: SQLite in the folder.
        rendered: the instances of the configuration.
        homes_secrets: what seals the keys of Homes in PostgreSQL, and what opens them too; none: they lie in folders.
        homes_open: how many Homes stay open while nobody uses them.
        caches: bytes that this node's caches of Homes in PostgreSQL may take.
        egress: the way out to engines elsewhere; None: none of them is reached from here.

    Raises:
        ConfigRefused: the database cannot be used. ComponentUnavailable: it cannot be reached.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = open_database(state_url(folder, database))
    keys = Keys(folder / "keys")
    if homes_secrets:  # every node checks what another one has signed: cursors, names given to engines, the audit
        keys = SealedKeys(PostgresStore(state, PLATFORM, 0), homes_secrets, keys.folder)
    audit = Audit(context, state, keys, sinks)
    audit.recover(context)
    credentials = credentials or Credentials(environ={})
    instances = Instances(state, rendered, credentials.prefix)
    homes = Homes(folder / "homes", context, most=homes_open)
    if homes_secrets:
        shelf = PostgresShelf(folder / "node", state, homes_secrets, most=caches)
        homes = Homes(folder, context, most=homes_open, shelf=shelf)
    return Desk(
        database=state,
        keys=keys,
        registry=Registry(state),
        tokens=Tokens(state),
        authenticators=tuple(authenticators),
        policies=Policies(state, instances),
        instances=instances,
        relations=relations or EmbeddedRelations(StoredTuples(state)),
        decisions=decisions or EmbeddedDecisions(),
        injection=injection or LocalFilter(),
        replays=Replays(state),
        audit=audit,
        homes=homes,
        builtin=Builtin(homes),
        engine_of=_none if egress is None else Engines(instances, credentials, egress, state, keys, homes, MAKERS),
        credentials=credentials,
        environment=environment,
        reaches=egress is not None,
    )


def state_url(folder: Path, database: str) -> str:
    """Where the state of the service in this folder lies."""
    return database or f"sqlite:///{folder / 'state.sqlite'}"


def _none(instance: str) -> MemoryEngine:
    raise EngineUnavailable(
        f"The engine instance {instance} cannot be reached from here.",
        why="This service runs on builtin alone.",
        remedy="Give the agent's policy the engine builtin.",
    )
