"""The tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

TEXT = sa.String().with_variant(sa.String(collation="C"), "postgresql")
COUNT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("project", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_agents")),
    )
    op.create_table(
        "audit_events",
        sa.Column("n", COUNT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("chain", TEXT, nullable=False),
        sa.Column("seq", COUNT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("phase", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("organization", TEXT, nullable=True),
        sa.Column("project", TEXT, nullable=True),
        sa.Column("user_id", TEXT, nullable=True),
        sa.Column("agent", TEXT, nullable=True),
        sa.Column("session", TEXT, nullable=True),
        sa.Column("scope", TEXT, nullable=True),
        sa.Column("team", TEXT, nullable=True),
        sa.Column("actor", TEXT, nullable=True),
        sa.Column("engine", TEXT, nullable=True),
        sa.Column("decision", TEXT, nullable=True),
        sa.Column("outcome", TEXT, nullable=True),
        sa.Column("code", TEXT, nullable=True),
        sa.Column("request_id", TEXT, nullable=True),
        sa.Column("items", TEXT, nullable=False),
        sa.Column("mac", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_audit_events")),
        sa.UniqueConstraint("chain", "seq", name=op.f("uq_audit_events_chain_seq")),
    )
    op.create_index(op.f("ix_audit_events_id"), "audit_events", ["id"], unique=False)
    op.create_index(op.f("ix_audit_events_tenant_at_id"), "audit_events", ["tenant", "at", "id"], unique=False)
    op.create_table(
        "audit_items",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("item", TEXT, nullable=False),
        sa.Column("event", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item", "event", name=op.f("pk_audit_items")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_open",
        sa.Column("event", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("chain", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("event", name=op.f("pk_audit_open")),
    )
    op.create_index(op.f("ix_audit_open_chain"), "audit_open", ["chain"], unique=False)
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n", COUNT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
    )
    op.create_table(
        "floors",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("set_at", TEXT, nullable=False),
        sa.Column("set_by", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_floors")),
    )
    op.create_table(
        "freezes",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("frozen_by", TEXT, nullable=False),
        sa.Column("frozen_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "agent", name=op.f("pk_freezes")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("caller", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("request", TEXT, nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("created_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "caller", "operation", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "instance_credentials",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("instance", TEXT, nullable=False),
        sa.Column("credential_ref", TEXT, nullable=False),
        sa.Column("set_at", TEXT, nullable=False),
        sa.Column("set_by", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "instance", name=op.f("pk_instance_credentials")),
    )
    op.create_table(
        "instances",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("provider", TEXT, nullable=False),
        sa.Column("base_url", TEXT, nullable=False),
        sa.Column("credential_ref", TEXT, nullable=True),
        sa.Column("access_control", sa.Boolean(), nullable=False),
        sa.Column("tls_verify", sa.Boolean(), nullable=False),
        sa.Column("timeout_seconds", sa.Float(), nullable=False),
        sa.Column("manager_cluster", TEXT, nullable=True),
        sa.Column("manager_service", TEXT, nullable=True),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("created_by", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instances")),
    )
    op.create_table(
        "members",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("team", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "team", "user_id", name=op.f("pk_members")),
    )
    op.create_index(op.f("ix_members_tenant_user_id"), "members", ["tenant", "user_id"], unique=False)
    op.create_table(
        "policies",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("created_by", TEXT, nullable=False),
        sa.Column("restored_from", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "agent", "version", name=op.f("pk_policies")),
    )
    op.create_table(
        "relation_tuples",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("object", TEXT, nullable=False),
        sa.Column("relation", TEXT, nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "object", "relation", "subject", name=op.f("pk_relation_tuples")),
    )
    op.create_index(op.f("ix_relation_tuples_tenant_subject"), "relation_tuples", ["tenant", "subject"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=False),
        sa.Column("bound_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_sessions")),
    )
    op.create_table(
        "teams",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_teams")),
    )
    op.create_table(
        "tenants",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("folded", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("organization", TEXT, nullable=True),
        sa.Column("created_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_tenants")),
        sa.UniqueConstraint("folded", name=op.f("uq_tenants_folded")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("user_id", TEXT, nullable=False),
        sa.Column("agent", TEXT, nullable=True),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("roles", sa.JSON(), nullable=True),
        sa.Column("salt", TEXT, nullable=False),
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("expires_at", TEXT, nullable=True),
        sa.Column("revoked_at", TEXT, nullable=True),
        sa.Column("used_at", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_index(op.f("ix_tokens_tenant_user_id"), "tokens", ["tenant", "user_id"], unique=False)
    op.create_table(
        "users",
        sa.Column("tenant", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_users")),
    )
    op.execute("INSERT INTO changes (id, n) VALUES (1, 0)")
