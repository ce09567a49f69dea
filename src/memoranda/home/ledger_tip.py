"""Where the ledger of one clone stood last, kept beside the keys: whoever cuts it back in the Home is found out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

_COMMIT = 40


class LedgerTip:
    """The last commit of the ledger that this installation has made or taken over in a clone.

    A file of two lines, `keys/ledger/<home>-<replica>.tip`: the commit, and where the clone lies. It is never ahead of
    the ref, which was moved durably before.

    Args:
        folder: where the installation's keys lie.
        home, replica: the ids of the Home and of the clone.
        place: the Git directory that the clone's worktrees share.
    """

    def __init__(self, folder: Path, home: str, replica: str, place: Path) -> None:
        self.words = (str(folder), home, replica, str(place))  # by which another process makes the same
        self._folder = folder / "ledger"
        self._stem = _plain(home)
        self._path = self._folder / f"{self._stem}-{_plain(replica)}.tip"
        self._place = str(place)

    def read(self) -> str | None:
        """The commit, None when nothing is known of this clone."""
        found = _read(self._path)
        if found is not None:
            return found[0]
        # Who takes the clone's own name away, in `replica.json`, does not take away what is known of the place.
        return next((commit for _, commit in self._here()), None)

    def under_other_ids(self) -> list[str]:
        """What is known of this place under other ids of the Home, the newest first: `memory/home.yaml` is a file that
        anybody may write. A Home that was made anew in the same folder has none of these commits."""
        return [commit for path, commit in self._all() if not path.name.startswith(f"{self._stem}-")]

    def write(self, commit: str) -> None:
        """Keeps a commit. Not synced: after a loss of power less is known, and nothing wrong."""
        self._put(self._path, commit)

    def _put(self, path: Path, commit: str) -> None:
        data = f"{commit}\n{self._place}\n".encode("utf-8", "surrogateescape")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, data, 0)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)

    def tell_cut(self, at: datetime) -> None:
        """Keeps that the ledger was cut, and put back."""
        with self._path.with_suffix(".cuts").open("a", encoding="ascii") as file:
            file.write(f"{at.isoformat()}\n")

    def last_cut(self) -> str | None:
        """When the ledger was put back last (ISO 8601)."""
        try:
            return self._path.with_suffix(".cuts").read_text(encoding="ascii").split()[-1]
        except (FileNotFoundError, IndexError):
            return None

    def lead(self, moved: Callable[[str], str | None]) -> None:
        """What an erasing has put in the place of a commit stands for it from now on, in every worktree."""
        for path, commit in self._here():
            if (new := moved(commit)) is not None and new != commit:
                self._put(path, new)

    def _here(self) -> list[tuple[Path, str]]:
        """What is known of this place, under whatever name of the clone, the newest first."""
        return [item for item in self._all() if item[0].name.startswith(f"{self._stem}-")]

    def _all(self) -> list[tuple[Path, str]]:
        try:
            paths = [path for path in self._folder.iterdir() if path.suffix == ".tip"]
        except FileNotFoundError:
            return []
        found = [(path, told) for path in paths if (told := _read(path)) is not None and told[1] == self._place]
        found.sort(key=lambda item: item[0].stat().st_mtime_ns, reverse=True)
        return [(path, told[0]) for path, told in found]


def _plain(name: str) -> str:
    """An id as a part of a file's name: it stands in a file that anybody could write."""
    return re.sub(r"[^a-z0-9_]", "-", name.lower())


def _read(path: Path) -> tuple[str, str] | None:
    try:
        lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    except FileNotFoundError:
        return None
    if len(lines) != 3 or len(lines[0]) != _COMMIT:
        return None  # a loss of power came between
    return lines[0], lines[1]
