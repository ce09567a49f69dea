"""`memoranda recall` as a fresh process, beside an interpreter that imports `sqlite3` and `json` and ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from bench._common import Line, Options, command, environment, home_of, median, pairs, questions, within

TITLE = "process: a recall as a command of its own"


def run(options: Options) -> Iterator[Line]:
    asked = questions(60)
    env = environment()

    def bare(_: int) -> None:
        subprocess.run([sys.executable, "-c", "import sqlite3, json"], env=env, check=True)

    for size in options.sizes(10_000):
        root = home_of(size)
        words = [*command(), "recall", "--home", str(root)]

        def ours(n: int, words: list[str] = words) -> None:
            subprocess.run([*words, asked[n]], env=env, check=True, stdout=subprocess.DEVNULL)

        times, yard = pairs(ours, bare, options.samples(len(asked)))
        yield within(f"p50, {size:,} notes", median(times), "python, same interpreter", median(yard), 6)
