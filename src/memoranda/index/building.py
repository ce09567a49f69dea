"""Builds the indexes of a recipe in a process of its own, beside whoever recalls and writes.

The process reads the catalog and writes the directories of the recipe's indexes: it holds no lock of the Home. What it
makes is kept as it goes; one that was killed is gone on with by the next, which asks for nothing twice. One builds at a
time in a Home, others wait for their turn. How far it is, and what stopped it, it writes down beside the index.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.context import system_clock
from memoranda.errors import MemorandaError, Unavailable
from memoranda.home.durable import FileLock
from memoranda.home.layout import Layout
from memoranda.index.catalog import Catalog
from memoranda.index.content import Part, described
from memoranda.index.opening import MODELS
from memoranda.index.recipes import NamedRecipe, find_recipe
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.notes.times import format_instant

if TYPE_CHECKING:
    from memoranda.index.endpoints import Endpoint

FILE = "progress.json"
_LOCK = "building.lock"
_EVERY = 0.2  # seconds between two lines of progress
_NICE = 10

Progress = Callable[[str, int, int], None]


class Building(NamedTuple):
    """How far a build is: `done` of `everything` documents, by process `pid`, last heard of at `at` (seconds since
    1970). `running` says whether a build is under way; `error` what stopped it."""

    done: int
    everything: int
    pid: int
    at: float
    running: bool
    error: str | None = None


def under_way(own: Path) -> bool:
    """Whether somebody builds in this Home; `own` is its `.git/memoranda`."""
    lock = FileLock(own / _LOCK)
    try:
        return not lock.try_acquire()
    finally:
        lock.close()


def progress_of(cache: Path, own: Path, part: Part) -> Building | None:
    """How far the build of an index is; None when none was begun or it is done."""
    try:
        told = json.loads((cache / part.name / FILE).read_bytes())
        return Building(told["done"], told["all"], told["pid"], told["at"], under_way(own), told["error"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def build(cache: Path, own: Path, recipe: NamedRecipe, progress: Progress | None = None) -> None:
    """Brings every index of the recipe up to the catalog, in this process; waits for a build that is under way.

    Raises:
        Unavailable: there is no catalog, `.memoranda/` was deleted meanwhile, or what the recipe needs is not there.
        IndexDamaged: an index cannot be read.
    """
    lock = FileLock(own / _LOCK)
    try:
        lock.acquire()
        directory = cache / CATALOG.directory_name()
        if not directory.is_dir():
            raise _gone()
        catalog = Catalog.open(directory)
        try:
            for part in recipe.parts:
                _part(cache, catalog, part, progress)
        finally:
            catalog.close()
    finally:
        lock.close()


def _part(cache: Path, catalog: Catalog, part: Part, progress: Progress | None) -> None:
    identity = catalog.state("identity")
    if identity is None:
        raise _gone()
    directory = cache / part.name
    directory.mkdir(exist_ok=True)
    note = _Note(directory, progress)
    note("", 0, 0)
    try:
        index = part.open(directory)
        try:
            begun = time.monotonic()
            part.bring(catalog, index, identity, note)
            described(catalog, part, index, format_instant(system_clock()), int((time.monotonic() - begun) * 1000))
        finally:
            index.close()
    except MemorandaError as error:
        note.stopped(error)
        raise
    (directory / FILE).unlink(missing_ok=True)


class _Note:
    """Tells how far a build is, in a file that is replaced in one step; stops it when its directory is gone."""

    def __init__(self, directory: Path, progress: Progress | None) -> None:
        self._directory = directory
        self._folder = directory.stat().st_ino
        self._progress = progress
        self._said = 0.0
        self._last = (0, 0)

    def __call__(self, what: str, done: int, everything: int) -> None:
        if self._progress:
            self._progress(what, done, everything)
        try:
            here = self._directory.stat().st_ino == self._folder
        except FileNotFoundError:
            here = False
        if not here:
            raise _gone()
        self._last = (done, everything)
        if time.monotonic() - self._said >= _EVERY:
            self._said = time.monotonic()
            self._write(None)

    def stopped(self, error: MemorandaError) -> None:
        if self._directory.is_dir():
            self._write(f"{error.what} {error.why or ''}".strip())

    def _write(self, error: str | None) -> None:
        told = {"done": self._last[0], "all": self._last[1], "pid": os.getpid(), "at": time.time(), "error": error}
        draft = self._directory / f"{FILE}.{os.getpid()}"
        draft.write_text(json.dumps(told), encoding="utf-8")
        draft.replace(self._directory / FILE)


def _gone() -> Unavailable:
    return Unavailable(
        "The indexes were deleted while one was being built.", remedy="Run `memoranda index add` with its recipe again."
    )


# The process

_children: list[int] = []


def start(layout: Layout, recipe: NamedRecipe) -> None:
    """Starts a process that builds; it goes on when this one ends. Unavailable when none can be started.

    What it needs of the settings goes to it through a pipe: a key stands on no command line and in no file.
    """
    _reap()
    told = {
        "cache": str(layout.cache.absolute()), "own": str(layout.own.absolute()), "recipe": recipe.spelt,
        "endpoint": list(recipe.endpoint) if recipe.endpoint else None,
    }  # fmt: skip
    # -P: what lies in the folder that somebody works in is no module of ours.
    words = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
    read, write = os.pipe()
    try:
        nowhere = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_WRONLY, 0) for n in (1, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, read, 0), *nowhere]
        _children.append(os.posix_spawn(sys.executable, words, os.environ, file_actions=actions, setpgroup=0))
        os.write(write, json.dumps(told).encode())
    except OSError as error:
        raise Unavailable(
            "No process could be started that builds the index.", why=str(error),
            remedy="Try again, or build it in this one: `memoranda index add RECIPE --wait`.",
        ) from error  # fmt: skip
    finally:
        os.close(read)
        os.close(write)


def _reap() -> None:
    """Lets go of those that have ended."""
    for pid in list(_children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0]
        except ChildProcessError:
            ended = pid
        if ended:
            _children.remove(pid)


def main() -> None:
    """Builds what is told on standard input; a lost terminal does not end it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    told = json.loads(sys.stdin.buffer.read())
    os.nice(_NICE)
    cache = Path(told["cache"])
    recipe = find_recipe(told["recipe"], cache / MODELS, lambda _: _endpoint(told["endpoint"]))
    try:
        build(cache, Path(told["own"]), recipe)
    except MemorandaError:
        sys.exit(1)  # it is written down where the progress was


def _endpoint(fields: list[Any] | None) -> Endpoint | None:
    from memoranda.index.endpoints import Endpoint

    return Endpoint(*fields) if fields else None
