"""Every index behind one interface: brought up by what changed it is the same as built anew, and any of them may go."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import IndexDamaged, InvalidInput, NotFound, Unavailable
from memoranda.home.keys import Keys
from memoranda.index.content import Part
from memoranda.index.embedding.static import installed
from memoranda.index.endpoints import Endpoint
from memoranda.index.indexes import Indexes
from memoranda.index.recipes import find_recipe
from memoranda.index.status import index_states
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.journaling import Turn, append
from memoranda.operations.recalling import Item, recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.space import Space
from tests.standin import StandIn
from tests.stores import Opening, Site

needs_table = pytest.mark.skipif(installed() is None, reason="the package wordllama is not installed")
RECIPES = ["words", pytest.param("static", marks=needs_table), "endpoint:letters"]


@pytest.fixture
def parts(request: pytest.FixtureRequest, server: StandIn, tmp_path: Path) -> tuple[Part, ...]:
    told = Endpoint(server.url, "letters", 8, batch=2)
    return find_recipe(request.param, tmp_path / "models", {"letters": told}.get).parts


def brought(indexes: Indexes, part: Part, directory: Path) -> tuple[object, ...]:
    """Opens the index of a directory, brings it up to the catalog, verifies it and tells what it holds."""
    index = part.open(directory)
    try:
        identity = indexes.catalog.state("identity")
        assert identity is not None
        part.bring(indexes.catalog, index, identity, None)
        index.check()
        assert part.is_level(indexes.catalog, index)
        return index.keys(), tuple(index.counts()), index.state()["feed"]  # type: ignore[call-overload]
    finally:
        index.close()


@pytest.mark.parametrize("parts", RECIPES, indirect=True)
def test_what_changed_applied_is_the_same_as_built_anew(
    context: Context, space: Space, tmp_path: Path, parts: tuple[Part, ...]
) -> None:
    person = replace(context, person=True)
    told = [remember(context, space, NewNote(f"The cabbage number {n} is bad.")) for n in range(5)]
    recall(context, space, "cabbage")
    indexes = space.one().indexes
    for n, part in enumerate(parts):
        brought(indexes, part, tmp_path / f"followed-{n}")
    update(context, space, told[0].id, "The cabbage number 0 is good.")
    forget(person, space, Selection((told[1].id,)))
    append(context, space, Turn("We had a faded cabbage for dinner.", "Dana"))
    recall(context, space, "cabbage")
    for n, part in enumerate(parts):
        followed = brought(indexes, part, tmp_path / f"followed-{n}")
        assert followed == brought(indexes, part, tmp_path / f"anew-{n}")
        assert len(followed[0]) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize("parts", RECIPES, indirect=True)
def test_a_damaged_index_is_known(context: Context, space: Space, tmp_path: Path, parts: tuple[Part, ...]) -> None:
    remember(context, space, NewNote("The cabbage is bad."))
    recall(context, space, "cabbage")
    for part in parts:
        directory = tmp_path / part.name
        brought(space.one().indexes, part, directory)
        for file in directory.iterdir():
            file.write_bytes(b"x" * len(file.read_bytes()))
        with pytest.raises(IndexDamaged):
            part.open(directory).check()


@pytest.mark.requirement("A-003")
def test_any_index_may_go_and_nothing_is_lost(context: Context, site: Site, opening: Opening) -> None:
    with opening(context) as space:
        before = any_may_go(context, space, site.root / ".memoranda")
    shutil.rmtree(site.root / ".memoranda")
    with opening(context) as again:
        assert recall(context, again, "Acme champion").items == before


def any_may_go(context: Context, space: Space, cache: Path) -> tuple[Item, ...]:
    """What is answered before, and after each of them."""
    told = remember(context, space, NewNote("Acme renewed for 24 months.", subject="customer/acme"))
    append(context, space, Turn("The champion moved to Luis.", "dana"))
    before = recall(context, space, "Acme champion")
    assert before.items[0].id == told.id and len(before.items) == 2
    space.one().repository.flush()
    for directory in [path for path in cache.iterdir() if path.is_dir()]:
        shutil.rmtree(directory)
        assert recall(context, space, "Acme champion").items == before.items
    for name in (state.name for state in index_states(space.one().indexes)):
        assert (cache / name).is_dir()
    return before.items


def test_others_recall_and_write_while_the_indexes_are_made_again(
    context: Context, space: Space, home: Path, keys: Keys
) -> None:
    told = remember(context, space, NewNote("Acme renewed for 24 months."))
    recall(context, space, "Acme")
    space.one().repository.flush()
    written: list[str] = []

    def meanwhile(what: str, _done: int, _all: int) -> None:
        """In the middle of it: whoever waited for it would wait for ever. At the end it is brought up as usual."""
        if not (home / ".memoranda" / "rebuilding").exists():
            return
        assert [item.id for item in recall(context, space, "Acme").items] == [told.id]
        written.append(remember(context, space, NewNote(f"Zeppelin {len(written)} landed.")).id)
        assert recall(context, space, f"zeppelin {len(written) - 1}").items[0].id == written[-1]

    with Space(context, keys, home, None, progress=meanwhile) as other:
        indexes = other.one().indexes
        catalog, places = indexes.catalog.directory, [index.stat().st_ino for index in _directories(home)]
        indexes.rebuild()
        assert written
        assert {item.id for item in recall(context, other, "zeppelin").items} == set(written)
    assert {item.id for item in recall(context, space, "zeppelin").items} == set(written)
    after = [index.stat().st_ino for index in _directories(home)]
    assert len(after) == len(places) and not set(after) & set(places)
    assert space.one().indexes.catalog.directory == catalog
    identity = space.one().indexes.catalog.state("identity")
    assert identity is not None and identity == indexes_of(home, context, keys)
    assert not any("rebuilding" in path.name or path.suffix == ".old" for path in (home / ".memoranda").iterdir())


def _directories(home: Path) -> list[Path]:
    return sorted(path for path in (home / ".memoranda").glob("*-*") if path.is_dir())


def indexes_of(home: Path, context: Context, keys: Keys) -> str | None:
    """The name of the catalog that lies there now, as somebody sees it who opens the Home."""
    with Space(context, keys, home, None) as fresh:
        recall(context, fresh, "zeppelin")
        return fresh.one().indexes.catalog.state("identity")


def test_what_is_no_recipe_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no recipe 'graph'"):
        find_recipe("graph", tmp_path, {}.get)
    with pytest.raises(InvalidInput, match="names no server"):
        find_recipe("endpoint:", tmp_path, {}.get)
    with pytest.raises(Unavailable, match="endpoint:office cannot be used here"):
        find_recipe("endpoint:office", tmp_path, {}.get)


def test_another_model_or_library_is_another_recipe(server: StandIn, tmp_path: Path) -> None:
    """Nothing that was made by one is ever looked up in the other: they share neither a digest nor a directory."""

    def digests(**how: object) -> tuple[str, str]:
        told = Endpoint(**{"url": server.url, "model": "letters", "dimensions": 8, **how})  # type: ignore[arg-type]
        recipe = find_recipe("endpoint:x", tmp_path, {"x": told}.get)
        assert recipe.model is not None
        return recipe.digest(), recipe.model.name

    same = digests()
    assert digests(key="another key", batch=7, wait=2.0) == same  # how it is asked changes no answer
    for other in ({"model": "letters-2"}, {"dimensions": 16}, {"question_prefix": "query: "}, {"characters": 10}):
        assert digests(**other)[0] != same[0] and digests(**other)[1] != same[1]
