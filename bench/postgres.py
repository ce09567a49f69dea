"""Homes on PostgreSQL: what many nodes on one database cost, beside folders and beside rows alone.

* a durable `remember` by eight writers of one node, beside eight connections that each commit a single row;
* a recall by a warm node, beside the same Home in a folder of this machine, in turns;
* what a neighbour has written: how much longer than usual the next recall of another node takes, which shows it;
* a node without caches until its first complete answer;
* a thousand tenants with 500 notes each, beside one of them.

The server is that of the tests with everything synced (`fsync`), below `.bench/`; nodes and server share the machine.
What was filled stays there and is used again.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench._common import (
    CACHE,
    Line,
    Options,
    at_most,
    blocks,
    discard,
    elapsed,
    faster,
    median,
    note_text,
    percentile,
    questions,
    tell,
    texts,
    within,
)
from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import Found, OperationContext, Place, RecallRequest, RememberRequest
from memoranda.engines.homes import Homes
from memoranda.engines.shelves import DiskShelf, PostgresShelf, carry
from memoranda.operations.importing import import_folder
from memoranda.state.opening import open_database
from memoranda.state.postgres import upgrade_as_owner
from tests.postgres import Server, Urls, connect, fresh, name_folder, stop_server

TITLE = "postgresql: Homes of many nodes, beside folders and rows alone"
_FOLDER = CACHE / "postgres"
_SYNCED = "fsync = on\nfull_page_writes = on\nautovacuum = on\nshared_buffers = 256MB\nmax_wal_size = 4GB"
_SECRET = b"the secret of all nodes of the bench"
_FIRST = "t0"
_TENANTS, _EACH = 1_000, 500


def run(options: Options) -> Iterator[Line]:
    with _standing() as server:
        yield from _writing(server, options)
        for size in options.sizes(10_000, 100_000):
            yield from _reading(server, size, options)
        yield from _tenants(server, options)


# Data


@contextmanager
def _standing() -> Iterator[Server]:
    name_folder()
    _FOLDER.mkdir(mode=0o755, parents=True, exist_ok=True)
    server = Server(_FOLDER, _SYNCED)
    if (server.data / "postmaster.pid").exists():  # of a run that was killed
        (server.data / "postmaster.pid").unlink()
    server.start()
    try:
        yield server
    finally:
        server.stop()
        stop_server()  # the name of it


class _Node:
    """One node: its own connections and caches."""

    def __init__(self, url: str, folder: Path) -> None:
        self.database = open_database(url)
        self.shelf = PostgresShelf(folder / "node", self.database, (_SECRET,))
        self.homes = Homes(folder / "node", Context(), shelf=self.shelf)
        self.engine = Builtin(self.homes)

    def close(self) -> None:
        self.homes.close()
        self.database.close()


@contextmanager
def _node(url: str, folder: Path) -> Iterator[_Node]:
    node = _Node(url, folder)
    try:
        yield node
    finally:
        node.close()


def _where(tenant: str = _FIRST) -> OperationContext:
    place = Place(scope="user", owner="ana")
    return OperationContext(tenant=tenant, project="shop", user="ana", agent="cleo", reads=(place,), writes=place)


def _recall(engine: Builtin, question: str, tenant: str = _FIRST) -> Found:
    return engine.recall(Context(), _where(tenant), RecallRequest(query=question, top_k=8))


def _filled(server: Server, size: int) -> tuple[Urls, Path]:
    """A database, and a folder, with the same Home of `size` notes of ana's; made once."""
    folder = _FOLDER / f"filled-{size}"
    done = folder / "urls.json"
    if done.exists():
        urls = Urls(*json.loads(done.read_text()))
        upgrade_as_owner(urls.owner, urls.service)
        return urls, folder
    discard(folder)
    files = folder / "files"
    tell(f"making a Home of {size:,} notes in a folder, and moving it to PostgreSQL")
    for n, text in enumerate(texts(size)):
        place = files / f"topic{n % 300}"
        if n < 300:
            place.mkdir(parents=True)
        whose = note_text(n, text).replace("scope: user\n", "scope: user\nuser: ana\n")
        (place / f"note-{n}.md").write_text(whose, encoding="utf-8")
    urls, context = fresh(server.url), Context()
    shelf = DiskShelf(folder / "homes")
    space = shelf.open(context, _FIRST, "shop", shelf.sight(_FIRST, ["shop"]), make=True)
    assert space is not None
    import_folder(context, space, files)
    space.homes()[0].close()
    shelf.close()  # nobody may have a Home open there while it is moved
    shutil.rmtree(files)
    with _node(urls.service, folder) as node:
        carry(context, node.shelf, _FIRST, "shop", to="postgresql")
    with connect(urls.superuser) as connection:
        connection.execute("VACUUM")
    done.write_text(json.dumps(urls))
    return urls, folder


# Rows


def _writing(server: Server, options: Options) -> Iterator[Line]:
    """In turns: eight threads of a node that remember, and eight connections that commit one row a time."""
    seconds = 1.5 if options.quick else 5.0
    urls, folder = fresh(server.url), _FOLDER / "writing"
    discard(folder)
    said = list(texts(2_000, seed=21))
    with connect(urls.owner) as connection:
        connection.execute("CREATE TABLE single (n bigint PRIMARY KEY, tenant text, body text)")
    with _node(urls.service, folder) as node, ExitStack() as stack:
        plain = [stack.enter_context(connect(urls.owner)) for _ in range(8)]

        def remember(_which: int, n: int) -> None:
            node.engine.remember(Context(), _where(), RememberRequest(content=f"{said[n % len(said)]} {n}"))

        def commit(which: int, n: int) -> None:
            plain[which].execute("INSERT INTO single VALUES (%s, %s, %s)", (n, _FIRST, said[n % len(said)]))

        remember(0, 0)
        rates: tuple[list[float], list[float]] = ([], [])
        numbers = iter(range(1, 1 << 40))
        for turn in range(4):
            for which in (turn % 2, 1 - turn % 2):
                rates[which].append(_rate((remember, commit)[which], 8, seconds, numbers))
        one = _rate(remember, 1, seconds, numbers)
    ours, yard = median(rates[0]), median(rates[1])
    yield faster("durable remember, 8 writers of a node", ours, "8 committers of one row", yard, 0.5, unit="1/s")
    yield Line("  one writer", one, "1/s")


def _rate(work: Callable[[int, int], None], writers: int, seconds: float, numbers: Iterator[int]) -> float:
    """How often a second `work(writer, number)` is done by so many threads."""
    done, lock, wrong = [0] * writers, threading.Lock(), list[BaseException]()
    began = time.perf_counter()

    def go(which: int) -> None:
        try:
            while time.perf_counter() - began < seconds:
                with lock:
                    n = next(numbers)
                work(which, n)
                done[which] += 1
        except BaseException as error:  # noqa: BLE001 - raised below, where the run ends
            wrong.append(error)

    threads = [threading.Thread(target=go, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    return sum(done) / (time.perf_counter() - began)


def _reading(server: Server, size: int, options: Options) -> Iterator[Line]:
    urls, folder = _filled(server, size)
    fresh_folder = folder / "new"
    discard(fresh_folder)
    asked = questions(400)
    with _node(urls.service, fresh_folder) as node:
        first = elapsed(lambda: _complete(node.engine, asked[0])) / 1000
    yield at_most(f"a new node until its first complete answer, {size:,}", first, 60, "s")
    discard(fresh_folder)
    with _node(urls.service, folder) as node, Homes(folder / "homes", Context()) as homes:
        engine, disk = node.engine, Builtin(homes)
        _complete(engine, asked[0])
        for question in asked[:30]:
            _recall(engine, question)
            _recall(disk, question)
        times, yard = blocks(
            lambda n: _recall(engine, asked[n % 400]), lambda n: _recall(disk, asked[n % 400]), options.samples(400), 25
        )
        yield within(f"recall at {size:,}, warm node, p50", median(times), "in a folder", median(yard), 2)
        yield Line("  p95", percentile(times, 95), "ms", "in a folder", percentile(yard, 95))
        yield _neighbour(urls, folder, engine, median(times), options)


def _complete(engine: Builtin, question: str) -> None:
    """Asks until the answer says that it misses nothing."""
    while _recall(engine, question).coverage.notices:
        time.sleep(0.05)


def _neighbour(urls: Urls, folder: Path, engine: Builtin, usual: float, options: Options) -> Line:
    beside = folder / "neighbour"
    took = []
    with _node(urls.service, beside) as other:
        _complete(other.engine, "contract")
        for n in range(-3, options.samples(60)):
            word = f"quux{time.time_ns()}"
            other.engine.remember(Context(), _where(), RememberRequest(content=f"The word of number {n} is {word}."))
            started = time.perf_counter()
            found = _recall(engine, f"What is the word {word}?")
            if n >= 0:
                took.append((time.perf_counter() - started) * 1000)
            if not any(word in (item.content or "") for item in found.items):
                raise RuntimeError("a node did not recall what its neighbour had been acknowledged")
    more = median(took) - usual
    return at_most("a neighbour's write: its next recall, more than usual, p50", more, 20, "ms")


def _tenants(server: Server, options: Options) -> Iterator[Line]:
    count = 50 if options.quick or options.scale else _TENANTS
    urls, folder = _filled(server, _EACH)
    node_folder = folder / f"of-{count}"
    with _node(urls.service, node_folder) as node:
        tenants = [_FIRST, *_copied(urls, node, count - 1)]
        chance, asked = random.Random(5), questions(400)
        tell(f"{count:,} tenants are asked once each, which makes the node's caches")
        first = [elapsed(lambda t=tenant: _recall(node.engine, "contract", t)) for tenant in tenants]
        _recall(node.engine, "contract")
        times: tuple[list[float], list[float]] = ([], [])
        for n in range(options.samples(1_000)):
            for which, tenant in enumerate((chance.choice(tenants), _FIRST)):
                times[which].append(elapsed(lambda n=n, t=tenant: _recall(node.engine, asked[n % 400], t)))
    p95 = [percentile(one, 95) for one in times]
    yield within(f"recall of one of {count:,} tenants of {_EACH} notes, p95", p95[0], "of one tenant", p95[1], 2)
    yield Line("  p50", median(times[0]), "ms", "of one tenant", median(times[1]))
    yield Line("  without caches, p50", median(first), "ms")


_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"


def _copied(urls: Urls, node: _Node, count: int) -> Sequence[str]:
    """More tenants with copies of the first one's rows, sealed keys apart, which are made for each."""
    names = [f"t{n}" for n in range(1, count + 1)]
    keys = node.shelf.keys_of(_FIRST).all()
    with connect(urls.superuser) as connection:
        there = {row[0] for row in connection.execute("SELECT DISTINCT tenant FROM memoranda.memory_homes").fetchall()}
        for name in names:
            if name in there:
                continue
            for purpose, owner, key, own in keys:
                (node.shelf.keys_of(name).adopt if own else node.shelf.keys_of(name).take_in)(purpose, owner, key)
            for table in ("objects", "heads", "refs", "lines", "erasures", "homes"):
                columns = [row[0] for row in connection.execute(_COLUMNS, (f"memoranda.memory_{table}",)).fetchall()]
                others = ", ".join(f'"{column}"' for column in columns if column != "tenant")
                connection.execute(
                    f"INSERT INTO memoranda.memory_{table} (tenant, {others})"
                    f" SELECT %s, {others} FROM memoranda.memory_{table} WHERE tenant = %s",
                    (name, _FIRST),
                )
    return names
