"""Notes a second with all commits included, from one writer and from eight processes, beside one synced commit a note.

The yardstick leaves what ours leaves of a note, with pygit2, each step synced: the file in the working tree, Git's
index, the trees on its path, the commit, the branch. It writes no journal and no ledger, which ours does. A second one,
for its own sake, writes the objects and moves the branch and nothing else: nobody could read its notes as files, and
`git status` would call every one of them deleted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench._common import (
    CACHE,
    ROOT,
    Line,
    Options,
    context,
    discard,
    environment,
    faster,
    home_of,
    median,
    opened,
    subject,
    texts,
    wait_for_calm,
)  # fmt: skip
from memoranda.operations.remembering import NewNote, remember

TITLE = "sustained: notes a second, all commits included"
_ROUNDS = 3
_WRITERS = 8


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(1_000, 10_000):
        root = home_of(size)
        notes = options.samples(2_000)
        rates: dict[str, list[float]] = {"one": [], "eight": [], "files": [], "objects": []}
        yard = _Pygit2(root)
        wait_for_calm()
        for turn in range(_ROUNDS):
            rates["files"].append(yard.rate(150, f"f{turn}", yard.commit_file))
            rates["objects"].append(yard.rate(150, f"o{turn}", yard.commit_objects))
            rates["one"].append(_writers(root, 1, notes, turn))
            rates["eight"].append(_writers(root, _WRITERS, notes, turn))
        files, objects = median(rates["files"]), median(rates["objects"])
        for name, what in (("one", "one writer"), ("eight", "eight processes")):
            ours = median(rates[name])
            yield faster(f"{what}, {size:,} notes", ours, "pygit2, synced", files, 8, unit="/s")
            ratio = ours / objects
            yield Line(f"{what}, {size:,} notes", ours, "/s", "its objects alone", objects, ratio, note="no files")


def _writers(root: Path, count: int, notes: int, turn: int) -> float:
    """Notes a second of `count` processes together, from the moment when all have the Home open until all is in Git."""
    command = [sys.executable, "-m", "bench.sustained", str(root), str(notes // count)]
    running = [
        subprocess.Popen(
            [*command, str(100 * turn + n)],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
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
    """One commit a note on a clone of the Home: the same tree, the same places, everything synced."""

    def __init__(self, root: Path) -> None:
        import pygit2

        self._git = pygit2
        pygit2.option(pygit2.enums.Option.ENABLE_FSYNC_GITDIR, True)
        self._folder = CACHE / "pygit2"
        discard(self._folder)
        subprocess.run(["git", "clone", "-q", "--no-local", str(root), str(self._folder)], check=True)
        self._repository = pygit2.Repository(str(self._folder))
        self._who = pygit2.Signature("bench", "bench@localhost")

    def rate(self, notes: int, turn: str, commit: Callable[[str, bytes], None]) -> float:
        """Notes a second."""
        self._repository.reset(self._repository.head.target, self._git.enums.ResetMode.HARD)
        written = list(texts(notes, seed=sum(turn.encode())))
        started = time.perf_counter()
        for n, text in enumerate(written):
            commit(f"memory/notes/{subject(n % 40)}/new-{turn}-{n}.md", text.encode())
        return notes / (time.perf_counter() - started)

    def commit_file(self, path: str, data: bytes) -> None:
        """The file, synced; then as a person would: add, write the index, commit."""
        repository, place = self._repository, self._folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        repository.index.add(path)
        repository.index.write()
        self._commit(repository.index.write_tree())

    def commit_objects(self, path: str, data: bytes) -> None:
        """The objects and the branch alone."""
        repository = self._repository
        root = repository[repository.head.target].peel(self._git.Tree).id
        self._commit(self._put(root, path.split("/"), repository.create_blob(data)))

    def _commit(self, tree: Any) -> None:
        repository = self._repository
        repository.create_commit("HEAD", self._who, self._who, "Remember", tree, [repository.head.target])

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
