"""All tables of the service.

Every table that holds something of a tenant's has a `tenant` column; the empty text there stands for the platform
itself (its administrators, its shared instances). Times are RFC 3339 texts in UTC with six decimals, so that they sort
as they are. No table holds the content of a memory, a query, or a secret that could be used: tokens stand as salted
hashes, credentials as references.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    TableClause,
    UniqueConstraint,
    column,
    table,
)

PLATFORM = ""  # in a `tenant` column: of no tenant
AUDIT = "*audit"  # whom a transaction is for that keeps the audit of all tenants; no tenant has such a name
HEAD = "0008"  # the newest migration; a test compares it with the folder of migrations

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


TEXT = String().with_variant(String(collation="C"), "postgresql")  # compared byte by byte, as SQLite does
COUNT = BigInteger().with_variant(Integer(), "sqlite")  # 64 bits in both


def _key(name: str) -> Column[str]:
    return Column(name, TEXT, primary_key=True)


def _text(name: str) -> Column[str]:
    return Column(name, TEXT, nullable=False)


def _maybe(name: str) -> Column[str]:
    return Column(name, TEXT)


# One row: counts every change of who may do what, so that each process sees when what it remembers is out of date.
changes = Table(
    "changes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("n", COUNT, nullable=False),
)

# One row: the oldest program that may go on using these tables. A migration that an older one would misread moves it.
compatible = Table(
    "compatible", metadata, Column("id", Integer, primary_key=True, autoincrement=False), _text("oldest")
)

# The registry

tenants = Table("tenants", metadata, _key("tenant"), _text("folded"), _text("name"), _maybe("organization"),
                _text("created_at"), UniqueConstraint("folded"))  # fmt: skip
users = Table("users", metadata, _key("tenant"), _key("id"), Column("roles", JSON, nullable=False), _text("created_at"))
teams = Table("teams", metadata, _key("tenant"), _key("id"), _text("created_at"))
members = Table("members", metadata, _key("tenant"), _key("team"), _key("user_id"), Index(None, "tenant", "user_id"))
agents = Table("agents", metadata, _key("tenant"), _key("id"), _text("name"), _text("project"), _text("owner"),
               _text("created_at"))  # fmt: skip
# Every project that has, or had, an agent: what was remembered there is still somebody's to look after.
projects = Table("projects", metadata, _key("tenant"), _key("project"))
# `agent` is empty where the whole tenant is frozen. A row outlives its agent: nobody thaws by making it again.
freezes = Table("freezes", metadata, _key("tenant"), _key("agent"), _text("frozen_by"), _text("frozen_at"))

# Identity

tokens = Table(
    "tokens",
    metadata,
    _key("id"),
    _text("tenant"),
    _text("user_id"),
    _maybe("agent"),
    _text("kind"),
    Column("roles", JSON(none_as_null=True)),  # null: those that the user has
    _text("salt"),
    _text("hash"),
    _text("name"),
    _text("created_at"),
    _maybe("expires_at"),
    _maybe("revoked_at"),
    _maybe("used_at"),
    Index(None, "tenant", "user_id"),
)

# Policies and instances

policies = Table(
    "policies",
    metadata,
    _key("tenant"),
    _key("agent"),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("body", JSON, nullable=False),
    _text("created_at"),
    _text("created_by"),
    Column("restored_from", Integer),
)
floors = Table("floors", metadata, _key("tenant"), Column("body", JSON, nullable=False), _text("set_at"),
               _text("set_by"))  # fmt: skip
instances = Table(
    "instances",
    metadata,
    _key("id"),
    _text("tenant"),  # the one that it is dedicated to; empty for a shared one
    _text("provider"),
    _text("base_url"),
    _maybe("credential_ref"),
    Column("access_control", Boolean, nullable=False),
    Column("tls_verify", Boolean, nullable=False),
    Column("timeout_seconds", Float, nullable=False),
    _maybe("manager_cluster"),
    _maybe("manager_service"),
    _text("created_at"),
    _text("created_by"),
)
instance_credentials = Table("instance_credentials", metadata, _key("tenant"), _key("instance"),
                             _text("credential_ref"), _text("set_at"), _text("set_by"))  # fmt: skip

# What lies in engines elsewhere: never a word of it. `record` is the engine's own id; `state` is pending while it is
# not known whether the engine has it, kept, or gone (then what keeps it out is left). `container` is its dataset.

engine_items = Table(
    "engine_items",
    metadata,
    _key("tenant"),
    _key("id"),
    _text("instance"),
    _text("state"),
    _maybe("record"),
    _maybe("container"),
    _text("namespace"),
    _text("project"),  # empty for what belongs to the tenant as a whole
    _text("scope"),
    _text("owner"),
    _text("user_id"),
    _text("agent"),
    _maybe("session"),
    _text("kind"),
    _text("classification"),
    _text("origin"),
    Column("confidence", Float),
    Column("generated", Boolean, nullable=False),
    _maybe("original"),  # the item that a model made this one from
    Column("recalled", Boolean, nullable=False),  # false: kept beside what is recalled
    Column("taint", JSON, nullable=False),  # kinds of roots
    _maybe("verdict"),
    _maybe("verdict_on"),  # the hash of the content that it is about
    _maybe("valid_from"),
    _maybe("valid_to"),
    Column("supersedes", JSON, nullable=False),
    _text("chain"),
    Column("head", Boolean, nullable=False),
    Column("retention_days", Integer),
    _maybe("due_at"),
    Column("legal_hold", Boolean, nullable=False),
    _text("content_hash"),
    _text("same_hash"),  # of the words as they are compared
    _text("created_at"),
    _text("updated_at"),
    Index(None, "tenant", "instance", "project", "scope", "owner", "created_at"),
    Index(None, "tenant", "instance", "record"),
    Index(None, "tenant", "instance", "chain"),
    Index(None, "tenant", "project", "scope", "owner", "same_hash"),
    Index(None, "due_at"),
    Index(None, "state"),
)

# Datasets of engines elsewhere: their documents are rows of engine_items, whose `container` is the dataset's id

engine_datasets = Table(
    "engine_datasets",
    metadata,
    _key("tenant"),
    _key("id"),
    _text("instance"),
    _text("state"),
    _maybe("record"),
    _text("namespace"),
    _text("project"),  # empty for what belongs to the tenant as a whole
    _text("scope"),
    _text("owner"),
    _text("user_id"),
    _text("agent"),
    _text("classification"),
    Column("retention_days", Integer),
    Column("legal_hold", Boolean, nullable=False),
    _text("status"),
    _maybe("building_since"),
    Column("builds", Integer, nullable=False),  # how often the present build was begun
    Column("built", Integer, nullable=False),  # documents in the graph
    _text("created_at"),
    _text("updated_at"),
    Index(None, "tenant", "instance", "project", "scope", "owner", "created_at"),
    Index(None, "status"),
)

# Relations: OpenFGA's tuples; `subject` is what OpenFGA calls the user

relation_tuples = Table("relation_tuples", metadata, _key("tenant"), _key("object"), _key("relation"), _key("subject"),
                        Index(None, "tenant", "subject"))  # fmt: skip

# What a caller has asked for already; `key` and `request` are hashes, `answer` holds ids and a status only

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    _key("tenant"),
    _key("caller"),
    _key("operation"),
    _key("key"),
    _text("request"),
    Column("answer", JSON(none_as_null=True)),  # null while the first request is still under way
    _text("created_at"),
)

# Audit: one line a row; never changed, never deleted

audit_events = Table(
    "audit_events",
    metadata,
    Column("n", COUNT, primary_key=True),
    _text("tenant"),
    _text("chain"),
    Column("seq", COUNT, nullable=False),
    _text("id"),
    _text("phase"),  # chain, intent, outcome, single
    _text("at"),
    _text("operation"),
    _maybe("organization"),
    _maybe("project"),
    _maybe("user_id"),
    _maybe("agent"),
    _maybe("session"),
    _maybe("scope"),
    _maybe("team"),
    _maybe("actor"),
    _maybe("engine"),
    _maybe("decision"),
    _maybe("outcome"),
    _maybe("code"),
    _maybe("request_id"),
    _text("items"),  # a JSON array of ids
    _text("mac"),
    UniqueConstraint("chain", "seq"),
    Index(None, "tenant", "at", "id"),
    Index(None, "id"),
)
audit_items = Table("audit_items", metadata, _key("tenant"), _key("item"), _key("event"), _text("at"),
                    sqlite_with_rowid=False)  # fmt: skip
# Intents without an outcome: what is looked at when a process starts, so that it need not read everything.
audit_open = Table("audit_open", metadata, _key("event"), _text("tenant"), _text("chain"), Index(None, "chain"))

# Views. What the platform, or the audit, reads of all tenants; a tenant's own transaction has nothing there. On SQLite,
# which keeps nobody apart, they are the tables.


def _view(name: str, of: Table) -> TableClause:
    return table(name, *(column(one.name, one.type) for one in of.c))


every_tenants = _view("every_tenants", tenants)
every_freezes = _view("every_freezes", freezes)  # of whole tenants
every_tokens = _view("every_tokens", tokens)
every_policies = _view("every_policies", policies)
every_instance_credentials = _view("every_instance_credentials", instance_credentials)
every_audit_events = _view("every_audit_events", audit_events)
every_audit_items = _view("every_audit_items", audit_items)
seen_instances = _view("seen_instances", instances)  # the shared ones and one's own; for the platform all
