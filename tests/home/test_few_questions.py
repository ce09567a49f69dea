"""A recall asks the database twice: what holds in the Homes that it is about, and for the words that leave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from home.test_nodes import Node, nodes
from memoranda.context import Context
from memoranda.engines.contract import RecallRequest, RememberRequest, UpdateRequest
from memoranda.home.objects import object_id
from memoranda.home.postgres.heads import put_heads, read_heads
from memoranda.home.postgres.places import make_place, places, sights
from memoranda.home.postgres.store import PostgresStore
from memoranda.state import postgres as state
from tests.conftest import Clock
from tests.engines.asking import asking

__all__ = ["nodes"]
PROJECT, TENANT = asking(writes="project"), asking(writes="organization")


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """One entry for each answer of the server that somebody has waited for."""
    waited: list[float] = []
    before = state._Bounded.wait

    def wait(self: Any, gen: Any, *args: Any) -> Any:
        waited.append(0)
        return before(self, gen, *args)

    monkeypatch.setattr(state._Bounded, "wait", wait)
    yield waited


def test_a_warm_recall_asks_twice_and_so_does_one_where_a_home_is_missing(
    nodes: tuple[Node, Node], messages: list[float]
) -> None:
    one, _ = nodes
    one.remember("The harbour has seven gates.")
    for _ in range(2):
        one.texts("How many gates has the harbour?")
        messages.clear()
        assert one.texts("How many gates has the harbour?") == ["The harbour has seven gates."]
        assert len(messages) == 2
        one.engine.remember(one.context, TENANT, RememberRequest(content="Whoever sails is greeted."))  # the other Home


def test_a_note_that_is_remembered_is_read_back_without_asking_what_else_holds(
    nodes: tuple[Node, Node], messages: list[float]
) -> None:
    one, two = nodes
    one.remember("The harbour has seven gates.")
    one.remember("The harbour has eight gates.")
    messages.clear()
    note = one.remember("The harbour has nine gates.")
    assert len(messages) <= 13
    assert two.engine.get(two.context, PROJECT, note).content == "The harbour has nine gates."


def test_to_open_a_home_again_whose_caches_are_there_costs_no_question(
    nodes: tuple[Node, Node], messages: list[float], clock: Clock
) -> None:
    one, _ = nodes
    one.remember("The harbour has seven gates.")
    one.texts("How many gates has the harbour?")
    clock.tick(hours=1)
    one.homes.tidy()
    assert len(one.homes) == 0
    messages.clear()
    assert one.texts("How many gates has the harbour?") == ["The harbour has seven gates."]
    assert len(messages) == 2


def test_what_a_neighbour_wrote_costs_a_question_for_each_folder_of_a_path_and_one_for_each_commit(
    nodes: tuple[Node, Node], messages: list[float]
) -> None:
    one, two = nodes
    for n in range(3):
        one.remember(f"The harbour has {n} gates.")
        assert f"The harbour has {n} gates." in two.texts("How many gates has the harbour?")
    for count in (1, 1, 5):
        for n in range(count):
            one.remember(f"The lighthouse has {n} steps.")
        messages.clear()
        assert len(two.texts("How many steps has the lighthouse?")) >= count
        assert len(messages) <= 2 + 8 + (count - 1)


def test_a_home_that_a_neighbour_makes_is_there_at_the_next_request(nodes: tuple[Node, Node]) -> None:
    one, two = nodes
    one.remember("The harbour has seven gates.")
    assert len(two.texts("harbour gates greeted")) == 1
    one.engine.remember(one.context, TENANT, RememberRequest(content="Whoever sails into the harbour is greeted."))
    assert len(two.texts("harbour gates greeted")) == 2


def test_who_writes_in_the_middle_of_a_request_reads_what_holds_behind_it(nodes: tuple[Node, Node]) -> None:
    """What a request was told at its beginning holds for reading, and not beyond its own writing."""
    one, two = nodes
    note = one.remember("The harbour has seven gates.")
    two.texts("harbour")
    with two.homes.reading(two.context, "acme", "web", ()) as space:
        (home,) = space.homes()
        before = home.repository.snapshot()
        changed = one.engine.update(
            one.context, PROJECT, note, UpdateRequest(content="It has nine gates."), if_match=None
        )
        assert home.repository.snapshot() == before
        home.repository.write(two.context, lambda _at: _empty())
        assert home.repository.snapshot().seq > before.seq + 1
        assert home.repository.snapshot().commit != before.commit
    assert two.engine.get(two.context, PROJECT, changed.id).content == "It has nine gates."


def _empty() -> Any:
    from memoranda.home.draft import Draft

    return Draft("recipe", "Nothing", [], author="somebody")


def test_a_place_with_any_name_is_no_sql(nodes: tuple[Node, Node], context: Context) -> None:
    one, _ = nodes
    one.remember("The harbour has seven gates.")
    store = PostgresStore(one.database, "acme", 0)
    for name in ("project:web') OR ('1'='1", "project:\\", "x'; DROP TABLE memory_homes; --", "é\n'", "project:web%s"):
        assert sights(store, [name]) == {}
        made = make_place(store, context, name, "other")
        assert {place: sight.place for place, sight in sights(store, [name, "project:web"]).items()}[name] == made
    assert list(sights(store, ["project:web"])) == ["project:web"]


def test_the_words_of_few_notes_are_read_by_their_keys_however_many_there_are(nodes: tuple[Node, Node]) -> None:
    one, _ = nodes
    one.remember("The harbour has seven gates.")
    (place,) = places(PostgresStore(one.database, "acme", 0))
    store = PostgresStore(one.database, "acme", place.home)
    files = {f"memory/notes/{n}.md": (object_id("blob", b"%d" % n), b"%d" % n) for n in range(3000)}
    with store.writing() as cursor:
        put_heads(cursor, place.home, files)
    asked = [blob for blob, _ in files.values()][1000:1008]
    assert sorted(read_heads(store, asked).values()) == [b"%d" % n for n in range(1000, 1008)]
    told: list[str] = []
    before = store.ask
    store.ask = lambda query: told.append(query) or before(query)  # type: ignore[method-assign, func-returns-value]
    read_heads(store, asked)
    plan = "\n".join(row[0] for row in before(f"EXPLAIN (ANALYZE) {told[0]}"))
    assert "memory_heads_blob" in plan and "Rows Removed" not in plan


def test_what_a_reader_is_told_to_be_searched_is_what_there_is_counted_anew(nodes: tuple[Node, Node]) -> None:
    one, two = nodes
    notes: list[str] = []
    for n in range(12):
        who = asking(writes="user", user=("ana", "zoe")[n % 2])
        notes.append(one.engine.remember(one.context, who, RememberRequest(content=f"Gate {n} is open.")).id)
        if n % 5 == 4:
            one.engine.forget(one.context, who, notes[-3], if_match=None)
        if n % 4 == 3:
            one.engine.update(one.context, who, notes[-1], UpdateRequest(content=f"Gate {n} is shut."), if_match=None)
        found = two.engine.recall(two.context, asking(), RecallRequest(query="Which gate is open?"))
        with two.homes.reading(two.context, "acme", "web", ['user {"user": "ana"}']) as space:
            catalog = space.homes()[0].indexes.catalog
            held = catalog.totals().notes
            catalog.forget()
            assert found.coverage.searched == held == catalog.totals().notes
