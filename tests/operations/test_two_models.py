"""A recipe with two models: the bundled table and a model behind a server, each with vectors and a say of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.errors import NotFound, Unavailable
from memoranda.index.embedding.static import installed
from memoranda.index.endpoints import Endpoint
from memoranda.index.recipes import find_recipe, server_of
from memoranda.operations.goldens import golden_add
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.presenting import View
from memoranda.operations.recalling import recall
from memoranda.operations.recipes import index_add, index_promote
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from memoranda.recall.likeness import filled
from tests.standin import StandIn, meanings, serving
from tests.stores import Opening

pytestmark = pytest.mark.skipif(installed() is None, reason="the package wordllama is not installed")
NAME = "endpoint:meanings"


@pytest.fixture
def model() -> Iterator[StandIn]:
    """A server whose model knows what a few words mean."""
    with serving(meanings) as standing:
        yield standing


@pytest.fixture
def space(context: Context, opening: Opening, model: StandIn) -> Iterator[Space]:
    told = {"meanings": Endpoint(model.url, "meanings", 64, batch=4)}
    with opening(context, endpoints=lambda: told) as opened:
        yield opened


@pytest.fixture
def remote(person: Context, space: Space) -> str:
    """The Home when both answer; the id of a note about a physician."""
    told = remember(person, space, NewNote("The physician wrote a prescription.")).id
    for n in range(30):
        remember(person, space, NewNote(f"{n}a {n}b {n}c {n}d."))
    golden_add(person, space, "Who wrote a prescription?", [told])
    index_add(person, space, NAME, wait=True)
    index_promote(person, space, NAME)
    return told


def account(view: View, note_id: str) -> dict[str, Any]:
    return dict(next(item.why for item in view.items if item.id == note_id))


def test_a_recipe_names_two_models(tmp_path: Path) -> None:
    told = Endpoint("http://127.0.0.1:1/v1", "letters", 8)
    both, short, alone = (
        find_recipe(name, tmp_path, {"x": told}.get) for name in ("static+endpoint:x", "endpoint:x", "words+endpoint:x")
    )
    names = [[part.name for part in recipe.parts] for recipe in (both, short, alone)]
    assert names[0] == names[1]  # what is promoted by default
    assert short.spelt == both.name
    assert names[2] == [names[0][0], names[0][2]]
    assert both.table in both.awaited and both.model not in both.awaited and alone.table is None
    assert both.digest() != alone.digest()
    graph = find_recipe("endpoint:x+graph", tmp_path, {"x": told}.get)
    assert graph.spelt == "static+endpoint:x+graph" and graph.server == server_of("endpoint:x+graph") == "x"
    for name in ("endless+endpoint:x", "staticendpoint:x", "graph+endpoint:x"):
        with pytest.raises(NotFound, match="no recipe"):
            find_recipe(name, tmp_path, {"x": told}.get)
    with pytest.raises(Unavailable, match="cannot be used here"):  # one server, whatever it is called
        find_recipe("endpoint:x+endpoint:y", tmp_path, {"x": told, "y": told}.get)


def test_each_model_is_named_with_its_rank_and_its_share(person: Context, space: Space, remote: str) -> None:
    append_many(
        person,
        space.writable(),
        [
            Turn("I went to the physician this morning.", "Dana", session="s1"),
            Turn("And what came of it?", "Luis", session="s1"),
        ],
    )
    index_add(person, space, NAME, wait=True)
    view = recall(person, space, "Which medicine did the doctor prescribe?")
    assert [name.split("-")[0] for name in view.coverage.indexes] == ["lexical", "vectors", "vectors"]
    told = account(view, remote)
    assert set(told["indexes"]) == {"lexical", "vectors", NAME}
    assert told["indexes"]["vectors"]["rank"] == told["indexes"][NAME]["rank"] == 1
    assert told["indexes"]["vectors"]["gives"] > 0 and told["indexes"][NAME]["gives"] > 0
    assert {"like", "model"} <= set(told["signals"])
    passage = next(dict(item.why) for item in view.items if item.kind == "journal")
    assert {"like", "model", "model_session"} <= set(passage["signals"])  # type: ignore[call-overload]
    for item in view.items:
        given: dict[str, Any] = dict(item.why)
        coarse = sum(index["gives"] for index in given["indexes"].values()) + sum(given["effects"].values())
        assert coarse == pytest.approx(item.score, abs=2e-5)


def test_without_its_server_the_table_answers_and_it_is_said(
    person: Context, space: Space, model: StandIn, remote: str
) -> None:
    model.says = [(500, {}, b"")] * 3
    view = recall(person, space, "doctor medicine")
    assert [item.id for item in view.items] == [remote]  # no word of it is in the question
    assert set(account(view, remote)["indexes"]) == {"lexical", "vectors"}
    assert any("goes by the words and the other vectors" in notice for notice in view.coverage.notices)


def test_what_the_model_has_not_seen_is_found_by_its_meaning_at_once(
    person: Context, space: Space, model: StandIn, remote: str
) -> None:
    model.gate.clear()
    model.most = 0  # what it is asked from here on waits
    new = remember(person, space, NewNote("A doctor gave her medicines."))
    view = recall(person, space, "physicians and nurses")
    assert {item.id for item in view.items} == {remote, new.id}
    model.most = 1_000_000
    model.gate.set()


def test_what_the_model_has_not_seen_neither_gains_nor_loses() -> None:
    assert filled({"a": 0.5, "b": 0.25}, ["a", "b", "c"]) == {"a": 0.5, "b": 0.25, "c": 0.375}
    assert filled({}, ["a"]) == {}
    known = {"a": 0.5}
    assert filled(known, ["a"]) is known


def test_damaged_vectors_of_the_model_leave_the_table_its_say(person: Context, space: Space, remote: str) -> None:
    vectors = space.one().indexes.model
    assert vectors is not None
    file = vectors.directory / "vectors.bin"
    file.write_bytes(bytes(len(file.read_bytes())))
    view = recall(person, space, "doctor medicine")
    assert [item.id for item in view.items] == [remote]
    assert set(account(view, remote)["indexes"]) == {"lexical", "vectors"}
    assert any("the other vectors; the next one makes it again" in notice for notice in view.coverage.notices)
    table = space.one().indexes.table
    assert table is not None and table.counts().live == 31


def test_a_rebuilt_index_answers_as_the_caught_up_one(person: Context, space: Space, remote: str) -> None:
    remember(person, space, NewNote("A ship of the harbour lost its physician."))
    index_add(person, space, NAME, wait=True)
    questions = ("doctor medicine", "Who wrote a prescription?", "vessel", "3a 4b")
    before = [[(item.id, item.score, item.why) for item in recall(person, space, q).items] for q in questions]
    space.one().indexes.rebuild()
    index_add(person, space, NAME, wait=True)
    assert before == [[(item.id, item.score, item.why) for item in recall(person, space, q).items] for q in questions]
