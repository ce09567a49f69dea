"""Stands between the program and the file system: counts what it does, ends the process at a step, or notes it all.

A step is a call that changes something on the disk: a file opened for writing, bytes written, a name made, moved or
taken away, a sync, a Git that is started. Writes of buffered files are seen when the file is opened and when it is
synced; that is enough, since nobody relies on them in between.
"""

from __future__ import annotations

import io
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WRITE, PWRITE = os.write, os.pwrite  # the real ones
_WRITING = os.O_WRONLY | os.O_RDWR
Note = Callable[[str, tuple[Any, ...]], None]


@contextmanager
def watched(before: Note, after: Note = lambda _name, _words: None) -> Iterator[None]:
    """Calls `before` and `after` around each step with its name and its arguments."""
    guard = threading.local()

    def wrap(name: str, real: Callable[..., Any], counts: Callable[..., bool]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            if getattr(guard, "inside", False) or not counts(*words, **more):
                return real(*words, **more)
            guard.inside = True
            try:
                before(name, words)
                try:
                    return real(*words, **more)
                finally:
                    after(name, words)
            finally:
                guard.inside = False

        return call

    def always(*_words: Any, **_more: Any) -> bool:
        return True

    def writes(_path: Any, flags: int = 0, *_words: Any, **_more: Any) -> bool:
        return bool(flags & _WRITING)

    def for_writing(_file: Any, mode: str = "r", *_words: Any, **_more: Any) -> bool:
        return isinstance(mode, str) and any(letter in mode for letter in "wax+")

    places: list[tuple[Any, str, Callable[..., bool]]] = [
        (os, "write", always), (os, "pwrite", always), (os, "open", writes), (os, "replace", always),
        (os, "rename", always), (os, "link", always), (os, "unlink", always), (os, "mkdir", always),
        (os, "ftruncate", always), (os, "truncate", always), (os, "fsync", always), (os, "fdatasync", always),
        (os, "sync", always), (os, "chmod", always), (io, "open", for_writing), (subprocess, "Popen", always),
    ]  # fmt: skip
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, counts in places:
        if name == "Popen":
            continue
        setattr(owner, name, wrap(name, getattr(owner, name), counts))
    real_init = subprocess.Popen.__init__
    setattr(subprocess.Popen, "__init__", wrap("git", real_init, always))  # noqa: B010 - mypy must not see it
    try:
        yield
    finally:
        setattr(subprocess.Popen, "__init__", real_init)  # noqa: B010
        for owner, name, real in kept:
            setattr(owner, name, real)


_READING = {"cat-file", "diff-files", "diff-tree", "log", "ls-files", "merge-base", "rev-parse"}


def leaves_a_trace(name: str, words: tuple[Any, ...]) -> bool:
    """Whether a process that is killed before this step leaves something else behind than one killed after it."""
    if name in ("fsync", "fdatasync", "sync", "chmod"):
        return False
    if name == "git":
        return words[1][1] not in _READING
    if name == "mkdir":
        return not os.path.isdir(words[0])  # noqa: PTH112
    return ".memoranda/" not in str(words[0])  # a cache


class Ending:
    """Ends this process, as `kill -9` would, before the step number `at`; with `half`, in the middle of a write."""

    def __init__(self, at: int, *, half: bool = False) -> None:
        self.at = at
        self.half = half
        self.count = 0
        self.names: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, name: str, words: tuple[Any, ...]) -> None:
        if not leaves_a_trace(name, words):
            return
        with self._lock:
            self.count += 1
            self.names.append(name)
            if self.count != self.at:
                return
            if self.half and name in ("write", "pwrite"):
                descriptor, data, *rest = words
                part = bytes(data)[: len(data) // 2]
                if name == "write":
                    WRITE(descriptor, part)
                else:
                    PWRITE(descriptor, part, *rest)
            os._exit(9)
