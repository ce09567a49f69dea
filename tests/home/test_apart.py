"""Tenants in PostgreSQL are kept apart by the database, also where this program would not: rows, ids and caches."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from home.test_nodes import Node
from memoranda.context import Context
from memoranda.engines.contract import RecallRequest, RememberRequest
from memoranda.errors import MemorandaError, NotFound, RefMoved
from memoranda.home.draft import Snapshot
from memoranda.home.objects import make_object
from memoranda.home.postgres.standing import BRANCH
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.store import RefMove
from memoranda.index.indexes import Indexes
from memoranda.state.migrations.versions.v0004_homes import TABLES
from memoranda.state.migrations.versions.v0006_packs import TABLES as PACKED
from tests.engines.asking import asking
from tests.postgres import Urls, connect

ACME, EVIL = (asking(writes="project", tenant=tenant) for tenant in ("acme", "evil"))


@pytest.fixture
def node(postgres: Urls, tmp_path: Path, context: Context) -> Iterator[Node]:
    made = Node(postgres.service, tmp_path / "node", context)
    made.engine.remember(context, ACME, RememberRequest(content="The vault of Acme opens with elderberry."))
    yield made
    made.close()


def test_no_table_of_the_homes_gives_or_takes_a_row_of_another_tenant(node: Node, postgres: Urls) -> None:
    with connect(postgres.superuser) as connection:
        kept = {
            name: connection.execute(f"SELECT * FROM memoranda.memory_{name}").fetchall()
            for name in TABLES
            if name not in ("erasures", "lines")
        }
        forced = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'memory\\_%' AND relkind = 'r' AND relforcerowsecurity"
        ).fetchone()
    assert all(kept.values()) and forced == (len(TABLES) + len(PACKED),)
    for name in TABLES:
        with node.database.read("acme") as connection:
            mine = connection.exec_driver_sql(f"SELECT count(*) FROM memory_{name}").scalar()
        with node.database.read("evil") as connection:
            theirs = connection.exec_driver_sql(f"SELECT count(*) FROM memory_{name}").scalar()
        assert (mine, theirs) == (len(kept.get(name, ())), 0)
    with node.database.read("evil") as connection:
        assert connection.exec_driver_sql("SELECT * FROM memory_notes").fetchall() == []
    with node.database.read("acme") as connection:
        (note,) = connection.exec_driver_sql("SELECT place, content, text FROM memory_notes").fetchall()
    assert note[0] == "project:web" and "elderberry" in note[2] and note[1] == note[2].encode()
    with pytest.raises(MemorandaError), node.database.begin("evil") as connection:
        connection.exec_driver_sql("INSERT INTO memory_refs VALUES ('acme', 1, 'refs/heads/other', 'x')")
    for statement in ("UPDATE memory_heads SET content = ''", "DELETE FROM memory_objects", "DELETE FROM memory_keys"):
        with node.database.begin("evil") as connection:
            assert connection.exec_driver_sql(statement).rowcount == 0


def test_a_store_of_another_tenant_with_the_same_number_has_nothing_and_moves_nothing(node: Node) -> None:
    own = PostgresStore(node.database, "acme", 1)
    state = own.look()
    assert state.main is not None
    theirs = PostgresStore(node.database, "evil", 1)
    assert theirs.get(state.main) is None and theirs.get(state.main[:12]) is None
    assert list(theirs.get_many([state.main])) == [None]
    with pytest.raises(RefMoved):
        theirs.look()
    with pytest.raises(RefMoved):
        theirs.move([RefMove(BRANCH, state.main, "0" * 40, "")])
    theirs.put([make_object("blob", b"of evil")])
    theirs.erase({bytes.fromhex(state.main)}, hints={}, merge=())
    assert own.look() == state and own.get(state.main) is not None


def test_the_cache_of_another_tenant_gives_nothing_even_where_it_is_asked(
    node: Node, postgres: Urls, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of Acme's caches lies where Evil's should, and nothing compares it with the database."""
    node.engine.remember(context, EVIL, RememberRequest(content="Evil keeps bees."))
    assert len(node.engine.recall(context, ACME, RecallRequest(query="vault elderberry")).items) == 1
    acme, evil = (node.homes.root_of(tenant, "web") for tenant in ("acme", "evil"))
    node.homes.close()
    shutil.rmtree(evil / ".memoranda")
    shutil.copytree(acme / ".memoranda", evil / ".memoranda")
    for whose in (True, False):
        again = Node(node.url, node.folder, context)
        with monkeypatch.context() as patch:
            patch.setattr(Indexes, "catch_up", lambda _self, seen=None, **_: seen or Snapshot(None, 0, ()))
            if not whose:  # nor does anything look whose it is: what leaves is read in the database all the same
                patch.setattr(Indexes, "_is_ours", lambda _self, _catalog: True)
            found = again.engine.recall(context, EVIL, RecallRequest(query="vault elderberry"))
            assert found.items == ()
            if whose:
                assert found.coverage.searched == 0
            assert again.engine.list(context, EVIL, scope=None, limit=10, after=None).items == ()
            with connect(postgres.superuser) as connection:
                row = connection.execute("SELECT content FROM memoranda.memory_heads WHERE tenant = 'acme'").fetchone()
            assert row is not None
            note = row[0].decode().split("id: ")[1].split("\n")[0]
            with pytest.raises(NotFound):
                again.engine.get(context, EVIL, note)
        again.close()
        if whose:
            shutil.rmtree(evil / ".memoranda")
            shutil.copytree(acme / ".memoranda", evil / ".memoranda")


def test_a_key_that_was_sealed_under_another_secret_opens_for_nobody(node: Node, postgres: Urls) -> None:
    with connect(postgres.superuser) as connection:
        sealed = connection.execute("SELECT sealed FROM memoranda.memory_keys WHERE tenant = 'acme'").fetchall()
        assert len(sealed) >= 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connect(postgres.service) as other:
            other.execute("ALTER TABLE memoranda.memory_keys DISABLE ROW LEVEL SECURITY")
    keys = node.shelf.keys_of("acme")
    for _, _, key, _ in keys.all():
        assert all(key not in row[0] for row in sealed)
    with pytest.raises(MemorandaError, match="sealed under another secret"):
        type(keys)(PostgresStore(node.database, "acme", 1), (b"another secret of somebody else",), node.folder).all()
