"""Reading the audit: for auditors and security officers, of their own tenant."""

from __future__ import annotations

from memoranda.errors import Forbidden
from memoranda.governance.names import stamp
from memoranda.governance.verifying import Verdict
from memoranda.governance.verifying import verify as verify_all
from memoranda.notes.times import parse_instant
from memoranda.service.answers import AuditEntry, AuditPage, AuditQuery
from memoranda.service.caller import Caller
from memoranda.service.cursors import seal, unseal
from memoranda.service.desk import Desk
from memoranda.service.pipeline import needs, told


def query(desk: Desk, caller: Caller, wanted: AuditQuery, *, cursor: str | None = None, limit: int = 100) -> AuditPage:
    """One page of the events of the caller's tenant, newest first; those of the platform for its own people."""

    def read() -> AuditPage:
        needs(caller, "auditor", "security_officer")
        tenant = caller.identity.tenant
        fields = {name: value for name, value in wanted.model_dump().items() if value is not None}
        about = ("audit", *(f"{name}={value}" for name, value in sorted(fields.items())))
        after = None if cursor is None else unseal(desk.keys, tenant or "-", about, cursor)
        for name in ("since", "until"):
            if name in fields:
                fields[name] = stamp(parse_instant(fields[name], what=name))
        entries, following = desk.audit.query(tenant, limit=limit, cursor=after, **fields)
        return AuditPage(
            events=tuple(AuditEntry(**entry.json()) for entry in entries),
            next_cursor=None if following is None else seal(desk.keys, tenant or "-", about, following),
        )

    return told(desk, caller, "audit_query", read)


def verify(desk: Desk, caller: Caller) -> Verdict:
    """Whether every line of the audit is as it was written, for the platform's auditors: chains belong to no tenant."""

    def read() -> Verdict:
        needs(caller, "auditor", "security_officer", "platform_admin")
        _platform(caller)
        return verify_all(desk.audit.database, desk.keys)

    return told(desk, caller, "audit_verify", read)


def _platform(caller: Caller) -> None:
    if caller.identity.tenant is not None:
        raise Forbidden(
            "The audit is verified as a whole, and holds the lines of every tenant.",
            remedy="Ask who runs the platform: `memoranda audit verify`.",
        )
