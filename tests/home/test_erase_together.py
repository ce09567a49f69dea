"""Erasing while others work in the same Home: writers and readers in other processes, threads, a person's Git."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from home.erasing import blanks_of, places
from home.tools import assert_sound, git, note, texts
from memoranda.context import Context
from memoranda.errors import HomeBusy
from memoranda.home.erasing.erase import Eraser
from memoranda.home.keys import Keys
from memoranda.operations import reading
from memoranda.operations.space import Space

TEXT = "Kowalskoff moved to the zebrafisch team.\n\nHer codeword is Plimsolquark."
RARE = ["kowalskoff", "zebrafisch", "plimsolquark"]

WRITER = """
import sys, time
from pathlib import Path
from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.operations.journaling import Turn, append
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
root, keys, name = sys.argv[1:4]
context = Context(user="dana", agent=name)
with Space(context, Keys(Path(keys)), Path(root), None) as space:
    n = 0
    print("ready", flush=True)
    while not Path(root).with_name("stop").exists():
        n += 1
        print(remember(context, space, NewNote(f"{name} wrote number {n}.")).uri, flush=True)
        print(append(context, space, Turn(f"{name} said number {n}.", speaker="dana")).uri, flush=True)
        recall(context, space, "number codeword")
        time.sleep(0.01)
    for item in recall(context, space, "codeword plimsolquark zebrafisch").items:
        if "lims" in str(item.json()):
            print("LEAK", item.json(), flush=True)
print("done", flush=True)
"""


def start(root: Path, keys: Keys, name: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join(sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(keys.folder), name],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip


def written(home: Path) -> int:
    return sum(1 for _ in (home / "memory" / "notes").rglob("*.md"))


def test_writers_and_readers_in_other_processes_go_on(space: Space, context: Context, keys: Keys, home: Path) -> None:
    secrets = [note(context, space, TEXT.replace("team", f"team {n}")) for n in range(3)]
    kept = note(context, space, "Acme renewed for 24 months.")
    others = [start(home, keys, name) for name in ("berta", "carl")]
    try:
        for other in others:
            assert other.stdout is not None and other.stdout.readline() == "ready\n"
        for secret in secrets:
            before = written(home)
            until(lambda before=before: written(home) > before + 2)  # type: ignore[misc]
            done = space.one().repository.erase(context, blanks_of(space, context, secret.id), "asked for")
            assert done.id
    finally:
        home.with_name("stop").touch()
        told = [other.communicate(timeout=60) for other in others]
    said = []
    for out, complaint in told:
        assert complaint == ""
        lines = out.splitlines()
        assert lines[-1] == "done" and "LEAK" not in out
        said += lines[:-1]
    assert len(said) > 6
    for uri in said:
        assert "number" in reading.read(context, space, uri).text
    assert reading.read(context, space, kept.uri).text.endswith("24 months.")
    space.close()
    assert places(home, RARE) == []
    assert_sound(home)


def until(holds: Callable[[], bool]) -> None:
    """Waits for it, however slow the machine is; what never comes is the test's own time-out."""
    while not holds():
        time.sleep(0.01)


def test_threads_of_one_process_go_on(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    stop, uris, trouble = threading.Event(), list[str](), list[BaseException]()

    def write() -> None:
        n = 0
        try:
            while not stop.is_set():
                n += 1
                uris.append(note(context, space, f"Number {n}.").uri)
                reading.read(context, space, uris[-1])
        except BaseException as error:  # noqa: BLE001 - told below
            trouble.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        until(lambda: bool(trouble) or len(uris) > 2)
        space.one().repository.erase(context, blanks_of(space, context, secret.id), "asked for")
        before = len(uris)
        until(lambda: bool(trouble) or len(uris) > before + 2)
    finally:
        stop.set()
        thread.join()
    assert trouble == []
    assert len(uris) > before + 2
    assert all("Number" in reading.read(context, space, uri).text for uri in uris)
    space.close()
    assert places(home, RARE) == []
    assert_sound(home)


def eraser(space: Space, step: object) -> Eraser:
    repository = space.one().repository
    return Eraser(repository._pieces(), repository._repair, step)  # type: ignore[arg-type]


def test_what_a_person_s_git_brings_in_between_is_written_again_too(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    blanks = blanks_of(space, context, secret.id)
    space.one().repository.flush()
    old = git(home, "rev-parse", "HEAD").strip()
    tree = git(home, "rev-parse", "HEAD^{tree}").strip()
    came = []

    def step(name: str) -> None:
        if name == "cache" and not came:
            came.append(git(home, "commit-tree", "-m", "Meanwhile", "-p", old, tree).strip())
            git(home, "update-ref", "refs/heads/meanwhile", came[0])

    done = eraser(space, step).erase(context, blanks, "asked for")
    assert came and done.found == ()
    assert places(home, RARE) == []
    assert git(home, "log", "-1", "--format=%s", "meanwhile").strip() == "Meanwhile"
    assert git(home, "rev-parse", "meanwhile^") == git(home, "rev-parse", "main")
    assert space.one().repository.at("memory/home.yaml", came[0]) == (home / "memory/home.yaml").read_bytes()
    space.close()
    assert_sound(home)


def test_what_somebody_s_git_goes_on_needing_is_told(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    blanks = blanks_of(space, context, secret.id)
    space.one().repository.flush()
    old = git(home, "rev-parse", "HEAD").strip()
    tree = git(home, "rev-parse", "HEAD^{tree}").strip()
    came = 0

    def step(name: str) -> None:
        nonlocal came
        if name == "cache":
            came += 1
            commit = git(home, "commit-tree", "-m", f"Meanwhile {came}", "-p", old, tree).strip()
            git(home, "update-ref", "refs/heads/meanwhile", commit)

    done = eraser(space, step).erase(context, blanks, "asked for")
    assert came > 1 and any(place.startswith("blob") for place in done.found)
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""
    git(home, "branch", "-q", "-D", "meanwhile")
    (home / ".git/logs/refs/heads/meanwhile").unlink(missing_ok=True)
    assert space.one().repository.erase(context, blanks, "asked again").found == ()
    assert places(home, RARE) == []


def test_a_person_s_git_is_held_off(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    blanks = blanks_of(space, context, secret.id)
    refused = []

    def step(name: str) -> None:
        if name in ("decide", "refs", "index", "purging"):
            git(home, "commit", "--allow-empty", "-q", "-m", "x", accept=(128,))
            git(home, "stash", accept=(0, 1, 128))
            refused.append(name)

    done = eraser(space, step).erase(context, blanks, "asked for")
    assert len(refused) == 4 and done.found == ()
    git(home, "commit", "--allow-empty", "-q", "-m", "Afterwards")
    assert len(texts(context, space)) == 0
    space.close()
    assert_sound(home)


def test_a_process_that_was_open_finishes_what_another_left(
    space: Space, context: Context, keys: Keys, home: Path
) -> None:
    """The one that erases is killed half way; the one that lives on does not write before it is finished."""
    secret = note(context, space, TEXT)
    kept = note(context, space, "Acme renewed for 24 months.")
    space.one().repository.flush()
    assert len(texts(context, space)) == 2
    child = os.fork()
    if child == 0:
        try:
            with Space(context, keys, home, None) as other:

                def step(name: str) -> None:
                    if name == "files":
                        os._exit(9)

                eraser(other, step).erase(context, blanks_of(other, context, secret.id), "asked for")
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (home / ".git/memoranda/erasing/plan.json").exists()
    note(context, space, "Written afterwards.")
    assert not (home / ".git/memoranda/erasing").exists()
    assert sorted(texts(context, space).values()) == ["Acme renewed for 24 months.", "Written afterwards."]
    assert reading.read(context, space, kept.uri).text.endswith("24 months.")
    assert places(home, RARE) == []
    space.close()
    assert_sound(home)


def test_somebody_s_lock_at_the_opening_is_named_and_the_rest_follows(
    space: Space, context: Context, keys: Keys, home: Path
) -> None:
    secret = note(context, space, TEXT)
    blanks = blanks_of(space, context, secret.id)

    class Stop(Exception):
        pass

    def step(name: str) -> None:
        if name == "refs":
            raise Stop

    with pytest.raises(Stop):
        eraser(space, step).erase(context, blanks, "asked for")
    (home / ".git/index.lock").touch()
    with Space(context, keys, home, None) as other, pytest.raises(HomeBusy, match=r"index\.lock"):
        texts(context, other)
    (home / ".git/index.lock").unlink()
    assert texts(context, space) == {}
    assert places(home, RARE) == []
