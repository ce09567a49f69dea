"""The server of the Homes slow, standing still, full, at its limit, cut off: whatever is under way tells it in time.

Nothing is written by halves, nothing that was acknowledged is lost, and everything goes on by itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from home.test_nodes import WHERE, Node, rows_are_one_history
from memoranda.context import Context
from memoranda.engines.contract import UpdateRequest
from memoranda.errors import ComponentUnavailable, HomeBusy, MemorandaError
from memoranda.home.postgres import repository, store
from memoranda.state import postgres as driver
from tests.postgres import SERVICE, Server, Urls, connect, fresh, own_server

pytestmark = pytest.mark.postgres
NAMED = ("memory_component_unavailable", "memory_engine_unavailable")
LATEST = 30.0  # seconds until somebody is told, on a busy machine
Act = Callable[[Node, str, str], object]
WRITES: dict[str, Act] = {
    "remember": lambda node, _one, _other: node.remember("The crane is blue."),
    "update": lambda node, one, _: node.engine.update(
        node.context, WHERE, one, UpdateRequest(content="The mill is closed."), if_match=None
    ),
    "forget": lambda node, _, other: node.engine.forget(node.context, WHERE, other, if_match=None),
}
READS: dict[str, Act] = {
    "recall": lambda node, _one, _other: node.texts("mill"),
    "get": lambda node, one, _: node.engine.get(node.context, WHERE, one),
    "list": lambda node, _one, _other: node.listed(),
    "export": lambda node, _one, _other: node.engine.export(node.context, WHERE, (), "zip").data,
}
ACTS = WRITES | READS


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as server:
        yield server


@pytest.fixture
def urls(server: Server) -> Urls:
    return fresh(server.url)


@pytest.fixture
def node(urls: Urls, tmp_path: Path, context: Context, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    monkeypatch.setattr(driver, "_PATIENCE", 1.0)
    monkeypatch.setattr(driver, "_CONNECT", 2)  # seconds
    made = Node(urls.service, tmp_path / "node", context)
    yield made
    made.close()


@pytest.fixture
def two(node: Node) -> tuple[str, str]:
    return node.remember("The mill stands by the river."), node.remember("The ferry leaves at six.")


def told(node: Node, two: tuple[str, str], acts: dict[str, Act] = ACTS) -> dict[str, BaseException | None]:
    """What each of these is told when all of them are asked for at the same moment."""
    answers: dict[str, BaseException | None] = {}

    def ask(name: str) -> None:
        try:
            acts[name](node, *two)
            answers[name] = None
        except BaseException as error:  # noqa: BLE001 - looked at by who asked
            answers[name] = error

    threads = [threading.Thread(target=ask, args=(name,)) for name in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LATEST)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    return answers


def all_refused(answers: dict[str, BaseException | None]) -> None:
    codes = {name: getattr(error, "code", repr(error)) for name, error in answers.items()}
    assert all(code in NAMED for code in codes.values()), codes


def all_goes_on(node: Node, two: tuple[str, str], tmp_path: Path) -> None:
    """What is written now is written once, and the rows are one history."""
    assert told(node, two, READS) == dict.fromkeys(READS)
    assert told(node, two, WRITES) == dict.fromkeys(WRITES)
    assert sorted(node.listed().values()) == ["The crane is blue.", "The mill is closed."]
    rows_are_one_history(node.database, tmp_path)


def test_at_its_connection_limit(node: Node, two: tuple[str, str], urls: Urls, tmp_path: Path) -> None:
    before = node.listed()
    with connect(urls.superuser) as other:
        other.execute(f"ALTER ROLE {SERVICE} CONNECTION LIMIT 0")
        cut(other)
        try:
            all_refused(told(node, two))
        finally:
            other.execute(f"ALTER ROLE {SERVICE} CONNECTION LIMIT -1")
    assert node.listed() == before
    all_goes_on(node, two, tmp_path)


def cut(other: object) -> None:
    query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename = %s"
    other.execute(query, (SERVICE,))  # type: ignore[attr-defined]


@contextmanager
def still(server: Server) -> Iterator[None]:
    """The server does nothing: it takes no connection, and answers on none."""
    parents = {int(path.name): path for path in Path("/proc").iterdir() if path.name.isdigit()}
    stopped = [server.pid]
    for number, path in parents.items():
        try:
            if int((path / "stat").read_bytes().rpartition(b")")[2].split()[1]) == server.pid:
                stopped.append(number)
        except OSError:
            continue  # it ended meanwhile
    for number in stopped:
        os.kill(number, signal.SIGSTOP)
    try:
        yield
    finally:
        for number in stopped:
            os.kill(number, signal.SIGCONT)


def test_standing_still(node: Node, two: tuple[str, str], server: Server, tmp_path: Path) -> None:
    before = node.listed()
    with still(server):
        all_refused(told(node, two))
    assert node.listed() == before
    all_goes_on(node, two, tmp_path)


def test_standing_still_in_the_middle_of_a_write(
    node: Node, two: tuple[str, str], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = node.listed()
    real = repository.keep_heads
    with still_at(server) as stop:
        monkeypatch.setattr(repository, "keep_heads", lambda *given: (real(*given), stop())[0])
        all_refused(told(node, two, {"remember": ACTS["remember"]}))
        monkeypatch.setattr(repository, "keep_heads", real)
    assert node.listed() == before
    all_goes_on(node, two, tmp_path)


@contextmanager
def still_at(server: Server) -> Iterator[Callable[[], None]]:
    """As `still`, from the moment on in which what is given is called."""
    held = still(server)
    begun: list[bool] = []

    def stop() -> None:
        if not begun:
            begun.append(True)
            held.__enter__()

    try:
        yield stop
    finally:
        assert begun
        held.__exit__(None, None, None)


def test_standing_still_while_it_commits_it_may_have_been_written(
    node: Node, two: tuple[str, str], server: Server, urls: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has the word to commit, and does so when it goes on: nobody may say that nothing was changed."""
    real = driver._run
    with still_at(server) as stop:

        def run(connection: object, said: str) -> None:
            if said.startswith("COMMIT") and threading.current_thread() is not threading.main_thread():
                stop()
            real(connection, said)  # type: ignore[arg-type]

        monkeypatch.setattr(driver, "_run", run)
        (error,) = told(node, two, {"remember": ACTS["remember"]}).values()
        monkeypatch.setattr(driver, "_run", real)
    assert isinstance(error, ComponentUnavailable) and "not known" in error.what, error
    until_nobody_holds_it(urls)
    assert list(node.listed().values()).count("The crane is blue.") == 1
    rows_are_one_history(node.database, tmp_path)


def until_nobody_holds_it(urls: Urls) -> None:
    """Return when whatever wrote to the Home has ended: a server that goes on commits after its word, not with it."""
    with connect(urls.superuser) as other, other.transaction():
        other.execute("SELECT FROM memoranda.memory_homes FOR UPDATE")


def test_while_only_the_backend_of_a_commit_stands_still(
    node: Node, two: tuple[str, str], urls: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others can be asked, and do not have it yet: that proves nothing, as long as it holds the Home."""
    real, stopped = driver._run, list[int]()
    monkeypatch.setattr(store, "_HOLD", store._HOLD.replace("10s", "300ms"))

    def run(connection: object, said: str) -> None:
        if said.startswith("COMMIT") and not stopped and threading.current_thread() is not threading.main_thread():
            stopped.append(connection.connection.driver_connection.info.backend_pid)  # type: ignore[attr-defined]
            os.kill(stopped[0], signal.SIGSTOP)
        real(connection, said)  # type: ignore[arg-type]

    monkeypatch.setattr(driver, "_run", run)
    try:
        (error,) = told(node, two, {"remember": ACTS["remember"]}).values()
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    assert isinstance(error, ComponentUnavailable) and "not known" in error.what, error
    until_nobody_holds_it(urls)
    assert list(node.listed().values()).count("The crane is blue.") == 1


def test_slow_because_somebody_holds_the_home(
    node: Node, two: tuple[str, str], urls: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = node.listed()
    monkeypatch.setattr(store, "_HOLD", store._HOLD.replace("10s", "300ms"))
    with connect(urls.superuser) as other, other.transaction():
        other.execute("SELECT FROM memoranda.memory_homes FOR UPDATE")
        answers = told(node, two)
    assert {name for name, error in answers.items() if error is None} == READS.keys(), answers
    assert all(isinstance(answers[name], HomeBusy) for name in WRITES), answers
    assert node.listed() == before
    all_goes_on(node, two, tmp_path)


def test_full(node: Node, two: tuple[str, str], urls: Urls, server: Server, tmp_path: Path) -> None:
    """Its files may not grow beyond a limit, as on a disk that is full."""
    limit = 17 << 20
    with connect(urls.superuser) as other:  # of somebody else: the table of heads is nearly as large as it may become
        fill = (
            "INSERT INTO memoranda.memory_heads (tenant, home, path, blob, content)"
            " SELECT 'filler', 1, convert_to('n' || n, 'UTF8'), '\\x00', decode(string_agg(md5(random()::text), ''),"
            " 'hex') FROM generate_series(1, %s) n, generate_series(1, 6000) m GROUP BY n"
        )
        other.execute("ALTER TABLE memoranda.memory_heads ALTER COLUMN content SET STORAGE EXTERNAL")
        other.execute(
            "INSERT INTO memoranda.memory_homes (tenant, home, place, id, name, marker, replica, seq, generation,"
            " state) VALUES ('filler', 1, 'tenant', 'h', 'h', '', 'r', 0, 0, 'ready')"
        )
        other.execute(fill, (165,))
        other.execute("CHECKPOINT")
    server.stop()
    server.start(largest_file=limit)
    kept, n = node.listed(), 0
    with pytest.raises(MemorandaError) as refusal:
        for n in range(400):
            text = f"Line {n}: {os.urandom(12000).hex()}"
            kept[node.remember(text)] = text
    assert refusal.value.code in NAMED and 0 < n < 399, n
    for ask in ("update", "remember", "forget"):
        try:
            ACTS[ask](node, *two)
        except MemorandaError as error:  # a small one may still find room
            assert error.code in NAMED
        else:
            break
    full = node.listed()
    assert {note: full.get(note) for note in kept if note not in two} == {
        note: text for note, text in kept.items() if note not in two
    }
    assert told(node, two, {name: READS[name] for name in ("recall", "list", "export")})["recall"] is None
    rows_are_one_history(node.database, tmp_path)
    server.stop()
    server.start()
    assert node.remember("There is room again.") in node.listed()
    rows_are_one_history(node.database, tmp_path / "again")


def test_failing_over_while_all_kinds_of_work_are_under_way(
    node: Node, two: tuple[str, str], urls: Urls, tmp_path: Path
) -> None:
    """Connections are cut again and again under everybody."""
    kept: dict[str, str] = {}
    unsure: set[str] = set()
    gone: set[str] = set()
    others: list[BaseException] = []
    stop = threading.Event()

    def writes(seed: int) -> None:
        mine: list[str] = []
        n = 0
        while not stop.is_set():
            n += 1
            text = f"Writer {seed} says line {n}."
            target = mine.pop(0) if len(mine) > 2 else None
            try:
                if target is None:
                    mine.append(node.remember(text))
                elif n % 2:
                    unsure.add(target)
                    change = UpdateRequest(content=text)
                    mine.append(node.engine.update(node.context, WHERE, target, change, if_match=None).id)
                    kept.pop(target)
                else:
                    unsure.add(target)
                    node.engine.forget(node.context, WHERE, target, if_match=None)
                    kept.pop(target)
                    gone.add(target)
                    continue
                kept[mine[-1]] = text
            except MemorandaError as error:
                if error.code not in NAMED:
                    others.append(error)
            except BaseException as error:  # noqa: BLE001 - told below
                others.append(error)

    def reads(name: str) -> None:
        while not stop.is_set():
            try:
                READS[name](node, *two)
            except MemorandaError as error:
                if error.code not in NAMED:
                    others.append(error)
            except BaseException as error:  # noqa: BLE001 - told below
                others.append(error)

    threads = [threading.Thread(target=writes, args=(seed,)) for seed in range(3)]
    threads += [threading.Thread(target=reads, args=(name,)) for name in READS]
    for thread in threads:
        thread.start()
    with connect(urls.superuser) as connection:
        for _ in range(10):
            before = len(kept) + len(gone)
            for _ in range(400):
                if len(kept) + len(gone) > before + 1 or others:
                    break
                stop.wait(0.02)
            cut(connection)
    stop.set()
    for thread in threads:
        thread.join(LATEST)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
    assert not others, others
    held = node.listed()
    sure = {note: text for note, text in kept.items() if note not in unsure}
    assert {note: held.get(note) for note in sure} == sure
    assert not gone & held.keys()
    rows_are_one_history(node.database, tmp_path)
