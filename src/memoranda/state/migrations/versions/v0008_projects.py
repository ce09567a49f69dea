"""The projects that have, or had, an agent: their Homes outlive it, and with them what is held and what is due."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from memoranda.state.isolation import protect

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "projects",
        sa.Column("tenant", text, nullable=False),
        sa.Column("project", text, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "project", name=op.f("pk_projects")),
    )
    op.execute("INSERT INTO projects (tenant, project) SELECT DISTINCT tenant, project FROM agents")
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        protect(connection, "projects")
