"""What is erased from a Home in PostgreSQL stands in no row, and in no cache of any node that comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from home.test_nodes import WHERE, Node, rows_are_one_history
from memoranda.context import Context
from memoranda.engines.contract import UpdateRequest
from memoranda.errors import Erased, Forgotten, HomeBusy, NotFound
from memoranda.home.objects import KINDS
from memoranda.home.postgres import store
from memoranda.home.postgres.rows import read_rows
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.repository import Repository
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.space import Space
from tests.postgres import Urls, connect

WORD = "elderberry"


@contextmanager
def person_in(node: Node) -> Iterator[tuple[Context, Space]]:
    """A person with the whole Home before them."""
    person = replace(node.context, person=True)
    with node.homes.whole("acme", "web") as home:
        assert home is not None
        home.refresh(person)
        yield person, Space(person, home.repository.keys, None, None, given=[home])


def everything_in(urls: Urls, node: Node) -> list[tuple[str, bytes]]:
    """Every text of every table, with what the objects are whole."""
    found: list[tuple[str, bytes]] = []
    with connect(urls.superuser) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memoranda'").fetchall()
        for (name,) in names:
            for row in connection.execute(f"SELECT * FROM memoranda.{name}").fetchall():
                found += [(name, value) for value in row if isinstance(value, bytes)]
                found += [(name, value.encode()) for value in row if isinstance(value, str)]
        homes = connection.execute("SELECT home FROM memoranda.memory_homes").fetchall()
    for (home,) in homes:
        rows_of = PostgresStore(node.database, "acme", home)
        with rows_of.reading() as cursor:
            oids = [row[0] for row in cursor.execute("SELECT oid FROM memory_objects WHERE home = %s", (home,))]
            rows = {row.oid: row for row in rows_of.rows(cursor, oids)}
        objects = read_rows(rows, oids)
        assert all(item is not None and item.kind in KINDS for item in objects)
        found += [("objects", item.data) for item in objects if item is not None]
    return found


def holding(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]


def test_an_erased_text_is_in_no_row_and_in_no_cache(postgres: Urls, tmp_path: Path, context: Context) -> None:
    one = Node(postgres.service, tmp_path / "one", context)
    away = Node(postgres.service, tmp_path / "away", context)
    kept = one.remember("The garden has nine trees.")
    first = one.remember(f"The vault opens with the word {WORD}.")
    change = UpdateRequest(content=f"The vault opens with the word {WORD} twice.")
    second = one.engine.update(one.context, WHERE, first, change, if_match=None).id
    with one.homes.whole("acme", "web") as home:
        assert home is not None
        old = home.repository.head()
        path = next(row.path for row in home.indexes.catalog.all_states(first))
    assert any(WORD in text for text in away.texts("What opens the vault?"))
    away.close()
    assert holding(tmp_path / "away"), "the cache of the node that is away has it"
    assert any(WORD.encode() in data for _, data in everything_in(postgres, one))

    with person_in(one) as (person, space):
        done = forget(person, space, Selection(ids=(second,)), erase=True, reason="it should not be known")
    assert not done.found

    told = [name for name, data in everything_in(postgres, one) if WORD.encode() in data]
    assert told == []
    assert not holding(tmp_path / "one"), "this node's caches, and the copy that it worked on"
    assert one.listed() == {kept: "The garden has nine trees."}

    back = Node(postgres.service, tmp_path / "away", context)
    try:
        assert not any(WORD in text for text in back.texts("What opens the vault?"))
        assert not holding(tmp_path / "away"), "it was away, and has looked at nothing of the old since"
        with pytest.raises(NotFound):
            back.engine.get(back.context, WHERE, first)
        with person_in(back) as (person, space):
            home = space.one()
            with pytest.raises((Erased, NotFound)):
                home.repository.at(path, old)
            assert (
                "nine trees"
                in home.repository.at(next(row.path for row in home.indexes.catalog.by_id(kept)), None).decode()
            )
        with pytest.raises(Forgotten):
            back.remember(f"The vault opens with the word {WORD}.")
        fresh = back.remember("The gate is green.")
        assert one.engine.get(one.context, WHERE, fresh).content == "The gate is green."
        rows_are_one_history(one.database, tmp_path)
    finally:
        back.close()
        one.close()


@pytest.mark.parametrize("often", [1, 9])
def test_who_writes_while_an_erasing_looks_waits_for_nobody_and_nothing_of_it_is_lost(
    postgres: Urls, tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    """The erasing begins anew with what was written meanwhile; when that goes on and on, others wait for once."""
    one, other = (Node(postgres.service, tmp_path / name, context) for name in ("one", "other"))
    gone = one.remember(f"The vault opens with the word {WORD}.")
    written: dict[str, str] = {}
    look = Repository.erase

    def slowly(self: Repository, *given: Any) -> Any:
        done = look(self, *given)
        if len(written) < often:
            text = f"The garden has {len(written)} trees."
            with suppress(HomeBusy):  # at last it is held
                written[other.remember(text)] = text
        return done

    monkeypatch.setattr(Repository, "erase", slowly)
    monkeypatch.setattr(store, "_HOLD", store._HOLD.replace("10s", "1s"))
    with person_in(one) as (person, space):
        done = forget(person, space, Selection(ids=(gone,)), erase=True, reason="it should not be known")
    assert not done.found
    assert len(written) == min(often, 3)
    assert one.listed() == other.listed() == written
    assert [name for name, data in everything_in(postgres, one) if WORD.encode() in data] == []
    rows_are_one_history(one.database, tmp_path)
    one.close()
    other.close()
