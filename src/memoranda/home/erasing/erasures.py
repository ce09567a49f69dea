"""What became of erased objects: old id -> new id, or nothing. Holds ids, days and keyed hashes, never text.

`<git dir>/memoranda/erased/` has one file for each erasing: a line of JSON, then records of 41 bytes sorted by their
old id: a letter for the kind (`b` blob, `c` commit, `g` tag; upper-case when its message was changed), the
old id, the new id, which is zeros where nothing took its place. The ledger tells other clones the same of the blobs and
of the commits that somebody cites.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import HomeDamaged
from memoranda.home.durable import sync_path, write_durably
from memoranda.home.keys import Keys
from memoranda.home.ledger import read_lines
from memoranda.values import dataclass

SIZE = 41
_GONE = bytes(20)
_PER_LINE = 200  # pairs in one line of the ledger


@dataclass(frozen=True, slots=True)
class Moved:
    """One object that was erased: `new` is what stands in its place, None for nothing."""

    kind: str
    old: bytes
    new: bytes | None


@dataclass(frozen=True, slots=True)
class Leads:
    """Where an old id leads today: `name` None for nothing; `day` is that of the erasing."""

    name: str | None
    day: str


def write_map(path: Path, header: Mapping[str, Any], moved: Iterable[Moved]) -> None:
    """Writes one file of the form above, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = sorted(item.old + item.kind.encode() + (item.new or _GONE) for item in moved)
    body = b"".join(row[20:21] + row[:20] + row[21:] for row in rows)
    write_durably(path, json.dumps(header).encode("ascii") + b"\n" + body)
    sync_path(path.parent.parent)


@dataclass(frozen=True, slots=True)
class Map:
    """One file as it was read."""

    header: dict[str, Any]
    body: bytes

    @staticmethod
    def read(path: Path) -> Map:
        head, _, body = path.read_bytes().partition(b"\n")
        try:
            header = json.loads(head)
        except ValueError:
            header = None
        if not isinstance(header, dict) or len(body) % SIZE:
            raise HomeDamaged(
                f"The record of an erasing {path.name} cannot be read.",
                remedy="Move it aside; then pointers to what it names lead nowhere.",
            )
        return Map(header, body)

    def __iter__(self) -> Iterator[Moved]:
        for at in range(0, len(self.body), SIZE):
            yield self._at(at)

    def _at(self, at: int) -> Moved:
        new = self.body[at + 21 : at + SIZE]
        return Moved(chr(self.body[at]), self.body[at + 1 : at + 21], None if new == _GONE else new)

    def find(self, rev: str) -> Moved | None:
        """The record of a whole id, or of the only one that begins so."""
        low, high = 0, len(self.body) // SIZE
        while low < high:
            middle = (low + high) // 2
            if self.body[middle * SIZE + 1 : middle * SIZE + 21].hex() < rev:
                low = middle + 1
            else:
                high = middle
        found = [
            self._at(at * SIZE)
            for at in (low, low + 1)
            if at * SIZE < len(self.body) and self.body[at * SIZE + 1 : at * SIZE + 21].hex().startswith(rev)
        ]
        return found[0] if len(found) == 1 else None


class Erasures:
    """The erasings of one Home.

    Args:
        folder: `<git dir>/memoranda/erased`.
        keys: gives the key under which an erased path is known again.
        home: the Home's id.
    """

    def __init__(self, folder: Path, keys: Keys, home: str) -> None:
        self._folder = folder
        self._generation = f"{folder}/generation"
        self._keys = keys
        self._home = home
        self._mark: int | None = None
        self._maps: list[Map] = []

    def path_key(self, path: str) -> str:
        """The keyed hash by which an erased path is known again."""
        return self._keys.mac("tombstone", self._home, path.encode("utf-8", "surrogateescape"))

    def generation(self) -> int:
        """Changes with every erasing that is finished; 0 before the first."""
        if not os.access(self._generation, os.F_OK):  # the usual case, and an exception takes five times as long
            return 0
        try:
            return os.stat(self._generation).st_mtime_ns  # noqa: PTH116 - asked several times a question
        except FileNotFoundError:
            return 0

    def finished(self) -> None:
        """Tells every open Repository that what it holds of the old objects is void."""
        fresh = self._folder / "generation.new"
        fresh.write_bytes(b"")
        fresh.replace(self._folder / "generation")

    def maps(self) -> list[Map]:
        """The erasings, oldest first."""
        try:
            mark = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        if mark != self._mark:
            paths = sorted(self._folder.glob("*.map"))
            self._maps = [Map.read(path) for path in paths]
            self._mark = mark
        return self._maps

    def path_of(self, erasure: str) -> Path:
        """The file of an erasing: the one that it has, or the next."""
        paths = sorted(self._folder.glob("*.map"))
        for path in paths:
            if Map.read(path).header.get("erasure") == erasure:
                return path
        return self._folder / f"{max((int(p.stem) for p in paths if p.stem.isdigit()), default=0) + 1:06d}.map"

    def find(self, rev: str) -> Leads | None:
        """Where an id, or the beginning of one, leads; None when no erasing has touched it."""
        leads: Leads | None = None
        for item in self.maps():
            found = item.find(leads.name if leads and leads.name else rev)
            if found is not None:
                leads = Leads(None if found.new is None else found.new.hex(), str(item.header["day"]))
                if leads.name is None:
                    break
        return leads

    def erased_blobs(self) -> set[str]:
        """The blobs that went whole: one that is here again came back, with an old clone or from a person."""
        return {moved.old.hex() for item in self.maps() for moved in item if moved.kind == "b" and moved.new is None}

    def lost(self, path: str) -> str | None:
        """The day on which the file at this path was erased, None when it was not."""
        maps = self.maps()
        key = self.path_key(path) if maps else ""
        days = [str(item.header["day"]) for item in maps if key in item.header.get("paths", ())]
        return days[-1] if days else None


def ledger_lines(header: Mapping[str, Any], moved: Iterable[Moved]) -> list[dict[str, Any]]:
    """The fields of the lines by which the ledger tells of an erasing."""
    pairs = [(m.old.hex(), None if m.new is None else m.new.hex()) for m in moved]
    lots = [pairs[at : at + _PER_LINE] for at in range(0, len(pairs), _PER_LINE)] or [[]]
    head = {"kind": "erased", **header}
    return [{**head, "objects": dict(lot)} for lot in lots]


def find_in_ledger(
    segments: Iterable[tuple[str, bytes]], vouches: Callable[[str, str], bool], rev: str
) -> Leads | None:
    """Where an id leads by the ledger; what this installation has not signed is only believed to be erased.

    `segments` are (replica, data).
    """
    leads: Leads | None = None
    for replica, data in segments:
        for line in data.split(b"\n"):
            if b'"erased"' not in line or rev.encode() not in line:
                continue
            for fields in read_lines(line):
                objects = fields.get("objects")
                if fields.get("kind") != "erased" or not isinstance(objects, dict):
                    continue
                for old, new in objects.items():
                    if old.startswith(rev):
                        sure = vouches(replica, line.decode("utf-8", "replace"))
                        leads = Leads(str(new) if new and sure else None, str(fields.get("day")))
    return leads
