"""Who writes without a pause has a process commit for all: it loses nothing, and it ends with who started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from home.tools import assert_sound, git, note, opened, texts
from memoranda.context import Context
from memoranda.home import background, commit_process
from memoranda.home.commit_process import CommitProcess
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations.space import Space

_WRITES = """
import sys
from pathlib import Path
from home.tools import note, opened
from memoranda.context import Context
from memoranda.home import background
background._BURST = 3
context = Context(user="dana", agent="cleo")
with opened(Path(sys.argv[1]), context) as space:
    for n in range(10_000_000):
        print(note(context, space, f"{n}").path, flush=True)
"""


def _until(true: Callable[[], object]) -> None:
    """Waits for something that comes about by itself; a test that hangs here has failed."""
    ends = time.monotonic() + 60
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.01)


def _process(space: Space) -> CommitProcess:
    return space.one().repository._background._process


def _alive(space: Space) -> int | None:
    """The process that this one has started, while it lives."""
    process = _process(space)._process
    return process.pid if process is not None and process.poll() is None else None


def _burst(live: Context, space: Space) -> list[str]:
    """Writes until a process commits; the paths of the notes."""
    done: list[str] = []
    ends = time.monotonic() + 60
    while _alive(space) is None:
        assert time.monotonic() < ends
        done.append(note(live, space, f"note {len(done)}").path)
    return done


@pytest.fixture
def bursting(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_BURST", 3)


def test_a_few_notes_start_no_process(base: Path, live: Context) -> None:
    with opened(base, live) as space:
        for n in range(3):
            note(live, space, f"note {n}")
        _until(lambda: not space.one().repository.snapshot().tail)
        assert _alive(space) is None


def test_a_burst_is_committed_by_a_process_that_ends_with_the_home(base: Path, live: Context, bursting: None) -> None:
    with opened(base, live) as space:
        done = _burst(live, space)
        pid = _alive(space)
        assert pid is not None
        done += [note(live, space, f"more {n}").path for n in range(100)]
        _until(lambda: not space.one().repository.snapshot().tail)
        assert space.one().repository._background.trouble is None
        assert set(done) <= set(texts(live, space))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert set(done) <= set(git(base, "ls-tree", "-r", "--name-only", "HEAD").split("\n"))
    assert git(base, "rev-list", "--count", "HEAD", "--", "memory/notes").strip() == str(len(done) + 4)
    assert_sound(base)


def test_two_homes_that_burst_share_one_process(base: Path, live: Context, bursting: None) -> None:
    with opened(base, live) as one, opened(base, live) as two:
        _burst(live, one)
        for n in range(60):
            note(live, two, f"of the other {n}")
        _until(lambda: not two.one().repository.snapshot().tail)
        assert _alive(two) is None
        assert _process(two).at_work() or _alive(one) is None
    assert_sound(base)


def test_of_many_homes_that_burst_few_start_a_process(
    tmp_path: Path, live: Context, bursting: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest commits by its threads, and takes a turn when one is free."""
    monkeypatch.setattr(commit_process, "_turns", threading.BoundedSemaphore(1))
    roots = [tmp_path / name for name in ("one", "two")]
    for root in roots:
        finish(create(root, live).root, live, Keys(tmp_path / "keys"))
    first, second = (Space(live, Keys(tmp_path / "keys"), root, None) for root in roots)
    with second:
        with first:
            _burst(live, first)
            for n in range(30):
                note(live, second, f"note {n}")
            _until(lambda: not second.one().repository.snapshot().tail)
            assert _alive(first) is None or _alive(second) is None
        _burst(live, second)  # the first one's turn is over
    for root in roots:
        assert_sound(root)


def test_killed_or_stopped_it_is_missed_by_nobody(base: Path, live: Context, bursting: None) -> None:
    for harm in (signal.SIGKILL, signal.SIGSTOP):
        with opened(base, live) as space:
            done = _burst(live, space)
            pid = _alive(space)
            assert pid is not None
            os.kill(pid, harm)
            done += [note(live, space, f"more {n}").path for n in range(20)]
            if harm == signal.SIGKILL:
                _until(lambda: not space.one().repository.snapshot().tail)
            else:
                os.kill(pid, signal.SIGCONT)
        assert set(done) <= set(git(base, "ls-tree", "-r", "--name-only", "HEAD").split("\n"))
        assert_sound(base)


def test_it_ends_when_the_process_that_started_it_is_killed(base: Path, live: Context) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITES, str(base)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert writer.stdout is not None
    done = []
    while not (children := _committing(writer.pid)):
        done.append(writer.stdout.readline().strip())
    writer.kill()
    done += [line.strip() for line in writer.stdout.read().splitlines() if line.endswith(".md")]
    writer.wait()
    writer.stdout.close()
    _until(lambda: not any(map(_runs, children)))
    with opened(base, live) as space:
        assert set(done) <= set(texts(live, space))
    assert_sound(base)


def _committing(parent: int) -> list[int]:
    """The processes that commit for `parent`."""
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in found.splitlines() if "commit_process" in line]


def _runs(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return found != "" and not found.startswith("Z")
