"""The pool of Homes: each tenant's and project's apart, few open at once, nothing lost by letting go."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import RecallRequest, RememberRequest
from memoranda.engines.homes import Homes
from memoranda.home.layout import is_home
from tests.conftest import Clock
from tests.engines.asking import asking


def _put(homes: Homes, context: Context, text: str, **where: str) -> str:
    asked = asking(writes="user", **where)  # type: ignore[arg-type]
    return Builtin(homes).remember(context, asked, RememberRequest(content=text)).id


@pytest.fixture
def small(tmp_path: Path, context: Context) -> Iterator[Homes]:
    """A pool in which two Homes stay open."""
    with Homes(tmp_path / "data", context, most=2, idle=timedelta(minutes=5)) as pool:
        yield pool


NAMES = ["..", ".", "../../etc", "a/b", "/etc/passwd", "a\x00b", "é" * 40, "CON", "", "x" * 300, "A", "a", "\ud800"]


@pytest.mark.parametrize("homes", ["disk"], indirect=True)
def test_no_name_climbs_out_and_no_two_meet(homes: Homes) -> None:
    roots = [homes.root_of(tenant, project) for tenant in NAMES for project in (None, *NAMES)]
    assert len({str(root).casefold() for root in roots}) == len(roots)
    for root in roots:
        assert root.resolve().is_relative_to(homes.folder.resolve() / "homes")
        assert ".." not in root.parts and all(len(part) < 64 for part in root.relative_to(homes.folder).parts)
    for tenant in NAMES:
        folder = homes.keys_of(tenant).folder
        assert folder.parent == homes.folder / "keys"
        assert not any(root.is_relative_to(folder) or folder.is_relative_to(root) for root in roots)


@pytest.mark.parametrize("homes", ["disk"], indirect=True)
def test_each_tenant_has_keys_of_its_own_outside_every_home(homes: Homes, context: Context) -> None:
    for tenant in ("acme", "evil"):
        _put(homes, context, "The word is elm.", tenant=tenant)
    folders = [homes.keys_of(tenant).folder for tenant in ("acme", "evil")]
    secrets = [{path.read_bytes() for path in folder.rglob("*.key")} for folder in folders]
    assert secrets[0] and secrets[1] and not secrets[0] & secrets[1]
    for path in (homes.folder / "homes").rglob("*"):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            assert not any(key in data for keys in secrets for key in keys)


def test_few_stay_open_and_nothing_is_lost(small: Homes, context: Context) -> None:
    kept = {f"p{n}": _put(small, context, f"The word is {n}.", project=f"p{n}") for n in range(6)}
    _wait(lambda: len(small) <= 2)
    engine = Builtin(small)
    for project, item_id in kept.items():
        assert engine.get(context, asking(project=project), item_id).id == item_id
    _wait(lambda: len(small) <= 2)


def test_what_nobody_uses_is_let_go_of(homes: Homes, context: Context, clock: Clock) -> None:
    _put(homes, context, "The word is elm.")
    assert len(homes) == 1
    homes.tidy()
    assert len(homes) == 1
    clock.tick(minutes=11)
    assert homes.tidy() == 1
    assert len(homes) == 0


def test_what_somebody_uses_is_not(small: Homes, context: Context, clock: Clock) -> None:
    _put(small, context, "The word is elm.")
    with small.whole("acme", "web") as home:
        assert home is not None
        clock.tick(minutes=11)
        for n in range(3):
            _put(small, context, "x", project=f"p{n}")
        small.tidy()
        home.refresh(context)  # it is still open
        with home.indexes.lock:
            assert home.indexes.catalog.count_notes() == 1


def test_what_was_let_go_of_twice_and_opened_between_is_still_known(small: Homes, context: Context) -> None:
    """A request and the pool's own thread may both choose one Home before either has closed it."""
    _put(small, context, "The word is elm.")
    (chosen,) = small._entries.values()
    assert small._let_go(chosen)
    _put(small, context, "The word is oak.")
    assert not small._let_go(chosen)
    assert len(small) == 1


def test_it_holds_on_to_no_file_and_no_thread(tmp_path: Path, context: Context) -> None:
    def held() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc here")
    with Homes(tmp_path / "data", context, most=4) as pool:
        _put(pool, context, "warm", project="warm")  # whatever is imported or opened once
    before, threads = held(), threading.active_count()
    with Homes(tmp_path / "data", context, most=4) as pool:
        for n in range(12):
            _put(pool, context, f"The word is {n}.", project=f"p{n % 6}")
            Builtin(pool).recall(context, asking(project=f"p{n % 6}"), RecallRequest(query="word"))
    _wait(lambda: threading.active_count() <= threads)
    assert held() <= before


def test_closing_commits_what_was_written(tmp_path: Path, context: Context) -> None:
    import subprocess

    with Homes(tmp_path / "data", context) as pool:
        _put(pool, context, "The word is elm.")
        root = pool.root_of("acme", "web")
    said = subprocess.run(["git", "log", "--oneline"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert "Remember: The word is elm" in said
    status = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    assert status.stdout == ""


def test_many_threads_share_few_homes(small: Homes, context: Context) -> None:
    """Homes are opened and let go of under their feet, and each finds what it wrote."""
    engine = Builtin(small)

    def work(n: int) -> None:
        where = asking(f"user{n % 3}", project=f"p{n % 4}", writes="user")
        item = engine.remember(context, where, RememberRequest(content=f"elm {n}"))
        assert engine.get(context, where, item.id).content == f"elm {n}"
        found = engine.recall(context, where, RecallRequest(query="elm", top_k=50))
        assert item.id in {other.id for other in found.items}
        assert {other.owner for other in found.items} == {f"user{n % 3}"}
        small.tidy()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(32)))


@pytest.mark.parametrize("homes", ["disk"], indirect=True)
def test_a_home_is_made_once_by_whoever_comes_first(homes: Homes, context: Context) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda n: _put(homes, context, f"elm {n}"), range(6)))
    assert len(set(made)) == 6
    listed = Builtin(homes).list(context, asking(), scope="user", limit=9, after=None).items
    assert {item.id for item in listed} == set(made)
    assert is_home(homes.root_of("acme", "web"))


def _wait(so: object) -> None:
    """Until a background thread has done it; a minute is more than it ever takes."""
    until = time.monotonic() + 60
    while not so():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.02)
