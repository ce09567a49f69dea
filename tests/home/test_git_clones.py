"""Clones, copies and pulls: a clone of a Home is a Home, and two that both wrote merge with plain Git."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from home.tools import assert_sound, bodies, git, note, opened, quiet, rows
from memoranda.context import Context
from memoranda.operations import journaling

pytestmark = pytest.mark.usefixtures("quick")


def test_a_clone_of_a_home_is_a_home(base: Path, live: Context, tmp_path: Path) -> None:
    for name, words in {"clone": (), "shallow": ("--depth", "1"), "bare-ish": ("--no-hardlinks",)}.items():
        git(tmp_path, "clone", "-q", *words, f"file://{base}", name)
        clone = tmp_path / name
        with opened(clone, live) as space:
            assert bodies(live, space) == {f"base {n}" for n in range(4)}
            note(live, space, "in the clone")
            assert "in the clone" in bodies(live, space)
            assert space.one().repository.replica.suffix is not None
        assert_sound(clone)


def test_clones_that_both_wrote_merge_with_plain_git(base: Path, live: Context, tmp_path: Path) -> None:
    """Rounds of `git pull --no-rebase` and `git push`: no conflict, nothing lost, journals and ledgers untouched."""
    git(tmp_path, "clone", "-q", "--bare", str(base), "hub.git")
    clones = []
    for name in ("one", "two"):
        git(tmp_path, "clone", "-q", "hub.git", name)
        clones.append(tmp_path / name)
    written: set[str] = {f"base {n}" for n in range(4)}
    entries: list[str] = []
    for turn in range(3):
        for clone in clones:
            with opened(clone, live) as space:
                for n in range(2):
                    note(live, space, f"{clone.name} {turn} {n}", subject="customer/acme")
                    written.add(f"{clone.name} {turn} {n}")
                entries.append(journaling.append(live, space, journaling.Turn(f"said {turn}", "dana")).id)
                (clone / "memory" / "notes" / f"by {clone.name} {turn}.md").write_text(f"by hand {clone.name} {turn}\n")
                bodies(live, space)
                written.add(f"by hand {clone.name} {turn}")
        for clone in (*clones, clones[0]):
            git(clone, "pull", "-q", "--no-rebase", "--no-edit")
            git(clone, "push", "-q")
    for clone in clones:
        with opened(clone, live) as space:
            assert bodies(live, space) == written
            for entry in entries:
                assert space.one().indexes.catalog.entry(entry) is not None
            caught_up = rows(space)
            space.one().indexes.drop()
            assert bodies(live, space) == written
            assert rows(space) == caught_up
            mine = set(git(clone, "ls-tree", "--name-only", "refs/memoranda/ledger").split())
            assert mine == {space.one().repository.replica.id}
        assert_sound(clone)


def test_a_pull_while_the_home_is_open(base: Path, live: Context, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(base), "other")
    with opened(tmp_path / "other", live) as space:
        note(live, space, "from afar")
    for watching in (False, True):
        with opened(base, live) as space:
            if watching:
                space.watch()
            before = bodies(live, space)
            pending = note(live, space, f"pending {watching}")
            quiet(space)
            git(base, "pull", "-q", "--no-rebase", "--no-edit", str(tmp_path / "other"), "main")
            assert bodies(live, space) == before | {f"pending {watching}", "from afar"}
            assert space.one().repository.known(space.one().repository.snapshot())(pending.path)
        with opened(tmp_path / "other", live) as space:
            note(live, space, "from afar")
    assert_sound(base)


def test_a_moved_or_copied_home_is_still_one(base: Path, live: Context, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "copy", symlinks=True)
    base.rename(tmp_path / "moved")
    for name in ("moved", "copy"):
        with opened(tmp_path / name, live) as space:
            note(live, space, name)
            assert bodies(live, space) == {*(f"base {n}" for n in range(4)), name}
        assert_sound(tmp_path / name)
