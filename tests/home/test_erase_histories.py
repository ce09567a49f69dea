"""Erasing in histories as people make them: edits, merges, branches, tags, stashes, amended and dropped commits."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from home.erasing import blanks_of, commits, lines_of, places
from home.tools import PERSON, assert_sound, fresh_home, git, note, rows
from memoranda.context import Context
from memoranda.errors import Erased
from memoranda.home.keys import Keys
from memoranda.operations.journaling import Turn, append
from memoranda.operations.remembering import update
from memoranda.operations.space import Space

ALL = ("--branches", "--tags", "--reflog")
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


def remember(s: Story, seed: int) -> None:
    word = s.word()
    subject = ["customer/acme", "customer/globex", None][seed % 3]
    s.notes.append((note(s.context, s.space, s.text(word, seed), subject=subject).id, word))


def say(s: Story, seed: int) -> None:
    word = s.word()
    s.turns.append((append(s.context, s.space, Turn(s.text(word, seed), speaker="dana")).uri, word))


def supersede(s: Story, seed: int) -> None:
    if s.path(seed) is not None:
        word = s.word()
        s.notes.append((update(s.context, s.space, s.notes[seed % len(s.notes)][0], s.text(word, seed)).id, word))


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


ACTS: tuple[Callable[[Story, int], None], ...] = (
    remember, say, supersede, edit, commit_by_hand, side_branch, tag, stash, amend, drop, annotate, pack,
)  # fmt: skip


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


@settings(
    max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(
    acts=st.lists(st.tuples(st.integers(0, len(ACTS) - 1), st.integers(0, 50)), min_size=4, max_size=14),
    which=st.lists(st.integers(0, 20), min_size=1, max_size=3),
)
def test_only_what_was_named_is_gone(acts: list[tuple[int, int]], which: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keys, context = Keys(Path(folder) / "keys"), Context(user="dana", agent="cleo")
        root = fresh_home(Path(folder) / "home", keys, context)
        with Space(context, keys, root, None) as space:
            s = Story(root, space, context)
            for seed in range(2):
                remember(s, seed)
                say(s, seed)
            s.settle()
            for act, seed in acts:
                s.settle()
                ACTS[act](s, seed)
            s.settle()
            before, history, everywhere = look(root), commits(root, "HEAD"), set(commits(root, *ALL))
            stashes = git(root, "stash", "list").count("\n")
            chosen = sorted({n % len(s.notes) for n in which})
            words = [s.notes[n][1] for n in chosen] + [s.turns[which[0] % len(s.turns)][1]]
            space.one().refresh(context)
            told = others(rows(space), words)
            known = [s.notes[n][0] for n in chosen if space.one().indexes.catalog.by_id(s.notes[n][0])]
            blanks = [*blanks_of(space, context, *known), lines_of(s.turns[which[0] % len(s.turns)][0])]
            words = [s.notes[n][1] for n in chosen if s.notes[n][0] in known] + words[-1:]
            done = space.one().repository.erase(context, blanks, "asked for")
            assert done.found == ()
            assert places(root, words) == []
            check(s, before, words)
            assert commits(root, "HEAD") == history
            assert set(commits(root, *ALL)) == everywhere  # a set: amended, two may differ in an erased message only
            assert git(root, "stash", "list").count("\n") == stashes
            for n in range(stashes):
                git(root, "stash", "show", "-p", f"stash@{{{n}}}")
            space.one().refresh(context)
            assert others(rows(space), words) == told
            assert git(root, "fsck", "--strict", "--full", "--no-dangling") == ""
        assert places(root, words) == []
        assert_sound(root)
