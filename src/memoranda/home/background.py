"""The thread that commits while nobody waits, or sees to it that a process of its own does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from memoranda.errors import MemorandaError
from memoranda.home.commit_process import CommitProcess
from memoranda.home.committer import JUST_NOW

_SOON = 0.03  # seconds from the first record of a group to its commit
_QUIET = 0.3  # seconds without a write before Git's index and the packs are looked after
_LATER = 0.5  # seconds until a held-up commit is tried again
_BURST = 20  # records within a second that make a process of its own worth its start


class Background:
    """Calls `flush` soon after `wake`, and `tidy` when things are quiet.

    `left` gives the last record that is committed, None when all are. While `process` commits, the thread only looks
    on now and then; when nothing was committed between two looks, it does so itself.
    """

    def __init__(
        self,
        flush: Callable[..., str | None],
        tidy: Callable[[], bool],
        left: Callable[[], int | None],
        process: CommitProcess,
    ) -> None:
        self._flush = flush
        self._tidy = tidy
        self._left = left
        self._process = process
        self._bell = threading.Lock()  # open once it has rung; an Event costs a writer six times as much
        self._bell.acquire()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._written = 0
        self._burst = (0.0, 0)  # when a second began, and how much had been written by then
        self.trouble: MemorandaError | OSError | None = None  # the last failure, for `doctor` and the next caller

    def wake(self) -> None:
        self._written += 1
        self._ring()
        if self._thread is None:
            with self._starting:
                if self._thread is None and not self._stopped.is_set():
                    self._thread = threading.Thread(target=self._run, name="memoranda-commit", daemon=True)
                    self._thread.start()

    def _ring(self) -> None:
        if self._bell.locked():
            try:
                self._bell.release()
            except RuntimeError:
                pass  # another thread did so at this moment

    def _run(self) -> None:
        delay: float | None = None
        tidied = True
        while not self._stopped.is_set():
            seconds = _QUIET if not tidied else delay
            woken = self._bell.acquire(timeout=-1 if seconds is None else seconds)
            if self._stopped.is_set():
                return
            try:
                if woken or delay is not None:
                    self._stopped.wait(_SOON)
                    self._stand_by()
                    self._bell.acquire(blocking=False)  # what came meanwhile is in this group
                    held = self._flush(wait=False)
                    delay = None if held is None else 0.0 if held == JUST_NOW else _LATER
                    tidied = False
                elif not tidied:
                    tidied = self._tidy()
                self.trouble = None
            except (MemorandaError, OSError) as error:
                self.trouble = error  # the records stay in the log; tried again, and told by `doctor`
                delay = _LATER

    def _stand_by(self) -> None:
        """Returns when no process commits for us, or it has nothing to do, or gets nowhere."""
        began, before = self._burst
        now = time.monotonic()
        if now - began > 1:
            self._burst = (now, self._written)
        many = now - began <= 1 and self._written - before >= _BURST
        if not (self._process.start() if many else self._process.at_work()):
            return
        last = -1
        while not self._stopped.wait(_LATER) and self._process.at_work():
            left = self._left()
            if left is None or left == last:
                return
            last = left

    def stop(self) -> None:
        """Ends the thread; what it was doing is finished first."""
        with self._starting:
            self._stopped.set()
        self._ring()
        if self._thread is not None:
            self._thread.join()
        self._process.stop()
