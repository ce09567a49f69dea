"""The process that looks for secrets in the files of a long import, ahead of the one that writes them.

It is given names, reads the files itself and says of which bytes it judged: a file that has changed before the import
read it is judged again there. So is everything when the process fails, which costs time and nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from memoranda.home.keys import Keys
from memoranda.notes.ids import blob_id
from memoranda.operations.admission import Rules, admit_many
from memoranda.operations.vault import as_md, read_file


class Scanner:
    """The other process, for the time of a `with`.

    Questions are answered in their order. Who asks keeps what is unanswered below the few kilobytes that a pipe takes.
    """

    def __init__(self, source: Path, rules: Rules) -> None:
        words = [str(source), str(rules.keys.folder), rules.home]
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            # -P: what lies in the folder that somebody works in is no module of ours
            [sys.executable, "-P", "-m", "memoranda.operations.scanner", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, names: Sequence[str]) -> None:
        """Asks about these files of the folder."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(json.dumps(names).encode("ascii") + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                self._end()

    def answer(self) -> list[tuple[str | None, str | None]]:
        """For each file of the oldest question the blob that was judged, and why it is refused, if it is.

        Empty when the process has failed.
        """
        line = self._process.stdout.readline() if self._process is not None and self._process.stdout else b""
        if not line.endswith(b"\n"):
            self._end()
            return []
        return [(blob, reason) for blob, reason in json.loads(line)]

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Scanner:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._end()


def main(source: str, keys: str, home: str) -> None:
    """Answers until nothing more is asked."""
    rules = Rules(Keys(Path(keys)), home)
    for line in sys.stdin.buffer:
        names = json.loads(line)
        found = [_read(f"{source}/{name}") for name in names]
        judged = admit_many([(data or b"", as_md(name)) for name, data in zip(names, found, strict=True)], rules)
        blobs = [None if data is None else blob_id(data) for data in found]
        sys.stdout.buffer.write(json.dumps(list(zip(blobs, judged, strict=True))).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()


def _read(path: str) -> bytes | None:
    try:
        return read_file(path)
    except OSError:
        return None  # who imports it finds the same, and says it


if __name__ == "__main__":
    main(*sys.argv[1:])
