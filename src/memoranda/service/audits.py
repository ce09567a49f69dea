"""Reading the audit: for auditors and security officers, of their own tenant."""

from __future__ import annotations

from memoranda.errors import NotFound
from memoranda.governance.audit import AuditFilter, AuditPage
from memoranda.service.caller import Caller
from memoranda.service.cursors import seal, unseal
from memoranda.service.desk import Desk
from memoranda.service.pipeline import needs, told


def query(
    desk: Desk, caller: Caller, wanted: AuditFilter, *, cursor: str | None = None, limit: int = 100
) -> tuple[AuditPage, str | None]:
    """One page of the events of the caller's tenant, newest first, and the cursor of the next one.

    A platform administrator who is an auditor too reads the events that belong to no tenant.
    """

    def read() -> tuple[AuditPage, str | None]:
        needs(caller, "auditor", "security_officer")
        tenant = caller.identity.tenant
        about = ("audit", *(str(part) for part in wanted))
        after = None if cursor is None else unseal(desk.keys, tenant or "-", about, cursor)
        page = desk.audit.query(tenant, wanted, after=after, limit=limit)
        return page, None if page.next is None else seal(desk.keys, tenant or "-", about, page.next)

    return told(desk, caller, "audit_query", read)


def verify(desk: Desk, caller: Caller) -> object:
    """Whether every chain of the audit is whole; what is not is named."""

    def read() -> object:
        needs(caller, "auditor", "security_officer")
        if caller.identity.tenant is not None and "platform_admin" not in caller.identity.roles:
            raise NotFound("The audit is verified as a whole, by `memoranda audit verify` on the server.")
        return desk.audit.verify()

    return told(desk, caller, "audit_verify", read)
