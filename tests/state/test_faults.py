"""PostgreSQL stopped, restarted, cut off, slow, hanging, full, or at its limit: the named error, nothing by halves.

When it is back everything goes on by itself, with the same `Database`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.engine import Connection

from memoranda.context import Context
from memoranda.errors import ComponentUnavailable
from memoranda.governance.audit import Audit, AuditEvent
from memoranda.governance.verifying import verify
from memoranda.home.keys import Keys
from memoranda.state import postgres, tables
from memoranda.state.database import Database
from memoranda.state.opening import open_database
from memoranda.state.postgres import PostgresDatabase
from memoranda.values import replace
from tests.postgres import SERVICE, Server, Urls, connect, fresh, own_server

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as server:
        yield server


@pytest.fixture(scope="module")
def urls(server: Server) -> Urls:
    return fresh(server.url)


@pytest.fixture
def db(server: Server, urls: Urls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr("memoranda.state.postgres._PATIENCE", 1.0)
    with open_database(urls.service) as opened:
        with opened.begin("acme") as connection:
            connection.execute(tables.freezes.delete())
        yield opened


def _freeze(db: Database, agent: str = "cleo") -> None:
    with db.changing("acme") as connection:
        row = {"tenant": "acme", "agent": agent, "frozen_by": "ana", "frozen_at": "2026"}
        connection.execute(tables.freezes.insert().values(row))


def _count(db: Database) -> int:
    with db.read("acme") as connection:
        return int(connection.execute(select(func.count()).select_from(tables.freezes)).scalar_one())


def _each(db: Database) -> list[Callable[[], object]]:
    return [lambda: _freeze(db, "other"), lambda: _count(db), db.mark, db.ready]


def test_stopped_it_is_said_so_and_started_again_it_goes_on(db: Database, server: Server) -> None:
    _freeze(db)
    mark = db.mark()
    server.stop("immediate")
    for asked in _each(db):
        with pytest.raises(ComponentUnavailable):
            asked()
    server.start()
    assert (_count(db), db.mark()) == (1, mark)
    _freeze(db, "other")
    assert (_count(db), db.mark()) == (2, mark + 1)


def test_a_restart_that_nobody_noticed_is_no_error(db: Database, server: Server) -> None:
    for asked in _each(db):
        asked()
    server.stop()
    server.start()
    assert db.mark() >= 0 and _count(db) == 1
    _freeze(db)


def test_a_connection_that_is_cut_in_a_transaction_leaves_nothing_of_it(db: Database, urls: Urls) -> None:
    with pytest.raises(ComponentUnavailable), db.changing("acme") as connection:
        row = {"tenant": "acme", "agent": "", "frozen_by": "ana", "frozen_at": "2026"}
        connection.execute(tables.freezes.insert().values(row))
        with connect(urls.superuser) as other:
            other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{SERVICE}'")
        connection.execute(text("SELECT 1"))
    assert _count(db) == 0
    _freeze(db)


def test_a_lock_that_is_not_given_in_time_is_said_so(db: Database, urls: Urls) -> None:
    with connect(urls.superuser) as other, other.transaction():
        other.execute("LOCK TABLE memoranda.freezes")
        for asked in (lambda: _freeze(db), lambda: _count(db)):
            with pytest.raises(ComponentUnavailable):
                asked()
    _freeze(db)
    assert _count(db) == 1


def test_a_server_that_stands_still_is_given_up(db: Database, urls: Urls) -> None:
    """It answers nothing, not even that it takes too long: its process is stopped."""
    with pytest.raises(ComponentUnavailable), db.changing("acme") as connection:
        backend = int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        os.kill(backend, signal.SIGSTOP)
        try:
            connection.execute(text("SELECT 1"))
        finally:
            os.kill(backend, signal.SIGCONT)
    _freeze(db)
    assert _count(db) == 1


def test_a_server_that_stands_still_while_it_commits_may_have_written(
    db: Database, urls: Urls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the word to commit, and does so when it goes on: nobody may be told that nothing was changed."""
    real, stopped = postgres._run, list[int]()

    def run(connection: Connection, said: str) -> None:
        if said.startswith("COMMIT") and not stopped:
            stopped.append(int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one()))
            os.kill(stopped[0], signal.SIGSTOP)
        real(connection, said)

    monkeypatch.setattr(postgres, "_run", run)
    try:
        with pytest.raises(ComponentUnavailable, match="not known"):
            _freeze(db)
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    with connect(urls.superuser) as other, other.transaction():
        other.execute("LOCK TABLE memoranda.freezes")  # until it has ended
    assert _count(db) == 1


def test_without_a_connection_left_it_is_said_so(db: Database, urls: Urls) -> None:
    with connect(urls.superuser) as other:
        other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{SERVICE}'")
        other.execute(f"ALTER ROLE {SERVICE} CONNECTION LIMIT 0")
        try:
            for asked in _each(db):
                with pytest.raises(ComponentUnavailable):
                    asked()
        finally:
            other.execute(f"ALTER ROLE {SERVICE} CONNECTION LIMIT -1")
    _freeze(db)
    assert _count(db) == 1


def test_with_all_its_own_connections_taken_one_waits_and_is_told(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(db, PostgresDatabase)
    monkeypatch.setattr(db._engine.pool, "_timeout", 0.2)
    monkeypatch.setattr(db._engine.pool, "_max_overflow", 0)
    held = [db.read("acme") for _ in range(db._engine.pool.size())]  # type: ignore[attr-defined]
    for one in held:
        one.__enter__()
    with pytest.raises(ComponentUnavailable):
        _count(db)
    for one in held:
        one.__exit__(None, None, None)
    assert _count(db) == 0


def test_full_it_takes_nothing_by_halves_and_goes_on_when_there_is_room(urls: Urls, server: Server) -> None:
    """Its files may not grow beyond a limit, as on a disk that is full."""
    server.stop()
    server.start(largest_file=17 << 20)
    with open_database(urls.service) as db:
        block = [
            {
                "tenant": "acme",
                "id": f"{n}",
                "name": os.urandom(2000).hex(),
                "project": "",
                "owner": "",
                "created_at": "",
            }
            for n in range(1000)
        ]
        whole = 0
        with pytest.raises(ComponentUnavailable):
            for turn in range(10):
                with db.begin("acme") as connection:
                    connection.execute(tables.agents.insert(), [{**row, "id": f"{turn}-{row['id']}"} for row in block])
                whole += 1000
        with db.read("acme") as connection:
            assert connection.execute(select(func.count()).select_from(tables.agents)).scalar_one() == whole > 0
        server.stop()
        server.start()
        with db.begin("acme") as connection:
            connection.execute(tables.agents.insert(), block)


def test_the_audit_lets_nothing_begin_meanwhile_and_goes_on_in_another_chain(
    db: Database, server: Server, context: Context, keys: Keys
) -> None:
    change = AuditEvent("remember", tenant="acme", user="ana", agent="cleo")
    with Audit(context, db, keys) as audit:
        audit.finish(context, audit.begin(context, change), "success")
        open_one = audit.begin(context, change)
        audit.note(context, replace(change, outcome="deny"))  # nobody waits until the disk has it
        server.stop("immediate")
        for asked in (lambda: audit.begin(context, change), lambda: audit.finish(context, open_one, "success")):
            with pytest.raises(ComponentUnavailable):
                asked()
        server.start()
        audit.ready()
        audit.finish(context, open_one, "success")
        audit.finish(context, audit.begin(context, change), "success")
        entries, _ = audit.query("acme")
        assert [entry.event.outcome for entry in entries if entry.event.outcome != "deny"] == ["success"] * 3
        assert len(audit._chain.names) in (1, 2)  # by whether the keeper had been there
        assert audit.recover(context) == 0
        verdict = verify(audit.database, keys)
        assert verdict.chains == len(audit._chain.names) and {finding.what for finding in verdict.findings} <= {"lost"}
