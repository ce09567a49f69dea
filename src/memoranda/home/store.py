"""Where Git objects and refs are kept: the seam between a Home and its medium.

Nothing here names a path of a file system, so that a database can stand in the disk's place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from memoranda.home.objects import GitObject
from memoranda.values import dataclass

LEDGER_REF = "refs/memoranda/ledger"
FROM = "refs/memoranda/from"  # below it, by the names of remotes, the ledgers of other clones as they were fetched


@dataclass(frozen=True, slots=True)
class RefMove:
    """Moves `ref` from `old` to `new`; `old` None: it must not exist yet. `note` is what the reflog says."""

    ref: str
    old: str | None
    new: str
    note: str


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path that differs between two trees; `old` or `new` is None where the path does not exist."""

    path: str
    old: str | None
    new: str | None


class ObjectStore(Protocol):
    """Batches of objects, and refs moved together by compare-and-swap."""

    def put(self, objects: Sequence[GitObject]) -> object:
        """Keeps the objects durably; returns a handle that holds them against clean-up until `release`."""

    def release(self, handle: object) -> None:
        """The refs have moved: what `put` kept is reachable now."""

    def sweep(self, *, alone: bool = False, holds: bool = True) -> None:
        """Removes what killed writers left half-written, and with `holds` what held their objects against clean-up.

        `alone`: nobody else is writing at this moment.
        """

    def get(self, name: str) -> GitObject | None:
        """The object named by an id, or by `<commit>:<path>`."""

    def get_many(self, names: Sequence[str]) -> Iterator[GitObject | None]:
        """The objects in the order of their names, None for each that is missing."""

    def ref(self, name: str) -> str | None:
        """The commit that a ref names."""

    def move(self, moves: Sequence[RefMove]) -> None:
        """Moves all the refs or none; RefMoved when one is not where it was expected or is locked."""

    def changes(self, old: str | None, new: str) -> list[TreeChange]:
        """The files that differ between two commits or trees, by path."""

    def files(self, commit: str) -> Iterator[tuple[str, str]]:
        """(path, blob) of the regular files of a commit, in the order of their paths; read as one goes."""

    def count(self, commit: str) -> int:
        """How many files a commit has, whatever they are."""

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether the commit `old` is `new` or one of its ancestors."""

    def erase(self, names: set[bytes], *, hints: Mapping[bytes, bytes], merge: Sequence[str]) -> int:
        """Removes objects (ids of 20 bytes) from wherever they are kept; everything else stays. Safe to repeat.

        `hints` gives names by which objects that resemble each other are found, `merge` the handles' names of what
        `put` has written in their place. Returns how much was written again.
        """

    def close(self) -> None:
        """Lets go of what is held."""
