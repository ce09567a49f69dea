"""Old objects of the Homes joined to packs; see memoranda.home.postgres.packs.

Programs of before do not look there: nothing is joined as long as they may go on (`compatible`). What they needed the
index of deltas for, they find without it.
"""

from __future__ import annotations

from alembic import op

from memoranda.state.isolation import SCHEMA, protect

revision = "0006"
down_revision = "0005"

TABLES = ("packs", "pack_ids", "pack_pages")

_MAKE = """
CREATE TABLE memory_packs (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  pack bigint NOT NULL,
  objects integer NOT NULL,
  PRIMARY KEY (tenant, home, pack)
);
CREATE TABLE memory_pack_ids (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  pack bigint NOT NULL,
  first bytea NOT NULL,
  entries bytea NOT NULL,
  PRIMARY KEY (tenant, home, pack, first)
);
COMMENT ON TABLE memory_pack_ids IS 'Where the objects of a pack stand: id, page, place in it, by id.';
CREATE TABLE memory_pack_pages (
  tenant text COLLATE "C" NOT NULL,
  home bigint NOT NULL,
  pack bigint NOT NULL,
  page integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (tenant, home, pack, page)
);
COMMENT ON TABLE memory_pack_pages IS 'Objects, hundreds in a deflated row.';
ALTER TABLE memory_pack_ids ALTER COLUMN entries SET STORAGE PLAIN;
ALTER TABLE memory_pack_pages ALTER COLUMN data SET STORAGE EXTERNAL;
DROP INDEX memory_objects_base;
"""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    connection.exec_driver_sql(f"SET LOCAL search_path = {SCHEMA}; {_MAKE}", execution_options={"no_parameters": True})
    for table in TABLES:
        protect(connection, f"memory_{table}")
