"""A person has something under way in Git: it is left alone, and what is remembered meanwhile is kept."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from home.tools import PERSON, assert_sound, bodies, git, head, note, opened, rows, status
from memoranda.context import Context
from memoranda.operations import journaling, listing
from memoranda.operations.reading import read
from memoranda.operations.remembering import update

pytestmark = pytest.mark.usefixtures("quick")


def test_git_status_is_clean_after_any_sequence_of_operations(base: Path, live: Context) -> None:
    rng = random.Random(4)
    for _ in range(6):
        with opened(base, live) as space:
            for _ in range(rng.randrange(1, 6)):
                what = rng.randrange(6)
                if what == 0:
                    note(live, space, f"n {rng.random()}", subject=rng.choice(["été/日本", None, "a/b/c"]))
                elif what == 1:
                    journaling.append(live, space, journaling.Turn("# said\n\n- x", "Dana ^ # |"))
                elif what == 2:
                    first = note(live, space, f"old {rng.random()}")
                    update(live, space, first.id, f"new {rng.random()}")
                elif what == 3:
                    (base / "memory" / "notes" / f"by hand {rng.randrange(3)}.md").write_text(f"# X {rng.random()}\r\n")
                    listing.list_notes(live, space)
                elif what == 4:
                    for path in sorted((base / "memory" / "notes").glob("by hand*"))[:1]:
                        path.unlink()
                    listing.list_notes(live, space)
                else:
                    listing.log(live, space)
        assert_sound(base)
    story = git(base, "log", "-p", "--format=%s", "memory/")
    assert "Remember" in story
    assert "Update customer/acme: new" in story


@pytest.mark.requirement("A-001")
def test_the_log_of_a_file_tells_who_wrote_it_and_why(base: Path, live: Context) -> None:
    with opened(base, live) as space:
        done = (
            note(live, space, "Acme renewed for 24 months", session="s") if False else note(live, space, "Acme renewed")
        )
    said = git(base, "log", "-1", "--format=%an|%s|%(trailers:key=Memoranda-Id,valueonly)", "--", done.path).strip()
    assert said == f"cleo|Remember customer/acme: Acme renewed|{done.id}"


# While the person is at it


class Busy:
    """Something of the person's that is under way: what begins it, and what ends it."""

    def __init__(self, begin: Callable[[Path], object], end: Callable[[Path], object], *, edits: bool = True) -> None:
        self.begin = begin
        self.end = end
        self.edits = edits


def branch_with_conflict(root: Path) -> None:
    """`side` and the current branch both change a file of the person's."""
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\nfirst\n")
    git(root, "add", "memory/notes/plan.md")
    git(root, "commit", "-qm", "plan")
    git(root, "checkout", "-qb", "side")
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\ntheirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\nours\n")
    git(root, "commit", "-qam", "ours")


def resolved(root: Path, *words: str) -> None:
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\nboth\n")
    git(root, "add", "memory/notes/plan.md")
    git(root, *words)


def start(*words: str) -> Callable[[Path], object]:
    def begin(root: Path) -> None:
        branch_with_conflict(root)
        git(root, *words, accept=(1,))

    return begin


BUSY = {
    "merge": Busy(start("merge", "side"), lambda r: resolved(r, "commit", "-qm", "merged")),
    "merge aborted": Busy(start("merge", "side"), lambda r: git(r, "merge", "--abort")),
    "rebase": Busy(start("rebase", "side"), lambda r: resolved(r, "rebase", "--continue")),
    "rebase aborted": Busy(start("rebase", "side"), lambda r: git(r, "rebase", "--abort")),
    "cherry-pick": Busy(start("cherry-pick", "side"), lambda r: resolved(r, "cherry-pick", "--continue")),
    "revert": Busy(
        lambda r: (branch_with_conflict(r), git(r, "revert", "--no-edit", "HEAD~1", accept=(1,))),
        lambda r: resolved(r, "revert", "--continue"),
    ),
    "bisect": Busy(
        lambda r: git(r, "bisect", "start", "HEAD", "HEAD~3"), lambda r: git(r, "bisect", "reset"), edits=False
    ),
    "detached HEAD": Busy(lambda r: git(r, "checkout", "-q", "--detach"), lambda r: git(r, "checkout", "-q", "main")),
    "index.lock": Busy(lambda r: (r / ".git/index.lock").touch(), lambda r: (r / ".git/index.lock").unlink()),
    "HEAD.lock": Busy(lambda r: (r / ".git/HEAD.lock").touch(), lambda r: (r / ".git/HEAD.lock").unlink()),
    "a lock of the branch": Busy(
        lambda r: (r / ".git/refs/heads/main.lock").touch(), lambda r: (r / ".git/refs/heads/main.lock").unlink()
    ),
}


@pytest.mark.parametrize("what", BUSY)
def test_what_the_person_has_under_way_is_left_alone(base: Path, live: Context, what: str) -> None:
    busy = BUSY[what]
    busy.begin(base)
    before = (head(base), git(base, "for-each-ref"), status(base) if "lock" not in what else "")
    with opened(base, live) as space:
        done = note(live, space, "remembered meanwhile")
        assert "remembered meanwhile" in bodies(live, space)
        time.sleep(0.1)
        assert "remembered meanwhile" in bodies(live, space)
        assert git(base, "for-each-ref") == before[1]
    with opened(base, live) as space:
        assert "remembered meanwhile" in bodies(live, space)
        entry = read(live, space, done.sources[0])
        assert "remembered meanwhile" in entry.text
    assert (head(base), git(base, "for-each-ref")) == before[:2]
    if "lock" not in what:
        ours = {f"?? {done.path}", *(line for line in status(base).splitlines() if "agents/" in line)}
        assert set(status(base).splitlines()) - ours == set(before[2].splitlines())
    busy.end(base)
    with opened(base, live) as space:
        assert "remembered meanwhile" in bodies(live, space)
        caught_up = rows(space)
        space.one().indexes.drop()
        assert "remembered meanwhile" in bodies(live, space)
        assert rows(space) == caught_up
    assert_sound(base)
    assert done.path in git(base, "ls-tree", "-r", "--name-only", "HEAD")


def test_staged_work_stays_staged(base: Path, live: Context) -> None:
    (base / "todo.txt").write_text("call Luis\n")
    git(base, "add", "todo.txt")
    (base / "memory" / "notes" / "mine.md").write_text("# Mine\n\nas staged\n")
    git(base, "add", "memory/notes/mine.md")
    (base / "memory" / "notes" / "mine.md").write_text("# Mine\n\nas saved later\n")
    staged = git(base, "ls-files", "-s", "todo.txt", "memory/notes/mine.md")
    with opened(base, live) as space:
        note(live, space, "meanwhile")
        assert "# Mine\n\nas saved later" in bodies(live, space)
    assert git(base, "ls-files", "-s", "todo.txt", "memory/notes/mine.md") == staged
    assert status(base).splitlines() == ["MM memory/notes/mine.md", "A  todo.txt"]
    git(base, "commit", "-qm", "the person's commit")
    assert git(base, "show", "HEAD:todo.txt") == "call Luis\n"
    assert git(base, "show", "HEAD:memory/notes/mine.md") == "# Mine\n\nas staged\n"
    with opened(base, live) as space:
        assert "# Mine\n\nas saved later" in bodies(live, space)
    assert_sound(base)


@pytest.mark.parametrize("amend", [False, True])
def test_a_commit_with_an_open_editor_succeeds(base: Path, live: Context, tmp_path: Path, amend: bool) -> None:
    """`git commit` fails when the branch moves while the message is written; it must not move."""
    if not amend:  # and nothing at all is staged where a message is written anew
        (base / "todo.txt").write_text("call Luis\n")
        git(base, "add", "todo.txt")
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\ntouch {tmp_path}/open\nwhile [ ! -e {tmp_path}/close ]; do sleep 0.01; done\n"
                      'echo "a message" > "$1"\n')  # fmt: skip
    editor.chmod(0o755)
    words = ["git", "commit", "-q", *(["--amend"] if amend else [])]
    with opened(base, live) as space:
        commit = subprocess.Popen(words, cwd=base, env={**PERSON, "HOME": str(tmp_path), "GIT_EDITOR": str(editor)})
        while not (tmp_path / "open").exists():
            time.sleep(0.01)
        before = head(base)
        note(live, space, "meanwhile")
        time.sleep(0.2)
        assert head(base) == before
        assert "meanwhile" in bodies(live, space)
        (tmp_path / "close").touch()
        assert commit.wait() == 0
        assert git(base, "log", "-1", "--format=%s").strip() == "a message"
    assert_sound(base)
    assert "meanwhile" in git(base, "log", "-1", "--format=%s")


@pytest.mark.parametrize("words", [("-qm", "nothing"), ("-q",), ("-qam", "nothing")], ids=" ".join)
def test_a_commit_that_git_refuses_as_empty_holds_nothing_up(base: Path, live: Context, words: tuple[str, ...]) -> None:
    """Git writes the message before it sees that there is nothing to commit, and leaves it."""
    for moved in (".git/logs/HEAD", ".git/refs/heads/main"):
        os.utime(base / moved, (time.time() - 10, time.time() - 10))
    git(base, "commit", *words, accept=(1,))
    assert (base / ".git" / "COMMIT_EDITMSG").stat().st_mtime > (base / ".git/logs/HEAD").stat().st_mtime
    before = head(base)
    with opened(base, live) as space:
        note(live, space, "meanwhile")
        assert space.one().repository.flush() is None
        assert head(base) != before
    assert_sound(base)


def test_an_abandoned_message_holds_nothing_up_for_good(base: Path, live: Context) -> None:
    editor = base / ".git" / "COMMIT_EDITMSG"
    editor.write_text("an abandoned message")
    os.utime(editor, (time.time() - 7200, time.time() - 7200))
    os.utime(base / ".git/logs/HEAD", (time.time() - 9000, time.time() - 9000))
    os.utime(base / ".git/refs/heads/main", (time.time() - 9000, time.time() - 9000))
    with opened(base, live) as space:
        note(live, space, "meanwhile")
    assert_sound(base)
