"""Between two of our looks a person did something in Git: what they dropped is gone, all else is there."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from home.tools import CITED, PERSON, assert_sound, bodies, git, head, insist, note, opened, quiet, rows, status, texts
from memoranda.context import Context
from memoranda.home import background
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.reading import read

pytestmark = pytest.mark.usefixtures("quick")


def test_stash_and_pop(base: Path, live: Context) -> None:
    (base / "todo.txt").write_text("call Luis\n")
    git(base, "add", "todo.txt")
    with opened(base, live) as space:
        note(live, space, "before the stash")
        quiet(space)
        git(base, "stash", "-q")
        note(live, space, "stashed away", sources=CITED)
        assert {"before the stash", "stashed away"} <= bodies(live, space)
        quiet(space)
        git(base, "stash", "pop", "-q", "--index")
    assert status(base) == "A  todo.txt\n"
    with opened(base, live) as space:
        assert {"before the stash", "stashed away"} <= bodies(live, space)


@pytest.mark.parametrize("watching", [False, True])
def test_branches_come_and_go(base: Path, live: Context, watching: bool) -> None:
    with opened(base, live) as space:
        if watching:
            space.watch()
        on_main = bodies(live, space)
        git(base, "checkout", "-qb", "side", "HEAD~2")
        assert bodies(live, space) < on_main
        note(live, space, "on the side", sources=CITED)
        assert "on the side" in bodies(live, space)
        quiet(space)
        git(base, "checkout", "-q", "main")
        assert bodies(live, space) == on_main
        note(live, space, "on main", sources=CITED)
        quiet(space)
        git(base, "merge", "-q", "--no-edit", "side")
        assert bodies(live, space) == on_main | {"on the side", "on main"}
        caught_up = rows(space)
        space.one().indexes.drop()
        assert bodies(live, space) == on_main | {"on the side", "on main"}
        assert rows(space) == caught_up
    assert_sound(base)


@pytest.mark.parametrize("watching", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--amend", "-qm", "amended"), ("gc", "-q"), ("gc", "-q", "--prune=now"), ("pack-refs", "--all"),
        ("reset", "-q", "--hard", "HEAD~3"), ("reset", "-q", "--soft", "HEAD~2"), ("reset", "-q", "HEAD~2"),
        ("repack", "-adq"), ("rm", "-q", "--cached", "memory/home.yaml"), ("update-index", "--refresh"),
        ("update-index", "--index-version", "4"), ("update-index", "--split-index"), ("read-tree", "HEAD"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_between_two_looks(base: Path, live: Context, words: tuple[str, ...], watching: bool) -> None:
    """What a command dropped on purpose stays dropped; all else is there, in the file and in the list."""
    with opened(base, live) as space:
        if watching:
            space.watch()
        note(live, space, "before")
        quiet(space)
        bodies(live, space)
        pending = note(live, space, "pending")
        insist(base, *words, accept=(0, 1) if "--refresh" in words else (0,))
        after = note(live, space, "after")
        listed = texts(live, space)
        assert {"pending", "after"} <= set(listed.values())
        for path in listed:
            assert (base / path).exists()
        files = {p.relative_to(base).as_posix() for p in (base / "memory" / "notes").rglob("*.md")}
        assert files == set(listed)
        for item in (pending, after):
            assert item.id.removeprefix("mem_") in read(live, space, item.sources[0]).text
    with opened(base, live) as space:
        assert texts(live, space) == listed
        caught_up = rows(space)
        space.one().indexes.drop()
        assert texts(live, space) == listed
        assert rows(space) == caught_up
    if "--cached" not in words:
        assert_sound(base)


@pytest.mark.parametrize("watching", [False, True])
@pytest.mark.parametrize("staged", [False, True])
def test_a_commit_is_amended_before_gits_index_has_come_forward(
    base: Path, live: Context, monkeypatch: pytest.MonkeyPatch, watching: bool, staged: bool
) -> None:
    """The amended commit is made of an index that does not know our last note: nobody meant to drop it."""
    monkeypatch.setattr(background, "_SOON", 60.0)
    with opened(base, live) as space:
        if watching:
            space.watch()
        note(live, space, "before")
        quiet(space)
        pending = note(live, space, "pending")
        assert space.one().repository.flush() is None
        if staged:
            (base / "todo.txt").write_text("call Luis\n")
            git(base, "add", "todo.txt")
        git(base, "commit", "--amend", "--allow-empty", "-qm", "amended")
        after = note(live, space, "after")
        listed = texts(live, space)
        assert {"before", "pending", "after"} <= set(listed.values())
        for item in (pending, after):
            assert item.id.removeprefix("mem_") in read(live, space, item.sources[0]).text
    with opened(base, live) as space:
        assert texts(live, space) == listed
    assert_sound(base)


def test_what_the_log_told_is_known_since_the_commit_that_has_it_now(
    base: Path, live: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read when Git had not heard of it; its commit was amended, later, before anybody looked again."""
    monkeypatch.setattr(background, "_SOON", 60.0)
    with opened(base, live) as space:
        note(live, space, "before")
        quiet(space)
        bodies(live, space)
        note(live, space, "pending")
        assert "pending" in bodies(live, space)
        assert space.one().repository.flush() is None
        quiet(space)
        when = {"GIT_COMMITTER_DATE": "2031-05-06T07:08:09Z"}
        git(base, "commit", "--amend", "-qm", "amended", **when)
        assert "pending" in bodies(live, space)
        caught_up = rows(space)
        space.one().indexes.drop()
        assert "pending" in bodies(live, space)
        assert rows(space) == caught_up


def test_what_is_committed_between_two_looks_for_it_is_found(
    base: Path, live: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git has not heard of it yet; when the log is asked it has let go of it, since it was committed meanwhile."""
    monkeypatch.setattr(background, "_SOON", 60.0)
    for ask in (lambda home, pointer: home.at(pointer.path, pointer.rev), lambda home, pointer: home.blob(pointer.rev)):
        with opened(base, live) as space:
            cited = parse_pointer(note(live, space, "pending").sources[0])
            repository = space.one().repository
            get, looked = repository.store.get, []

            def committed(name: str, get: Any = get, looked: Any = looked, repository: Any = repository) -> object:
                found = get(name)
                if not looked:
                    looked.append(found)
                    assert repository.flush() is None
                return found

            monkeypatch.setattr(repository.store, "get", committed)
            assert b"pending" in ask(repository, cited)
            assert looked == [None], "it was not in Git before"


def test_the_objects_of_a_commit_under_way_survive_a_pruning(base: Path, live: Context) -> None:
    with opened(base, live) as space:
        repository = space.one().repository
        store = repository.store
        release = store.release

        def prune(handle: object) -> None:
            release(handle)

        store.release = prune  # type: ignore[method-assign]
        move = store.move

        def moved(*words: object) -> None:
            git(base, "gc", "-q", "--prune=now")
            move(*words)  # type: ignore[arg-type]

        store.move = moved  # type: ignore[method-assign]
        note(live, space, "under way")
        assert repository.flush() is None
    assert_sound(base)


def test_git_between_its_index_and_its_head_is_waited_for(base: Path, live: Context, tmp_path: Path) -> None:
    """`git checkout` has written the other branch's files and not yet moved HEAD: this is no mass edit."""
    git(base, "branch", "other", "HEAD~2")
    hook = base / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/written\nsleep 0.03\n")
    hook.chmod(0o755)
    main = head(base)
    with opened(base, live) as space:
        bodies(live, space)
        checkout = subprocess.Popen(["git", "checkout", "-q", "other"], cwd=base, env={**PERSON, "HOME": str(tmp_path)})
        while not (tmp_path / "written").exists():
            time.sleep(0.001)
        seen = bodies(live, space)
        assert checkout.wait() == 0
        hook.unlink()
        assert bodies(live, space) == {"base 0", "base 1"}
    assert "base 0" in seen
    assert git(base, "rev-parse", "main").strip() == main
    assert git(base, "log", "-1", "--format=%s", "other").strip() == "Remember customer/acme: base 1"


def test_a_linked_worktree_is_a_home_of_its_own_branch(base: Path, live: Context, tmp_path: Path) -> None:
    git(base, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = tmp_path / "side"
    with opened(base, live) as one, opened(side, live) as two:
        for n in range(3):
            note(live, one, f"main {n}")
            note(live, two, f"side {n}")
            assert one.one().repository.flush() is None
            assert two.one().repository.flush() is None
        assert {f"main {n}" for n in range(3)} <= bodies(live, one)
        assert {f"side {n}" for n in range(3)} <= bodies(live, two)
        assert not {f"side {n}" for n in range(3)} & bodies(live, one)
    assert status(side) == ""
    assert_sound(base)
