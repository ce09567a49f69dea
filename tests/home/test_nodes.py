"""Two nodes on one PostgreSQL: what one acknowledges the other reads at its next request; no chain gets two heads."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import RecallRequest, RememberRequest, UpdateRequest
from memoranda.engines.homes import Homes
from memoranda.engines.shelves import PostgresShelf
from memoranda.errors import ChainConflict, Conflict, NotFound
from memoranda.home.git import Git
from memoranda.home.objects import object_id
from memoranda.home.postgres.copying import objects_in_folder
from memoranda.home.postgres.node import node_layout
from memoranda.home.postgres.places import find_place
from memoranda.home.postgres.standing import BRANCH
from memoranda.home.postgres.store import PostgresStore
from memoranda.state.database import Database
from memoranda.state.opening import open_database
from tests.engines.asking import asking
from tests.postgres import Urls, connect

SECRET = b"the secret of all nodes of a test"
KILLS = int(os.environ.get("MEMORANDA_TEST_KILLS", "5"))
WHERE = asking(writes="project")


class Node:
    """One node: its own connections, its own caches."""

    def __init__(self, url: str, folder: Path, context: Context) -> None:
        self.url, self.folder = url, folder
        self.database: Database = open_database(url)
        self.shelf = PostgresShelf(folder, self.database, (SECRET,))
        self.homes = Homes(folder, context, shelf=self.shelf)
        self.engine = Builtin(self.homes)
        self.context = context

    def remember(self, text: str) -> str:
        return self.engine.remember(self.context, WHERE, RememberRequest(content=text)).id

    def texts(self, question: str) -> list[str]:
        found = self.engine.recall(self.context, WHERE, RecallRequest(query=question, top_k=50))
        return [item.content or "" for item in found.items]

    def listed(self) -> dict[str, str]:
        found, after = dict[str, str](), None
        while True:
            page = self.engine.list(self.context, WHERE, scope=None, limit=100, after=after)
            found |= {item.id: item.content or "" for item in page.items}
            if page.next is None:
                return found
            after = page.next

    def close(self) -> None:
        self.homes.close()
        self.database.close()


@pytest.fixture
def nodes(postgres: Urls, tmp_path: Path, context: Context) -> Iterator[tuple[Node, Node]]:
    with ExitStack() as stack:
        made = [Node(postgres.service, tmp_path / name, context) for name in ("one", "two")]
        for node in made:
            stack.callback(node.close)
        yield made[0], made[1]


def rows_are_one_history(database: Database, tmp_path: Path) -> int:
    """Every commit has one parent, every object is right; how many commits there are."""
    store = PostgresStore(database, "acme", 0)
    place = find_place(store, "project:web")
    assert place is not None
    store = PostgresStore(database, "acme", place.home)
    with objects_in_folder(store, node_layout(tmp_path / "checked")) as layout:
        git = Git(layout)
        try:
            git.run("fsck", "--strict", "--no-dangling")
            unreached = git.run("fsck", "--unreachable", "--no-reflogs", *store.look().refs.values())
            assert not unreached.strip(), "something was written that no ref leads to"
            parents = git.run("rev-list", "--parents", str(store.look().refs[BRANCH])).decode().splitlines()
        finally:
            git.close()
    assert all(len(row.split()) <= 2 for row in parents)
    return len(parents)


def test_what_one_node_writes_the_other_reads_at_its_next_request(nodes: tuple[Node, Node]) -> None:
    one, two = nodes
    for n in range(6):
        writer, reader = (one, two) if n % 2 else (two, one)
        note = writer.remember(f"The harbour has gate number {n}.")
        assert f"The harbour has gate number {n}." in reader.texts("Which gate number has the harbour?")
        assert reader.engine.get(reader.context, WHERE, note).content == f"The harbour has gate number {n}."
        done = reader.engine.update(
            reader.context, WHERE, note, UpdateRequest(content=f"Gate {n} is closed."), if_match=None
        )
        assert writer.engine.get(writer.context, WHERE, note).content == f"Gate {n} is closed."
        if n % 3 == 0:
            writer.engine.forget(writer.context, WHERE, done.id, if_match=None)
            with pytest.raises(NotFound):
                reader.engine.get(reader.context, WHERE, note)
    assert one.listed() == two.listed() and len(one.listed()) == 4


def test_writers_of_both_nodes_make_one_history_and_no_chain_two_heads(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    one, two = nodes
    start = [one.remember(f"Counter {n} stands at zero.") for n in range(4)]
    told: dict[str, list[str]] = {note: [] for note in start}
    fresh: list[str] = []
    errors: list[BaseException] = []

    def work(node: Node, seed: int) -> None:
        rng = random.Random(seed)
        try:
            for n in range(12):
                if rng.random() < 0.5:
                    fresh.append(node.remember(f"Fact {seed}-{n} is known."))
                    continue
                note = rng.choice(start)
                try:
                    change = UpdateRequest(content=f"Counter is at {seed}-{n}.")
                    told[note].append(node.engine.update(node.context, WHERE, note, change, if_match=None).id)
                except (ChainConflict, Conflict):
                    continue  # somebody else was first
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(node, seed)) for seed, node in enumerate((one, two, one, two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for node in (one, two):
        held = node.listed()
        assert set(fresh) <= held.keys()
        for note, versions in told.items():
            heads = [step for step in node.engine.history(node.context, WHERE, note) if step.head]
            assert len(heads) == 1
            assert {note, *versions} == {step.item.id for step in node.engine.history(node.context, WHERE, note)}
    assert rows_are_one_history(one.database, tmp_path) > len(fresh)


_WORKER = """
import json, random, sys
from pathlib import Path
from memoranda.context import Context
from memoranda.errors import MemorandaError
from memoranda.engines.contract import RememberRequest, UpdateRequest
from tests.engines.asking import asking
from tests.home.test_nodes import Node, WHERE
url, folder, seed = sys.argv[1:]
rng = random.Random(int(seed))
node = Node(url, Path(folder), Context(user="ana", agent="cleo"))
mine = []
OWN = asking(agent=f"worker-{seed}", writes="agent", reads=("agent",))
def say(*told):
    sys.stdout.write(json.dumps(told) + "\\n"); sys.stdout.flush()
say("ready")
n = 0
while True:
    n += 1
    way = rng.random()
    text = f"Worker {seed} wrote line {n}."
    try:
        if way < 0.6 or not mine:
            note = node.remember(text)
            mine.append(note); say("wrote", note, text)
        elif way < 0.7:
            for more in range(2):
                node.engine.remember(node.context, OWN, RememberRequest(content=f"{text} Part {more} is purged."))
            say("purges")
            done = node.engine.purge(node.context, OWN)
            assert done.removed >= 2
            say("purged", text)
        elif way < 0.88:
            note = rng.choice(mine); mine.remove(note)
            say("leaves", note)
            done = node.engine.update(node.context, WHERE, note, UpdateRequest(content=text), if_match=None).id
            mine.append(done); say("wrote", done, text)
        else:
            note = rng.choice(mine); mine.remove(note)
            say("leaves", note)
            node.engine.forget(node.context, WHERE, note, if_match=None)
            say("forgot", note)
    except MemorandaError as error:
        say("refused", repr(error))
"""


class Worker:
    """A node in a process of its own, and what it has acknowledged."""

    def __init__(self, url: str, folder: Path, seed: int) -> None:
        command = [sys.executable, "-c", _WORKER, url, str(folder), str(seed)]
        paths = os.pathsep.join(["src", ".", os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": paths}
        )
        self.written: dict[str, str] = {}
        self.gone: set[str] = set()
        self.purged: set[str] = set()  # words that nobody may hold any more
        self.open: set[str] = set()  # of which it is not known what became of them
        self.refused: list[str] = []
        self.count = 0
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            what, *told = json.loads(line)
            if what == "wrote":
                self.written[told[0]] = told[1]
                self.open.clear()
            elif what == "leaves":
                self.open = {told[0]}
                self.written.pop(told[0], None)
            elif what == "forgot":
                self.gone.add(told[0])
                self.open.clear()
            elif what == "purged":
                self.purged.add(told[0])
            elif what == "refused":
                self.refused.append(told[0])
            self.count += 1

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.thread.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_a_node_is_killed_at_any_moment_and_nothing_acknowledged_is_lost(
    postgres: Urls, tmp_path: Path, context: Context
) -> None:
    """One of two nodes is killed again and again; `MEMORANDA_TEST_KILLS` says how often."""
    rng = random.Random(42)
    workers = [Worker(postgres.service, tmp_path / f"node{n}", n) for n in (0, 1)]
    ended: list[Worker] = []
    try:
        for kill in range(KILLS):
            which = rng.randrange(2)
            before = workers[which].count
            limit = time.monotonic() + 60
            while workers[which].count < before + rng.randrange(2, 14) and time.monotonic() < limit:
                time.sleep(rng.random() * 0.05)
            workers[which].kill()
            ended.append(workers[which])
            workers[which] = Worker(postgres.service, tmp_path / f"node{which}", 10 + kill)
    finally:
        for worker in workers:
            worker.kill()
    ended += workers
    node = Node(postgres.service, tmp_path / "fresh", context)
    try:
        held = node.listed()
        acknowledged = {note: text for worker in ended for note, text in worker.written.items()}
        assert len(acknowledged) >= KILLS
        lost = {note: text for note, text in acknowledged.items() if held.get(note) != text}
        assert not lost, lost
        assert not {note for worker in ended for note in worker.gone} & held.keys()
        assert not [error for worker in ended for error in worker.refused], "nothing stood in anybody's way"
        rows_are_one_history(node.database, tmp_path)
        with connect(postgres.superuser) as connection:
            heads = connection.execute("SELECT path, blob, content FROM memoranda.memory_heads").fetchall()
        purged = {text.encode() for worker in ended for text in worker.purged}
        assert purged or KILLS < 50
        assert not [content for _, _, content in heads if any(text + b" Part" in content for text in purged)]
        assert all(object_id("blob", content) == blob.hex() for _, blob, content in heads)
        with node.homes.whole("acme", "web") as home:
            assert home is not None
            repository = home.repository
            files = {path: blob for path, blob in repository.store.files(repository.head() or "")}
            notes = {path.encode(): blob for path, blob in files.items() if repository.ours.is_note(path)}
        assert {path: blob.hex() for path, blob, _ in heads} == notes
        for seen in (tmp_path / "node0", tmp_path / "node1"):  # caches of nodes that were killed
            again = Node(postgres.service, seen, context)
            try:
                assert again.listed() == held
            finally:
                again.close()
    finally:
        node.close()
