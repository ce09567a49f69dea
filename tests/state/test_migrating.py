"""From each version of the tables to the newest, on both databases; and programs of two versions on one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import Connection

from memoranda.errors import ConfigRefused
from memoranda.state import migrations, tables
from memoranda.state.database import Database
from memoranda.state.isolation import SCHEMA
from memoranda.state.migrating import upgrade
from memoranda.state.opening import open_database
from memoranda.state.postgres import upgrade_as_owner
from tests.postgres import Urls, connect

FILES = sorted(Path(next(iter(migrations.__path__))).glob("versions/v[0-9]*.py"))
VERSIONS = [path.name[1:5] for path in FILES]
AGENT = {"tenant": "acme", "id": "cleo", "name": "Cleo", "project": "p", "owner": "ana", "created_at": "2026"}
_INSERT = "INSERT INTO agents VALUES (:tenant, :id, :name, :project, :owner, :created_at)"


@contextmanager
def _at(url: str, to: str) -> Iterator[Connection]:
    """The tables of an older version, in a transaction of whoever makes them."""
    told = {"options": f"-c search_path={SCHEMA}"} if url.startswith("postgresql") else {}
    engine = create_engine(url, connect_args=told)
    with engine.begin() as connection:
        if told:
            connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        upgrade(connection, to)
        yield connection
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Database]:
    """Makes the tables of a version with a row in them, and opens what this program makes of it."""

    def on_sqlite(version: str) -> Database:
        url = f"sqlite:///{tmp_path}/state.db"
        with _at(url, version) as connection:
            connection.execute(text(_INSERT), AGENT)
        return open_database(url)

    def on_postgres(version: str) -> Database:
        urls: Urls = request.getfixturevalue("empty_postgres")
        with _at(urls.owner, version) as connection:
            if version > "0001":  # from then on the owner is bound, too
                connection.execute(text(f"ALTER TABLE {SCHEMA}.agents NO FORCE ROW LEVEL SECURITY"))
            connection.execute(text(_INSERT), AGENT)
            if version > "0001":
                connection.execute(text(f"ALTER TABLE {SCHEMA}.agents FORCE ROW LEVEL SECURITY"))
        with pytest.raises(ConfigRefused, match="db upgrade"):
            open_database(urls.service)
        upgrade_as_owner(urls.owner, urls.service)
        return open_database(urls.service)

    return on_sqlite if request.param == "sqlite" else on_postgres


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_what_an_older_version_held_is_there_in_the_newest(older: Callable[[str], Database], version: str) -> None:
    with older(version) as db:
        with db.read("acme") as connection:
            assert connection.execute(text("SELECT * FROM agents")).mappings().all() == [AGENT]
            made = MigrationContext.configure(connection, opts={"include_name": _ours})
            assert compare_metadata(made, tables.metadata) == []
        with db.changing("acme") as connection:
            connection.execute(tables.agents.update().values(name="New"))


def _ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "table" or name in tables.metadata.tables


@pytest.mark.parametrize("path", FILES[2:], ids=lambda path: path.stem)
def test_a_migration_only_adds_or_says_which_programs_it_leaves_behind(path: Path) -> None:
    """Nodes of the version before it go on while it is done, and after it."""
    source = re.sub(r'"""(.|\n)*?"""', "", path.read_text(), count=1)
    takes = re.search(r"drop_|alter_column|rename|\b(DROP (?!INDEX)|RENAME)\b|ALTER COLUMN \w+ TYPE", source)
    assert takes is None or "UPDATE compatible" in source


@pytest.mark.postgres
def test_a_node_of_the_version_before_goes_on_and_starts_beside_the_new_one(
    postgres: Urls, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_database(postgres.service) as new:
        with connect(postgres.superuser) as server:
            server.execute("UPDATE memoranda.compatible SET oldest = '0002'")  # as if they had been made by it
            oldest = "0002"
        for version in VERSIONS[VERSIONS.index(oldest) :]:
            monkeypatch.setattr(tables, "HEAD", version)
            with open_database(postgres.service) as old:
                mark = new.mark()
                with old.changing("acme") as connection:
                    connection.execute(tables.freezes.delete())
                assert new.mark() == mark + 1
        monkeypatch.setattr(tables, "HEAD", "0001")
        with pytest.raises(ConfigRefused, match="another version"):
            open_database(postgres.service)


def test_the_table_that_nothing_reads_goes_when_no_older_program_may_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    with _at(url, "0006") as connection:
        assert inspect(connection).has_table("sessions")
    open_database(url).close()
    with _at(url, "head") as connection:
        assert not inspect(connection).has_table("sessions")


@pytest.mark.postgres
def test_on_postgresql_it_stays_for_older_programs_until_it_is_said_that_none_runs(empty_postgres: Urls) -> None:
    def there() -> bool:
        with connect(empty_postgres.superuser) as server:
            told = server.execute("SELECT to_regclass('memoranda.sessions') IS NOT NULL").fetchone()
        return bool(told and told[0])

    with _at(empty_postgres.owner, "0006"):
        pass
    upgrade_as_owner(empty_postgres.owner, empty_postgres.service)
    assert there()
    upgrade_as_owner(empty_postgres.owner, empty_postgres.service, alone=True)
    assert not there()
