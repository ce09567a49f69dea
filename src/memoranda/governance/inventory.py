"""The instances that the Manager has rendered: those of the configuration, or of a file that is watched for change."""

from __future__ import annotations

import logging
import threading
import tomllib
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from memoranda.engines.contract import InstanceDeclaration
from memoranda.errors import ConfigRefused

_log = logging.getLogger(__name__)
State = tuple[int, int, int]


class Inventory:
    """What is rendered now. `file` is TOML with `[[instances]]`; one that is not there yet has none.

    A change of the file counts from the next look on. One that cannot be read changes nothing: what was read last
    holds, and the log says so.
    """

    def __init__(self, fixed: Iterable[InstanceDeclaration] = (), file: Path | None = None) -> None:
        self.file = file
        self._fixed = tuple(fixed)
        self._lock = threading.Lock()
        self._state: State | None = None
        self._there: tuple[InstanceDeclaration, ...] = self._fixed
        self._n = 0
        if file is not None:
            self._state = _state(file)
            self._there = self._fixed + _read(file)
            _refuse_twice(self._there)

    def now(self) -> tuple[int, tuple[InstanceDeclaration, ...]]:
        """The instances, with a number that differs after each change."""
        if self.file is not None and _state(self.file) != self._state:
            with self._lock:
                state = _state(self.file)  # before it is read: what is written meanwhile is read the next time
                if state != self._state:
                    self._reread(self.file)
                    self._state = state
        return self._n, self._there

    def _reread(self, file: Path) -> None:
        try:
            there = self._fixed + _read(file)
            _refuse_twice(there)
        except ConfigRefused as error:
            _log.error("The inventory of engines was changed and is not used: %s %s", error.what, error.why)
            return
        if there != self._there:
            self._there, self._n = there, self._n + 1
            _log.warning("The inventory of engines was changed: %s", ", ".join(one.id for one in there) or "none")


def _state(file: Path) -> State | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _read(file: Path) -> tuple[InstanceDeclaration, ...]:
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8")).get("instances", [])
        return tuple(InstanceDeclaration.model_validate(one) for one in told)
    except FileNotFoundError:
        return ()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        why = f"An instance's {'.'.join(map(str, first['loc']))} is wrong: {first['msg']}."
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError, AttributeError) as error:
        why = f"It is no TOML with [[instances]]: {error}."
    raise ConfigRefused(
        f"The inventory {file.name} cannot be used.", why=why, remedy="Have the Manager render it again."
    )


def _refuse_twice(there: tuple[InstanceDeclaration, ...]) -> None:
    if len({one.id for one in there} - {"builtin", "hybrid"}) < len(there):
        raise ConfigRefused(
            "The inventory of engines cannot be used.", why="Two instances have the same id, or one is `builtin`.",
            remedy="Give each an id of its own.",
        )  # fmt: skip
