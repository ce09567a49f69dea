"""The committer's own note is damaged: what it said is worked out again, and nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest
from trust.stage import Stage

from memoranda.home.durable import FileLock

from .tools import git

DAMAGE = [
    b"", b"{", b"\x00" * 512, b"[]", b"null", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"before": [1, 2]}',
    b'{"before":[1,16,-1],"after":[1,16,"x"],"branch":"refs/heads/main","main":[null,null],"ledger":[null,""]}',
]  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def note_of(stage: Stage) -> Path:
    return stage.root / ".git/memoranda/commit.json"


def commits(stage: Stage) -> list[str]:
    return git(stage.root, "log", "--format=%s", "--reverse").splitlines()[1:]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_note_stops_nothing_and_nothing_is_lost_or_doubled(stage: Stage, damage: bytes) -> None:
    words = [f"Fact {n}." for n in range(6)]
    for text in words[:3]:
        stage.remember(text)
    stage.home.repository.flush()
    lock = FileLock(stage.root / ".git/memoranda/commit.lock")
    lock.acquire()  # what comes now stays in the log, as if the process had been killed
    for text in words[3:5]:
        stage.remember(text)
    note_of(stage).write_bytes(damage)
    old, stage.space = stage.space, stage._opened()
    assert len(stage.recall("fact").items) == 5
    lock.close()
    stage.remember(words[5])
    assert stage.home.repository.flush() is None
    assert commits(stage) == [f"Remember: {text}" for text in words]
    ledger = git(stage.root, "grep", "-h", "-I", '"op":"remember"', "refs/memoranda/ledger").splitlines()
    assert len(ledger) == len(set(ledger)) >= 6
    assert {i.trust for i in stage.recall("fact").items} == {"unreviewed"}
    old.close()
    stage.close()
    assert git(stage.root, "status", "--porcelain") == "" and git(stage.root, "fsck", "--strict") == ""


def test_damaged_while_it_is_open_by_who_writes_on(stage: Stage) -> None:
    stage.remember("Fact 1.")
    stage.home.repository.flush()
    note_of(stage).write_bytes(b"{")
    stage.remember("Fact 2.")
    stage.home.repository.flush()
    stage.restart()
    stage.remember("Fact 3.")
    stage.close()
    assert commits(stage) == ["Remember: Fact 1.", "Remember: Fact 2.", "Remember: Fact 3."]


def test_a_person_s_commit_stands_when_the_note_is_worked_out(stage: Stage) -> None:
    note = stage.remember("Fact 1.")
    stage.close()
    (stage.root / note.path).write_text("A person's words.\n")
    git(stage.root, "commit", "-qam", "By hand")
    note_of(stage).write_bytes(b"nonsense")
    stage.space = stage._opened()
    stage.remember("Fact 2.")
    stage.close()
    assert (stage.root / note.path).read_text() == git(stage.root, "show", f"HEAD:{note.path}") == "A person's words.\n"
    assert commits(stage) == ["Remember: Fact 1.", "By hand", "Remember: Fact 2."]
