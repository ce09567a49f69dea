"""Our own state of what lies in engines elsewhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from memoranda.state.isolation import protect

revision = "0003"
down_revision = "0002"

_TEXT = (
    "tenant", "id", "instance", "state", "namespace", "project", "scope", "owner", "user_id", "agent", "kind",
    "classification", "origin", "chain", "content_hash", "same_hash", "created_at", "updated_at",
)  # fmt: skip
_MAYBE = (
    "record", "container", "session", "original", "verdict", "verdict_on", "valid_from", "valid_to", "due_at",
)  # fmt: skip
_INDEXES = (
    ["tenant", "instance", "project", "scope", "owner", "created_at"],
    ["tenant", "instance", "record"],
    ["tenant", "instance", "chain"],
    ["tenant", "project", "scope", "owner", "same_hash"],
    ["due_at"],
    ["state"],
)


def upgrade() -> None:
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "engine_items",
        *(sa.Column(name, text, nullable=False) for name in _TEXT),
        *(sa.Column(name, text, nullable=True) for name in _MAYBE),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in ("generated", "recalled", "head", "legal_hold")),
        *(sa.Column(name, sa.JSON(), nullable=False) for name in ("taint", "supersedes")),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.Column("retention_days", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_engine_items")),
    )
    for columns in _INDEXES:
        op.create_index(op.f(f"ix_engine_items_{'_'.join(columns)}"), "engine_items", columns, unique=False)
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        protect(connection, "engine_items")
