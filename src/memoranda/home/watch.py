"""Notices at once what changes in the working tree, for processes that live longer than one command.

The kernel queues an event before the writer's `close` returns, and the queue is read at the moment of the question, so
an edit that has happened is never missed by the next recall. Where there is no inotify, `poll` says so by None and
the caller compares files instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Watch:
    """Watches folders under `root`; paths are relative to it, with `/`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[int, str] = {}
        self._inotify: Any = None
        self._flags: Any = None
        if sys.platform == "linux":
            try:
                from inotify_simple import INotify, flags
            except ImportError:
                return
            self._flags = flags
            try:
                self._inotify = INotify(nonblocking=True)
            except OSError:
                self._inotify = None

    @property
    def works(self) -> bool:
        return self._inotify is not None

    def add(self, folders: Iterable[str]) -> None:
        """Watches more folders; gives up for good when the system's limit of watches is reached."""
        f = self._flags
        if self._inotify is None:
            return
        mask = f.CLOSE_WRITE | f.CREATE | f.DELETE | f.MOVED_FROM | f.MOVED_TO | f.ONLYDIR | f.DONT_FOLLOW
        known = set(self._folders.values())
        for folder in folders:
            if folder in known:
                continue
            try:
                self._folders[self._inotify.add_watch(self._root / folder, mask)] = folder
            except FileNotFoundError:
                continue
            except OSError:
                self.close()
                return

    def poll(self) -> set[str] | None:
        """The paths that were written, created, moved or deleted since the last call; None: compare everything."""
        if self._inotify is None:
            return None
        touched: set[str] = set()
        fresh: list[str] = []
        for event in self._inotify.read(timeout=0):
            if event.mask & self._flags.Q_OVERFLOW:
                return None
            folder = self._folders.get(event.wd)
            if event.mask & self._flags.IGNORED:
                self._folders.pop(event.wd, None)
                continue
            if folder is None or not event.name:
                continue
            path = event.name if folder == "." else f"{folder}/{event.name}"
            if event.mask & self._flags.ISDIR:
                if event.mask & (self._flags.CREATE | self._flags.MOVED_TO):
                    fresh.append(path)
                else:
                    touched.add(path + "/")
            elif event.mask & ~self._flags.CREATE or self._second_name(path):
                touched.add(path)  # a bare CREATE is a file that is still being written
        for folder in fresh:
            touched |= self._enter(folder)
        return touched

    def _second_name(self, path: str) -> bool:
        """Whether a file that was just created is an old one under a new name: nothing more will be written to it."""
        try:
            return (self._root / path).lstat().st_nlink > 1
        except OSError:
            return False

    def _enter(self, folder: str) -> set[str]:
        """Watches a new folder and all below it; what lies there already counts as written."""
        found: set[str] = set()
        for place, _, names in os.walk(self._root / folder):
            inside = Path(place).relative_to(self._root).as_posix()
            self.add([inside])
            found.update(f"{inside}/{name}" for name in names)
        return found

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
