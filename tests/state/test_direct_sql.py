"""Any SQL, run as the service's role in a transaction of acme's: it finds, changes and counts nothing of globex's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from memoranda.state import tables
from memoranda.state.migrations.versions import v0004_homes, v0006_packs
from memoranda.state.opening import open_database
from memoranda.state.postgres import PostgresDatabase
from tests.postgres import OWNER, Urls, connect

pytestmark = pytest.mark.postgres

MARK = "zanzibar"  # in every text of globex's
OTHERS = 23  # rows that globex has in each table; acme has one
HOMES = tuple(f"memory_{name}" for name in (*v0004_homes.TABLES, *v0006_packs.TABLES))
TENANTS = {"acme": ("plain", 1), "globex": (MARK, OTHERS), "initech": ("plain", 3)}


def _fill(db: PostgresDatabase) -> None:
    for tenant, (word, rows) in TENANTS.items():
        with db.begin(tenant) as connection:
            row: dict[str, Any] = {"tenant": tenant, "folded": tenant, "name": word, "created_at": "2026"}
            connection.execute(tables.tenants.insert().values(row))
            for table in HOMES:
                _fill_home(connection, table, word, rows)
            for n in range(rows):
                name = f"{word}-{n}"
                user = {"tenant": tenant, "id": name, "roles": [word], "created_at": "2026"}
                connection.execute(tables.users.insert().values(user))
                token = {
                    "id": f"tok_{tenant}-{n}", "tenant": tenant, "user_id": name, "kind": "user", "salt": word,
                    "hash": word, "name": name, "created_at": "2026",
                }  # fmt: skip
                connection.execute(tables.tokens.insert().values(token))
                relation = {"tenant": tenant, "object": name, "relation": "viewer", "subject": f"user:{word}"}
                connection.execute(tables.relation_tuples.insert().values(relation))
        with db.begin(tables.AUDIT) as connection:
            for n in range(rows):
                line = {
                    "tenant": tenant, "chain": f"{word} {tenant}", "seq": n, "id": f"evt_{word}{n}",
                    "phase": "single", "at": "2026", "operation": "recall", "user_id": word, "items": "[]", "mac": word,
                }  # fmt: skip
                connection.execute(tables.audit_events.insert().inline().values(line))


def _columns(connection: Connection, table: str) -> dict[str, str]:
    asked = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = "
    return dict(_run(connection, f"{asked}'{table}' ORDER BY ordinal_position"))


def _fill_home(connection: Connection, table: str, word: str, rows: int) -> None:
    """Rows that have the word in every text and in all bytes; the numbers count them."""
    kinds = {"bytea": f"convert_to('{word}-' || n, 'UTF8')", "text": f"'{word}-' || n", "boolean": "false"}
    values = [
        "tenant()" if name == "tenant" else kinds.get(kind, "n") for name, kind in _columns(connection, table).items()
    ]
    _run(connection, f"INSERT INTO {table} SELECT {', '.join(values)} FROM generate_series(1, {rows}) AS n")


@pytest.fixture(scope="module")
def urls(postgres_of_module: Urls) -> Urls:
    with open_database(postgres_of_module.service) as db:
        assert isinstance(db, PostgresDatabase)
        _fill(db)
    with connect(postgres_of_module.superuser) as connection:
        connection.execute("ANALYZE")
    return postgres_of_module


@pytest.fixture(scope="module")
def db(urls: Urls) -> Iterator[PostgresDatabase]:
    with open_database(urls.service) as opened:
        assert isinstance(opened, PostgresDatabase)
        yield opened


@pytest.fixture
def acme(db: PostgresDatabase) -> Iterator[Connection]:
    """A transaction of acme's; what it did is undone."""
    with db.begin("acme") as connection:
        yield connection
        connection.rollback()


def _run(connection: Connection, statement: str) -> list[Any]:
    done = connection.exec_driver_sql(statement.replace("%", "%%"))
    return [tuple(row) for row in done] if done.returns_rows else [done.rowcount]


def _try(connection: Connection, *statements: str) -> str:
    """All that the statements answer, and what the errors say, as one text."""
    said = []
    for statement in statements:
        try:
            with connection.begin_nested():
                said.append(repr(_run(connection, statement)))
        except DBAPIError as error:
            said.append(str(error.orig))
    return "\n".join(said)


@pytest.mark.parametrize("table", ["tenants", "users", "tokens", "relation_tuples", "audit_events", *HOMES])
class TestEachTable:
    def test_shows_its_own_rows(self, acme: Connection, table: str) -> None:
        assert _run(acme, f"SELECT tenant, count(*) FROM {table} GROUP BY 1") == [("acme", 1)]
        said = _try(acme, f"SELECT * FROM {table} WHERE tenant = 'globex'", f"TABLE {table}", f"TABLE ONLY {table}")
        assert "acme" in said and MARK not in said

    def test_changes_and_removes_no_other(self, acme: Connection, table: str) -> None:
        said = _try(
            acme, f"UPDATE {table} SET tenant = tenant WHERE tenant = 'globex'",
            f"DELETE FROM {table} WHERE tenant = 'globex'", f"TRUNCATE {table}",
        )  # fmt: skip
        assert not re.search(rf"\[{OTHERS}\]", said) and "permission denied" in said

    def test_gives_no_row_away(self, acme: Connection, table: str) -> None:
        said = _try(acme, f"UPDATE {table} SET tenant = 'globex'")
        assert "row-level security" in said or "permission denied" in said

    def test_is_copied_out_in_part_and_not_copied_into(self, acme: Connection, table: str) -> None:
        driver = acme.connection.driver_connection
        assert driver is not None
        with driver.cursor().copy(f"COPY memoranda.{table} TO STDOUT") as copy:
            told = b"".join(bytes(block) for block in copy)
        assert told.count(b"\n") == 1
        assert MARK.encode() not in told and MARK.encode().hex().encode() not in told
        with pytest.raises(psycopg.Error, match=r"row-level security|permission denied"):
            with driver.cursor().copy(f"COPY memoranda.{table} FROM STDIN") as copy:
                copy.write("")

    def test_is_explained_as_if_the_other_had_nothing(self, acme: Connection, table: str) -> None:
        """What is guessed, and what is counted while it runs, is the same for who is there and who is not."""
        for how in ("COSTS", "ANALYZE, COSTS, TIMING OFF, SUMMARY OFF, BUFFERS OFF"):
            for settings in ("", "SET LOCAL enable_seqscan = off;", "SET LOCAL enable_indexscan = off;"):
                for column, kind in _columns(acme, table).items():
                    if kind not in ("character varying", "text", "bytea"):
                        continue
                    there, not_there = (
                        self._plan(acme, how, settings, table, column, kind, value)
                        for value in (("globex", "nobody") if column == "tenant" else (f"{MARK}-1", "nobody-1"))
                    )
                    assert there == not_there

    def _plan(
        self, connection: Connection, how: str, settings: str, table: str, column: str, kind: str, value: str
    ) -> str:
        word = "\\x" + value.encode().hex() if kind == "bytea" else value
        asked = f"SELECT * FROM {table} WHERE {column} = '{word}'"
        with connection.begin_nested() as savepoint:
            if settings:
                _run(connection, settings)
            plan = "\n".join(row[0] for row in _run(connection, f"EXPLAIN ({how}) {asked}"))
            savepoint.rollback()
        return plan.replace(word, "-")


class TestViews:
    """What the platform and the audit read across tenants gives a tenant's transaction nothing: it is not even read."""

    VIEWS = (
        "every_tenants", "every_tokens", "every_policies", "every_instance_credentials", "every_freezes",
        "every_audit_events", "every_audit_items",
    )  # fmt: skip

    @pytest.mark.parametrize("view", VIEWS)
    def test_give_a_tenant_nothing(self, acme: Connection, view: str) -> None:
        assert _run(acme, f"SELECT count(*) FROM {view}") == [(0,)]
        plan = repr(_run(acme, f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM {view}"))
        assert "never executed" in plan and "Removed by Filter" not in plan

    @pytest.mark.parametrize("view", [*VIEWS, "seen_instances"])
    def test_cannot_be_written_through(self, acme: Connection, view: str) -> None:
        for statement in (
            f"DELETE FROM {view}",
            f"UPDATE {view} SET tenant = 'acme'",
            f"INSERT INTO {view} DEFAULT VALUES",
        ):
            assert re.search("permission denied|cannot", _try(acme, statement))

    def test_give_each_its_own(self, db: PostgresDatabase) -> None:
        with db.read() as connection:
            assert len(_run(connection, "SELECT * FROM every_tenants")) == len(TENANTS)
            assert _run(connection, "SELECT * FROM every_audit_events") == []
            assert _run(connection, "SELECT * FROM tokens") == []
        with db.read(tables.AUDIT) as connection:
            assert len(_run(connection, "SELECT * FROM every_audit_events")) == OTHERS + 4
            assert _run(connection, "SELECT * FROM every_tokens") == []


class TestTheViewOfNotes:
    """`memory_notes` runs with the rights and the tenant of who asks."""

    def test_gives_each_its_own(self, db: PostgresDatabase, acme: Connection) -> None:
        assert _run(acme, "SELECT tenant, place, text FROM memory_notes") == [("acme", "plain-1", "plain-1")]
        assert _run(acme, "SELECT count(*) FROM memory_notes WHERE tenant = 'globex'") == [(0,)]
        with db.read() as connection:
            assert _run(connection, "SELECT * FROM memory_notes") == []

    def test_asks_nobodys_condition_of_rows_that_are_not_shown(self, acme: Connection) -> None:
        asked = f"1 / (CASE WHEN text LIKE '{MARK}%' THEN 0 ELSE 1 END) = 1"
        said = _try(
            acme, f"SELECT path FROM memory_notes WHERE {asked}", f"SELECT path FROM memory_notes ORDER BY {asked}"
        )
        assert "division" not in said and "plain-1" in said and MARK not in said

    def test_cannot_be_written_through(self, acme: Connection) -> None:
        for statement in ("DELETE FROM memory_notes", "UPDATE memory_notes SET tenant = 'acme'"):
            assert re.search("permission denied|cannot", _try(acme, statement))

    def test_a_function_reads_with_the_rights_of_who_calls_it(self, acme: Connection) -> None:
        """None may be made that keeps, and one that passes finds no row of another's."""
        said = _try(
            acme,
            "CREATE FUNCTION pg_temp.f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM memoranda.memory_heads'",
            "SELECT memoranda.memory_text(content) FROM memory_heads", "DO $$ BEGIN PERFORM 1 / count(*) FROM "
            "memoranda.memory_heads WHERE tenant = 'globex'; END $$",
        )  # fmt: skip
        assert "permission denied" in said and "plain-1" in said and "division by zero" in said and MARK not in said


class TestAForgedSetting:
    ASKED = "SELECT * FROM users"

    def test_is_believed_no_more_than_none(self, acme: Connection) -> None:
        for name in ("globex", "", "*audit", "%", "acme' OR true --"):
            literal = name.replace("'", "''")
            assert _try(acme, f"SELECT set_config('memoranda.tenant', '{literal}', true)", self.ASKED).endswith("[]")
            acme.rollback()
            acme.begin()

    @pytest.mark.parametrize("proof", ["", "' || current_setting('memoranda.proof') || '", "0" * 64])
    def test_with_a_proof_that_was_for_another_is_not_believed(self, acme: Connection, proof: str) -> None:
        said = _try(
            acme, "SELECT set_config('memoranda.tenant', 'globex', true)",
            f"SELECT set_config('memoranda.proof', '{proof}', true)", self.ASKED, "SELECT memoranda.tenant()",
        )  # fmt: skip
        assert said.endswith("[]\n[(None,)]")

    def test_with_the_proof_of_globexs_own_connection_is_not_believed_on_this_one(
        self, db: PostgresDatabase, acme: Connection
    ) -> None:
        with db.begin("globex") as other:
            ((proof,),) = _run(other, "SELECT current_setting('memoranda.proof')")
            assert len(_run(other, self.ASKED)) == OTHERS
            told = (
                f"SELECT set_config('memoranda.tenant', 'globex', true), set_config('memoranda.proof', '{proof}', true)"
            )
            assert _try(acme, told, self.ASKED).endswith("[]")

    def test_outlives_no_transaction(self, db: PostgresDatabase) -> None:
        """Set for the session, in the session that globex has next."""
        with db.begin("acme") as connection:
            backend = _run(connection, "SELECT pg_backend_pid()")
            _try(connection, "SET memoranda.tenant = 'acme'", "SET memoranda.proof = 'x'", "SET search_path = pg_temp")
        with db.begin("globex") as connection:
            assert _run(connection, "SELECT pg_backend_pid()") == backend
            assert len(_run(connection, self.ASKED)) == OTHERS


class TestAConnectionThatServedGlobex:
    """The pool keeps few connections: what globex's transaction left behind would be there for acme's."""

    def _then(self, db: PostgresDatabase, *left: str, asked: tuple[str, ...], fail: bool = False) -> str:
        with pytest.MonkeyPatch.context(), db.begin("globex") as connection:
            backend = _run(connection, "SELECT pg_backend_pid()")
            for statement in left:
                _run(connection, statement)
            if fail:
                _try(connection, "SELECT 1/0")
                with pytest.raises(DBAPIError):
                    _run(connection, "SELECT * FROM nowhere")
                connection.rollback()
        with db.begin("acme") as connection:
            assert _run(connection, "SELECT pg_backend_pid()") == backend
            said = _try(connection, *asked)
            connection.rollback()
        return said

    def test_has_no_prepared_statement(self, db: PostgresDatabase) -> None:
        left = ("PREPARE all_of_it AS SELECT * FROM users", "EXECUTE all_of_it")
        said = self._then(db, *left, asked=("EXECUTE all_of_it", "SELECT * FROM pg_prepared_statements"))
        assert "does not exist" in said and MARK not in said

    def test_has_no_open_cursor(self, db: PostgresDatabase) -> None:
        left = ("DECLARE kept CURSOR WITH HOLD FOR SELECT * FROM users", "FETCH 1 FROM kept")
        said = self._then(db, *left, asked=("FETCH ALL FROM kept", "SELECT * FROM pg_cursors"))
        assert "does not exist" in said and MARK not in said

    @pytest.mark.parametrize("fail", [False, True], ids=["ended well", "failed"])
    def test_has_its_own_tenant(self, db: PostgresDatabase, fail: bool) -> None:
        said = self._then(db, asked=("SELECT memoranda.tenant()", "SELECT DISTINCT tenant FROM users"), fail=fail)
        assert said == "[('acme',)]\n[('acme',)]"


class TestWithinOneTransaction:
    def test_a_cached_plan_asks_anew_for_whom_it_runs(self, db: PostgresDatabase, acme: Connection) -> None:
        _run(acme, "SET LOCAL plan_cache_mode = force_generic_plan")
        _run(
            acme, "PREPARE mine (text) AS SELECT id FROM users WHERE relation(tenant) = $1".replace("relation", "lower")
        )
        with acme.begin_nested() as savepoint:
            _run(acme, db.becoming(acme, "globex"))
            assert len(_run(acme, "EXECUTE mine ('globex')")) == OTHERS
            savepoint.rollback()
        for _ in range(8):
            assert _run(acme, "EXECUTE mine ('globex')") == []
            assert len(_run(acme, "EXECUTE mine ('acme')")) == 1

    def test_a_savepoint_that_is_rolled_back_takes_its_tenant_with_it(
        self, db: PostgresDatabase, acme: Connection
    ) -> None:
        with acme.begin_nested() as outer:
            _run(acme, db.becoming(acme, "globex"))
            with pytest.raises(DBAPIError), acme.begin_nested():
                _run(acme, "SELECT 1/0")
            assert len(_run(acme, "SELECT * FROM users")) == OTHERS  # the inner one's failure changes nothing
            outer.rollback()
        assert _run(acme, "SELECT DISTINCT tenant FROM users") == [("acme",)]

    def test_a_transaction_begun_within_is_no_other_one(self, acme: Connection) -> None:
        said = _try(acme, "BEGIN", "SELECT set_config('memoranda.tenant', 'globex', false)", "SELECT * FROM users")
        assert said.endswith("[]")

    def test_ending_it_leaves_no_tenant_at_all(self, db: PostgresDatabase) -> None:
        with db.begin("acme") as connection:
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.execute("COMMIT")
            assert driver.execute("SELECT * FROM users").fetchall() == []
            assert driver.execute("SELECT memoranda.tenant()").fetchone() == (None,)
            connection.rollback()


class TestTheRole:
    @pytest.mark.parametrize(
        "statement",
        [
            f"SET ROLE {OWNER}",
            f"SET SESSION AUTHORIZATION {OWNER}",
            "SET LOCAL session_replication_role = replica",
            "SELECT memoranda.act_for('globex')",
            "SELECT * FROM memoranda.proofs",
            "UPDATE memoranda.proofs SET inside = ''",
            "ALTER TABLE memoranda.users NO FORCE ROW LEVEL SECURITY",
            "DROP POLICY tenant ON memoranda.users",
            "CREATE POLICY mine ON memoranda.users USING (true)",
            "CREATE OR REPLACE FUNCTION memoranda.tenant() RETURNS text LANGUAGE sql AS 'SELECT ''globex'''",
            "CREATE FUNCTION memoranda.see() RETURNS SETOF memoranda.users LANGUAGE sql AS 'TABLE memoranda.users'",
            "CREATE VIEW memoranda.seen AS SELECT * FROM memoranda.users",
            "CREATE MATERIALIZED VIEW memoranda.seen AS SELECT * FROM memoranda.users",
            "CREATE TABLE memoranda.probe (t text, i text, FOREIGN KEY (t, i) REFERENCES memoranda.users)",
            "CREATE TEMP TABLE probe (t text, i text, FOREIGN KEY (t, i) REFERENCES memoranda.users)",
            "CREATE TEMP TABLE users AS SELECT 1",
            "CREATE TRIGGER spy AFTER INSERT ON memoranda.users EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "CREATE INDEX ON memoranda.users (id)",
            "CREATE EXTENSION postgres_fdw",
            "SELECT * FROM pg_statistic",
            "SELECT pg_read_file('PG_VERSION')",
            "COPY memoranda.users TO PROGRAM 'cat'",
            "COPY memoranda.users TO '/tmp/users'",
            "CREATE TEMP TABLE probe (t text, h bigint, FOREIGN KEY (t, h) REFERENCES memoranda.memory_homes)",
            "CREATE VIEW memoranda.seen AS SELECT * FROM memoranda.memory_heads",
            "ALTER TABLE memoranda.memory_objects DISABLE ROW LEVEL SECURITY",
            "ALTER VIEW memoranda.memory_notes SET (security_invoker = false)",
            "SELECT last_value FROM memoranda.audit_events_n_seq",
            "SELECT nextval('memoranda.audit_events_n_seq')",
            "INSERT INTO memoranda.audit_events (tenant, chain, seq, id, phase, at, operation, items, mac) "
            "VALUES ('acme', 'c', 0, 'e', 'single', '', 'x', '[]', '')",
            "UPDATE memoranda.audit_events SET outcome = 'deny'",
        ],
    )
    def test_may_not(self, acme: Connection, statement: str) -> None:
        said = _try(acme, statement)
        assert re.search(
            "permission denied|must be owner|must be a member|must have|row-level security|only temporary",
            said,
        ), said

    def test_sees_nothing_with_row_security_switched_off(self, acme: Connection) -> None:
        said = _try(acme, "SET row_security = off", "SELECT * FROM users", "SELECT count(*) FROM users")
        assert said.count("would be affected by row-level security") == 2

    def test_learns_nothing_by_the_statistics_that_it_may_read(self, acme: Connection) -> None:
        assert MARK not in _try(acme, "SELECT * FROM pg_stats", "SELECT * FROM pg_stats_ext")

    @pytest.mark.parametrize(
        "probe",
        [
            "INSERT INTO users VALUES ('globex', 'zanzibar-0', '[]', '')",
            "INSERT INTO users VALUES ('globex', 'zanzibar-0', '[]', '') ON CONFLICT DO NOTHING",
            "INSERT INTO users VALUES ('globex', 'zanzibar-0', '[]', '') ON CONFLICT (tenant, id) "
            "DO UPDATE SET roles = '[1]'",
            "MERGE INTO users u USING (VALUES ('globex', 'zanzibar-0')) v (t, i) ON u.tenant = v.t AND u.id = v.i "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.t, v.i, '[]', '')",
            "INSERT INTO tenants VALUES ('globex', 'globex', '', null, '')",
            "INSERT INTO memory_refs VALUES ('globex', 1, 'zanzibar-1', '')",
            "INSERT INTO memory_objects VALUES ('globex', 1, 'zanzibar-1', 1, null, '') ON CONFLICT DO NOTHING",
            "INSERT INTO memory_heads VALUES ('globex', 1, 'zanzibar-1', '', '') ON CONFLICT (tenant, home, path) "
            "DO UPDATE SET content = ''",
        ],
    )
    def test_probing_for_a_key_is_refused_in_the_same_words_whether_it_is_there_or_not(
        self, acme: Connection, probe: str
    ) -> None:
        there, not_there = (
            _try(acme, probe),
            _try(acme, probe.replace("globex", "nobody").replace("zanzibar", "nobody")),
        )
        assert there == not_there and "row-level security" in there

    def test_a_tenants_name_is_not_found_by_taking_it_in_another_case(self, acme: Connection) -> None:
        said = _try(acme, "UPDATE tenants SET folded = 'globex'", "UPDATE tenants SET folded = 'nobody'")
        there, _, not_there = said.partition("\nnew row")
        assert "ck_tenants_folded" in there and "ck_tenants_folded" in not_there and "uq_" not in said

    def test_a_condition_that_tells_of_a_row_is_asked_of_its_own_only(self, acme: Connection) -> None:
        said = _try(
            acme,
            f"SELECT id FROM users WHERE 1 / (CASE WHEN id LIKE '{MARK}%' THEN 0 ELSE 1 END) = 1",
            "SELECT id FROM users WHERE id::int = 1",
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM users LOOP RAISE EXCEPTION '%', r; END LOOP; END $$",
        )
        assert "division" not in said and MARK not in said and said.count("plain-0") == 3
