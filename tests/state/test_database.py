"""The state: its tables are those of its migrations, its transactions hold, and what changes is seen everywhere."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import select, text

from memoranda.errors import ComponentUnavailable, ConfigRefused, Conflict
from memoranda.state import tables
from memoranda.state.database import Remembered
from memoranda.state.opening import open_database


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/deep/state.db"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, file_url: str) -> str:
    return file_url if request.param == "sqlite" else request.getfixturevalue("postgres").service


def _elsewhere(url: str, code: str) -> None:
    """Runs `code` with `db` open in another process."""
    body = f"from memoranda.state.opening import open_database\nwith open_database({url!r}) as db:\n"
    subprocess.run([sys.executable, "-c", body + "".join(f"    {line}\n" for line in code.splitlines())], check=True)


def test_the_migrations_make_exactly_the_tables_that_the_code_knows(url: str) -> None:
    with open_database(url) as db, db.read() as connection:
        migrated = MigrationContext.configure(connection, opts={"compare_type": True, "include_name": _ours})
        assert compare_metadata(migrated, tables.metadata) == []


def _ours(name: str | None, kind: str, _parents: object) -> bool:
    # PostgreSQL alone has them: what the service may not read, and the Homes.
    return kind != "table" or (name != "proofs" and not str(name).startswith("memory_"))


def test_head_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", "memoranda.state:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [tables.HEAD]


def test_every_table_that_holds_something_of_a_tenant_names_it() -> None:
    assert [t.name for t in tables.metadata.sorted_tables if "tenant" not in t.c] == ["changes", "compatible"]


def test_what_a_transaction_wrote_is_there_after_reopening_and_a_failed_one_leaves_nothing(url: str) -> None:
    row = {"tenant": "acme", "frozen_by": "ana", "frozen_at": "2026"}
    with open_database(url) as db:
        with db.begin("acme") as connection:
            connection.execute(tables.freezes.insert().values(agent="cleo", **row))
        with pytest.raises(Conflict), db.begin("acme") as connection:
            connection.execute(tables.freezes.insert().values(agent="nell", **row))
            connection.execute(tables.freezes.insert().values(agent="cleo", **row))
    with open_database(url) as db, db.read("acme") as connection:
        assert connection.execute(select(tables.freezes.c.agent)).scalars().all() == ["cleo"]


def test_only_the_owner_can_read_the_files(file_url: str, tmp_path: Path) -> None:
    with open_database(file_url) as db:
        with db.changing() as _:
            pass
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "deep").iterdir()}
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://host/db", "nonsense", "sqlite:////dev/null/x"]
)
def test_a_database_that_cannot_be_used_is_refused_with_what_to_set(url: str) -> None:
    with pytest.raises(ConfigRefused, match=r"database\.url"):
        open_database(url)


def test_tables_of_a_newer_version_are_refused_and_left_alone(file_url: str) -> None:
    with open_database(file_url) as db, db.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(text("UPDATE compatible SET oldest = '9998'"))
    with pytest.raises(ConfigRefused, match="another version"):
        open_database(file_url)


def test_tables_of_a_newer_version_that_say_so_are_used_by_an_older_program(file_url: str) -> None:
    with open_database(file_url) as db, db.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with open_database(file_url) as db, db.changing():
        pass


def test_a_file_that_is_no_database_is_said_to_be_unreadable(file_url: str, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/state.db").write_bytes(b"notes, not a database" * 1000)
    with pytest.raises(ComponentUnavailable):
        open_database(file_url)


def test_several_processes_open_a_new_state_at_once(url: str) -> None:
    code = f"from memoranda.state.opening import open_database as o; o({url!r}).close()"
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [one.wait() for one in running] == [0, 0, 0, 0]


def test_threads_share_it(url: str) -> None:
    with open_database(url) as db:

        def bump(_: int) -> int:
            with db.changing() as connection:
                return int(connection.execute(select(tables.changes.c.n)).scalar_one())

        with ThreadPoolExecutor(16) as pool:
            assert sorted(pool.map(bump, range(100))) == list(range(1, 101))


def test_a_writer_that_waits_too_long_is_told_so(
    file_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoranda.state.sqlite._BUSY", 0.05)
    with open_database(file_url) as db:
        other = sqlite3.connect(tmp_path / "deep/state.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ComponentUnavailable), db.begin():
            pass
        other.close()
        with db.begin():
            pass


class TestWhatIsRemembered:
    def test_holds_while_nothing_that_counts_changes(self, url: str) -> None:
        with open_database(url) as db:
            remembered = Remembered(db)
            remembered.now()["x"] = 1
            with db.begin("acme") as connection:
                connection.execute(text("INSERT INTO freezes VALUES ('acme', '', 'ana', '2026')"))
            assert remembered.now() == {"x": 1}

    def test_is_forgotten_when_this_process_changes_something(self, url: str) -> None:
        with open_database(url) as db:
            remembered = Remembered(db)
            remembered.now()["x"] = 1
            with db.changing():
                pass
            assert remembered.now() == {}

    def test_is_forgotten_when_another_process_does(self, url: str) -> None:
        with open_database(url) as db:
            remembered = Remembered(db)
            for _ in range(3):  # also after the log was put back into the file, and begun anew
                remembered.now()["x"] = 1
                assert remembered.now() == {"x": 1}
                _elsewhere(url, "with db.changing(): pass\nwith db.begin(): pass")
                assert remembered.now() == {}
                if url.startswith("sqlite"):
                    with db.read() as connection:
                        connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def test_keeps_sqlites_locks_whoever_opens_and_closes_it_here(self, file_url: str, tmp_path: Path) -> None:
        """A process that finds no locks takes itself for the only one: it empties the WAL index, or takes the log away.

        The bytes are those of SQLite's file format: who is there at all, and who reads the file.
        """
        locked = """
import fcntl, sys
for name, size, start in (("-shm", 1, 128), ("", 510, 0x40000002)):
    with open(sys.argv[1] + name, "r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, size, start)
            sys.exit(f"no lock on {name or 'the file'}")
        except BlockingIOError:
            pass
"""
        with open_database(file_url) as db, open_database(file_url):
            open_database(file_url).close()
            db.beside("other").close()
            with db.read() as _:
                subprocess.run([sys.executable, "-c", locked, str(tmp_path / "deep/state.db")], check=True)
            _elsewhere(file_url, "with db.changing(): pass")
            assert (tmp_path / "deep/state.db-wal").exists()

    def test_what_was_read_before_a_change_is_not_remembered_after_it(self, url: str) -> None:
        with open_database(url) as db:
            remembered = Remembered(db)
            known = remembered.now()
            with db.changing():
                pass
            known["x"] = "read before"
            assert remembered.now() == {}

    def test_does_not_grow_without_end(self, url: str) -> None:
        with open_database(url) as db:
            remembered = Remembered(db, most=10)
            for n in range(50):
                remembered.now()[n] = n
            assert len(remembered.now()) <= 11
