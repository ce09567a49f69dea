"""Histories as people make them, to erase something in: edits, merges, branches, tags, stashes, amended commits."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from home.erasing import places
from home.tools import PERSON, assert_sound, fresh_home, git
from memoranda.context import Context
from memoranda.errors import Erased
from memoranda.home.keys import Keys
from memoranda.operations.space import Space

COMMON = "the team moved its weekly meeting about customers budgets and plans".split()


@dataclass
class Story:
    """A Home and what was said in it: every note and turn has a word that stands nowhere else."""

    root: Path
    space: Space
    context: Context
    notes: list[tuple[str, str]] = field(default_factory=list)  # (id, word)
    turns: list[tuple[str, str]] = field(default_factory=list)  # (uri, word)
    counted: int = 0
    gone: list[str] = field(default_factory=list)  # the words that a test has had erased

    def word(self) -> str:
        self.counted += 1
        return f"zq{self.counted:03}xw"

    def text(self, word: str, seed: int) -> str:
        words = [COMMON[(seed * 7 + n * 3) % len(COMMON)] for n in range(5)]
        return f"{word} {' '.join(words)}.\n\nIt {COMMON[seed % len(COMMON)]} {word} again."

    def settle(self) -> None:
        repository = self.space.one().repository
        repository.look(self.context)
        assert repository.flush() is None
        while not repository.tidy():
            pass

    def path(self, n: int) -> Path | None:
        """The file of note `n`, if it is in the working tree now."""
        self.space.one().refresh(self.context)
        found = self.space.one().indexes.catalog.by_id(self.notes[n % len(self.notes)][0])
        return self.root / found[0].path if found else None


def edit(s: Story, seed: int) -> None:
    path = s.path(seed)
    if path is not None:
        path.write_bytes(path.read_bytes() + f"More: {seed}.\n".encode())
        s.settle()


def commit_by_hand(s: Story, seed: int) -> None:
    path = s.path(seed)
    if path is not None:
        path.write_bytes(path.read_bytes() + f"By hand: {seed}.\n".encode())
        title = path.read_text().split("---\n")[-1].splitlines()[0]
        git(s.root, "commit", "-q", "-a", "-m", f"Edited: {title}")
        s.settle()


def side_branch(s: Story, seed: int) -> None:
    name = f"side{s.word()[2:5]}"
    path = s.path(seed)
    if path is None:
        return
    git(s.root, "checkout", "-q", "-b", name)
    path.write_bytes(path.read_bytes().replace(b"again.", b"again and again.", 1))
    git(s.root, "commit", "-q", "-a", "--allow-empty", "-m", "On the side")
    git(s.root, "checkout", "-q", "main")
    if seed % 2:
        other = s.root / "memory" / "notes" / f"{name}.md"
        other.write_text(f"# Of the main branch {seed}\n\nPlain.\n")
        s.settle()
        git(s.root, "merge", "-q", "--no-edit", name)
    s.settle()


def tag(s: Story, seed: int) -> None:
    name = f"v{s.word()[2:5]}"
    if seed % 2:
        git(s.root, "tag", name)
    else:
        git(s.root, "tag", "-a", "-m", f"About {s.notes[seed % len(s.notes)][1]}", name)


def stash(s: Story, seed: int) -> None:
    path = s.path(seed)
    if path is not None:
        path.write_bytes(path.read_bytes() + f"Put by: {seed}.\n".encode())
        git(s.root, "stash", "-q")
        s.settle()


def amend(s: Story, seed: int) -> None:
    git(s.root, "commit", "-q", "--amend", "-m", f"In other words {s.notes[seed % len(s.notes)][1]}")
    s.settle()


def drop(s: Story, seed: int) -> None:
    git(s.root, "commit", "-q", "--allow-empty", "-m", f"Dropped {seed}")
    git(s.root, "reset", "-q", "--hard", "HEAD~1")
    s.settle()


def annotate(s: Story, seed: int) -> None:
    git(s.root, "notes", "add", "-f", "-m", f"a remark {seed}")


def pack(s: Story, seed: int) -> None:
    git(s.root, *[["gc", "-q"], ["pack-refs", "--all"], ["repack", "-q", "-d"]][seed % 3])


@dataclass
class Before:
    """What stood where: commit -> path -> blob, and the blobs."""

    at: dict[str, dict[str, str]]
    blobs: dict[str, bytes]


def look(root: Path) -> Before:
    at: dict[str, dict[str, str]] = {}
    for commit in git(root, "log", "--exclude=refs/memoranda/*", "--all", "--reflog", "--format=%H").split():
        rows = [row for row in git(root, "ls-tree", "-rz", commit).split("\0") if row]
        at[commit] = {row.split("\t")[1]: row.split()[2] for row in rows}
    names = sorted({blob for tree in at.values() for blob in tree.values()})
    out = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=root, input="\n".join(names).encode(), capture_output=True, env=PERSON
    ).stdout
    blobs, place = {}, 0
    for name in names:
        end = out.index(b"\n", place)
        size = int(out[place:end].split()[2])
        blobs[name] = out[end + 1 : end + 1 + size]
        place = end + 2 + size
    return Before(at, blobs)


def check(s: Story, before: Before, words: list[str]) -> None:
    """Every pointer into what was not erased leads to the same words, by blob and by every old commit."""
    repository = s.space.one().repository
    forbidden = [word.encode() for word in words]
    asked: set[tuple[str, str]] = set()
    for commit, tree in before.at.items():
        for path, blob in tree.items():
            data = before.blobs[blob]
            revs = [commit] if (path, blob) in asked else [commit, blob]
            asked.add((path, blob))
            for rev in revs:
                if not any(word in data for word in forbidden):
                    assert repository.at(path, rev) == data
                elif "/journal/" not in path:
                    with pytest.raises(Erased):
                        repository.at(path, rev)
                else:
                    now = repository.at(path, rev).split(b"\n")
                    was = data.split(b"\n")
                    assert len(now) == len(was)
                    differing = [a for a, b in zip(was, now, strict=True) if a != b]
                    assert all(any(w in line for w in forbidden) or line == b"" for line in differing)
                    assert not any(w in line for w in forbidden for line in now)


def others(told: dict[str, list[tuple[object, ...]]], words: list[str]) -> list[str]:
    """The rows of the catalog's notes and entries that say nothing of these words."""
    found = [repr(row) for table in ("notes", "entries") for row in told[table]]
    return [row for row in found if not any(word in row for word in (*words, "erased on"))]


S = TypeVar("S", bound=Story)
Act = Callable[[S, int], None]


@contextmanager
def played(
    story: Callable[[Path, Space, Context], S], begin: Sequence[Act[S]], times: int, table: Sequence[Act[S]],
    acts: Sequence[tuple[int, int]],
) -> Iterator[tuple[S, Before]]:  # fmt: skip
    """A Home in which this was done, and what stood in it; afterwards none of the words that are `gone` stands there.

    `begin` is done first, `times` times each, and then the acts of `table` by their places.
    """
    with tempfile.TemporaryDirectory() as folder:
        keys, context = Keys(Path(folder) / "keys"), Context(user="dana", agent="cleo")
        root = fresh_home(Path(folder) / "home", keys, context)
        with Space(context, keys, root, None) as space:
            s = story(root, space, context)
            for seed in range(times):
                for act in begin:
                    act(s, seed)
            s.settle()
            for place, seed in acts:
                s.settle()
                table[place](s, seed)
            s.settle()
            before = look(root)
            space.one().refresh(context)
            yield s, before
            assert s.gone and places(root, s.gone) == []
            check(s, before, s.gone)
            assert git(root, "fsck", "--strict", "--full", "--no-dangling") == ""
        assert places(root, s.gone) == []
        assert_sound(root)
