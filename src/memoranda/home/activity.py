"""Whether a person is at work in the Home's Git, so that nothing of theirs is disturbed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime

from memoranda.home.git import Git
from memoranda.home.layout import Layout
from memoranda.home.refs import Refs
from memoranda.home.worktree import is_there

_EDITING_FOR = 3600.0  # a commit message left open longer than this (seconds) is taken for abandoned
_TRACES = (
    "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer",
)  # fmt: skip
_MESSAGE = "COMMIT_EDITMSG"
_LONGEST = 1 << 20  # bytes of a message
_TICK = 50_000_000  # nanoseconds: more than the clock of any file system
_MOVED = ("ORIG_HEAD", "refs/stash")  # what Git writes when it brings files elsewhere, and we never do
_JUST_NOW = 5.0  # seconds
_LOCKS = ("index.lock", "HEAD.lock")
_STEP = 0.01
_STEPS = 30


class Activity:
    """Looks at the traces that Git leaves of what is under way. Asked before every read, so it costs little."""

    def __init__(self, layout: Layout, refs: Refs, clock: Callable[[], datetime], git: Git) -> None:
        self._git = git
        self._index = layout.index
        self._refused: tuple[object, bool] | None = None  # of which message and index this was said
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

    def just_now(self) -> bool:
        """Whether a person's Git has moved files about in the last seconds: more of that may come at any moment."""
        now = time.time()  # the machine's clock and no other: it is compared with a file's time
        places = (folder + name for folder in {self._git_dir, self._common_dir} for name in _MOVED)
        return any(0 <= now - _changed(place) < _JUST_NOW for place in places)

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
        opened = _changed(self._git_dir + _MESSAGE)
        # A person may have turned the reflog off; then the branch itself tells when it moved.
        done = max(_changed(f"{self._git_dir}logs/HEAD"), _changed(self._common_dir + branch))
        if not 0 < done < opened or self._clock().timestamp() - opened >= _EDITING_FOR:
            return False
        at = self._refs.read(branch), _changed_ns(self._git_dir + _MESSAGE), _changed_ns(str(self._index))
        if self._refused is None or self._refused[0] != at:
            self._refused = at, self._was_refused(at[0])
        return not self._refused[1]

    def _was_refused(self, commit: str | None) -> bool:
        """Git writes the message first, and refuses the commit then since it would be empty: nothing is staged.

        An editor may be open all the same where both what a person says and Git's own remarks stand in the message:
        `git commit --amend` begins with those.
        """
        try:
            with open(self._git_dir + _MESSAGE, "rb") as file:  # noqa: PTH123 - the folder is kept as text
                lines = [line for line in file.read(_LONGEST).splitlines() if line.strip()]
        except OSError:
            return False
        remarks = sum(line.startswith(b"#") for line in lines)
        if commit is None or 0 < remarks < len(lines):
            return False
        staged = ("diff-index", "--cached", "--quiet", commit)
        return self._git.call(*staged, index=self._index, accept=(0, 1, 128)).returncode == 0


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
