"""The table of sessions goes, which nothing reads: each user has names of their own with each agent, so that no row has
to keep anybody out of another's session.

On PostgreSQL it stays while programs of before may run, which empty it with the rest of a tenant that is removed, and
goes with `db upgrade --alone` (`state.postgres`).
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_table("sessions")
        op.execute("UPDATE compatible SET oldest = '0007'")
