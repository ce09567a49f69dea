"""What a running service does by itself: it removes what is past its retention, and joins old objects of Homes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memoranda.context import Context
from memoranda.engines.cognee import Cognee
from memoranda.engines.mem0 import Mem0
from memoranda.engines.naming import OWNER
from memoranda.errors import LegalHold, MemorandaError
from memoranda.governance.audit import AuditEvent, Outcome
from memoranda.governance.instances import BUILTIN
from memoranda.home.postgres.keys import SealedKeys
from memoranda.operations.expiring import expire
from memoranda.operations.forgetting import Forgotten
from memoranda.operations.space import Space
from memoranda.service.desk import Desk
from memoranda.service.pipeline import outcome_of
from memoranda.values import replace

BY = "service"


def reseal(desk: Desk) -> int:
    """Seals the keys in PostgreSQL, its own and every tenant's, under the service's secret; how many were not yet."""
    keys = [desk.keys, *(desk.homes.keys_of(tenant.id) for tenant in desk.registry.tenants())]
    return sum(of_tenant.reseal() for of_tenant in keys if isinstance(of_tenant, SealedKeys))


def expire_due(desk: Desk, context: Context) -> int:
    """Removes what is due in every Home, with its history where its class asks for it; how many Homes failed.

    What is due is hidden on time, whether this has run or not. Each Home that something was removed from, or that
    could not be looked through, stands in the audit.
    """
    failed = 0
    for tenant, project in _homes(desk):
        outcome: Outcome = "success"
        code: str | None = None
        gone: tuple[str, ...] = ()
        try:
            gone = _expired(desk, context, tenant, project, _limits(desk, tenant, project))
        except LegalHold as error:  # what is held stays; the rest went
            gone, code = _removed(error.done), error.code
        except MemorandaError as error:
            outcome, code = outcome_of(error), error.code
            failed += 1
        if gone or code is not None:
            desk.audit.note(
                context,
                AuditEvent(
                    "expire", tenant=tenant, project=project, actor=BY, engine="builtin", outcome=outcome, code=code,
                    items=gone,
                ),
            )  # fmt: skip
    return failed + expire_elsewhere(desk, context)


def tidy(desk: Desk) -> int:
    """Keeps Homes small that have grown for long; how many objects were moved."""
    return sum(desk.homes.shelf.tidy(tenant.id) for tenant in desk.registry.tenants())


def expire_elsewhere(desk: Desk, context: Context) -> int:
    """Removes what is due from the engines elsewhere, and settles what is not known there; how many of them failed."""
    failed = 0
    for tenant in desk.registry.tenants():
        for instance in desk.instances.list_for(tenant.id):
            if instance.id == BUILTIN:
                continue
            outcome: Outcome = "success"
            code: str | None = None
            gone: tuple[str, ...] = ()
            try:
                engine = desk.engine_of(instance.id)
                gone = engine.expire(context, tenant.id) if isinstance(engine, Mem0 | Cognee) else ()
            except MemorandaError as error:
                outcome, code = outcome_of(error), error.code
                failed += 1
            if gone or code is not None:
                desk.audit.note(
                    context,
                    AuditEvent(
                        "expire", tenant=tenant.id, actor=BY, engine=instance.id, outcome=outcome, code=code, items=gone
                    ),
                )
    return failed


def _homes(desk: Desk) -> Iterator[tuple[str, str | None]]:
    for tenant in desk.registry.tenants():
        yield tenant.id, None
        yield from ((tenant.id, project) for project in desk.registry.projects(tenant.id))


def _limits(desk: Desk, tenant: str, project: str | None) -> dict[str, int]:
    """agent -> the days that its policy in force keeps anything for, of those that write in this Home.

    "" is for who wrote here once and has no policy any more: the tenant's floor outlives an agent.
    """
    floor = desk.policies.floor(tenant).retention_days
    found = {} if floor is None else {"": floor}
    for agent in desk.registry.agents(tenant):
        days = desk.policies.in_force(tenant, agent.id).policy.retention_days
        if days is not None and project in (None, agent.project):
            found[agent.id] = days
    return found


def _expired(
    desk: Desk, context: Context, tenant: str, project: str | None, limits: Mapping[str, int]
) -> tuple[str, ...]:
    own = replace(context, user=BY, agent=BY, person=True, tenant=tenant, project=project)
    with desk.homes.whole(tenant, project) as home:
        if home is None:
            return ()
        return _removed(expire(own, Space(own, home.repository.keys, None, None, given=[home]), limits=limits))


def _removed(done: object) -> tuple[str, ...]:
    return tuple(taken.id for taken in done.removed) if isinstance(done, Forgotten) else ()


def renew_prefix(desk: Desk) -> int:
    """Makes a fresh key for the prefix of identifiers in engines; how many older ones stay beside it, to find by.

    A service that runs goes on with the key that it has read: it has to be started again, on every node.
    """
    desk.keys.renew("namespace", OWNER)
    return len(desk.keys.versions("namespace", OWNER)) - 1
