"""Notes a second with all commits included, from one writer and from eight processes, beside one synced commit a note.

The yardstick writes what a note needs with pygit2, object by object and each synced: the blob, the trees on its path,
the commit, the branch. It writes no file for people and no index, which ours does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench._common import CACHE, ROOT, Line, Options, context, discard, faster, home_of, median, opened, subject, texts
from memoranda.operations.remembering import NewNote, remember

TITLE = "sustained: notes a second, all commits included"
_ROUNDS = 3
_WRITERS = 8


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(1_000, 10_000):
        root = home_of(size)
        notes = options.samples(2_000)
        rates: dict[str, list[float]] = {"one": [], "eight": [], "pygit2": []}
        yard = _Pygit2(size)
        for turn in range(_ROUNDS):
            rates["pygit2"].append(yard.rate(150, turn))
            rates["one"].append(_writers(root, 1, notes, turn))
            rates["eight"].append(_writers(root, _WRITERS, notes, turn))
        slow = median(rates["pygit2"])
        for name, what in (("one", "one writer"), ("eight", "eight processes")):
            yield faster(f"{what}, {size:,} notes", median(rates[name]), "pygit2, synced", slow, 8, unit="/s")


def _writers(root: Path, count: int, notes: int, turn: int) -> float:
    """Notes a second of `count` processes together, from the moment when all have the Home open until all is in Git."""
    command = [sys.executable, "-m", "bench.sustained", str(root), str(notes // count)]
    running = [
        subprocess.Popen([*command, str(100 * turn + n)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for n in range(count)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()  # it is ready
    started = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()  # everything that it wrote is committed
    took = time.perf_counter() - started
    for process in running:
        process.communicate()
        if process.returncode:
            raise RuntimeError(f"a writer ended with {process.returncode}")
    return notes // count * count / took


def _write(root: Path, notes: int, seed: int) -> None:
    """One writer: says when it is open, waits for the word, writes, and says when all is committed."""
    written = [NewNote(text, subject=subject(n % 40)) for n, text in enumerate(texts(notes, seed=1000 + seed))]
    who = context()
    with opened(root) as (space, home):
        home.repository.snapshot()
        print("open", flush=True)
        sys.stdin.readline()
        for note in written:
            remember(who, space, note)
        while home.repository.snapshot().tail:  # records that are in no commit yet, other processes' included
            time.sleep(0.001)
        print("done", flush=True)


class _Pygit2:
    """One commit a note, each object a synced file, on a tree of the Home's size."""

    def __init__(self, size: int) -> None:
        import pygit2

        self._git = pygit2
        pygit2.option(pygit2.enums.Option.ENABLE_FSYNC_GITDIR, True)
        folder = CACHE / "pygit2"
        discard(folder)
        self._repository = pygit2.init_repository(str(folder), bare=True)
        self._who = pygit2.Signature("bench", "bench@localhost")
        blob = self._repository.create_blob(b"x")
        tops = self._repository.TreeBuilder()
        for top in range(40):
            inside = self._repository.TreeBuilder()
            for n in range(size // 40):
                inside.insert(f"note-{n}.md", blob, pygit2.enums.FileMode.BLOB)
            tops.insert(f"topic{top}", inside.write(), pygit2.enums.FileMode.TREE)
        self._commit(tops.write(), "begin", [])

    def _commit(self, tree: Any, message: str, parents: list[Any]) -> None:
        self._head = self._repository.create_commit("refs/heads/main", self._who, self._who, message, tree, parents)

    def rate(self, notes: int, turn: int) -> float:
        git, repository = self._git, self._repository
        started = time.perf_counter()
        for n, text in enumerate(texts(notes, seed=500 + turn)):
            blob = repository.create_blob(text.encode())
            tops = repository.TreeBuilder(repository[self._head].peel(git.Tree))
            inside = repository.TreeBuilder(_id(tops.get(f"topic{n % 40}")))
            inside.insert(f"new-{turn}-{n}.md", blob, git.enums.FileMode.BLOB)
            tops.insert(f"topic{n % 40}", inside.write(), git.enums.FileMode.TREE)
            self._commit(tops.write(), f"Remember {n}", [self._head])
        return notes / (time.perf_counter() - started)


def _id(entry: Any) -> Any:
    return entry.id


if __name__ == "__main__":
    _write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
