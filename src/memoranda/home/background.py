"""The thread that commits while nobody waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

from memoranda.errors import MemorandaError
from memoranda.home.committer import JUST_NOW

_SOON = 0.03  # seconds from the first record of a group to its commit
_QUIET = 0.3  # seconds without a write before Git's index and the packs are looked after
_LATER = 0.5  # seconds until a held-up commit is tried again


class Background:
    """Calls `flush` soon after `wake`, and `tidy` when things are quiet."""

    def __init__(self, flush: Callable[..., str | None], tidy: Callable[[], bool]) -> None:
        self._flush = flush
        self._tidy = tidy
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self.trouble: MemorandaError | OSError | None = None  # the last failure, for `doctor` and the next caller

    def wake(self) -> None:
        self._woken.set()
        if self._thread is None:
            with self._starting:
                if self._thread is None and not self._stopped.is_set():
                    self._thread = threading.Thread(target=self._run, name="memoranda-commit", daemon=True)
                    self._thread.start()

    def _run(self) -> None:
        delay: float | None = None
        tidied = True
        while not self._stopped.is_set():
            woken = self._woken.wait(_QUIET if not tidied else delay)
            if self._stopped.is_set():
                return
            try:
                if woken or delay is not None:
                    self._stopped.wait(_SOON)
                    self._woken.clear()
                    held = self._flush(wait=False)
                    delay = None if held is None else 0.0 if held == JUST_NOW else _LATER
                    tidied = False
                elif not tidied:
                    tidied = self._tidy()
                self.trouble = None
            except (MemorandaError, OSError) as error:
                self.trouble = error  # the records stay in the log; tried again, and told by `doctor`
                delay = _LATER

    def stop(self) -> None:
        """Ends the thread; what it was doing is finished first."""
        with self._starting:
            self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()
