"""Everything that the operations of the service need, put together once at its start by a face."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import KNOWLEDGE, OperationContext, PolicyVersion
from memoranda.engines.homes import Homes
from memoranda.engines.hybrid import Hybrid
from memoranda.engines.mem0 import Mem0
from memoranda.engines.provider import MemoryEngine
from memoranda.governance.audit import Audit
from memoranda.governance.credentials import Credentials
from memoranda.governance.decisions import Decisions
from memoranda.governance.identity import Authenticator, Tokens
from memoranda.governance.injection import Filter
from memoranda.governance.instances import BUILTIN, Instances
from memoranda.governance.policies import Policies
from memoranda.governance.registry import Registry
from memoranda.governance.relations import Relations
from memoranda.governance.replays import Replays

if TYPE_CHECKING:
    from memoranda.home.keys import Keys
    from memoranda.state.database import Database


# What asks Cognee too, with `hybrid`.
_OF_ALL = frozenset(("recall", "search", "purge", "forget"))


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts of one running service. `engine_of` gives the engine of a declared instance by its id."""

    database: Database
    keys: Keys
    registry: Registry
    tokens: Tokens
    authenticators: tuple[Authenticator, ...]
    policies: Policies
    instances: Instances
    relations: Relations
    decisions: Decisions
    injection: Filter
    replays: Replays
    audit: Audit
    homes: Homes
    builtin: Builtin
    engine_of: Callable[[str], MemoryEngine]
    credentials: Credentials
    environment: str = "production"
    reaches: bool = False  # whether engines elsewhere are reached from here
    longest_token: timedelta = timedelta(days=30)  # of one that is issued by who came without one of ours
    ends: tuple[Callable[[], None], ...] = ()  # what closes the rest of what was opened for it
    once: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def instance_for(self, current: PolicyVersion, capability: str, where: OperationContext) -> str:
        """The id of the instance that an operation goes to by the policy in force.

        The memory of a session is always builtin's. With `hybrid` a memory goes to Mem0 and knowledge to Cognee.
        """
        scope = where.writes.scope if where.writes else where.scope
        if current.engine == "builtin" or (scope == "session" and capability not in KNOWLEDGE):
            return BUILTIN
        if current.engine == "hybrid":
            instance = current.cognee_instance if capability in KNOWLEDGE else current.mem0_instance
        else:
            instance = current.mem0_instance if current.engine == "mem0" else current.cognee_instance
        return instance or current.engine

    def instances_for(self, current: PolicyVersion, capability: str, where: OperationContext) -> tuple[str, ...]:
        """All instances that an operation touches, but builtin where it only keeps the memory of sessions."""
        first = self.instance_for(current, capability, where)
        second = current.cognee_instance or "cognee"
        if current.engine == "hybrid" and first != BUILTIN and capability in _OF_ALL and first != second:
            return first, second
        return (first,)

    def engine(self, current: PolicyVersion, instance: str, capability: str) -> MemoryEngine:
        """The engine that serves an operation; EngineUnavailable when it cannot be reached from here.

        Beside Mem0 stands builtin with the memory of sessions, and with `hybrid` Cognee with knowledge.
        """
        if instance == BUILTIN:
            return self.builtin
        engine = self.engine_of(instance)
        if capability in KNOWLEDGE or not isinstance(engine, Mem0):
            return engine
        knowledge = None
        if current.engine == "hybrid" and capability in _OF_ALL:
            knowledge = self.engine_of(current.cognee_instance or "cognee")
        return Hybrid(engine, self.builtin, knowledge)

    def close(self) -> None:
        """Closes everything, each part whatever became of the others; once, however often it is called."""
        if self.once.acquire(blocking=False):
            with ExitStack() as stack:
                for close in (*self.ends, self.database.close, self.audit.close, self.homes.close):
                    stack.callback(close)
