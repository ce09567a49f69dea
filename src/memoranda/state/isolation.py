"""What keeps tenants apart in PostgreSQL itself: row-level security, and a proof of who a transaction is for.

Every table with a `tenant` column shows a transaction the rows of its own tenant only, and takes no others. Which one
that is stands in the setting `memoranda.tenant`; since any SQL may set it, it counts only together with
`memoranda.proof`, an HMAC over the tenant and the connection under a key that the service holds and its role cannot
read. See docs/decisions/010-rows-of-a-tenant.md.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from hashlib import scrypt, sha256

from sqlalchemy import text
from sqlalchemy.engine import URL, Connection

from memoranda.errors import ConfigRefused

SCHEMA = "memoranda"
OWN = "(SELECT memoranda.tenant())"  # the transaction's tenant; in this form it is asked for once a statement
PLATFORM_SEES = f"{OWN} = ''"
AUDIT_SEES = f"{OWN} = '*audit'"

# What the service's role may do in tables, where it is not to read, add, change and remove.
PRIVILEGES = {
    "alembic_version": "SELECT",
    "compatible": "SELECT",
    "changes": "SELECT, UPDATE",
    "proofs": "",
    "audit_events": "SELECT, INSERT",
    "audit_items": "SELECT, INSERT",
    "audit_open": "SELECT, INSERT, DELETE",
}
_PRIVILEGES = "SELECT, INSERT, UPDATE, DELETE"

# The key is kept as the two blocks that an HMAC begins its rounds with.
FUNCTIONS = f"""
CREATE TABLE {SCHEMA}.proofs (key text PRIMARY KEY, inside bytea NOT NULL, outside bytea NOT NULL);

CREATE FUNCTION {SCHEMA}.tenant() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  told text := current_setting('memoranda.tenant', true);
  proof text := current_setting('memoranda.proof', true);
BEGIN
  IF proof IS NOT NULL AND proof <> '' AND EXISTS (
    SELECT FROM {SCHEMA}.proofs AS known
    WHERE proof = encode(sha256(outside || sha256(
      inside || convert_to(pg_backend_pid() || ' ' || told, 'UTF8'))), 'hex')
  ) THEN
    RETURN told;
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION {SCHEMA}.act_for(tenant text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT set_config('memoranda.tenant', tenant, false) FROM (
    SELECT set_config('memoranda.proof', encode(sha256(outside || sha256(
      inside || convert_to(pg_backend_pid() || ' ' || tenant, 'UTF8'))), 'hex'), false)
    FROM {SCHEMA}.proofs LIMIT 1
  ) AS proven
$$;
COMMENT ON FUNCTION {SCHEMA}.act_for(text) IS 'For the owner, who looks at a tenant''s rows by hand in this session.';

REVOKE ALL ON FUNCTION {SCHEMA}.tenant(), {SCHEMA}.act_for(text) FROM PUBLIC;
"""


def protect(connection: Connection, table: str, **policies: str) -> None:
    """Row-level security for a table with a `tenant` column: a transaction has the rows of its own tenant, no others.

    `policies` replace that one: a name, and what follows `FOR`. Nothing is counted of the table's values, since the
    planner's guesses, which EXPLAIN shows, would tell of other tenants' rows.
    """
    run = connection.exec_driver_sql
    run(f"ALTER TABLE {SCHEMA}.{table} ENABLE ROW LEVEL SECURITY")
    run(f"ALTER TABLE {SCHEMA}.{table} FORCE ROW LEVEL SECURITY")
    for name, of in (policies or {"tenant": f"ALL USING (tenant = {OWN}) WITH CHECK (tenant = {OWN})"}).items():
        run(f"CREATE POLICY {name} ON {SCHEMA}.{table} FOR {of}")
    columns = text(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped"
    )
    for column in connection.execute(columns, {"table": f"{SCHEMA}.{table}"}).scalars().all():
        run(f'ALTER TABLE {SCHEMA}.{table} ALTER COLUMN "{column}" SET STATISTICS 0')


def grant(connection: Connection, role: str) -> None:
    """Gives the service's role what it needs in all tables, and nothing more; takes from all others what they had."""
    run = connection.exec_driver_sql
    quoted = connection.dialect.identifier_preparer.quote(role)
    database = connection.dialect.identifier_preparer.quote(str(connection.engine.url.database))
    run(f"REVOKE ALL ON SCHEMA {SCHEMA} FROM PUBLIC")
    run(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {quoted}")
    run(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC")
    tables = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema")
    for table in connection.execute(tables, {"schema": SCHEMA}).scalars().all():
        run(f'REVOKE ALL ON {SCHEMA}."{table}" FROM PUBLIC, {quoted}')
        if privileges := PRIVILEGES.get(table, _PRIVILEGES):
            run(f'GRANT {privileges} ON {SCHEMA}."{table}" TO {quoted}')
    views = text("SELECT viewname FROM pg_views WHERE schemaname = :schema")
    for view in connection.execute(views, {"schema": SCHEMA}).scalars().all():
        run(f'GRANT SELECT ON {SCHEMA}."{view}" TO {quoted}')
    run(f"GRANT EXECUTE ON FUNCTION {SCHEMA}.tenant() TO {quoted}")


@lru_cache(maxsize=16)
def key_of(role: str, password: str) -> bytes:
    """The key of the proofs, from the password by which the service's role logs in; slow, so that it is not guessed."""
    return scrypt(password.encode("utf-8", "surrogatepass"), salt=f"memoranda {role}".encode(), n=1 << 14, r=8, p=1)[
        :32
    ]


def service_of(url: URL) -> tuple[str, str]:
    """The role and the password in the service's URL; ConfigRefused where one is missing."""
    if not url.username or not url.password:
        raise ConfigRefused(
            "The setting `database.url` lacks the role or its password.",
            why="Without the password no transaction could prove to PostgreSQL which tenant it is for.",
            remedy="Write `postgresql+psycopg://role:password@host/name`; a certificate may still log it in.",
        )
    return url.username, str(url.password)


def register(connection: Connection, key: bytes) -> None:
    """Lets the database believe proofs under this key; those of keys before stay valid until they are removed."""
    name = sha256(key).hexdigest()[:16]
    inside, outside = (
        bytes(a ^ b for a, b in zip(key.ljust(64, b"\0"), pad * 64, strict=True)) for pad in (b"6", b"\\")
    )
    adding = text(f"INSERT INTO {SCHEMA}.proofs VALUES (:key, :inside, :outside) ON CONFLICT DO NOTHING")
    connection.execute(adding, {"key": name, "inside": inside, "outside": outside})


@lru_cache(maxsize=4096)  # whoever works it out waits until the interpreter is his again
def proof(key: bytes, backend: int, tenant: str) -> str:
    """What makes the connection with this backend's process believed to be `tenant`'s."""
    return hmac.digest(key, f"{backend} {tenant}".encode(), "sha256").hex()


_TOO_MUCH = f"""
SELECT CASE
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolsuper AND pg_has_role(current_user, oid, 'MEMBER'))
    THEN 'it is a superuser, or may become one'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolbypassrls AND pg_has_role(current_user, oid, 'MEMBER'))
    THEN 'it may bypass row-level security (BYPASSRLS), or become a role that may'
  WHEN EXISTS (SELECT FROM pg_roles
      WHERE (rolreplication OR rolcreaterole) AND pg_has_role(current_user, oid, 'MEMBER'))
    THEN 'it may replicate the database, or make roles (REPLICATION, CREATEROLE)'
  WHEN EXISTS (SELECT FROM pg_roles WHERE rolname IN ('pg_read_server_files', 'pg_write_server_files',
      'pg_execute_server_program') AND pg_has_role(current_user, oid, 'MEMBER'))
    THEN 'it may read or write the server''s files'
  WHEN EXISTS (SELECT FROM pg_database
      WHERE datname = current_database() AND pg_has_role(current_user, datdba, 'MEMBER'))
    THEN 'it owns the database, or may become its owner'
  WHEN EXISTS (SELECT FROM pg_namespace WHERE nspname = '{SCHEMA}' AND pg_has_role(current_user, nspowner, 'MEMBER'))
    OR has_schema_privilege(current_user, '{SCHEMA}', 'CREATE')
    THEN 'it owns the schema {SCHEMA}, may become its owner, or may create in it'
  WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}')
      AND pg_has_role(current_user, relowner, 'MEMBER'))
    OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = to_regnamespace('{SCHEMA}')
      AND pg_has_role(current_user, proowner, 'MEMBER'))
    THEN 'it owns tables or functions, or may become their owner'
  WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('{SCHEMA}') AND relkind IN ('r', 'p')
      AND has_table_privilege(current_user, oid, 'TRUNCATE, REFERENCES, TRIGGER'))
    THEN 'it may empty tables, refer to them or set triggers on them'
  WHEN has_table_privilege(current_user, '{SCHEMA}.proofs', 'SELECT, INSERT, UPDATE, DELETE')
    THEN 'it may read the key of the proofs'
END
"""

_OPEN = f"""
SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
WHERE relnamespace = to_regnamespace('{SCHEMA}') AND relkind IN ('r', 'p')
AND NOT (relrowsecurity AND relforcerowsecurity)
AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant')
"""


def check_role(connection: Connection, role: str) -> None:
    """ConfigRefused when this connection's role could see past its tenant, or a table does not keep tenants apart."""
    if why := connection.exec_driver_sql(_TOO_MUCH).scalar():
        raise ConfigRefused(
            f"The setting `database.url` is refused: its role {role} could see every tenant's rows.",
            why=f"In this database {why}.",
            remedy="Give it a role of its own (NOSUPERUSER NOBYPASSRLS) that owns nothing; see docs/service.md.",
        )
    if tables := connection.exec_driver_sql(_OPEN).scalar():
        raise ConfigRefused(
            "The setting `database.url` is refused: in its database tenants are not kept apart.",
            why=f"Row-level security is not forced on {tables}.",
            remedy="Run `memoranda db upgrade`, and find out who switched it off.",
        )
