"""`kill -9` at a random moment and at every single step: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

from home.steps import WRITE, Ending, watched
from home.tools import assert_sound, fresh_home, git, note, opened, rows, texts
from memoranda.context import Context
from memoranda.home import background, log
from memoranda.home.keys import Keys
from memoranda.notes.ids import blob_id
from memoranda.operations import journaling
from memoranda.operations.remembering import update
from memoranda.operations.space import Space

ROOT = Path(__file__).parents[2]


@pytest.mark.requirement("A-020", "A-041")
def test_two_hundred_kills_at_random_moments_lose_nothing() -> None:
    """What each of them checks is told in bench/crash.py, which does it 5,000 times."""
    words = [sys.executable, "-m", "bench.crash", "--kills", "200", "--seed", "5", "--json"]
    paths = os.pathsep.join(sys.path)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["faults"] == []
    assert told["kills"] == 200
    assert sum(told["acknowledged"].values()) > 50


# Every step


class Acknowledged:
    """What a writer was promised, told through a pipe before anything else happens."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def file(self, root: Path, path: str) -> None:
        self._tell("file", path, blob_id((root / path).read_bytes()))

    def entry(self, path: str, entry: str) -> None:
        self._tell("entry", path, entry)

    def _tell(self, *words: str) -> None:
        WRITE(self._descriptor, json.dumps(words).encode() + b"\n")


def story(space: Space, context: Context, root: Path, told: Acknowledged) -> None:
    """A bit of everything: notes, a chain, the journal, an edit by hand, commits, Git's index, a rotated log."""
    repository = space.one().repository
    first = note(context, space, "first. — the end.")
    told.file(root, first.path)
    told.file(root, update(context, space, first.id, "second. — the end.").path)
    entry = journaling.append(context, space, journaling.Turn("said. — the end.", "dana"))
    told.entry(entry.path, entry.id)
    edit(root, "one")
    texts(context, space)
    told.file(root, MINE)
    assert repository.flush() is None
    told.file(root, note(context, space, "third. — the end.").path)
    edit(root, "two")
    texts(context, space)
    told.file(root, MINE)
    assert repository.flush() is None
    assert repository.tidy()
    assert repository._log.segment > 1, "the log was rotated"
    told.file(root, note(context, space, "behind the rotation. — the end.").path)


MINE = "memory/notes/mine.md"


def edit(root: Path, text: str) -> None:
    (root / MINE).parent.mkdir(exist_ok=True)
    fresh = root.parent / "fresh"
    fresh.write_text(f"# Mine\n\n{text}. — the end.\n")
    fresh.replace(root / MINE)


@dataclass
class Run:
    """How a run ended: its exit code (9: at the step), what was promised, its steps, and what went wrong."""

    code: int
    files: dict[str, str]
    entries: dict[str, str]
    steps: list[str]
    failed: str


def play(root: Path, keys: Path, ending: Ending) -> Run:
    """Plays the story in a process of its own that ends at a step."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            log.ROTATE_AT = 1000
            background._SOON = background._QUIET = 1000.0  # what the thread does, the story does at its own time
            context = Context(user="dana", agent="cleo")
            with watched(ending), Space(context, Keys(keys), root, None) as space:
                story(space, context, root, Acknowledged(writing))
            WRITE(writing, json.dumps(["steps", *ending.names]).encode() + b"\n")
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent
            WRITE(writing, json.dumps(["error", traceback.format_exc()]).encode() + b"\n")
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = [json.loads(line) for line in pipe.read().splitlines()]
    _, status = os.waitpid(child, 0)
    run = Run(os.waitstatus_to_exitcode(status), {}, {}, [], "")
    for what, *words in lines:
        if what == "file":
            run.files[words[0]] = words[1]
        elif what == "entry":
            run.entries[words[1]] = words[0]
        elif what == "steps":
            run.steps = words
        else:
            run.failed = words[0]
    return run


def check(root: Path, keys: Path, run: Run, *, rebuild: bool) -> None:
    context = Context(user="dana", agent="cleo")
    with Space(context, Keys(keys), root, None) as space:
        listed = texts(context, space)
        caught_up = rows(space)
        if rebuild:
            space.one().indexes.drop()
            texts(context, space)
            assert rows(space) == caught_up
        note(context, space, "and on it goes. — the end.")
    committed = {row.split("\t")[1]: row.split()[2] for row in tree(root)}
    for path, blob in run.files.items():
        if path == MINE:
            assert (root / path).read_text().endswith(". — the end.\n")
        else:
            assert blob_id((root / path).read_bytes()) == blob
            assert committed[path] == blob
    for entry, path in run.entries.items():
        assert f"^{entry}\n" in (root / path).read_text()
    heads = {path for path in run.files if "second" in path or "third" in path or "behind" in path}
    assert heads <= set(listed)
    for file in root.rglob("*.md"):
        assert file.read_text().rstrip().endswith("— the end."), file
    assert_sound(root)


def tree(root: Path) -> list[str]:
    return [row for row in git(root, "ls-tree", "-r", "-z", "HEAD").split("\0") if row]


def test_a_writer_may_die_at_every_single_step(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    template = fresh_home(tmp_path / "template", Keys(keys))
    whole = play(fresh_home(tmp_path / "whole", Keys(keys)), keys, Ending(0))
    assert whole.code == 0, whole.failed
    assert len(whole.steps) > 60
    assert {"open", "pwrite", "write", "mkdir", "link", "replace", "unlink", "git"} <= set(whole.steps)
    cases = [(at, False) for at in range(1, len(whole.steps) + 1)]
    cases += [(at, True) for at, name in enumerate(whole.steps, 1) if name in ("write", "pwrite")]
    for at, half in cases:
        root = tmp_path / f"{at}{'half' * half}"
        shutil.copytree(template, root)
        run = play(root, keys, Ending(at, half=half))
        assert run.code in (0, 9), run.failed
        try:
            check(root, keys, run, rebuild=at % 6 == 0)
        except AssertionError as error:
            raise AssertionError(f"ended at step {at} ({whole.steps[at - 1]}, half: {half}) in {root}") from error
        shutil.rmtree(root)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a number tells nothing of who is dead")
def test_what_a_dead_writer_left_goes_although_nobody_asked_for_its_end(base: Path, live: Context) -> None:
    """A killed process has its number until its parent asks for its end, and some parents never do."""
    writer = os.fork()
    if writer == 0:
        signal.pause()
        os._exit(0)
    folder = base / ".git" / "objects" / "pack"
    with opened(base, live) as space:
        store = space.one().repository.store
        left = [folder / f"tmp_memoranda_{writer}_0123456789ab", folder / f"pack-{'1' * 40}.keep"]
        left[0].write_bytes(b"half a pack")
        left[1].write_text(f"memoranda {writer}\n")
        try:
            store.sweep()
            assert all(path.exists() for path in left), "its writer is at work"
            os.kill(writer, signal.SIGKILL)
            os.waitid(os.P_PID, writer, os.WEXITED | os.WNOWAIT)  # it is dead, and still has its number
            os.kill(writer, 0)
            assert store.leftovers()
            store.sweep()
            assert not any(path.exists() for path in left)
        finally:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
