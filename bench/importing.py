"""Import of a folder of Markdown, until all is committed and indexed, beside the parts that cannot be saved.

The yardstick reads the same files, feeds them to `git fast-import` as one commit, and inserts their texts into FTS5
with the Porter stemmer. It makes no copy of a file, no history in steps, no catalog and no ledger, which ours does.
"""

from __future__ import annotations

import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench._common import CACHE, Line, Options, context, discard, files, new_home, opened, within
from memoranda.index.indexes import Indexes
from memoranda.operations import importing

TITLE = "import: a folder of Markdown files"


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(100_000):
        source = files(size)
        bare = _ours(source, size, "import-bare", indexes=False, scanning=False)
        parts = _yardstick(source)
        whole = _ours(source, size, "import-whole", indexes=True, scanning=False)
        scanned = _ours(source, size, f"home-{size}", indexes=True, scanning=True)
        (CACHE / f"home-{size}.done").touch()  # it stays for the rows that follow
        discard(CACHE / "import-bare")
        discard(CACHE / "import-whole")
        yard = sum(parts.values())
        told = " + ".join(parts)
        yield within(f"import {size:,} files", whole.seconds, told, yard, 2, unit="s")
        yield Line("  with the scanning for secrets", scanned.seconds, "s", told, yard, scanned.seconds / yard)
        less = yard - parts["FTS5"]
        what = "  without catalog, lexical index and scanning"
        yield Line(what, bare.seconds, "s", "reading + fast-import", less, bare.seconds / less)
        for name, seconds in parts.items():
            yield Line(f"  yardstick: {name}", seconds, "s")
        yield Line("  reports of progress", whole.reports, "")
        if left := scanned.left:
            yield Line("  files left alone", len(left), "", note=f"the first: {left[0][0]}: {left[0][1]}")


class _Import(NamedTuple):
    """Seconds until all is committed and the Home is closed, reports of progress, what was not taken and why."""

    seconds: float
    reports: int
    left: tuple[tuple[str, str], ...]


class _NoScanner:
    """In the place of the process that looks for secrets."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        pass


def _ours(source: Path, size: int, name: str, *, indexes: bool, scanning: bool) -> _Import:
    root = new_home(name)
    reports: list[str] = []
    kept = Indexes.catch_up, Indexes.ahead, importing._MANY, importing.admit_many, importing.Scanner  # type: ignore
    if not indexes:
        Indexes.catch_up = lambda self, *_: self.repository.snapshot()  # type: ignore[method-assign]
        Indexes.ahead = lambda _self, **_how: None  # type: ignore[method-assign]
        importing._MANY = size + 1  # no second process that makes them meanwhile
    if not scanning:
        importing.admit_many = lambda files, _rules: [None] * len(files)  # type: ignore
        importing.Scanner = _NoScanner  # type: ignore
    try:
        started = time.perf_counter()
        with opened(root) as (space, _):
            done = importing.import_folder(context(), space, source, lambda what, _n, _all: reports.append(what))
        took = time.perf_counter() - started
    finally:
        Indexes.catch_up, Indexes.ahead, importing._MANY, importing.admit_many, importing.Scanner = kept  # type: ignore
    if done.taken + len(done.left) != size:
        raise RuntimeError(f"{done.taken} of {size} files were taken")
    return _Import(took, len(reports), done.left)


def _yardstick(source: Path) -> dict[str, float]:
    """Seconds of each part."""
    marks = [time.perf_counter()]
    data = [(str(path.relative_to(source)), path.read_bytes()) for path in sorted(source.rglob("*.md"))]
    marks.append(time.perf_counter())
    _fast_import(data)
    marks.append(time.perf_counter())
    database = CACHE / "yard.db"
    database.unlink(missing_ok=True)
    with sqlite3.connect(database) as fts:
        fts.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter')")
        fts.executemany("INSERT INTO t VALUES (?)", ((text.decode(),) for _, text in data))
    fts.close()
    marks.append(time.perf_counter())
    names = ("reading", "fast-import", "FTS5")
    return {name: end - begin for name, begin, end in zip(names, marks, marks[1:], strict=False)}


def _fast_import(data: list[tuple[str, bytes]]) -> None:
    folder = CACHE / "yard.git"
    discard(folder)
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    with subprocess.Popen(["git", "-C", str(folder), "fast-import", "--quiet"], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"commit refs/heads/main\ncommitter bench <bench@localhost> 0 +0000\ndata 1\nx\n")
        for name, text in data:
            process.stdin.write(f"M 100644 inline {name}\ndata {len(text)}\n".encode() + text + b"\n")
        process.stdin.close()
    if process.returncode:
        raise RuntimeError("git fast-import failed")
