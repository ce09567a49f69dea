"""A Home is carried from a folder to PostgreSQL and back without a byte of difference, also when it is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from home.test_nodes import SECRET, WHERE, Worker
from home.tools import git
from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import RecallRequest, RememberRequest, UpdateRequest
from memoranda.engines.homes import Homes
from memoranda.engines.shelves import DiskShelf, PostgresShelf, carry
from memoranda.errors import ComponentUnavailable, Conflict, HomeBusy, InvalidInput, MemorandaError
from memoranda.home.draft import Draft
from memoranda.home.erasing.erase import Whole
from memoranda.home.postgres import moving, store
from memoranda.home.postgres.moving import Target, to_folder, to_postgres
from memoranda.home.postgres.store import PostgresStore
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.space import Space
from memoranda.state.database import Database
from memoranda.state.opening import open_database
from tests.postgres import Urls


@pytest.fixture
def database(postgres: Urls) -> Iterator[Database]:
    with open_database(postgres.service) as opened:
        yield opened


def fill(homes: Homes, context: Context) -> dict[str, object]:
    """Notes with chains, a review, a forgotten and an erased one."""
    engine = Builtin(homes)

    def remember(text: str) -> str:
        return engine.remember(context, WHERE, RememberRequest(content=text)).id

    notes = [remember(f"Fact {n} of the mill: {'it turns ' * n}") for n in range(12)]
    for note in notes[:4]:
        engine.update(context, WHERE, note, UpdateRequest(content=f"No longer: {note}."), if_match=None)
    engine.review(context, WHERE, notes[5], "accept", comment="seen", reviewer="dana", if_match=None)
    gone = remember("This word is forgotten: hazelnut.")
    erased = remember("This word is erased: walnut.")
    with homes.whole("acme", "web") as home:
        assert home is not None
        person = replace(context, person=True)
        home.refresh(person)
        space = Space(person, home.repository.keys, None, None, given=[home])
        forget(person, space, Selection(ids=(gone,)))
        forget(person, space, Selection(ids=(erased,)), erase=True, reason="at its owner's wish")
    return everything(homes, context)


def everything(homes: Homes, context: Context) -> dict[str, object]:
    engine = Builtin(homes)
    listed = engine.list(context, WHERE, scope=None, limit=100, after=None).items
    told: dict[str, object] = {item.id: item for item in listed}
    for item in listed:
        told[f"history of {item.id}"] = engine.history(context, WHERE, item.id)
    for word in ("hazelnut", "walnut"):
        text = f"This word is {'forgotten' if word == 'hazelnut' else 'erased'}: {word}."
        with pytest.raises(MemorandaError, match="forgotten"):
            engine.remember(context, WHERE, RememberRequest(content=text))
    with homes.whole("acme", "web") as home:
        assert home is not None
        store = home.repository.store
        head = home.repository.head() or ""
        files = dict(store.files(head))
        told["commits"] = [(step.commit, step.at, step.subject) for step in home.repository.history(None, head)]
        told["files"] = {path: home.repository.blob(blob) for path, blob in files.items()}
        told["ledger"] = list(home.repository.ledger_segments())
        told["pointers"] = [home.repository.at(path, blob) for path, blob in files.items()]
    return told


def target_of(shelf: PostgresShelf, database: Database, folder: Path) -> Target:
    return Target(PostgresStore(database, "acme", 0), shelf.keys_of("acme"), shelf.place_of("web"), folder / "moving")


@pytest.mark.parametrize("killed", [False, True])
def test_it_is_the_same_there_and_back(
    database: Database, tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    with Homes(tmp_path / "folders", context) as homes:
        before = fill(homes, context)
    disk, shelf = DiskShelf(tmp_path / "folders"), PostgresShelf(tmp_path / "node", database, (SECRET,))
    root, target = disk.root_of("acme", "web"), target_of(shelf, database, tmp_path)
    if killed:
        monkeypatch.setattr(moving, "_AT_ONCE", 20)
        seen: list[int] = []

        def dies(_what: str, done: int, _all: int) -> None:
            seen.append(done)
            if len(seen) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            to_postgres(context, root, disk.keys_of("acme"), target, dies)
        with Homes(shelf.folder, context, shelf=shelf) as homes, pytest.raises(MemorandaError, match="being moved"):
            everything(homes, context)
    done = to_postgres(context, root, disk.keys_of("acme"), target)
    assert done.written == done.objects - (60 if killed else 0)
    with Homes(shelf.folder, context, shelf=shelf) as homes:
        assert everything(homes, context) == before
    assert to_postgres(context, root, disk.keys_of("acme"), target).written == 0, "a second time nothing is left to do"

    back = DiskShelf(tmp_path / "back")
    there = back.root_of("acme", "web")
    there.parent.mkdir(parents=True)
    to_folder(there, back.keys_of("acme"), target)
    with Homes(tmp_path / "back", context) as homes:
        assert everything(homes, context) == before
    assert git(there, "status", "--porcelain") == ""
    listed = ("rev-list", "--objects", "main", "refs/memoranda/ledger")
    assert git(there, *listed) == git(root, *listed)
    with pytest.raises(Conflict):
        to_folder(there, back.keys_of("acme"), target)


def test_another_home_at_that_place_is_not_touched(database: Database, tmp_path: Path, context: Context) -> None:
    shelf = PostgresShelf(tmp_path / "node", database, (SECRET,))
    with Homes(shelf.folder, context, shelf=shelf) as homes:
        note = Builtin(homes).remember(context, WHERE, RememberRequest(content="The one that is there.")).id
    with Homes(tmp_path / "folders", context) as homes:
        Builtin(homes).remember(context, WHERE, RememberRequest(content="Another one."))
    disk, target = DiskShelf(tmp_path / "folders"), target_of(shelf, database, tmp_path)
    with pytest.raises(Conflict):
        to_postgres(context, disk.root_of("acme", "web"), disk.keys_of("acme"), target)
    with Homes(shelf.folder, context, shelf=shelf) as homes:
        assert Builtin(homes).get(context, WHERE, note).content == "The one that is there."
    nowhere = replace(target, place="project:nothing")
    with pytest.raises(InvalidInput):
        to_folder(tmp_path / "nothing", disk.keys_of("acme"), nowhere)


@pytest.fixture
def carried(database: Database, tmp_path: Path, context: Context) -> Iterator[tuple[PostgresShelf, Homes]]:
    """A Home in the folders beside a shelf in PostgreSQL, as a service has both; nothing is open."""
    with Homes(tmp_path / "homes", context) as homes:
        Builtin(homes).remember(context, WHERE, RememberRequest(content="The mill turns."))
    yield PostgresShelf(tmp_path / "node", database, (SECRET,)), homes


def test_nothing_is_moved_out_of_folders_that_a_service_has_open(
    carried: tuple[PostgresShelf, Homes], tmp_path: Path, context: Context
) -> None:
    shelf, _ = carried
    with Homes(tmp_path / "homes", context) as running:
        Builtin(running).remember(context, WHERE, RememberRequest(content="It stands still."))
        with pytest.raises(HomeBusy, match="has Homes open"):
            carry(context, shelf, "acme", "web", to="postgresql")
        assert shelf.has("acme") is False
    assert carry(context, shelf, "acme", "web", to="postgresql").written > 0


def test_no_service_opens_folders_out_of_which_somebody_moves(
    carried: tuple[PostgresShelf, Homes], tmp_path: Path, context: Context
) -> None:
    shelf, _ = carried
    refused: list[MemorandaError] = []

    def meanwhile(_what: str, _done: int, _all: int) -> None:
        with Homes(tmp_path / "homes", context) as late, pytest.raises(ComponentUnavailable, match="moved") as said:
            Builtin(late).remember(context, WHERE, RememberRequest(content="Too late."))
        refused.append(said.value)

    carry(context, shelf, "acme", "web", to="postgresql", progress=meanwhile)
    assert refused
    with Homes(tmp_path / "homes", context) as again:
        assert len(Builtin(again).list(context, WHERE, scope=None, limit=9, after=None).items) == 1


def test_nothing_is_moved_while_another_node_is_connected(
    carried: tuple[PostgresShelf, Homes], postgres: Urls, tmp_path: Path, context: Context
) -> None:
    shelf, _ = carried
    worker = Worker(postgres.service, tmp_path / "other", 1)
    try:
        until = time.monotonic() + 60
        while worker.count < 2 and time.monotonic() < until:
            time.sleep(0.05)
        for to in ("postgresql", "folders"):
            with pytest.raises(HomeBusy, match="nodes"):
                carry(context, shelf, "acme", "web", to=to)  # type: ignore[arg-type]
    finally:
        worker.kill()
    while shelf._database.others():  # of a process that was killed its server learns a moment later
        assert time.monotonic() < until
        time.sleep(0.05)
    with pytest.raises(Conflict):  # the other node has made a Home there
        carry(context, shelf, "acme", "web", to="postgresql")


def test_who_writes_while_a_home_leaves_postgresql_is_refused(
    carried: tuple[PostgresShelf, Homes], database: Database, tmp_path: Path, context: Context,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also a node that nobody has seen: what it would write now would be in neither place."""
    shelf, _ = carried
    carry(context, shelf, "acme", "web", to="postgresql")
    monkeypatch.setattr(store, "_HOLD", store._HOLD.replace("10s", "200ms"))
    said: list[BaseException | None] = []
    real = moving.check_out
    target = target_of(shelf, database, tmp_path)
    with Homes(shelf.folder, context, shelf=shelf) as node:

        def write() -> None:
            try:
                Builtin(node).remember(context, WHERE, RememberRequest(content="Between two places."))
                said.append(None)
            except MemorandaError as error:
                said.append(error)

        def meanwhile(*given: object) -> None:
            thread = threading.Thread(target=write)
            thread.start()
            thread.join()
            real(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(moving, "check_out", meanwhile)
        back = DiskShelf(tmp_path / "back")
        there = back.root_of("acme", "web")
        there.parent.mkdir(parents=True)
        to_folder(there, back.keys_of("acme"), target)
        assert len(said) == 1 and isinstance(said[0], HomeBusy)
        write()
        assert isinstance(said[1], ComponentUnavailable), "the node has the Home open, and nothing is lost there"


def test_a_node_that_goes_on_after_a_home_has_left_notices_it_and_the_home_can_come_back(
    carried: tuple[PostgresShelf, Homes], database: Database, tmp_path: Path, context: Context
) -> None:
    """Also in the middle of a request, and while it writes; what was written and erased in the folder comes along."""
    shelf, _ = carried
    carry(context, shelf, "acme", "web", to="postgresql")
    target, back = target_of(shelf, database, tmp_path), DiskShelf(tmp_path / "back")
    there = back.root_of("acme", "web")
    there.parent.mkdir(parents=True)
    with Homes(shelf.folder, context, shelf=shelf) as node:
        engine = Builtin(node)
        erased = engine.remember(context, WHERE, RememberRequest(content="This word is erased: walnut.")).id
        with node.whole("acme", "web") as home:
            assert home is not None
            repository = home.repository
            to_folder(there, back.keys_of("acme"), target)
            before = target.of(repository.store.home).look()  # type: ignore[attr-defined]
            moved = pytest.raises(ComponentUnavailable, match="do not lie in PostgreSQL any more")
            with moved:
                repository.write(context, lambda _at: Draft("recipe", "Nothing", [], author="somebody"))
            with moved:
                repository.erase(context, [Whole("a" * 40)], "at its owner's wish")
            with moved:
                repository.snapshot()
        with moved:
            engine.remember(context, WHERE, RememberRequest(content="Too late."))
        with moved:
            engine.recall(context, WHERE, RecallRequest(query="mill"))
        assert target.of(repository.store.home).look() == before  # type: ignore[attr-defined]
    with Homes(tmp_path / "back", context) as homes:
        assert Builtin(homes).get(context, WHERE, erased).content == "This word is erased: walnut."
        Builtin(homes).remember(context, WHERE, RememberRequest(content="Written in the folder."))
        with homes.whole("acme", "web") as home:
            assert home is not None
            person = replace(context, person=True)
            home.refresh(person)
            space = Space(person, home.repository.keys, None, None, given=[home])
            forget(person, space, Selection(ids=(erased,)), erase=True, reason="at its owner's wish")
        before_return = Builtin(homes).list(context, WHERE, scope=None, limit=9, after=None).items
        assert len(before_return) == 2
    to_postgres(context, there, back.keys_of("acme"), target)
    with Homes(shelf.folder, context, shelf=shelf) as node:
        assert Builtin(node).list(context, WHERE, scope=None, limit=9, after=None).items == before_return
        with pytest.raises(MemorandaError, match="forgotten"):
            Builtin(node).remember(context, WHERE, RememberRequest(content="This word is erased: walnut."))
    with database.read("acme") as connection:
        heads = connection.exec_driver_sql("SELECT content FROM memory_heads").fetchall()
        oids = connection.exec_driver_sql("SELECT oid FROM memory_objects").fetchall()
    objects = target.of(repository.store.home).get_all([oid.hex() for (oid,) in oids])  # type: ignore[attr-defined]
    assert not any(b"walnut" in data for (data,) in heads)
    assert objects and not any(item is None or b"walnut." in item.data for item in objects)
