"""Which older programs may go on; on PostgreSQL, tenants kept apart by the database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from memoranda.state.isolation import AUDIT_SEES, FUNCTIONS, OWN, PLATFORM_SEES, protect

revision = "0002"
down_revision = "0001"

_PLAIN = ("agents", "floors", "idempotency_keys", "members", "relation_tuples", "sessions", "teams", "users")
_MINE = f"ALL USING (tenant = {OWN}) WITH CHECK (tenant = {OWN})"


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "compatible",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("oldest", text, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_compatible")),
    )
    op.execute("INSERT INTO compatible (id, oldest) VALUES (1, '0002')")
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    connection.exec_driver_sql(FUNCTIONS, execution_options={"no_parameters": True})
    for table in _PLAIN:
        protect(connection, table)
    # What the platform sees beyond its own rows, when no tenant is served.
    protect(connection, "tenants", tenant=_MINE, platform=f"SELECT USING ({PLATFORM_SEES})")
    protect(connection, "freezes", tenant=_MINE, platform=f"SELECT USING ({PLATFORM_SEES} AND agent = '')")
    protect(connection, "tokens", tenant=_MINE, platform=f"SELECT USING ({PLATFORM_SEES})")
    protect(connection, "policies", tenant=_MINE, platform=f"SELECT USING ({PLATFORM_SEES})")
    protect(
        connection, "instance_credentials", tenant=_MINE, platform=f"SELECT USING ({PLATFORM_SEES})",
        withdrawn=f"DELETE USING ({PLATFORM_SEES})",
    )  # fmt: skip
    protect(
        connection, "instances", shared=f"SELECT USING (tenant = '' OR tenant = {OWN})",
        platform=f"ALL USING ({PLATFORM_SEES}) WITH CHECK ({PLATFORM_SEES})",
    )  # fmt: skip
    # The audit: a tenant reads its own lines; they are written, and verified, for all tenants together.
    for table in ("audit_events", "audit_items", "audit_open"):
        protect(
            connection, table, tenant=f"SELECT USING (tenant = {OWN})",
            audit=f"ALL USING ({AUDIT_SEES}) WITH CHECK ({AUDIT_SEES})",
        )  # fmt: skip
