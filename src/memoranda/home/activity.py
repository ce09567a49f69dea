"""Whether a person is at work in the Home's Git, so that nothing of theirs is disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from memoranda.home.layout import Layout
from memoranda.home.refs import Refs

_EDITING_FOR = 3600.0  # a commit message left open longer than this (seconds) is taken for abandoned
_FILES = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG")
_FOLDERS = ("rebase-merge", "rebase-apply", "sequencer")
_LOCKS = ("index.lock", "HEAD.lock")
_STEP = 0.01
_STEPS = 30


class Activity:
    """Looks at the traces that Git leaves of what is under way."""

    def __init__(self, layout: Layout, refs: Refs, clock: Callable[[], datetime]) -> None:
        self._layout = layout
        self._refs = refs
        self._clock = clock
        self._held: tuple[Path, int] | None = None  # a lock that did not go away while we waited

    def busy(self, *, patient: bool = False) -> str | None:
        """Why nothing may be committed at the moment, None when it may.

        A lock is often held for a moment only, by Git or by ourselves; `patient` waits for that, once for each lock.
        """
        if (reason := self._under_way()) is not None:
            return reason
        lock, waited = self._lock(), False
        for _ in range(_STEPS if patient else 0):
            if lock is None or lock == self._held:
                break
            time.sleep(_STEP)
            lock, waited = self._lock(), True
        if patient and waited:
            self._held = lock
        if lock is not None:
            return f"Git is busy in this Home ({lock[0].relative_to(self._layout.common_dir.parent)})"
        return self._under_way() if waited else None

    def _under_way(self) -> str | None:
        for name in (*_FILES, *_FOLDERS):
            if (self._layout.git_dir / name).exists():
                return f"Git is busy in this Home ({name})"
        if self._refs.head() is None:
            return "HEAD is detached in this Home"
        if self._editing():
            return "a commit message is being written in this Home"
        return None

    def _lock(self) -> tuple[Path, int] | None:
        """A lock that somebody holds, with its inode."""
        places = [self._layout.git_dir / name for name in _LOCKS]
        branch = self._refs.head()
        if branch is not None:
            places.append(self._layout.common_dir / f"{branch}.lock")
        for place in places:
            try:
                return place, place.stat().st_ino
            except FileNotFoundError:
                continue
        return None

    def _editing(self) -> bool:
        """`git commit` with an open editor holds no lock, and fails when the branch moves meanwhile."""
        opened = _changed(self._layout.git_dir / "COMMIT_EDITMSG")
        branch = self._refs.head()
        moved = [_changed(self._layout.git_dir / "logs" / "HEAD")]  # a person may have turned the reflog off
        moved += [_changed(self._layout.common_dir / branch)] if branch else []
        done = max((at for at in moved if at is not None), default=None)
        if opened is None or done is None:
            return False
        return done < opened and self._clock().timestamp() - opened < _EDITING_FOR


def _changed(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
