"""Directories of indexes that come and go while other processes have them open."""

from __future__ import annotations

import errno
from pathlib import Path

from memoranda.errors import Unavailable


def put(fresh: Path, place: Path) -> None:
    """Puts a directory in the place of another one. Where there is no fresh one, the place is emptied."""
    old = place.with_name(f"{place.name}.old")
    for _ in range(100):
        if old.exists():
            remove(old)
        try:
            if place.exists():
                place.rename(old)
            if fresh.exists():
                fresh.rename(place)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                continue  # somebody made it again at this moment
            raise Unavailable(
                "The indexes were deleted while they were made again.", why=str(error), remedy="Run it again."
            ) from error
        if old.exists():
            remove(old)
        return
    raise Unavailable(f"The index {place.name} cannot be put in its place.", remedy="Run it again.")


def remove(directory: Path) -> None:
    import shutil  # not at the top: it costs a fresh process 2 ms

    shutil.rmtree(directory)
