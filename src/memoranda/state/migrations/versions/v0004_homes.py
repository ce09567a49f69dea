"""Homes on PostgreSQL: their objects, refs and heads, and what belongs to a tenant's Homes beside them.

On SQLite there is none of it: there the Homes lie in folders. docs/decisions/011-homes-on-postgresql.md says why the
tables are as they are.
"""

from __future__ import annotations

from alembic import op

from memoranda.state.isolation import SCHEMA, protect

revision = "0004"
down_revision = "0003"

TABLES = ("homes", "objects", "refs", "heads", "keys", "lines", "erasures")

_MAKE = """
CREATE TABLE memory_homes (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  place text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  marker bytea NOT NULL,
  replica text COLLATE "C" NOT NULL,
  suffix text COLLATE "C",
  seq bigint NOT NULL,
  generation bigint NOT NULL,
  state text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, home),
  UNIQUE (tenant, place)
);
COMMENT ON TABLE memory_homes IS
  'One row a Home. place: tenant, or project:NAME. seq: the last record. generation: counts erasings.';
CREATE TABLE memory_refs (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  commit text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, home, name)
);
CREATE TABLE memory_objects (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  oid bytea NOT NULL,
  kind smallint NOT NULL,
  base bytea,
  data bytea NOT NULL,
  PRIMARY KEY (tenant, home, oid)
);
COMMENT ON TABLE memory_objects IS
  'Git''s objects. kind as in a pack; data: a zlib stream of the object, or of a Git delta against base.';
ALTER TABLE memory_objects ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX memory_objects_base ON memory_objects (tenant, home, base) WHERE base IS NOT NULL;
CREATE TABLE memory_heads (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  path bytea NOT NULL,
  blob bytea NOT NULL,
  content bytea NOT NULL,
  PRIMARY KEY (tenant, home, path)
);
COMMENT ON TABLE memory_heads IS 'The files of notes as they are now, byte for byte; see the view memory_notes.';
CREATE INDEX memory_heads_blob ON memory_heads (tenant, home, blob);
CREATE TABLE memory_keys (
  tenant text COLLATE "C" NOT NULL,
  purpose text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  own boolean NOT NULL,
  sealed bytea NOT NULL,
  PRIMARY KEY (tenant, purpose, owner, fingerprint)
);
CREATE UNIQUE INDEX memory_keys_own ON memory_keys (tenant, purpose, owner) WHERE own;
CREATE TABLE memory_lines (
  tenant text COLLATE "C" NOT NULL,
  n bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  line bytea NOT NULL,
  PRIMARY KEY (tenant, n)
);
COMMENT ON TABLE memory_lines IS 'Settings and tombstones of a tenant''s Homes, each line vouched for by its keys.';
CREATE TABLE memory_erasures (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  map bytea NOT NULL,
  PRIMARY KEY (tenant, home, name)
);
COMMENT ON TABLE memory_erasures IS 'Where the ids of erased objects lead: ids and days, no text.';
CREATE FUNCTION memory_text(content bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN convert_from(content, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
  RETURN NULL;
END $$;
COMMENT ON FUNCTION memory_text(bytea) IS 'The text of these bytes; NULL where they are none in UTF-8.';
CREATE VIEW memory_notes WITH (security_invoker = true, security_barrier = true) AS
  SELECT heads.tenant, homes.place, homes.name AS home,
    coalesce(memory_text(heads.path), encode(heads.path, 'escape')) AS path,
    encode(heads.blob, 'hex') AS blob, heads.content, memory_text(heads.content) AS text
  FROM memory_heads AS heads JOIN memory_homes AS homes ON homes.tenant = heads.tenant AND homes.home = heads.home;
COMMENT ON VIEW memory_notes IS 'Every note that holds a path now: its exact bytes, and as text where they are one.';
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    connection.exec_driver_sql(f"SET LOCAL search_path = {SCHEMA}; {_MAKE}", execution_options={"no_parameters": True})
    for table in TABLES:
        protect(connection, f"memory_{table}")
