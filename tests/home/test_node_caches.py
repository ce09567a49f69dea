"""A node's caches have a bound: those go that were not used for longest, and never those of a Home in use."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import Found, OperationContext, RecallRequest, RememberRequest
from memoranda.engines.homes import Homes
from memoranda.engines.shelves import PostgresShelf
from memoranda.errors import Unavailable
from memoranda.home.layout import CACHE
from memoranda.home.postgres.node import node_layout, size_of
from memoranda.state.opening import open_database
from tests.conftest import Clock
from tests.engines.asking import asking
from tests.postgres import Urls

SECRET = b"the secret of all nodes of a test"
TENANTS = ("acme", "bolt", "cube", "dune")


def _where(tenant: str) -> OperationContext:
    return asking(writes="project", tenant=tenant)


def _recall(homes: Homes, context: Context, tenant: str) -> Found:
    return Builtin(homes).recall(context, _where(tenant), RecallRequest(query="How many gates has the harbour?"))


@pytest.fixture
def node(postgres: Urls, tmp_path: Path, context: Context) -> Iterator[Callable[[int], Homes]]:
    """A node with a bound; each time the same folder and database."""
    with ExitStack() as stack:

        def made(most: int) -> Homes:
            database = stack.enter_context(open_database(postgres.service))
            shelf = PostgresShelf(tmp_path / "node", database, (SECRET,), most=most)
            return stack.enter_context(Homes(tmp_path, context, shelf=shelf, idle=timedelta(minutes=5)))

        yield made


def _filled(homes: Homes, context: Context) -> None:
    for n, tenant in enumerate(TENANTS):
        new = RememberRequest(content=f"The harbour of {tenant} has {n} gates.")
        Builtin(homes).remember(context, _where(tenant), new)
        assert len(_recall(homes, context, tenant).items) == 1


def _kept(homes: Homes) -> list[str]:
    """Whose caches are on the disk."""
    return [tenant for tenant in TENANTS if any((homes.root_of(tenant, "web") / CACHE).iterdir())]


def test_caches_not_used_for_longest_go_until_the_bound_is_kept(
    node: Callable[[int], Homes], context: Context, clock: Clock
) -> None:
    first = node(1 << 40)
    _filled(first, context)
    clock.tick(seconds=360)
    first.tidy()
    assert len(first) == 0
    for n, tenant in enumerate(("cube", "acme", "dune", "bolt")):  # in this order they were used
        held = node_layout(first.root_of(tenant, "web")).own / "held"
        os.utime(held, (1_000_000 + n, 1_000_000 + n))
    sizes = {tenant: size_of(first.root_of(tenant, "web")) for tenant in TENANTS}
    homes = node(sum(sizes.values()) - sizes["cube"] - sizes["acme"] // 2)
    homes.trim()
    assert _kept(homes) == ["bolt", "dune"]
    homes.trim()
    assert _kept(homes) == ["bolt", "dune"]
    assert sum(size_of(homes.root_of(tenant, "web")) for tenant in TENANTS) <= homes.shelf._most  # type: ignore[attr-defined]
    for tenant in TENANTS:  # and whose caches are gone is answered as before, and told that it took longer
        found = _recall(homes, context, tenant)
        assert [tenant in (item.content or "") for item in found.items] == [True]
        assert [("no caches" in notice) for notice in found.coverage.notices] == [True] * (tenant in ("acme", "cube"))
        assert _recall(homes, context, tenant).coverage.notices == ()


def test_a_bound_smaller_than_one_home_takes_nothing_from_who_is_in_it(
    node: Callable[[int], Homes], context: Context
) -> None:
    homes = node(1)
    _filled(homes, context)
    with homes.reading(context, "acme", "web", ()) as space:
        homes.trim()
        assert _kept(homes) == ["acme"]  # the others were open as well, and nobody was in them
        with space.homes()[0].indexes.lock:
            assert space.homes()[0].indexes.whole.catalog.count_notes() == 1
    homes.trim()
    assert _kept(homes) == [] and len(homes) == 0
    assert len(_recall(homes, context, "acme").items) == 1


def test_another_process_of_the_node_keeps_what_it_has_open(node: Callable[[int], Homes], context: Context) -> None:
    one, other = node(1 << 40), node(1)
    _filled(one, context)
    other.trim()
    assert _kept(one) == list(TENANTS)
    one.close()
    other.trim()
    assert _kept(one) == []


def test_caches_that_somebody_deletes_while_they_are_used_are_made_again(
    node: Callable[[int], Homes], context: Context
) -> None:
    """Against the rules, and while threads ask: every answer is right, or says that it cannot be given now."""
    homes = node(1 << 40)
    _filled(homes, context)
    wrong: list[object] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            try:
                found = _recall(homes, context, "acme")
                if len(found.items) != 1 or "acme" not in (found.items[0].content or ""):
                    wrong.append(found)
            except Unavailable:
                pass  # it says so, and to try again
            except Exception as error:  # noqa: BLE001 - shown below
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        shutil.rmtree(homes.root_of("acme", "web") / CACHE, ignore_errors=True)
        _recall(homes, context, "bolt")
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(_recall(homes, context, "acme").items) == 1


def test_what_is_being_made_is_told_in_the_log_and_to_who_asks_for_the_health(
    node: Callable[[int], Homes], context: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    homes = node(1 << 40)
    _filled(homes, context)
    homes.close()
    shutil.rmtree(homes.root_of("acme", "web"))
    again, told = node(1 << 40), list[str]()
    monkeypatch.setattr("memoranda.engines.shelves._TELL", 0.0)
    refresh = "memoranda.index.indexes.Indexes._write_manifests"
    counted: list[tuple[int, int, int]] = []

    def asked(*_: object) -> None:
        told.append(again.state()[1])
        counted.append(again.shelf.made_of())

    monkeypatch.setattr(refresh, asked)
    with caplog.at_level("INFO", logger="memoranda.homes"):
        assert len(_recall(again, context, "acme").items) == 1
    assert told and told[0].startswith("caches of 1 Homes are being made: ")
    assert any("caches of a Home are being made: reading notes" in line for line in caplog.messages)
    assert counted[0][0] == 1 and counted[0][1] == counted[0][2] > 0 and again.shelf.made_of() == (0, 0, 0)
    assert any("reading objects 0 of" in line for line in caplog.messages)
    assert again.state() == ("ok", "") and "acme" not in " ".join((*told, *caplog.messages))


def test_homes_that_were_not_used_last_rest_and_answer_as_before(
    node: Callable[[int], Homes], context: Context
) -> None:
    """They stay open with nothing at hand, as many as may; the others are closed."""
    homes = node(1 << 30)
    homes._most, homes._resting = 1, 2
    _filled(homes, context)
    homes.tidy()
    assert len(homes) == 3
    _recall(homes, context, "bolt")
    with homes.whole("bolt", "web") as home:
        assert home is not None
        before = home.indexes.lexical
        homes.tidy()
        assert before._view is not None  # it is in use, and was used last
    _recall(homes, context, "dune")
    homes.tidy()
    assert before._view is None
    other = node(1 << 30)
    new = RememberRequest(content="The harbour of bolt has a lighthouse.")
    Builtin(other).remember(context, _where("bolt"), new)
    found = _recall(homes, context, "bolt")
    assert {item.content for item in found.items} == {
        "The harbour of bolt has 1 gates.", "The harbour of bolt has a lighthouse.",
    }  # fmt: skip
    assert not found.coverage.notices
    with homes.whole("bolt", "web") as home:
        assert home is not None and home.indexes.lexical is before  # it was never closed
