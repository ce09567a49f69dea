"""What each agent's memory may be: versions of its policy, and the tenant's floor that bounds them all.

A policy is never changed: a new version stands beside the old ones. What holds for an agent is its newest version
within the tenant's floor (`in_force`), whenever either of them was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Row, select
from sqlalchemy.engine import Connection

from memoranda.context import Context
from memoranda.engines.contract import (
    CLASSIFICATION_ORDER,
    ISOLATIONS,
    Classification,
    Days,
    Isolation,
    Model,
    Policy,
    PolicyBody,
    PolicyVersion,
)
from memoranda.errors import InvalidInput, NotFound, PreconditionFailed
from memoranda.governance.instances import Instances
from memoranda.governance.names import moment
from memoranda.governance.registry import find_agent
from memoranda.state import tables as t
from memoranda.state.database import Database, Remembered, insert

ENGINE_CHANGE = "memory.engine.change"
SHARE = "memory.share"


class Floor(Model):
    """What no agent of a tenant may fall below: the least isolation, the highest classification, whether personal data
    is kept at all, and the longest that anything is. By default it bounds nothing."""

    required_isolation: Isolation = "logical"
    max_classification: Classification = "restricted"
    allow_personal_data: bool = True
    retention_days: Days | None = None


def bounded(policy: Policy, floor: Floor) -> Policy:
    """The policy within the floor: of two bounds the stricter one."""
    change = {name: getattr(floor, name) for name in _beyond(policy, floor)}
    return policy.model_copy(update=change) if change else policy


def audited(old: PolicyBody, new: PolicyBody) -> tuple[str, ...]:
    """The operations by which a change from `old` to `new` is audited beside the writing of a version."""
    found = []
    if (old.engine, old.mem0_instance, old.cognee_instance) != (new.engine, new.mem0_instance, new.cognee_instance):
        found.append(ENGINE_CHANGE)
    if any(set(_shares(new)[part]) != set(_shares(old)[part]) for part in range(3)):
        found.append(SHARE)
    return tuple(found)


def parsed(body: Mapping[str, Any]) -> PolicyBody:
    """The body of a PUT; InvalidInput that names every field that cannot stand."""
    try:
        return PolicyBody.model_validate(body)
    except ValidationError as error:
        told = [
            f"{'.'.join(map(str, one['loc'])) or 'body'}: {one['msg']}" for one in error.errors(include_input=False)
        ]
        raise InvalidInput("; ".join(told) + ".", remedy="Correct these fields; nothing was changed.") from None


class Policies:
    """The policies of all agents in one state."""

    def __init__(self, database: Database, instances: Instances) -> None:
        self._database = database
        self._instances = instances
        self._remembered = Remembered(database)

    def current(self, tenant: str, agent: str) -> PolicyVersion:
        """The newest version as it was written; version 0, the default, for an agent that has none."""
        known = self._remembered.now()
        found: PolicyVersion | None = known.get((tenant, agent))
        if found is None:
            with self._database.read(tenant) as connection:
                found = known[tenant, agent] = _newest(connection, tenant, agent)
        return found

    def in_force(self, tenant: str, agent: str) -> PolicyVersion:
        """The newest version within the tenant's floor: what every operation goes by."""
        known = self._remembered.now()
        found: PolicyVersion | None = known.get((tenant, agent, "bounded"))
        if found is None:
            newest, floor = self.current(tenant, agent), self.floor(tenant)
            found = newest.model_copy(update={"policy": bounded(newest.policy, floor)})
            known[tenant, agent, "bounded"] = found
        return found

    def sharing_with(self, tenant: str, agent: str) -> frozenset[str]:
        """The other agents of the tenant whose policies in force name this one in `shared_with`."""
        known = self._remembered.now()
        found: frozenset[str] | None = known.get((tenant, agent, "sharing"))
        if found is None:
            with self._database.read(tenant) as connection:
                others = connection.execute(select(t.agents.c.id).where(t.agents.c.tenant == tenant)).scalars().all()
            found = known[tenant, agent, "sharing"] = frozenset(
                other
                for other in others
                if other != agent
                and agent in (policy := self.in_force(tenant, other).policy).shared_with
                and "shared" in policy.modes
            )
        return found

    def versions(self, tenant: str, agent: str, *, limit: int = 100, before: int | None = None) -> list[PolicyVersion]:
        """As they were written, newest first; `before` a version, for the next page."""
        of = select(t.policies).where(t.policies.c.tenant == tenant, t.policies.c.agent == agent)
        if before is not None:
            of = of.where(t.policies.c.version < before)
        with self._database.read(tenant) as connection:
            rows = connection.execute(of.order_by(t.policies.c.version.desc()).limit(limit)).all()
        return [_version(row) for row in rows]

    def put(
        self, context: Context, tenant: str, agent: str, body: PolicyBody, by: str, *, expected: int | None = None
    ) -> PolicyVersion:
        """A new version. What `body` leaves out has its default, and holds within the floor.

        InvalidInput names the field that contradicts another one, names no instance of the tenant's, or was set beyond
        the tenant's floor; PreconditionFailed when the newest version is not `expected`; NotFound: no such agent.
        """
        with self._database.changing(tenant) as connection:
            _check(body)
            for name, limit in _beyond(body.policy, _floor(connection, tenant)).items():
                if name in body.policy.model_fields_set:
                    raise _invalid(f"policy.{name}", f"the tenant's floor allows no more than {limit}")
            self._check_instances(connection, tenant, body)
            return self._append(context, connection, tenant, agent, body, by, expected, None)

    def restore(
        self, context: Context, tenant: str, agent: str, version: int, by: str, *, expected: int | None = None
    ) -> PolicyVersion:
        """A new version equal to an old one (0 is the default); it holds within the floor of today."""
        with self._database.changing(tenant) as connection:
            old = _numbered(connection, tenant, agent, version)
            self._check_instances(connection, tenant, old)
            return self._append(context, connection, tenant, agent, old, by, expected, version)

    def floor(self, tenant: str) -> Floor:
        """The tenant's floor; one that bounds nothing where none was set."""
        known = self._remembered.now()
        found: Floor | None = known.get(tenant)
        if found is None:
            with self._database.read(tenant) as connection:
                found = known[tenant] = _floor(connection, tenant)
        return found

    def set_floor(self, context: Context, tenant: str, floor: Floor, by: str) -> None:
        """Holds for every agent of the tenant from the next call on, whatever its policy says."""
        row = {"body": floor.model_dump(), "set_at": moment(context), "set_by": by}
        with self._database.changing(tenant) as connection:
            adding = insert(connection, t.floors).values(tenant=tenant, **row)
            connection.execute(adding.on_conflict_do_update(index_elements=[t.floors.c.tenant], set_=row))

    def _check_instances(self, connection: Connection, tenant: str, body: PolicyBody) -> None:
        for provider in ("mem0", "cognee"):
            field = f"{provider}_instance"
            named = getattr(body, field)
            if named is None and body.engine in (provider, "hybrid"):
                raise _invalid(field, f"the engine {body.engine} needs one")
            if named is not None:
                try:
                    instance = self._instances.find(connection, tenant, named)
                except NotFound:
                    raise _invalid(field, "there is no such instance") from None
                if instance.provider != provider:
                    raise _invalid(field, f"this instance is one of {instance.provider}")

    def _append(
        self, context: Context, connection: Connection, tenant: str, agent: str, body: PolicyBody, by: str,
        expected: int | None, restored: int | None,
    ) -> PolicyVersion:  # fmt: skip
        find_agent(connection, tenant, agent)
        newest = _newest(connection, tenant, agent).version
        if expected is not None and expected != newest:
            raise PreconditionFailed(
                f"The policy is at version {newest}, not {expected}.", remedy="Read it again, then repeat the change."
            )
        plain = body.model_dump(include=set(PolicyBody.model_fields))
        made = PolicyVersion(
            **plain, version=newest + 1, created_at=moment(context), created_by=by, restored_from=restored
        )
        connection.execute(
            t.policies.insert().values(
                tenant=tenant, agent=agent, version=made.version, body=plain, created_at=made.created_at,
                created_by=by, restored_from=restored,
            )
        )  # fmt: skip
        return made


def _beyond(policy: Policy, floor: Floor) -> dict[str, object]:
    """Each field by which the policy goes beyond the floor, with what the floor has there."""
    found: dict[str, object] = {}
    if ISOLATIONS.index(policy.required_isolation) < ISOLATIONS.index(floor.required_isolation):
        found["required_isolation"] = floor.required_isolation
    if CLASSIFICATION_ORDER.index(policy.max_classification) > CLASSIFICATION_ORDER.index(floor.max_classification):
        found["max_classification"] = floor.max_classification
    if policy.allow_personal_data and not floor.allow_personal_data:
        found["allow_personal_data"] = False
    if floor.retention_days is not None and (policy.retention_days or 10**9) > floor.retention_days:
        found["retention_days"] = floor.retention_days
    return found


def _check(body: PolicyBody) -> None:
    if body.policy.default_scope not in body.policy.write_scopes:
        raise _invalid(
            "policy.default_scope", "it is not among write_scopes, so that no write without a scope can land"
        )


def _shares(body: PolicyBody) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return body.policy.shared_with, body.policy.teams, ("global",) if body.policy.global_access else ()


def _newest(connection: Connection, tenant: str, agent: str) -> PolicyVersion:
    of = select(t.policies).where(t.policies.c.tenant == tenant, t.policies.c.agent == agent)
    row = connection.execute(of.order_by(t.policies.c.version.desc()).limit(1)).first()
    return PolicyVersion(version=0) if row is None else _version(row)


def _numbered(connection: Connection, tenant: str, agent: str, version: int) -> PolicyVersion:
    of = select(t.policies).where(t.policies.c.tenant == tenant, t.policies.c.agent == agent)
    row = connection.execute(of.where(t.policies.c.version == version)).first()
    if row is not None:
        return _version(row)
    if version == 0:
        return PolicyVersion(version=0)
    raise NotFound(f"There is no version {version} of this policy.", remedy="Look at GET …/policy/versions.")


def _version(row: Row[Any]) -> PolicyVersion:
    return PolicyVersion(
        **row.body, version=row.version, created_at=row.created_at, created_by=row.created_by,
        restored_from=row.restored_from,
    )  # fmt: skip


def _floor(connection: Connection, tenant: str) -> Floor:
    body = connection.execute(select(t.floors.c.body).where(t.floors.c.tenant == tenant)).scalar()
    return Floor() if body is None else Floor.model_validate(body)


def _invalid(field: str, why: str) -> InvalidInput:
    return InvalidInput(f"{field}: {why}.", remedy="Correct this field; nothing was changed.")
