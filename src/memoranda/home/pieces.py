"""The parts of an open Home, as they are lent to what is no everyday work: erasing from it, pulling into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.home.committer import Committer
from memoranda.home.disk import DiskStore
from memoranda.home.erasing.erasures import Erasures
from memoranda.home.git import CatFile, Git
from memoranda.home.gitindex import GitIndex
from memoranda.home.keys import Keys
from memoranda.home.layout import Layout
from memoranda.home.ledger_tip import LedgerTip
from memoranda.home.log import IntakeLog
from memoranda.home.worktree import Worktree
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Pieces:
    """The parts of an open Home, for what works on several of them at once."""

    layout: Layout
    git: Git
    store: DiskStore
    worktree: Worktree
    log: IntakeLog
    committer: Committer
    git_index: GitIndex
    erasures: Erasures
    keys: Keys
    home: str
    replica: str
    tip: LedgerTip

    @property
    def folder(self) -> Path:
        """Where the plan of an erasing lies until it is finished."""
        return self.layout.own / "erasing"

    @contextmanager
    def reader(self) -> Iterator[CatFile]:
        """A reader of objects of its own, so that long scans hold nobody up."""
        reader = self.git.reader()
        try:
            yield reader
        finally:
            reader.close()
