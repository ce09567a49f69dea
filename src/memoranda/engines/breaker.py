"""Who does not answer is not asked again at once: a pause that grows, and one call that tries whether it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

FAILURES = 5  # calls in a row without an answer, after which it is left alone
PAUSE = 5.0  # seconds, doubled each time that it has not come back
LONGEST = 60.0


class Breaker:
    """Of one engine instance; thread-safe. `clock` is in seconds, as `time.monotonic`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._pause = PAUSE
        self._until = 0.0  # when it is tried again; 0 while it is asked as usual
        self._trying = False

    def waits(self) -> float | None:
        """Seconds until it is tried again; None when it may be asked now. Who gets None says what came of it."""
        with self._lock:
            if not self._until:
                return None
            left = self._until - self._clock()
            if left > 0 or self._trying:
                return max(left, 1.0)
            self._trying = True
            return None

    def answered(self) -> None:
        """It has answered, whatever it said."""
        with self._lock:
            self._failures, self._pause, self._until, self._trying = 0, PAUSE, 0.0, False

    def failed(self) -> None:
        """It has not answered, in all the time that it has."""
        with self._lock:
            self._failures += 1
            if self._trying:
                self._pause = min(self._pause * 2, LONGEST)
            if self._trying or self._failures >= FAILURES:
                self._until, self._trying = self._clock() + self._pause, False

    def undecided(self) -> None:
        """The call ended before it could be known."""
        with self._lock:
            self._trying = False


def moment_in(seconds: float) -> str:
    """The time of day so many seconds from now, for people: `20:15:07Z`."""
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%H:%M:%SZ}"
