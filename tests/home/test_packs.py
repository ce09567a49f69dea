"""Old objects joined to packs: what was readable stays readable, for every reader, while others write and after."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from home.test_erase_on_postgres import WORD, everything_in, person_in
from home.test_nodes import WHERE, Node, rows_are_one_history
from memoranda.context import Context
from memoranda.engines.contract import UpdateRequest
from memoranda.home.objects import GitObject
from memoranda.home.postgres import erasing, packs
from memoranda.home.postgres.places import find_place
from memoranda.home.postgres.rows import Row, read_rows
from memoranda.home.postgres.store import PostgresStore
from memoranda.operations.forgetting import Selection, forget
from memoranda.state.migrations.versions.v0006_packs import TABLES
from tests.postgres import Urls, connect

pytestmark = pytest.mark.postgres


@pytest.fixture
def node(postgres: Urls, tmp_path: Path, context: Context) -> Iterator[Node]:
    made = Node(postgres.service, tmp_path / "node", context)
    yield made
    made.close()


def store_of(node: Node) -> PostgresStore:
    place = find_place(PostgresStore(node.database, "acme", 0), "project:web")
    assert place is not None
    return PostgresStore(node.database, "acme", place.home)


def every_object(store: PostgresStore) -> Iterator[GitObject]:
    """All objects of a Home, whole."""
    with store.reading() as cursor:
        names = list(store.every_id(cursor))
        for at in range(0, len(names), 200):
            part = names[at : at + 200]
            rows = {row.oid: row for row in store.rows(cursor, part)}
            yield from (item for item in read_rows(rows, part) if item is not None)


def counted(urls: Urls, table: str) -> int:
    with connect(urls.superuser) as connection:
        row = connection.execute(f"SELECT count(*) FROM memoranda.{table}").fetchone()
    assert row is not None
    return int(row[0])


def test_every_object_is_found_as_before_and_costs_a_fraction_of_the_rows(
    node: Node, postgres: Urls, tmp_path: Path
) -> None:
    notes = [node.remember(f"The harbour has gate number {n}.") for n in range(30)]
    for note in notes[:5]:
        node.engine.update(node.context, WHERE, note, UpdateRequest(content="This gate is closed."), if_match=None)
    store = store_of(node)
    before = {item.oid: item.data for item in every_object(store)}
    rows = counted(postgres, "memory_objects")
    assert rows == len(before) > 300
    assert store.join() == 0, "so few are not worth it"
    assert store.join(at_least=10) == rows
    assert counted(postgres, "memory_objects") == 0
    assert counted(postgres, "memory_pack_pages") + counted(postgres, "memory_pack_ids") < rows / 20
    fresh = store_of(node)
    assert {item.oid: item.data for item in every_object(fresh)} == before
    for oid in list(before)[::7]:
        assert (found := fresh.get(oid)) is not None and found.data == before[oid]
        assert fresh.get(oid[:12]) is not None, "in short, too"
    assert fresh.get("0" * 40) is None and fresh.get("0" * 12) is None
    history = rows_are_one_history(node.database, tmp_path)
    node.remember("The harbour has one more gate.")
    assert rows_are_one_history(node.database, tmp_path) == history + 1, "rows stand on what is in packs"
    assert store.join(at_least=1) > 0 and store.join(at_least=1) == 0
    assert rows_are_one_history(node.database, tmp_path) == history + 1
    assert len(node.texts("Which gate number has the harbour?")) > 10


def test_what_is_written_once_more_is_there_once(node: Node) -> None:
    node.remember("Ana drinks tea.")
    store = store_of(node)
    objects = list(every_object(store))
    store.join(at_least=1)
    store.put(objects)
    assert {item.oid for item in every_object(store)} == {item.oid for item in objects}
    assert len(list(every_object(store))) == len(objects)
    assert store.join(at_least=1) == len(objects)
    assert sorted(item.oid for item in every_object(store)) == sorted(item.oid for item in objects)


def test_an_erased_text_is_in_no_page(node: Node, postgres: Urls, tmp_path: Path) -> None:
    kept = node.remember("The garden has nine trees.")
    gone = node.remember(f"The vault opens with the word {WORD}.")
    store = store_of(node)
    store.join(at_least=1)
    assert _in_pages(postgres, WORD)
    with person_in(node) as (person, space):
        done = forget(person, space, Selection(ids=(gone,)), erase=True, reason="it should not be known")
    assert not done.found
    assert not any(WORD.encode() in data for _, data in everything_in(postgres, node)) and not _in_pages(postgres, WORD)
    assert node.engine.get(node.context, WHERE, kept).content == "The garden has nine trees."
    store.join(at_least=1)
    assert not _in_pages(postgres, WORD)
    rows_are_one_history(node.database, tmp_path)


def test_nothing_is_joined_while_an_erasing_that_holds_the_home_reads_it(
    node: Node, postgres: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are read before rows: what moved between the two would be in neither."""
    node.remember("The garden has nine trees.")
    gone = node.remember(f"The vault opens with the word {WORD}.")
    other, read, joined = store_of(node), packs.every_row, []

    def read_while_others_join(cursor: packs.Cursor, home: int) -> Iterator[Row]:
        yield from read(cursor, home)
        joined.append(other.join(at_least=1))

    monkeypatch.setattr(erasing, "_ROUNDS", 0)
    with person_in(node) as (person, space), monkeypatch.context() as patched:
        patched.setattr(packs, "every_row", read_while_others_join)
        forget(person, space, Selection(ids=(gone,)), erase=True, reason="it should not be known")
    assert joined[0] == 0, "while it holds the Home; later reads see one moment"
    assert not any(WORD.encode() in data for _, data in everything_in(postgres, node))
    rows_are_one_history(node.database, tmp_path)


def _in_pages(urls: Urls, word: str) -> bool:
    import zlib

    with connect(urls.superuser) as connection:
        pages = connection.execute("SELECT data FROM memoranda.memory_pack_pages").fetchall()
    return any(word.encode() in zlib.decompress(data) for (data,) in pages)


def test_writers_and_readers_go_on_while_rows_are_joined(node: Node, tmp_path: Path) -> None:
    first = node.remember("Counter stands at the beginning.")
    store, stop = store_of(node), threading.Event()
    kept: dict[str, str] = {}
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        n = 0
        try:
            while not stop.is_set():
                n += 1
                text = f"Writer {seed} says line {n}."
                kept[node.remember(text)] = text
                assert node.engine.get(node.context, WHERE, first).content == "Counter stands at the beginning."
                history = store_of(node)
                assert None not in history.get_all([str(history.look().main), str(history.look().ledger)])
        except BaseException as error:  # noqa: BLE001 - told below
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    joined = 0
    while len(kept) < 40 and not wrong:
        joined += store.join(at_least=30)
        stop.wait(0.05)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not wrong, wrong
    assert joined > 100
    assert {note: node.listed().get(note) for note in kept} == kept
    rows_are_one_history(node.database, tmp_path)


def test_nothing_is_joined_while_a_program_may_run_that_knows_of_no_packs(node: Node, postgres: Urls) -> None:
    node.remember("Ana drinks tea.")
    with connect(postgres.superuser) as connection:
        connection.execute("UPDATE memoranda.compatible SET oldest = '0005'")
    assert store_of(node).join(at_least=1) == 0
    with connect(postgres.superuser) as connection:
        connection.execute("UPDATE memoranda.compatible SET oldest = '0006'")
    assert store_of(node).join(at_least=1) > 0


def test_of_two_who_join_one_does_it_and_who_erases_waits(node: Node) -> None:
    node.remember("Ana drinks tea.")
    store, other = store_of(node), store_of(node)
    with store.writing() as cursor:
        store.part(cursor)
        assert other.join(at_least=1) == 0
    assert other.join(at_least=1) > 0


def test_packs_of_another_tenant_give_nothing(node: Node, postgres: Urls) -> None:
    node.remember("The vault of Acme opens with elderberry.")
    store = store_of(node)
    main = store.look().main
    assert main is not None and store.join(at_least=1) > 0
    theirs = PostgresStore(node.database, "evil", store.home)
    assert theirs.get(main) is None and theirs.get(main[:12]) is None and theirs.join(at_least=1) == 0
    with theirs.writing() as cursor:
        assert theirs.part(cursor) == 0 and theirs.every_id(cursor) == set()
        assert list(packs.every_row(cursor, store.home)) == []
    for name in TABLES:
        assert counted(postgres, f"memory_{name}") > 0
        with node.database.begin("evil") as connection:
            assert connection.exec_driver_sql(f"SELECT count(*) FROM memory_{name}").scalar() == 0
            assert connection.exec_driver_sql(f"DELETE FROM memory_{name}").rowcount == 0
    assert store_of(node).get(main) is not None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.binary(min_size=20, max_size=20), st.integers(1, 4), st.none() | st.integers(0, 30), st.binary()),
        max_size=30,
        unique_by=lambda row: row[0],
    )
)
def test_a_page_gives_back_what_was_put_into_it(drawn: list[tuple[bytes, int, int | None, bytes]]) -> None:
    rows = [
        Row(oid, kind, drawn[at][0] if at is not None and at < number else None, data)
        for number, (oid, kind, at, data) in enumerate(drawn)
    ]
    import zlib

    def plain(found: Iterator[Row]) -> dict[bytes, Row]:
        return {row.oid: row._replace(data=zlib.decompress(row.data)) for row in found}

    page = packs._packed(rows)
    assert plain(packs._unpacked(page)) == {row.oid: row for row in rows}
    for number, row in enumerate(rows):
        found = plain(packs._unpacked(page, [number]))
        assert found[row.oid] == row
        assert row.base is None or row.base in found
