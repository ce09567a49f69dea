"""The values that go into a write and come out of a look: drafts, changes, snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memoranda.home.outside import Found
from memoranda.home.record import Record
from memoranda.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Change:
    """One file that a write wants to change: `data` is its new content (None: gone), or what is appended.

    `blob` is the id of a whole new content, when somebody has worked it out already.
    """

    path: str
    data: bytes | None
    appended: bool = False
    laid: bool = False  # the bytes stand in the working tree already
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Appending:
    """An append that is about to happen: the blob that the file will be, and the line that it begins at."""

    change: Change
    blob: str
    line: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A write, as it is asked for inside the writers' lock.

    `reason` becomes the subject of the commit, `ledger` holds fields of ledger lines; `{blob}` of a change is filled
    in by `Repository.write` for lines that carry its path.
    """

    op: str
    reason: str
    changes: Sequence[Change]
    ledger: Sequence[Mapping[str, Any]] = ()
    trailers: Mapping[str, str] = field(default_factory=dict)
    author: str = "unknown"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a read stands on: a commit, and the records behind it, up to `seq`, that are not in it yet."""

    commit: str | None
    seq: int
    tail: tuple[Record, ...]

    @property
    def committed(self) -> int:
        """The last record that is in Git."""
        return self.tail[0].seq - 1 if self.tail else self.seq

    def told(self) -> frozenset[str]:
        """The paths of the files that the records behind the commit have changed."""
        return frozenset(change.path for record in self.tail for change in record.changes)


def found_draft(found: Iterable[Found]) -> Draft:
    """The write that takes in outside edits: its changes stand in the working tree already."""
    items = list(found)
    names = [item.path.rpartition("/")[2] for item in items[:3]]
    more = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return Draft("found", f"Take in edits made outside: {', '.join(names)}{more}", ())
