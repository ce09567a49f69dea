"""Recall while others work: while 50 notes a second arrive, while the indexes are made again, while a recipe is built.

Each is measured beside the same questions in the same process with nobody else at work, before it and after it. Who
works does so in a process of its own: one that writes notes by the clock, one that rebuilds again and again, one that
builds a recipe's indexes in the background as `index add` does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench._common import ROOT, Line, Options, context, home_of, median, opened, percentile, questions, subject, texts
from memoranda.index import building
from memoranda.operations.open_home import OpenHome
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space

TITLE = "under load: recall while notes arrive, and while indexes are made"
_RATE = 50  # notes a second
_SECONDS = 20.0


def run(options: Options) -> Iterator[Line]:
    seconds = _SECONDS / 4 if options.quick else _SECONDS
    for size in options.sizes(10_000, 100_000):
        yield from _at(size, seconds)


def _at(size: int, seconds: float) -> Iterator[Line]:
    with opened(home_of(size)) as (space, home):
        space.watch()  # as an MCP server does
        _asked(space, seconds / 4)
        for name, what, most in (
            ("notes", f"{_RATE} notes a second arrive", 1.5),
            ("rebuild", "the indexes are made again", 3.0),
            ("build", "a recipe is built", 3.0),
        ):
            before = _asked(space, seconds / 2)
            with _Working(home, name) as working:
                under = _asked(space, seconds)
            quiet = [*before, *_asked(space, seconds / 2)]
            for label, of in (("p50", median), ("p95", lambda times: percentile(times, 95))):
                mine, theirs = of(under), of(quiet)
                bound, met = (f"within {most:g} times", mine <= most * theirs) if label == "p95" else ("", None)
                line = f"{label} while {what}, {size:,} notes"
                yield Line(line, mine, "ms", "quiet", theirs, mine / theirs, bound, met, working.note)


def _asked(space: Space, seconds: float) -> list[float]:
    """Milliseconds of each question, one after the other for so long."""
    asked, found = questions(400), []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        recall(context(), space, asked[len(found) % len(asked)])
        found.append((time.perf_counter() - started) * 1000)
        time.sleep(0.002)
    return found


class _Working:
    """Another process at work in the Home until the end; `note` says what it did."""

    def __init__(self, home: OpenHome, name: str) -> None:
        words = [sys.executable, "-m", "bench.under_load", name, str(home.repository.root)]
        self._process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.note = ""

    def __enter__(self) -> _Working:
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun
        return self

    def __exit__(self, *_: object) -> None:
        said, _ = self._process.communicate("stop\n")
        self.note = said.strip()
        if self._process.returncode:
            raise RuntimeError(f"who worked beside it ended with {self._process.returncode}")


def _stopped() -> bool:
    import select

    return bool(select.select([sys.stdin], [], [], 0)[0])


def _notes(space: Space) -> str:
    done, began = 0, time.monotonic()
    for n, text in enumerate(texts(1_000_000, seed=99)):
        if _stopped():
            break
        time.sleep(max(0.0, began + n / _RATE - time.monotonic()))
        remember(context(), space, NewNote(text, subject=subject(n % 40)))
        done = n + 1
    return f"{done / (time.monotonic() - began):.0f} notes a second"


def _rebuild(space: Space) -> str:
    done, began = 0, time.monotonic()
    while not _stopped():
        space.one().indexes.rebuild()
        done += 1
    return f"{(time.monotonic() - began) / max(done, 1):.1f} s each"


def _build(space: Space) -> str:
    """Builds all parts of the active recipe in other directories, again and again."""
    home = space.one()
    home.refresh(context())
    indexes, layout = home.indexes, home.repository.layout
    cache = layout.cache / "bench"
    done, began = 0, time.monotonic()
    while not _stopped():
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir()
        (cache / indexes.catalog.directory.name).symlink_to(indexes.catalog.directory)
        building.build(cache, layout.own, indexes.active())
        done += 1
    shutil.rmtree(cache)
    return f"{(time.monotonic() - began) / max(done, 1):.1f} s each"


def main(arguments: Sequence[str]) -> None:
    name, root = arguments
    work = {"notes": _notes, "rebuild": _rebuild, "build": _build}[name]
    if name == "build":
        import os

        os.nice(10)  # as the process that `index add` starts
    with opened(Path(root)) as (space, home):
        home.repository.look(context())
        print("begun", flush=True)
        print(work(space), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
