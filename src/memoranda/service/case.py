"""One call on its way through the guards: what is asked, and what the guards have established."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from memoranda.context import Context
from memoranda.engines.contract import InstanceCapabilities, OperationContext, PolicyVersion, Scope
from memoranda.engines.provider import MemoryEngine
from memoranda.governance.audit import AuditEvent, Outcome
from memoranda.governance.decisions import Decision
from memoranda.governance.registry import Agent
from memoranda.service.caller import Caller, credential
from memoranda.service.desk import Desk

RelationName = Literal["viewer", "editor", "can_invoke"]
_CHANGES = "remember update forget purge review taint ingest_knowledge build_graph delete_dataset"
_RULINGS = "set_hold release_hold end_session put_policy restore_policy"
WRITES = frozenset([*_CHANGES.split(), *_RULINGS.split()])  # every other operation reads


@dataclass(slots=True)
class Case:
    """What is asked of an agent's memory.

    `fields` are the (name, text) pairs that would be kept, for the guards that look for secrets and personal data;
    `labels` is what else of the request a decision is told. The second half is filled in by the guards, in their order;
    an operation reads it once all have passed.
    """

    desk: Desk
    caller: Caller
    operation: str
    agent_id: str
    relation: RelationName = "can_invoke"
    scope: Scope | None = None
    scopes: tuple[Scope, ...] = ()
    team: str | None = None
    session: str | None = None
    kind: str | None = None
    classification: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
    people_only: bool = False
    labels: dict[str, object] = field(default_factory=dict)
    personal_data: bool = False
    replays: bool = False  # whether it was done before, under the same Idempotency-Key, and is only answered again
    mark: int = -1  # of the state that the guards went by
    recheck: Callable[[bool], None] | None = None

    known_agent: Agent | None = None
    known_policy: PolicyVersion | None = None
    known_instance: InstanceCapabilities | None = None
    known_engine: MemoryEngine | None = None
    known_where: OperationContext | None = None
    decision: Decision | None = None
    items: tuple[str, ...] = field(default=())

    @property
    def writes(self) -> bool:
        return self.operation in WRITES and not self.replays

    @property
    def tenant(self) -> str:
        assert self.caller.identity.tenant is not None  # a guard has seen to it
        return self.caller.identity.tenant

    @property
    def agent(self) -> Agent:
        assert self.known_agent is not None
        return self.known_agent

    @property
    def policy(self) -> PolicyVersion:
        assert self.known_policy is not None
        return self.known_policy

    @property
    def instance(self) -> InstanceCapabilities:
        assert self.known_instance is not None
        return self.known_instance

    @property
    def engine(self) -> MemoryEngine:
        assert self.known_engine is not None
        return self.known_engine

    @property
    def where(self) -> OperationContext:
        assert self.known_where is not None
        return self.known_where

    @property
    def context(self) -> Context:
        """The machine's context in the name of the derived user, agent and session."""
        where, own = self.where, self.caller.context
        return replace(
            own, user=where.user, agent=where.agent, session=where.session, tenant=where.tenant,
            organization=where.organization, project=where.project, team=where.team, recheck=self.recheck,
            keep_days=self.policy.policy.retention_days,
        )  # fmt: skip

    def event(
        self, *, outcome: Outcome | None = None, code: str | None = None, operation: str | None = None,
        engine: str | None = None,
    ) -> AuditEvent:  # fmt: skip
        """What the audit is told: names, ids and codes; never a word of what was asked or kept."""
        identity, where = self.caller.identity, self.known_where
        agent = self.known_agent
        return AuditEvent(
            operation or self.operation,
            tenant=identity.tenant,
            organization=agent.organization if agent else None,
            project=agent.project if agent else None,
            user=identity.user,
            agent=agent.id if agent else None,
            session=where.session if where else None,
            scope=where.scope if where else self.scope,
            team=where.team if where else None,
            actor=credential(identity),
            engine=engine or (self.known_instance.engine_instance if self.known_instance else None),
            decision=None if self.decision is None else "allow" if self.decision.allow else "deny",
            outcome=outcome,
            code=code,
            items=self.items,
            request_id=self.caller.request_id,
        )
