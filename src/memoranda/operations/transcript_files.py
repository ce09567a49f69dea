"""A transcript that a harness is still writing: read from where the last reading ended, and only where it belongs."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from memoranda.errors import InvalidPath
from memoranda.values import dataclass, field

_LONGEST = 16 << 20  # bytes of one line; a longer one holds a picture or a whole file
_AT_ONCE = 64 << 20  # bytes of one reading; the rest comes with the next event


@dataclass(slots=True)
class Reading:
    """The lines of one reading. `end` is where the next one begins, `passed` how many lines were too long."""

    file: BinaryIO
    end: int
    passed: int = 0
    uses: list[bytes] = field(default_factory=list)  # the lines in which a tool is used

    def lines(self) -> Iterator[bytes]:
        """The whole lines from `end` on; the last one, when it is still being written, is left for the next time."""
        self.file.seek(self.end)
        stop = self.end + _AT_ONCE
        while self.end < stop:
            line = self.file.readline(_LONGEST)
            size = len(line)
            too_long = size == _LONGEST and not line.endswith(b"\n")
            while too_long and line and not line.endswith(b"\n"):
                line = self.file.readline(_LONGEST)
                size += len(line)
            if not line.endswith(b"\n"):
                return
            self.end += size
            if too_long:
                self.passed += 1
                continue
            if b'"tool_use"' in line:
                self.uses.append(line)
            yield line


@contextmanager
def followed(path: str, folder: Path, state: Path) -> Iterator[Reading | None]:
    """The transcript at `path`, from where the last reading had come to its end; None when there is no such file.

    Args:
        path: as the harness names it.
        folder: where the harness keeps its transcripts; what lies elsewhere is not read.
        state: the file that keeps the place; two readings of one transcript take turns. Deleting it loses nothing.

    Raises:
        InvalidPath: it is no regular file of this user's in `folder`.
    """
    opened = _opened(path, folder)
    if opened is None:
        yield None
        return
    with opened as file, _kept(state) as place:
        fcntl.flock(place, fcntl.LOCK_EX)
        status = os.fstat(file.fileno())
        reading = Reading(file, _start(place.read(200), status))
        yield reading
        place.seek(0)
        place.truncate()
        place.write(json.dumps({"inode": status.st_ino, "end": reading.end}).encode())


def _kept(state: Path) -> BinaryIO:
    state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.fdopen(os.open(state, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b")


def _start(kept: bytes, status: os.stat_result) -> int:
    try:
        fields = json.loads(kept)
        start = fields["end"] if fields["inode"] == status.st_ino else 0
        return start if isinstance(start, int) and 0 <= start <= status.st_size else 0
    except (ValueError, KeyError, TypeError):
        return 0


def _opened(path: str, folder: Path) -> BinaryIO | None:
    try:
        base, place = os.path.realpath(folder), os.path.realpath(path)
    except ValueError:  # a zero byte, half a character
        raise _refused("its name is none of a file") from None
    if os.path.islink(path):  # noqa: PTH114
        raise _refused("it is a link")
    if not path.startswith("/") or ".." in path.split("/") or not place.startswith(f"{base}/"):
        raise _refused("it lies outside the folder of the transcripts")
    if not place.endswith(".jsonl"):
        raise _refused("its name does not end in .jsonl")
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _refused((error.strerror or "it cannot be opened").lower()) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        os.close(descriptor)
        raise _refused("it is not a regular file of yours")
    return os.fdopen(descriptor, "rb")


def _refused(why: str) -> InvalidPath:
    return InvalidPath(
        "The transcript that the event names is not read.",
        why=f"The reason: {why}.",
        remedy="Transcripts lie in `projects` of the agent's own folder (CLAUDE_CONFIG_DIR, else ~/.claude).",
    )
