"""The processes that keep the indexes up while a long import writes, so that the work is spread over the cores.

One follows the log with the catalog, the others the catalog: with the words, and with the vectors. Each says nothing,
and looks again whenever something comes on its standard input. Whatever they did not do, the importing process does
itself at the end, so that a follower that fails costs time and nothing else.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.home.repository import Repository
from memoranda.index.indexes import Indexes
from memoranda.operations.admission import Rules, admitter

_SECONDS = 0.1  # between two looks


class Follower:
    """One of the processes, for the time of a `with`; `call` tells it that there is something new.

    `part` is "catalog", "content" or "vectors".
    """

    def __init__(self, root: Path, keys: Path, part: str) -> None:
        self._process = subprocess.Popen(  # -P: what lies in the folder that somebody works in is no module of ours
            [sys.executable, "-P", "-m", "memoranda.operations.follower", str(root), str(keys), part],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def call(self) -> None:
        stdin = self._process.stdin
        if stdin is not None and self._process.poll() is None:
            try:
                stdin.write(b".")
                stdin.flush()
            except BrokenPipeError:
                pass  # it has ended; `finish` tells why

    def finish(self) -> str | None:
        """Waits for its last catch-up; returns what it complained of, if it failed."""
        _, complaint = self._process.communicate()
        if self._process.returncode == 0:
            return None
        return complaint.decode("utf-8", "replace").strip().splitlines()[-1] if complaint.strip() else "it was killed"

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
            self._process.communicate()


def main(root: str, keys: str, part: str) -> None:
    """Follows until nothing more will come. Commits and Git's index are the business of the process that imports: it
    knows what it has written, and so the repository is let go here without its last tidying."""
    context = Context()
    repository = Repository(Path(root), context, Keys(Path(keys)))
    indexes = Indexes(repository, context)
    indexes.admit = admitter(Rules(repository.keys, repository.marker.id))
    try:
        if part == "catalog":
            _follow_log(indexes)
        else:
            _follow_catalog(indexes.ahead_content if part == "content" else indexes.ahead_vectors)
    finally:
        indexes.close()
        repository.store.close()


def _follow_log(indexes: Indexes) -> None:
    with indexes.catalog.roomy():
        while os.read(sys.stdin.fileno(), 4096):
            indexes.ahead_catalog()
            indexes.repository.let_go(int(indexes.catalog.state("seq") or 0))
        indexes.ahead_catalog()


def _follow_catalog(ahead: Callable[..., None]) -> None:
    """Looks now and then without being told: the catalog says nothing when it has moved."""
    while True:
        told, _, _ = select.select([sys.stdin], [], [], _SECONDS)
        if told and not os.read(sys.stdin.fileno(), 4096):
            break
        ahead()
    ahead(last=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
