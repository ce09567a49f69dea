"""Where audit lines are copied to, as JSON lines, for whoever collects them: a file or the standard output."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from memoranda.errors import ComponentUnavailable, ConfigRefused

STDOUT = "-"


class Sink:
    """Lines go to a descriptor in their order. What it does not take is kept and tried again before the next ones, and
    meanwhile `flush` says so: nothing is done that could not be told."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, self._name = descriptor, name
        self._pending = b""
        self._lock = threading.Lock()

    def write(self, lines: bytes) -> None:
        """Takes whole lines; never fails by itself (`flush` does, before the next event)."""
        with self._lock:
            self._pending += lines
            self._try()

    def flush(self) -> None:
        """ComponentUnavailable while lines are left that the descriptor does not take."""
        if self._pending:
            with self._lock:
                error = self._try()
            if error is not None:
                raise ComponentUnavailable(
                    "The copy of the audit cannot be written, so nothing is done.",
                    why=f"{self._name}: {error.strerror}.",
                    remedy="Make room there, or take this sink out of the configuration.",
                )

    def _try(self) -> OSError | None:
        try:
            while self._pending:
                self._pending = self._pending[os.write(self._descriptor, self._pending) :]
        except OSError as error:
            return error
        return None

    def close(self) -> None:
        """Closes the file; the standard output stays open."""
        if self._descriptor > 2:
            os.close(self._descriptor)


def open_sink(target: str) -> Sink:
    """A sink to the file of this path, or to the standard output for `-`. ConfigRefused when it cannot be opened."""
    if target == STDOUT:
        return Sink(1, "standard output")
    path = Path(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Sink(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), str(path))
    except OSError as error:
        raise ConfigRefused(
            "The audit's copy cannot be opened for appending.",
            why=f"{path}: {error.strerror}.",
            remedy="Name a file in a folder that the service may write in, or `-` for the standard output.",
        ) from error
