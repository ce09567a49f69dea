"""One edited file until it is recalled: in a process that runs, and in a fresh one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench._common import (
    Line,
    Options,
    at_most,
    command,
    context,
    elapsed,
    environment,
    home_of,
    median,
    opened,
    percentile,
)
from memoranda.operations.recalling import recall

TITLE = "edit: from the end of an edit in an editor to its recall"


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(100_000):
        root = home_of(size)
        notes = sorted((root / "memory" / "notes").rglob("note-*.md"))
        times = options.samples(40)
        running = list(_running(root, notes[:: len(notes) // times][:times]))
        yield at_most(f"running process, {size:,} notes, p50", median(running), 100, "ms")
        yield at_most(f"running process, {size:,} notes, p95", percentile(running, 95), 100, "ms")
        times = options.samples(20)
        answered, ended, bare = [], [], []
        for turn, note in enumerate(notes[7 :: len(notes) // times][:times]):
            told, over = _fresh(root, note, turn)
            answered.append(told)
            ended.append(over)
            bare.append(elapsed(_bare))
        yard = "a fresh interpreter"
        for label, percent in (("p50", 50), ("p95", 95)):
            mine, theirs = percentile(answered, percent), percentile(bare, percent)
            yield at_most(f"fresh process, {size:,} notes, {label}", mine, 300, "ms", yard, theirs)
        yield Line("  until it has committed the edit and ended, p50", median(ended), "ms")


def _running(root: Path, notes: list[Path]) -> Iterator[float]:
    with opened(root) as (space, _):
        space.watch()
        recall(context(), space, "what did she say about the camping trip?")  # as any server has been asked before
        for turn, note in enumerate(notes):
            word = _edit(note, "r", turn)

            def found(word: str = word) -> None:
                while not any(word in item.text for item in recall(context(), space, f"who saw {word}?").items):
                    pass

            yield elapsed(found)


def _fresh(root: Path, note: Path, turn: int) -> tuple[float, float]:
    """Milliseconds from the edit until the answer is out, and until the process has ended."""
    word = _edit(note, "f", turn)
    words = [*command(), "recall", f"who saw {word}?", "--home", str(root), "--json"]
    started = time.perf_counter()
    with subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = b""
        while not told.endswith(b"}\n"):
            part = os.read(process.stdout.fileno(), 1 << 20)
            if not part:
                raise RuntimeError("there was no answer")
            told += part
        answered = time.perf_counter() - started
    ended = time.perf_counter() - started
    if word not in "".join(item["text"] for item in json.loads(told)["items"]):
        raise RuntimeError("an edit was not recalled")
    return answered * 1000, ended * 1000


def _bare() -> None:
    subprocess.run([sys.executable, "-c", "import sqlite3, json"], env=environment(), check=True)


def _edit(note: Path, kind: str, turn: int) -> str:
    """Writes the file as an editor does, with a new word in it, and returns the word."""
    word = f"zebra{kind}{turn}x{os.getpid()}"
    fresh = note.with_name(f".{note.name}.swp")
    fresh.write_bytes(note.read_bytes() + f"Somebody saw {word} today.\n".encode())
    fresh.replace(note)
    return word
