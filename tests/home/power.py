"""A disk that loses its power: what was done to it is noted, and any state that a crash may leave can be built.

The model is the one that POSIX promises, and no more:

- The bytes of a file are safe as they stood at its last `fsync` or `fdatasync`. Of what was written later each sector
  may have arrived or not; a file that was never synced may be empty, cut, full of zeros, or as it was written.
- A name (a file made, linked, moved, taken away, a folder made) is safe when its folder was synced afterwards. Later
  changes of names may have arrived all, none, up to some moment, or in each folder up to a moment of its own; one
  `rename` is never half done.
- What Git itself writes is not seen. Git syncs an index before it puts it in place (we ask for that by `core.fsync`);
  everything else that it left counts as not synced.

`.memoranda/` is a cache: it is kept as it was at the moment of the crash, the worst that can happen, or is gone.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from home.steps import watched

_SECTOR = 512
Names = dict[str, int | None]  # path -> the file's number, None for a folder


@dataclass
class Moment:
    """The disk at one moment: what is safe, what may be, and what was promised until then."""

    label: str
    names: Names
    later: list[tuple[int, dict[str, int | str]]]  # changes of names that are not safe: (number, path -> what it names)
    safe: dict[int, bytes]
    now: dict[int, bytes]
    promised: dict[str, str]
    cache: dict[str, bytes]


@dataclass
class Disk:
    """Notes what happens below `root`."""

    root: Path
    names: Names = field(default_factory=dict)
    later: list[tuple[int, dict[str, int | str]]] = field(default_factory=list)
    safe: dict[int, bytes] = field(default_factory=dict)
    promised: dict[str, str] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    _inodes: dict[int, int] = field(default_factory=dict)
    _known: dict[str, int | None] = field(default_factory=dict)  # the names as they are, safe or not
    _next: int = 0
    _steps: int = 0

    @contextmanager
    def noted(self) -> Iterator[Disk]:
        """Everything that lies there now is safe; what this process does from now on is noted."""
        for path, number in self._walk():
            self.names[path] = self._known[path] = number
            if number is not None:
                self.safe[number] = self._read(path)
        with watched(self._before, self._after):
            yield self

    def promise(self, label: str, **files: str) -> None:
        """The program has acknowledged something; `label` names the moment."""
        self.promised |= files
        self.moment(label)

    def moment(self, label: str) -> None:
        self._reconcile()
        now = {number: self._read(path) for path, number in self._known.items() if number is not None}
        cache = {
            p.relative_to(self.root).as_posix(): p.read_bytes()
            for p in (self.root / ".memoranda").rglob("*")
            if p.is_file()
        }
        self.moments.append(
            Moment(label, dict(self.names), list(self.later), dict(self.safe), now, dict(self.promised), cache)
        )

    # Noting

    def _before(self, name: str, words: tuple[Any, ...]) -> None:
        self._reconcile()

    def _after(self, name: str, words: tuple[Any, ...]) -> None:
        if name in ("fsync", "fdatasync"):
            self._synced(Path(f"/proc/self/fd/{words[0]}").readlink(), words[0])
        elif name == "sync":
            for path in list(self._known):
                self._synced(self.root / path, None)
            self._synced(self.root, None)
        elif name in ("open", "mkdir", "link", "unlink", "replace", "rename"):
            self._reconcile()
            return
        if name in ("fsync", "fdatasync"):
            self.moment(f"{len(self.moments)} {name}")

    def _synced(self, path: Path, descriptor: int | None) -> None:
        if not path.is_relative_to(self.root):
            return
        inside = path.relative_to(self.root).as_posix()
        if path.is_dir():
            kept = []
            for number, change in self.later:
                here = {p: what for p, what in change.items() if (os.path.dirname(p) or ".") == inside}  # noqa: PTH120
                self._apply(self.names, here)
                rest = {p: what for p, what in change.items() if p not in here}
                if rest:
                    kept.append((number, rest))
            self.later = kept
            return
        status = path.stat() if descriptor is None else os.fstat(descriptor)
        number = self._inodes.get(status.st_ino)
        if number is not None:
            self.safe[number] = path.read_bytes() if path.exists() else b""

    def _reconcile(self) -> None:
        """What differs from what was known is one change of names."""
        now = dict(self._walk())
        change: dict[str, int | str] = {path: "gone" for path in self._known if path not in now}
        for path, number in now.items():
            if path not in self._known or self._known[path] != number:
                change[path] = "folder" if number is None else number
                if number is not None and "index" in path and path.startswith(".git/"):
                    self.safe.setdefault(number, self._read(path))  # by Git, which syncs it
        if change:
            self._steps += 1
            self.later.append((self._steps, change))
            self._known = now

    def _walk(self) -> Iterator[tuple[str, int | None]]:
        for place, folders, files in os.walk(self.root):
            inside = Path(place).relative_to(self.root).as_posix()
            if ".memoranda" in folders:
                folders.remove(".memoranda")
            for name in folders:
                yield (name if inside == "." else f"{inside}/{name}"), None
            for name in files:
                path = name if inside == "." else f"{inside}/{name}"
                try:
                    yield path, self._number((self.root / path).stat())
                except FileNotFoundError:
                    continue

    def _number(self, status: os.stat_result) -> int:
        if status.st_ino not in self._inodes or (
            self._inodes[status.st_ino] not in self._known.values() and self._known
        ):
            self._next += 1
            self._inodes[status.st_ino] = self._next
        return self._inodes[status.st_ino]

    def _read(self, path: str) -> bytes:
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            return b""

    @staticmethod
    def _apply(names: Names, change: dict[str, int | str]) -> None:
        for path, what in change.items():
            if what == "gone":
                names.pop(path, None)
            else:
                names[path] = None if what == "folder" else int(what)


def build(moment: Moment, target: Path, names: str, data: str, rng: random.Random, *, cache: bool) -> None:
    """Lays a state that a crash at this moment may leave.

    `names` says which changes of names arrived that are not safe: none, all, until (some moment), or each (folder until
    a moment of its own); `data` what became of unsafe bytes: lost, empty, half, zeros, sectors, kept, or any.
    """
    held = dict(moment.names)
    numbers = [number for number, _ in moment.later] or [0]
    ends: dict[str, int] = {}
    last = rng.choice(numbers)
    for number, change in moment.later:
        if names == "each":
            for path, what in change.items():
                if number <= ends.setdefault(os.path.dirname(path), rng.choice([0, *numbers])):  # noqa: PTH120
                    Disk._apply(held, {path: what})
        elif names == "all" or (names == "until" and number <= last):
            Disk._apply(held, change)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    written: dict[int, Path] = {}
    for path, what in sorted(held.items()):
        place = target / path
        if not place.parent.is_dir():
            continue  # its folder was lost
        if what is None:
            place.mkdir(exist_ok=True)
        elif what in written:
            os.link(written[what], place)
        else:
            now, safe = moment.now.get(what, moment.safe.get(what, b"")), moment.safe.get(what)
            place.write_bytes(now if now == safe else _torn(safe, now, data, rng))
            written[what] = place
    if cache:
        for path, content in moment.cache.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(content)


def _torn(safe: bytes | None, now: bytes, data: str, rng: random.Random) -> bytes:
    before = safe or b""
    if data == "any":
        data = rng.choice(("lost", "empty", "half", "zeros", "sectors", "kept"))
    if data == "kept":
        return now
    if data == "sectors" or (safe is not None and len(safe) == len(now) and data in ("half", "zeros")):
        size = max(len(before), len(now))
        old, new = before.ljust(size, b"\0"), now.ljust(size, b"\0")
        return b"".join((new if rng.random() < 0.5 else old)[at : at + _SECTOR] for at in range(0, size, _SECTOR))
    if data == "half":
        return before + now[len(before) : (len(before) + len(now)) // 2]
    if data == "zeros":
        return before + bytes(max(0, len(now) - len(before)))
    return before if data == "lost" else before[:0] if safe is None else before
