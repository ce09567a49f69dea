"""PostgreSQL stopped, started again, with its connections cut: a named error in time, nothing half written, and on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from home.test_nodes import Node, rows_are_one_history
from memoranda.context import Context
from memoranda.errors import MemorandaError
from tests.postgres import Server, Urls, connect, fresh


def test_a_server_that_stops_is_told_of_and_found_again(own_postgres: Server, tmp_path: Path, context: Context) -> None:
    urls = fresh(own_postgres.url)
    node = Node(urls.service, tmp_path / "node", context)
    try:
        first = node.remember("The mill stands by the river.")
        for how in ("fast", "immediate"):
            own_postgres.stop(how)
            for ask in (lambda: node.remember("Lost word."), lambda: node.texts("mill"), node.listed):
                with pytest.raises(MemorandaError) as refusal:
                    ask()
                assert refusal.value.code in ("memory_component_unavailable", "memory_engine_unavailable")
            assert node.engine.health(context).status == "unavailable"
            own_postgres.start()
            second = node.remember(f"The mill was closed {how}.")
            assert {first, second} <= node.listed().keys()
            assert node.engine.health(context).status == "ok"
        assert "Lost word." not in node.listed().values()
        rows_are_one_history(node.database, tmp_path)
    finally:
        node.close()


def test_connections_that_are_cut_under_writers_lose_nothing_acknowledged(
    postgres: Urls, tmp_path: Path, context: Context
) -> None:
    node = Node(postgres.service, tmp_path / "node", context)
    node.remember("The first of all.")
    kept: dict[str, str] = {}
    refused: list[MemorandaError] = []
    others: list[BaseException] = []
    stop = threading.Event()

    def work(seed: int) -> None:
        n = 0
        while not stop.is_set():
            n += 1
            text = f"Writer {seed} says line {n}."
            try:
                kept[node.remember(text)] = text
            except MemorandaError as error:
                refused.append(error)
            except BaseException as error:  # noqa: BLE001 - told below
                others.append(error)
                return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
    cut += " AND usename = 'memoranda_test_service'"  # other tests are in other databases of this server
    with connect(postgres.superuser) as connection:
        for _ in range(12):
            before = len(kept)
            while len(kept) < before + 2 and any(thread.is_alive() for thread in threads):
                stop.wait(0.02)
            connection.execute(cut)
    stop.set()
    for thread in threads:
        thread.join(60)
    try:
        assert not others, others
        assert not any(thread.is_alive() for thread in threads), "a writer waits for ever"
        held = node.listed()
        assert {note: held.get(note) for note in kept} == kept
        texts = list(held.values())
        assert len(texts) == len(set(texts))
        rows_are_one_history(node.database, tmp_path)
    finally:
        node.close()
