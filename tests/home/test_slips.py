"""A person's Git brings files and the branch to what it had read before our last write: nothing acknowledged goes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from home.tools import assert_sound, git, head, insist, quiet, rows, status
from memoranda.context import Context
from memoranda.home import activity, background
from memoranda.home.keys import Keys
from memoranda.home.slips import Slips
from memoranda.operations.doctor import doctor
from memoranda.operations.journaling import Appended, Turn, append
from memoranda.operations.space import Space

BRANCH = "refs/heads/main"


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is committed by itself; and what a person's Git did lies back far enough to go on in the same file."""
    monkeypatch.setattr(background, "_SOON", 60.0)
    monkeypatch.setattr(activity, "_JUST_NOW", 0.0)


def say(context: Context, space: Space, text: str) -> Appended:
    return append(context, space, Turn(text))


def in_files(home: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((home / "agents").rglob("*.md")))


def reset_of_what_was_read(home: Path, read: str, *words: str) -> None:
    """What the end of `git stash` does when HEAD, which it has `read`, was moved on by us meanwhile.

    Git goes through with it, and says in the reflog what it was told to do.
    """
    git(home, "reset", "-q", "--hard", read)
    for log in (home / ".git/logs/HEAD", home / ".git/logs" / BRANCH):
        text = log.read_text()
        assert text.endswith(f"\treset: moving to {read}\n")
        log.write_text(text.removesuffix(f"{read}\n") + (" ".join(words) or "HEAD") + "\n")


@pytest.mark.disk
@pytest.mark.parametrize("then", ["look", "append", "flush", "close"])
def test_a_commit_that_a_reset_did_not_know_of_is_put_back(
    context: Context, space: Space, home: Path, keys: Keys, then: str
) -> None:
    repository = space.one().repository
    say(context, space, "the first")
    quiet(space)
    read = head(home)
    say(context, space, "came in between")
    assert repository.flush() is None
    left = head(home)
    reset_of_what_was_read(home, read)
    assert "came in between" not in in_files(home)
    if then == "append":
        say(context, space, "afterwards")
    if then in ("append", "flush"):
        assert repository.flush() is None
    if then == "close":
        space.close()
    with Space(context, keys, home, None) as again:
        found = again.one()
        found.refresh(context)
        assert "came in between" in in_files(home)
        assert ("afterwards" in in_files(home)) == (then == "append")
        assert left in git(home, "rev-list", "HEAD").split()
        quiet(again)
        assert status(home) == ""
        found.refresh(context)
        caught_up = rows(again)
        found.indexes.drop()
        found.refresh(context)
        assert rows(again) == caught_up
    assert_sound(home)


@pytest.mark.disk
@pytest.mark.parametrize("words", [("HEAD~1",), ("main@{1}",)], ids=" ".join)
def test_who_wanted_to_go_back_has_gone_back(
    context: Context, space: Space, home: Path, words: tuple[str, ...]
) -> None:
    """The other half: a step back that was asked for stays one."""
    say(context, space, "the first")
    quiet(space)
    read = head(home)
    say(context, space, "regretted")
    quiet(space)
    reset_of_what_was_read(home, read, *words)
    space.one().refresh(context)
    say(context, space, "afterwards")
    assert space.one().repository.flush() is None
    space.one().refresh(context)
    assert "regretted" not in in_files(home)
    assert "afterwards" in in_files(home)


@pytest.mark.disk
@pytest.mark.parametrize(
    "way", [("reset", "-q", "--hard"), ("checkout", "-q", "--", "agents"), ("stash", "-q")], ids=" ".join
)
@pytest.mark.parametrize("committed", [False, True])
def test_what_was_written_a_moment_ago_stays_in_its_file(
    context: Context, space: Space, home: Path, way: tuple[str, ...], committed: bool
) -> None:
    """Git brings the file to what its last commit or its index says, which do not know of it yet."""
    repository = space.one().repository
    first = say(context, space, "the first")
    quiet(space)
    assert say(context, space, "a moment ago").path == first.path
    git(home, *way)
    assert "a moment ago" not in in_files(home)
    if committed:
        assert repository.flush() is None
    space.one().refresh(context)
    assert "a moment ago" in in_files(home)
    assert repository.flush() is None
    quiet(space)
    assert status(home) == ""
    if way[0] == "stash":
        git(home, "stash", "pop", "-q")
        assert status(home) == ""
    assert "a moment ago" in in_files(home)


@pytest.mark.disk
def test_what_a_person_takes_out_of_a_journal_stays_out(context: Context, space: Space, home: Path) -> None:
    """The other half: with an editor, or with Git when it knew of the entry."""
    say(context, space, "the first")
    entry = say(context, space, "the second")
    path = home / entry.path
    path.write_bytes(path.read_bytes().replace(b"the first", b"the 1st"))
    space.one().refresh(context)
    assert "the 1st" in in_files(home)
    quiet(space)
    before = path.read_bytes()
    say(context, space, "the third")
    quiet(space)
    path.write_bytes(before)
    space.one().refresh(context)
    assert "the third" not in in_files(home)


@pytest.mark.disk
def test_while_a_persons_git_is_at_it_no_file_of_the_branch_is_continued(
    context: Context, space: Space, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "_JUST_NOW", 3600.0)
    first = say(context, space, "the first")
    quiet(space)
    (home / "memory/notes").mkdir(exist_ok=True)
    (home / "memory/notes/mine.md").write_text("Mine.\n")
    git(home, "add", "-A")
    git(home, "stash", "-q")
    second = say(context, space, "the second")
    assert second.path != first.path
    git(home, "stash", "pop", "-q")
    long_ago = time.time() - 7200
    for path in (home / ".git/ORIG_HEAD", home / ".git/refs/stash"):
        if path.exists():
            os.utime(path, (long_ago, long_ago))
    assert say(context, space, "the third").path in (first.path, second.path)


@pytest.mark.disk
def test_stashes_without_a_pause_take_no_entry_away(
    context: Context, home: Path, space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two in real time, for a moment; the person's commits are Git's own."""
    monkeypatch.setattr(background, "_SOON", 0.001)
    monkeypatch.setattr(activity, "_JUST_NOW", 5.0)
    said = []
    for n in range(24):
        said.append(f"entry number {n}.")
        say(context, space, said[-1])
        insist(home, "stash", "-q", accept=(0, 1))
        git(home, "stash", "pop", "-q", accept=(0, 1))
    quiet(space)
    space.one().refresh(context)
    assert [text for text in said if text not in in_files(home)] == []
    assert status(home) == ""


def test_a_slip_is_told_by_the_reflog_alone(tmp_path: Path) -> None:
    """No line, no file, or a line of something else: no slip."""

    class Layout:
        common_dir = tmp_path

    class Store:
        def is_ancestor(self, _old: str, _new: str) -> bool:
            return True

    slips = Slips(Layout(), Store())  # type: ignore[arg-type]
    assert slips.find(BRANCH, "b" * 40) is None
    log = tmp_path / "logs" / BRANCH
    log.parent.mkdir(parents=True)
    for told, slipped in (
        ("reset: moving to HEAD", True), ("reset: moving to HEAD~1", False), ("commit: HEAD", False), ("", False),
    ):  # fmt: skip
        log.write_text(f"{'a' * 40} {'b' * 40} P <p@x> 1 +0000\t{told}\n{'b' * 40} {'b' * 40} P <p@x> 1 +0000\tx\n")
        found = slips.find(BRANCH, "b" * 40)
        assert (found is not None and found.left == "a" * 40) == slipped
        log.write_text(f"{'a' * 40} {'b' * 40} P <p@x> 1 +0000\t{told} and more\n")
        assert slips.find(BRANCH, "b" * 40) is None
    log.write_text("\n")
    assert slips.find(BRANCH, "b" * 40) is None


@pytest.mark.disk
def test_a_conflict_that_a_stash_left_is_told_until_it_is_settled(context: Context, space: Space, home: Path) -> None:
    path = home / say(context, space, "the first").path
    quiet(space)
    path.write_bytes(path.read_bytes().replace(b"the first", b"the stashed"))
    git(home, "stash", "-q")
    path.write_bytes(path.read_bytes().replace(b"the first", b"the other"))
    git(home, "commit", "-qam", "other")
    git(home, "stash", "pop", "-q", accept=(1,))
    told = [finding for finding in doctor(context, space).findings if finding.code == "conflict_open"]
    assert [finding.where for finding in told] == [path.relative_to(home).as_posix()]
    git(home, "add", "-A")
    assert not [finding for finding in doctor(context, space).findings if finding.code == "conflict_open"]


@pytest.mark.disk
@pytest.mark.parametrize("at_work", [False, True])
def test_a_new_file_that_a_persons_git_took_away_comes_back_and_one_that_they_deleted_does_not(
    context: Context, space: Space, home: Path, monkeypatch: pytest.MonkeyPatch, at_work: bool
) -> None:
    """Git goes to a commit without the file when its index has it already; a person alone has `rm`."""
    append(replace(context, agent="eve"), space, Turn("The first."))
    quiet(space)
    path = home / say(context, space, "in a file of its own").path
    assert space.one().repository.flush() is None
    if at_work:
        monkeypatch.setattr(activity, "_JUST_NOW", 3600.0)
        git(home, "reset", "-q", "--hard")
    path.unlink()
    space.one().refresh(context)
    assert path.exists() == at_work
    quiet(space)
    assert status(home) == ""
