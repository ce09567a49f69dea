"""The long-lived reader of objects."""

from __future__ import annotations

from pathlib import Path

from memoranda.home.git import Git
from memoranda.home.layout import layout_of


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
