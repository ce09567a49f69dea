"""Notes a second with all commits included, from one writer and from eight processes, beside one synced commit a note.

The yardstick commits the same note at the same place of the same tree with pygit2, object by object and each synced:
the blob, the trees on its path, the commit, the branch. It writes no file for people, no journal and no ledger, which
ours does.
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
        yard = _Pygit2(root)
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
    written = [NewNote(text, subject=subject(n % 40)) for n, text in enumerate(texts(notes + 1, seed=1000 + seed))]
    who = context()
    with opened(root) as (space, home):
        remember(who, space, written.pop())  # afterwards the Home is open, with all that the notes before have left
        home.repository.flush()
        print("open", flush=True)
        sys.stdin.readline()
        for note in written:
            remember(who, space, note)
        while not home.repository.settled():  # other processes' notes included
            time.sleep(0.005)
        print("done", flush=True)


class _Pygit2:
    """One commit a note on a copy of the Home's history: the same tree, the same places, each object a synced file."""

    def __init__(self, root: Path) -> None:
        import pygit2

        self._git = pygit2
        pygit2.option(pygit2.enums.Option.ENABLE_FSYNC_GITDIR, True)
        folder = CACHE / "pygit2"
        discard(folder)
        subprocess.run(["git", "clone", "-q", "--bare", "--no-local", str(root), str(folder)], check=True)
        self._repository = pygit2.Repository(str(folder))
        self._who = pygit2.Signature("bench", "bench@localhost")
        self._head = self._repository.head.target

    def rate(self, notes: int, turn: int) -> float:
        """Notes a second."""
        repository = self._repository
        written = list(texts(notes, seed=500 + turn))
        started = time.perf_counter()
        for n, text in enumerate(written):
            blob = repository.create_blob(text.encode())
            path = ["memory", "notes", *subject(n % 40).split("/"), f"new-{turn}-{n}.md"]
            tree = self._put(repository[self._head].peel(self._git.Tree).id, path, blob)
            self._head = repository.create_commit(
                repository.head.name, self._who, self._who, f"Remember {n}", tree, [self._head]
            )
        return notes / (time.perf_counter() - started)

    def _put(self, tree: Any, path: list[str], blob: Any) -> Any:
        """The tree with the blob at the path below it."""
        builder = self._repository.TreeBuilder(tree) if tree else self._repository.TreeBuilder()
        modes = self._git.enums.FileMode
        if len(path) == 1:
            builder.insert(path[0], blob, modes.BLOB)
        else:
            below = builder.get(path[0])
            builder.insert(path[0], self._put(below.id if below else None, path[1:], blob), modes.TREE)
        return builder.write()


if __name__ == "__main__":
    _write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
