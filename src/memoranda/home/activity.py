"""Whether a person is at work in the Home's Git, so that nothing of theirs is disturbed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime

from memoranda.home.layout import Layout
from memoranda.home.refs import Refs
from memoranda.home.worktree import is_there

_EDITING_FOR = 3600.0  # a commit message left open longer than this (seconds) is taken for abandoned
_TRACES = (
    "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer",
)  # fmt: skip
_MESSAGE = "COMMIT_EDITMSG"
_TICK = 50_000_000  # nanoseconds: more than the clock of any file system
_LOCKS = ("index.lock", "HEAD.lock")
_STEP = 0.01
_STEPS = 30


class Activity:
    """Looks at the traces that Git leaves of what is under way. Asked before every read, so it costs little."""

    def __init__(self, layout: Layout, refs: Refs, clock: Callable[[], datetime]) -> None:
        self._git_dir = f"{layout.git_dir}/"
        self._common_dir = f"{layout.common_dir}/"
        self._refs = refs
        self._clock = clock
        self._rest: tuple[tuple[str, str], tuple[int, int]] | None = None  # folders, and when they had last changed
        self._lock = ""  # of the branch, as `_rest` knows it
        self._held: tuple[str, int] | None = None  # a lock that did not go away while we waited

    def busy(self, *, patient: bool = False) -> str | None:
        """Why nothing may be committed at the moment, None when it may.

        A lock is often held for a moment only, by Git or by ourselves; `patient` waits for that, once for each lock.
        """
        reason, lock = self._look()
        waited = False
        for _ in range(_STEPS if patient else 0):
            if reason is not None or lock is None or lock == self._held:
                break
            time.sleep(_STEP)
            waited = True
            reason, lock = self._look()
        if waited:
            self._held = lock
        if reason is None and lock is not None:
            reason = f"Git is busy in this Home ({lock[0]})"
        return reason

    def at_rest(self) -> bool:
        """Whether nothing is under way; told by the times of two folders when these have not changed since a look."""
        if self._rest is not None:
            folders, known = self._rest
            times = (_changed_ns(folders[0]), _changed_ns(folders[1]))
            if times == known:
                return True
            if times[0] == known[0]:  # our own commits change the folder of the branch, and nothing else
                if is_there(self._lock):
                    return False
                if self._lasting(times):
                    self._rest = folders, times
                return True
        self._rest = None
        branch = self._refs.head()
        self._lock = f"{self._common_dir}{branch}.lock"
        folders = (self._git_dir, os.path.dirname(self._lock))  # noqa: PTH120
        times = (_changed_ns(folders[0]), _changed_ns(folders[1]))
        if self.busy() is not None:
            return False
        # What changes within the same tick of the system's clock would not be seen; nor is a message that is edited.
        if self._lasting(times) and not os.path.exists(self._git_dir + _MESSAGE):  # noqa: PTH110
            self._rest = folders, times
        return True

    @staticmethod
    def _lasting(times: tuple[int, int]) -> bool:
        """Whether a change after these times would be told by other ones: the clock has gone on since."""
        return min(times) > 0 and max(times) < time.time_ns() - _TICK

    def _look(self) -> tuple[str | None, tuple[str, int] | None]:
        """What is under way for long, and a lock (name, inode) that may be gone in a moment."""
        names = set(os.listdir(self._git_dir))  # noqa: PTH208 - one call in the place of ten
        for trace in _TRACES:
            if trace in names:
                return f"Git is busy in this Home ({trace})", None
        branch = self._refs.head()
        if branch is None:
            return "HEAD is detached in this Home", None
        if _MESSAGE in names and self._editing(branch):
            return "a commit message is being written in this Home", None
        places = [(name, self._git_dir + name) for name in _LOCKS if name in names]
        for name, place in (*places, (f"{branch}.lock", f"{self._common_dir}{branch}.lock")):
            try:
                return None, (name, os.lstat(place).st_ino)
            except (FileNotFoundError, NotADirectoryError):
                continue
        return None, None

    def _editing(self, branch: str) -> bool:
        """`git commit` with an open editor holds no lock, and fails when the branch moves meanwhile."""
        opened = _changed(f"{self._git_dir}COMMIT_EDITMSG")
        # A person may have turned the reflog off; then the branch itself tells when it moved.
        done = max(_changed(f"{self._git_dir}logs/HEAD"), _changed(self._common_dir + branch))
        return 0 < done < opened and self._clock().timestamp() - opened < _EDITING_FOR


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return 0.0


def _changed_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - once a note
    except OSError:
        return 0
