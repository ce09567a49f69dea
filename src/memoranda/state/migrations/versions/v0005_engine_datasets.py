"""Our own state of the datasets that lie in engines elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from memoranda.state.isolation import protect

revision = "0005"
down_revision = "0004"

_TEXT = (
    "tenant", "id", "instance", "state", "namespace", "project", "scope", "owner", "user_id", "agent",
    "classification", "status", "created_at", "updated_at",
)  # fmt: skip
_MAYBE = ("record", "building_since")
_INDEXES = (["tenant", "instance", "project", "scope", "owner", "created_at"], ["status"])


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "engine_datasets",
        *(sa.Column(name, text, nullable=False) for name in _TEXT),
        *(sa.Column(name, text, nullable=True) for name in _MAYBE),
        sa.Column("legal_hold", sa.Boolean(), nullable=False),
        sa.Column("retention_days", sa.Integer(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("builds", "built")),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_engine_datasets")),
    )
    for columns in _INDEXES:
        op.create_index(op.f(f"ix_engine_datasets_{'_'.join(columns)}"), "engine_datasets", columns, unique=False)
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        protect(connection, "engine_datasets")
