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
from typing import Any

from bench._common import CACHE, Line, Options, context, discard, files, new_home, opened, within
from memoranda.index.indexes import Indexes
from memoranda.operations import importing

TITLE = "import: a folder of Markdown files"


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(100_000):
        source = files(size)
        bare, _, _ = _ours(source, size, "import-bare", indexes=False)
        discard(CACHE / "import-bare")
        parts = _yardstick(source)
        whole, progress, left = _ours(source, size, f"home-{size}", indexes=True)
        (CACHE / f"home-{size}.done").touch()  # it stays for the rows that follow
        yard = sum(parts.values())
        told = " + ".join(parts)
        yield within(f"import {size:,} files", whole, told, yard, 2, unit="s")
        less = yard - parts["FTS5"]
        yield Line(
            "  the same without catalog and lexical index", bare, "s", "reading + fast-import", less, bare / less
        )
        for name, seconds in parts.items():
            yield Line(f"  yardstick: {name}", seconds, "s")
        yield Line("  reports of progress", progress, "")
        if left:
            yield Line("  files left alone", len(left), "", note=f"the first: {left[0][0]}: {left[0][1]}")


def _ours(source: Path, size: int, name: str, *, indexes: bool) -> tuple[float, int, tuple[Any, ...]]:
    """(seconds until all is committed and the Home is closed, reports of progress, what was not taken and why)."""
    root = new_home(name)
    reports: list[str] = []
    catch_up, many = Indexes.catch_up, importing._MANY
    if not indexes:
        Indexes.catch_up = lambda self: self.repository.snapshot()  # type: ignore[method-assign]
        importing._MANY = size + 1  # no second process that makes them meanwhile
    try:
        started = time.perf_counter()
        with opened(root) as (space, _):
            done = importing.import_folder(context(), space, source, lambda what, _n, _all: reports.append(what))
        took = time.perf_counter() - started
    finally:
        Indexes.catch_up, importing._MANY = catch_up, many  # type: ignore[method-assign]
    if done.taken + len(done.left) != size:
        raise RuntimeError(f"{done.taken} of {size} files were taken")
    return took, len(reports), done.left


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
