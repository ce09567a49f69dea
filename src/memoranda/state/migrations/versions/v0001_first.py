"""The tables of the first version."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("project", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_agents")),
    )
    op.create_table(
        "audit_events",
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("organization", sa.String(), nullable=True),
        sa.Column("project", sa.String(), nullable=True),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=True),
        sa.Column("session", sa.String(), nullable=True),
        sa.Column("scope", sa.String(), nullable=True),
        sa.Column("team", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("engine", sa.String(), nullable=True),
        sa.Column("decision", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("items", sa.String(), nullable=False),
        sa.Column("mac", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_audit_events")),
        sa.UniqueConstraint("chain", "seq", name=op.f("uq_audit_events_chain_seq")),
    )
    op.create_index(op.f("ix_audit_events_id"), "audit_events", ["id"], unique=False)
    op.create_index(op.f("ix_audit_events_tenant_at_id"), "audit_events", ["tenant", "at", "id"], unique=False)
    op.create_table(
        "audit_items",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("item", sa.String(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "item", "event", name=op.f("pk_audit_items")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_open",
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("event", name=op.f("pk_audit_open")),
    )
    op.create_index(op.f("ix_audit_open_chain"), "audit_open", ["chain"], unique=False)
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
    )
    op.create_table(
        "floors",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("set_at", sa.String(), nullable=False),
        sa.Column("set_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_floors")),
    )
    op.create_table(
        "freezes",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("frozen_by", sa.String(), nullable=False),
        sa.Column("frozen_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "agent", name=op.f("pk_freezes")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("caller", sa.String(), nullable=False),
        sa.Column("operation", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "caller", "operation", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "instance_credentials",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("instance", sa.String(), nullable=False),
        sa.Column("credential_ref", sa.String(), nullable=False),
        sa.Column("set_at", sa.String(), nullable=False),
        sa.Column("set_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "instance", name=op.f("pk_instance_credentials")),
    )
    op.create_table(
        "instances",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("provider", sa.String(), nullable=False),
        sa.Column("base_url", sa.String(), nullable=False),
        sa.Column("credential_ref", sa.String(), nullable=True),
        sa.Column("access_control", sa.Boolean(), nullable=False),
        sa.Column("tls_verify", sa.Boolean(), nullable=False),
        sa.Column("timeout_seconds", sa.Float(), nullable=False),
        sa.Column("manager_cluster", sa.String(), nullable=True),
        sa.Column("manager_service", sa.String(), nullable=True),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instances")),
    )
    op.create_table(
        "members",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("team", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "team", "user_id", name=op.f("pk_members")),
    )
    op.create_index(op.f("ix_members_tenant_user_id"), "members", ["tenant", "user_id"], unique=False)
    op.create_table(
        "policies",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("restored_from", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "agent", "version", name=op.f("pk_policies")),
    )
    op.create_table(
        "relation_tuples",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("object", sa.String(), nullable=False),
        sa.Column("relation", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "object", "relation", "subject", name=op.f("pk_relation_tuples")),
    )
    op.create_index(op.f("ix_relation_tuples_tenant_subject"), "relation_tuples", ["tenant", "subject"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=False),
        sa.Column("bound_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_sessions")),
    )
    op.create_table(
        "teams",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_teams")),
    )
    op.create_table(
        "tenants",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("folded", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("organization", sa.String(), nullable=True),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name=op.f("pk_tenants")),
        sa.UniqueConstraint("folded", name=op.f("uq_tenants_folded")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("agent", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=True),
        sa.Column("salt", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.Column("expires_at", sa.String(), nullable=True),
        sa.Column("revoked_at", sa.String(), nullable=True),
        sa.Column("used_at", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
    )
    op.create_index(op.f("ix_tokens_tenant_user_id"), "tokens", ["tenant", "user_id"], unique=False)
    op.create_table(
        "users",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("pk_users")),
    )
    op.execute("INSERT INTO changes (id, n) VALUES (1, 0)")
