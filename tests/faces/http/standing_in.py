"""A real service on the embedded defaults, with two tenants, and parts of it that can be made to fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memoranda.faces.http.operator import operator
from memoranda.governance.decisions import Decision, EmbeddedDecisions
from memoranda.service import admin
from memoranda.service.answers import AuditEntry
from memoranda.service.desk import Desk

Events = Callable[[str], list[AuditEntry]]  # tenant -> its audit events, newest first; of `-` those of nobody's
ROLES = ("tenant_admin", "developer", "security_officer", "auditor")


class Failing:
    """Decisions as they are, until they are told to fail."""

    shipped = True

    def __init__(self) -> None:
        self.fails: Exception | None = None
        self._own = EmbeddedDecisions()

    def decide(self, package: Any, input: Mapping[str, Any]) -> Decision:
        if self.fails is not None:
            raise self.fails
        return self._own.decide(package, input)

    def ready(self) -> None:
        if self.fails is not None:
            raise self.fails


def furnish(desk: Desk) -> dict[str, dict[str, str]]:
    """name -> its header: `ana` and her agent `cleo` of acme, `zoe` and her agent `cleo` of umbrella, `root`."""
    made: dict[str, str] = {}
    for tenant, user in (("acme", "ana"), ("umbrella", "zoe")):
        admin.add_tenant(desk, operator(None), tenant)
        own = operator(tenant)
        admin.add_user(desk, own, user, ROLES)
        admin.add_agent(desk, own, "cleo", "crm", owner=user)
        made[user] = admin.issue_token(desk, own, user=user)[1]
        made[f"cleo of {tenant}"] = admin.issue_token(desk, own, user=user, agent="cleo")[1]
    admin.add_user(desk, operator(None), "root", ("platform_admin",))
    made["root"] = admin.issue_token(desk, operator(None), user="root")[1]
    return {name: {"authorization": f"Bearer {secret}"} for name, secret in made.items()}


def events_of(desk: Desk) -> Events:
    def events(tenant: str) -> list[AuditEntry]:
        entries, _ = desk.audit.query(None if tenant == "-" else tenant, limit=100)
        return [AuditEntry(**entry.json()) for entry in entries]

    return events
