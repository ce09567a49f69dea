"""How much memory a process takes that opens a Home, recalls and remembers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench._common import ROOT, Line, Options, at_most, context, home_of, opened, questions, subject, texts

TITLE = "memory: a process that opens, recalls 200 questions and remembers 100 notes"
_MOST = 200


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(100_000):
        root = home_of(size)
        command = [sys.executable, "-m", "bench.memory", str(root)]
        told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        bare, warm, peak, git = (float(word) for word in told.split())
        yield at_most(f"peak, {size:,} notes", peak, _MOST, "MB", "the interpreter, imported", bare)
        yield at_most(f"after warm-up, {size:,} notes", warm, _MOST, "MB", "the interpreter, imported", bare)
        yield Line(f"its reader of Git objects, {size:,} notes", git, "MB", note="a second process; packs are mapped")


def _children() -> float:
    """Resident megabytes of the processes that this one has started."""
    found = 0.0
    for row in Path("/proc/self/task").glob("*/children"):
        for child in row.read_text().split():
            try:
                found += _megabytes("VmRSS", child)
            except OSError:
                continue  # it has just ended
    return found


def _megabytes(what: str, process: str = "self") -> float:
    """`VmRSS` or `VmHWM` of a process; where there is no /proc, the peak in both cases."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    rows = [line for line in status.read_text().splitlines() if line.startswith(what)]
    return int(rows[0].split()[1]) / 1024 if rows else 0.0  # one that has just ended has none


def _work(root: Path) -> None:
    from memoranda.operations.recalling import recall
    from memoranda.operations.remembering import NewNote, remember

    bare = _megabytes("VmRSS")
    asked = questions(200)
    written = list(texts(100, seed=os.getpid()))
    with opened(root) as (space, _):
        space.watch()
        for question in asked:
            recall(context(), space, question)
        warm = _megabytes("VmRSS")
        for n, text in enumerate(written):
            remember(context(), space, NewNote(text, subject=subject(n % 40)))
        recall(context(), space, asked[0])
        git = _children()
    print(bare, warm, _megabytes("VmHWM"), git)


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
