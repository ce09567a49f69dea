"""PostgreSQL itself keeps tenants apart: its tables, the service's role, and what a connection carries over."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import ProgrammingError

from memoranda.errors import ComponentUnavailable, ConfigRefused, Conflict
from memoranda.state import tables
from memoranda.state.opening import open_database
from memoranda.state.postgres import PostgresDatabase, upgrade_as_owner
from tests.postgres import OWNER, SERVICE, Urls, connect

pytestmark = pytest.mark.postgres


@pytest.fixture
def db(postgres: Urls) -> Iterator[PostgresDatabase]:
    with open_database(postgres.service) as opened:
        assert isinstance(opened, PostgresDatabase)
        yield opened


def _freeze(db: PostgresDatabase, tenant: str, agent: str = "") -> None:
    with db.begin(tenant) as connection:
        row = {"tenant": tenant, "agent": agent, "frozen_by": "ana", "frozen_at": "2026"}
        connection.execute(tables.freezes.insert().values(row))


def _agents(db: PostgresDatabase, tenant: str | None) -> list[str]:
    with db.read(tenant) as connection:
        return list(connection.execute(select(tables.freezes.c.tenant + "/" + tables.freezes.c.agent)).scalars())


def test_every_table_with_a_tenant_forces_row_level_security_and_every_other_is_known(postgres: Urls) -> None:
    """A new table that forgets it fails here; so does one whose policies do not ask for whom the transaction is."""
    with connect(postgres.superuser) as connection:
        found = connection.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity, "
            "EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'tenant'), "
            "(SELECT count(*) FROM pg_policy WHERE polrelid = c.oid), "
            "(SELECT bool_and(coalesce(pg_get_expr(polqual, polrelid), 'memoranda.tenant()') LIKE '%tenant()%' "
            " AND coalesce(pg_get_expr(polwithcheck, polrelid), 'memoranda.tenant()') LIKE '%tenant()%') "
            " FROM pg_policy WHERE polrelid = c.oid) "
            "FROM pg_class c WHERE relnamespace = 'memoranda'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
    open_ones = {name for name, forced, *_ in found if not forced}
    assert open_ones == {"alembic_version", "changes", "compatible", "proofs"}
    assert all(policies and asking for _, forced, _, policies, asking in found if forced)
    assert not [name for name, forced, has_tenant, *_ in found if has_tenant and not forced]


def test_a_transaction_has_the_rows_of_its_own_tenant_only(db: PostgresDatabase) -> None:
    for tenant in ("acme", "globex"):
        _freeze(db, tenant, "cleo")
    assert _agents(db, "acme") == ["acme/cleo"]
    assert _agents(db, "globex") == ["globex/cleo"]
    _freeze(db, "acme")
    assert _agents(db, None) == []
    with db.read() as connection:  # the platform sees which tenants are frozen, not which agents
        assert connection.execute(select(tables.every_freezes.c.tenant, tables.every_freezes.c.agent)).all() == [
            ("acme", "")
        ]


def test_it_takes_no_rows_for_another(db: PostgresDatabase) -> None:
    with pytest.raises(ComponentUnavailable) as refused, db.begin("acme") as connection:
        row = {"tenant": "globex", "agent": "", "frozen_by": "ana", "frozen_at": "2026"}
        connection.execute(tables.freezes.insert().values(row))
    assert isinstance(refused.value.__cause__, ProgrammingError)
    assert _agents(db, None) == []


def test_one_question_is_a_transaction_of_its_tenant_alone_and_leaves_nothing(
    db: PostgresDatabase, postgres: Urls
) -> None:
    _freeze(db, "acme", "cleo")
    _freeze(db, "globex", "cleo")
    left = "set_config('memoranda.other', 'acme', false), pg_advisory_lock(7)"
    assert db.ask("acme", f"SELECT tenant, {left} FROM freezes")[0][0] == "acme"
    assert [row[0] for row in db.ask("globex", "SELECT tenant FROM freezes")] == ["globex"]
    with pytest.raises(ComponentUnavailable):
        db.ask("acme", "DELETE FROM freezes RETURNING tenant")
    with pytest.raises(ComponentUnavailable):
        db.ask("acme", f"SELECT 1 / 0, {left}")
    with db._engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        told = raw.execute(
            "SELECT current_setting('memoranda.tenant', true), current_setting('memoranda.other', true),"
            " memoranda.tenant(),"
            " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
        ).fetchone()
        assert told is not None and (told[0] or "", told[1] or "", *told[2:]) == ("", "", None, 0)
        cut = raw.info.backend_pid
    with connect(postgres.superuser) as superuser:
        assert superuser.execute("SELECT pg_terminate_backend(%s, 5000)", (cut,)).fetchone() == (True,)
    assert [row[0] for row in db.ask("acme", "SELECT agent FROM freezes")] == ["cleo"]


@pytest.mark.parametrize("ending", ["commit", "rollback", "error", "conflict"])
def test_a_connection_that_is_given_back_carries_nothing_over(postgres: Urls, ending: str) -> None:
    with open_database(postgres.service) as db:
        assert isinstance(db, PostgresDatabase)
        _freeze(db, "acme", "cleo")
        try:
            with db.begin("acme") as connection:
                backend = connection.execute(text("SELECT pg_backend_pid()")).scalar()
                connection.execute(text("SELECT set_config('memoranda.other', 'acme', false)"))
                connection.execute(text("PREPARE left_behind AS SELECT 1"))
                connection.execute(text("SELECT pg_advisory_lock(7)"))
                if ending == "rollback":
                    connection.rollback()
                elif ending == "error":
                    raise KeyError
                elif ending == "conflict":
                    connection.execute(
                        tables.freezes.insert().values(tenant="acme", agent="cleo", frozen_by="", frozen_at="")
                    )
        except (KeyError, Conflict):
            pass
        with db._engine.connect() as connection:  # the next who takes it, before any transaction of ours
            raw = connection.connection.driver_connection
            assert raw is not None
            told = raw.execute(
                "SELECT pg_backend_pid(), current_setting('memoranda.tenant', true), "
                "current_setting('memoranda.other', true), memoranda.tenant(), "
                "(SELECT count(*) FROM pg_prepared_statements), "
                "(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), "
                "(SELECT count(*) FROM memoranda.freezes)"
            ).fetchone()
        assert told is not None and told[0] == backend
        assert (told[1] or "", told[2] or "", *told[3:]) == ("", "", None, 0, 0, 0)


ROLES = {
    "superuser": "ALTER ROLE {role} SUPERUSER",
    "BYPASSRLS": "ALTER ROLE {role} BYPASSRLS",
    "REPLICATION": "ALTER ROLE {role} REPLICATION",
    "files": "GRANT pg_read_server_files TO {role}",
    "owner": "GRANT {owner} TO {role}",
    "may become its owner": "GRANT {owner} TO {role} WITH INHERIT FALSE, SET TRUE",
    "owns tables": "ALTER TABLE memoranda.agents OWNER TO {role}",
    "may create in it": "GRANT CREATE ON SCHEMA memoranda TO {role}",
    "empty tables": "GRANT TRUNCATE ON memoranda.agents TO {role}",
    "key of the proofs": "GRANT SELECT ON memoranda.proofs TO {role}",
}


@pytest.mark.parametrize("why", ROLES)
def test_a_role_that_could_see_past_its_tenant_does_not_start(postgres: Urls, why: str) -> None:
    role = f"memoranda_test_{uuid4().hex[:8]}"  # roles are of the whole server
    url = postgres.service.replace(SERVICE, role)
    with connect(postgres.superuser) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'of it'")
        try:
            upgrade_as_owner(postgres.owner, url)
            open_database(url).close()
            connection.execute(ROLES[why].format(role=role, owner=OWNER))
            with pytest.raises(ConfigRefused, match=why) as refused:
                open_database(url)
            assert "database.url" in str(refused.value)
        finally:
            connection.execute(f"REASSIGN OWNED BY {role} TO {OWNER}")
            connection.execute(f"DROP OWNED BY {role}")
            connection.execute(f"DROP ROLE {role}")


def test_a_table_that_keeps_tenants_apart_no_more_is_refused_by_name(postgres: Urls) -> None:
    with connect(postgres.superuser) as connection:
        connection.execute("ALTER TABLE memoranda.agents NO FORCE ROW LEVEL SECURITY")
    with pytest.raises(ConfigRefused, match="agents"):
        open_database(postgres.service)


def test_another_password_proves_nothing_until_the_owner_has_told_of_it(postgres: Urls) -> None:
    other = postgres.service.replace("of_", "not_of_")
    assert other != postgres.service
    with pytest.raises(ConfigRefused, match=r"database\.url.*password"):
        open_database(other)
    upgrade_as_owner(postgres.owner, other)
    open_database(other).close()
    open_database(postgres.service).close()  # nodes with the old one go on beside it


def test_without_tables_it_says_what_to_run(empty_postgres: Urls) -> None:
    with pytest.raises(ConfigRefused, match="memoranda db upgrade"):
        open_database(empty_postgres.service)
    upgrade_as_owner(empty_postgres.owner, empty_postgres.service)
    open_database(empty_postgres.service).close()


def test_the_owner_is_bound_by_it_too_and_can_look_at_one_tenant_by_hand(postgres: Urls) -> None:
    with open_database(postgres.service) as db:
        assert isinstance(db, PostgresDatabase)
        _freeze(db, "acme", "cleo")
        _freeze(db, "globex", "cleo")
    with connect(postgres.owner) as connection:
        assert connection.execute("SELECT tenant FROM memoranda.freezes").fetchall() == []
        connection.execute("SELECT memoranda.act_for('acme')")
        assert connection.execute("SELECT tenant FROM memoranda.freezes").fetchall() == [("acme",)]
