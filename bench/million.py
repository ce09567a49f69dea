"""The numbers at a million notes: a full rebuild, recall, and one note more, beside raw FTS5 on the same texts.

A million files would take 4 GB of a disk, and minutes to make and to delete. The Home is a sparse clone instead: its
notes are committed by `git fast-import`, some hundred to a commit as an import does, with the lines of the ledger that
an import writes; in the working tree Git leaves them out (`skip-worktree`). Everything that is measured reads notes
from Git's objects and would do so with the files there as well; what is not measured is comparing a million files with
Git's index, which a process that watches the folder does once.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, NamedTuple

from bench._common import (
    CACHE,
    ROOT,
    Line,
    Options,
    at_most,
    context,
    environment,
    keys,
    median,
    new_home,
    note_text,
    opened,
    pairs,
    percentile,
    questions,
    subject,
    tell,
    texts,
)
from memoranda.home.draft import Draft
from memoranda.home.layout import layout_of
from memoranda.home.repository import Repository
from memoranda.index.recipes import STATIC, WORDS, default_name
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space

TITLE = "million: a rebuild, recall, and one note more"
_TARGET = "memory/notes/bench"
_COMMIT = 500  # notes
_MORE = 20
_FOLDER = 900
# (seconds, megabytes) of a rebuild; p50 and p95 of a recall with vectors, in milliseconds.
_REBUILD = {WORDS: (120, 500), STATIC: (360, 2000)}
_RECALL = {100_000: (4, 10), 1_000_000: (10, 25)}


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(1_000_000):
        root = packed_home(size)
        seconds = _fts(size)
        yield Line(f"raw FTS5, {size:,} texts", seconds, "s")
        recipes = [WORDS, *([STATIC] if default_name() == STATIC else [])]
        for recipe in recipes:
            yield from _rebuilt(root, size, recipe, seconds)
            yield from _asked(root, size, recipe, options)


# A Home without its files


def packed_home(count: int) -> Path:
    """A Home with `count` notes in its commits and none in its working tree, made once."""
    root = CACHE / f"packed-{count}"
    done = CACHE / f"packed-{count}.done"
    if done.exists():
        return root
    tell(f"committing {count:,} notes")
    new_home(root.name)
    commit = _commit(root, count)
    _leave_out(root, commit)
    done.touch()
    return root


def _commit(root: Path, count: int) -> str:
    """Feeds the notes to Git, and the lines about them to the ledger; returns the last commit."""
    former = _git(root, "rev-parse", "HEAD")
    command = ["git", "-C", str(root), "-c", "core.compression=1", "fast-import", "--quiet", "--depth=0"]
    lines: list[dict[str, object]] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        notes = _notes(count)
        for first in range(0, count, _COMMIT):
            files = [next(notes) for _ in range(min(_COMMIT, count - first))]
            blobs = _one_commit(process.stdin, files, former if not first else "", first)
            line: dict[str, object] = {"kind": "writes", "op": "import", "blobs": blobs, "user": "bench"}
            lines.append({**line, "origin": "import", "agent": "bench", "session": "ses_bench", "taint": []})
        process.stdin.close()
    if process.returncode:
        raise RuntimeError("git fast-import failed")
    with Repository(root, context(), keys()) as repository:
        for at in range(0, len(lines), 100):
            told = lines[at : at + 100]
            repository.write(context(), lambda _at, told=told: Draft("import", "Import", (), told, {}, "bench"))  # type: ignore[misc]
        repository.flush()
    return _git(root, "rev-parse", "HEAD")


def _one_commit(out: IO[bytes], files: list[tuple[str, bytes]], former: str, number: int) -> list[str]:
    head = f"commit refs/heads/main\ncommitter bench <bench@localhost> {1_780_000_000 + number} +0000\ndata 6\nImport"
    out.write(f"{head}\n{f'from {former}' + chr(10) if former else ''}".encode())
    blobs = []
    for path, data in files:
        out.write(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        blobs.append(hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())
    return blobs


def _notes(count: int) -> Iterator[tuple[str, bytes]]:
    """(path, bytes), some hundred of a folder one after the other, as an import reads them."""
    folders = 300
    for n, text in enumerate(texts(count)):
        topic = n * folders // count
        part = (n - -(-topic * count // folders)) // _FOLDER + 1
        folder = f"topic{topic}" + (f"~{part}" if part > 1 else "")
        yield f"{_TARGET}/{folder}/note-{n}.md", note_text(n, text).encode()


def _leave_out(root: Path, commit: str) -> None:
    """The working tree of a sparse clone: Git's index has the notes, the folder has not."""
    _git(root, "config", "core.sparseCheckout", "true")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "sparse-checkout").write_text(f"/*\n!/{_TARGET}/\n")
    _git(root, "read-tree", "-m", "-u", "HEAD")
    (layout_of(root).own / "indexed").write_text(f"{commit}\n", encoding="ascii")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout.strip()


def _fts(count: int) -> float:
    """Fills raw FTS5 with the same texts: no notes, no history, no filters. How many seconds that took."""
    tell(f"filling FTS5 with {count:,} texts")
    _fts_file(count).unlink(missing_ok=True)
    fts = sqlite3.connect(_fts_file(count))
    started = time.perf_counter()
    fts.execute("CREATE VIRTUAL TABLE t USING fts5(text, content='', tokenize='porter')")
    fts.executemany("INSERT INTO t(rowid, text) VALUES (?, ?)", enumerate(texts(count), 1))
    fts.commit()
    took = time.perf_counter() - started
    fts.execute("INSERT INTO t(t) VALUES ('optimize')")
    fts.commit()
    fts.close()
    return took


def _fts_file(count: int) -> Path:
    return CACHE / f"packed-fts-{count}.db"


# A rebuild


class _Cost(NamedTuple):
    """Of a command: seconds by the clock and of all processors, and the peak of the largest process and of the others
    in megabytes."""

    seconds: float
    cpu: float
    largest: float
    others: float


def _rebuilt(root: Path, size: int, recipe: str, yard: float) -> Iterator[Line]:
    _choose(root, recipe)
    tell(f"a rebuild of {size:,} notes, {recipe}")
    cost = _cost([sys.executable, "-m", "memoranda", "index", "rebuild", "--json", "--home", str(root)])
    what = f"rebuild, {size:,} notes, {recipe}"
    seconds, megabytes = _REBUILD[recipe] if size == 1_000_000 else (0, 0)
    note = f"its other processes (Git) together at most {cost.others:.0f} MB, mapped packs included"
    if seconds:
        yield at_most(what, cost.seconds, seconds, "s", "raw FTS5, the same texts", yard)
        yield at_most(f"  peak of its largest process, {recipe}", cost.largest, megabytes, "MB")
    else:
        yield Line(what, cost.seconds, "s", "raw FTS5, the same texts", yard, cost.seconds / yard)
        yield Line(f"  peak of its largest process, {recipe}", cost.largest, "MB")
    yield Line("  the same in processor time", cost.cpu, "s", note=note)


def _choose(root: Path, recipe: str) -> None:
    """This recipe answers in the Home from now on."""
    from memoranda.index.serving import Serving
    from memoranda.values import replace

    Serving(layout_of(root).own).change(lambda record: replace(record, active=recipe))


def _cost(command: list[str]) -> _Cost:
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment(), cwd=ROOT, stdout=subprocess.DEVNULL)
    peaks: dict[int, float] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            for pid in (process.pid, *_below(process.pid)):
                peaks[pid] = max(peaks.get(pid, 0.0), _peak(pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if status:
        raise RuntimeError(f"{' '.join(command)} failed")
    largest = max(peaks.values())
    return _Cost(seconds, used.ru_utime + used.ru_stime, largest, sum(peaks.values()) - largest)


def _below(pid: int) -> Iterator[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in map(int, children):
        yield child
        yield from _below(child)


def _peak(pid: int) -> float:
    try:
        rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith("VmHWM")), 0.0)


# Recall


def _asked(root: Path, size: int, recipe: str, options: Options) -> Iterator[Line]:
    """In a process of its own, since its memory counts too."""
    command = [sys.executable, "-m", "bench.million", str(root), str(size), recipe, str(options.samples(100))]
    told = subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True, text=True).stdout
    yield from (Line(**json.loads(row)) for row in told.splitlines())


def _ask(root: Path, size: int, recipe: str, samples: int) -> Iterator[Line]:
    asked = questions(440)
    fts = sqlite3.connect(_fts_file(size))
    with opened(root) as (space, _):
        space.watch()  # as an MCP server does
        for question in asked[400:]:
            recall(context(), space, question)

        def ours(n: int) -> None:
            recall(context(), space, asked[n])

        def yard(n: int) -> None:
            either = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", asked[n]))
            fts.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 8", (either,)).fetchall()

        times, bare = pairs(ours, yard, samples)
        bounds = _RECALL.get(size, (None, None)) if recipe == STATIC else (None, None)
        for percent, bound in zip((50, 95), bounds, strict=True):
            what = f"recall p{percent}, {size:,} notes, {recipe}"
            mine, theirs = percentile(times, percent), percentile(bare, percent)
            if bound is not None:
                yield at_most(what, mine, bound, "ms", "FTS5, OR, Porter", theirs)
            else:
                yield Line(what, mine, "ms", "FTS5, OR, Porter", theirs, mine / theirs)
        yield from _one_more(space, size, recipe)
        yield Line(f"  peak of the process that asked, {recipe}", _peak(os.getpid()), "MB")
    fts.close()


def _one_more(space: Space, size: int, recipe: str) -> Iterator[Line]:
    """A note is remembered, and the next call has to find it."""
    kept: list[float] = []
    found: list[float] = []
    missed = 0
    for n, text in enumerate(texts(_MORE, seed=os.getpid())):
        begun = time.perf_counter()
        remember(context(), space, NewNote(text, subject=subject(n)))
        acknowledged = time.perf_counter()
        view = recall(context(), space, text.split()[-1])
        found.append((time.perf_counter() - acknowledged) * 1000)
        kept.append((acknowledged - begun) * 1000)
        missed += not any(text in item.text for item in view.items)
    what = f"one note more, {size:,} notes, {recipe}: found"
    yield Line(what, _MORE - missed, f"of {_MORE}", bound="by the same call", met=not missed)
    note = f"the slowest {max(found):.1f} ms; p50 of `remember` {median(kept):.1f} ms"
    yield Line("  p50 of the recall that finds it", median(found), "ms", note=note)


if __name__ == "__main__":
    for line in _ask(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])):
        print(json.dumps(asdict(line)), flush=True)
