"""The long-lived reader of objects."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from home.tools import head
from memoranda.context import Context
from memoranda.home.git import Git
from memoranda.home.keys import Keys
from memoranda.home.layout import layout_of
from memoranda.home.repository import Repository


def test_a_reader_that_ended_by_itself_leaves_no_pipe_open(base: Path) -> None:
    git = Git(layout_of(base))
    first = git.objects()
    pipe = first._process.stdout
    first._process.kill()
    first._process.wait()
    assert git.objects() is not first
    assert pipe is not None
    assert pipe.closed
    git.close()


def test_who_goes_through_many_answers_holds_up_no_other_and_no_closing(base: Path) -> None:
    git = Git(layout_of(base))
    name = head(base)
    going, left = git.get_many([name] * 150), git.get_many([name] * 150)
    first, process = next(going), git.objects()._process
    assert first is not None
    assert next(left) == first == git.get(name)
    git.renew()
    assert process.returncode is not None, "nobody is being answered"
    assert [*going] == [first] * 149
    git.close()
    with pytest.raises(RuntimeError, match="closed"):
        list(left)


def test_none_is_started_once_it_is_closed(base: Path) -> None:
    git = Git(layout_of(base))
    git.objects()
    git.close()
    with pytest.raises(RuntimeError, match="closed"):
        git.objects()
    git.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc here")
def test_a_home_that_cannot_commit_at_the_end_leaves_nothing_open(
    base: Path, live: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: bool) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    repository = Repository(base, live, Keys(base.parent / "keys"))
    assert repository.at("memory/home.yaml", None)
    monkeypatch.setattr(repository, "flush", full)
    with pytest.raises(OSError, match="space"):
        repository.close()
    assert len(os.listdir("/proc/self/fd")) <= len(before)  # noqa: PTH208
