"""Which recipe answers in this clone, which stand beside it, and what the golden questions said of each.

One file below `.git/memoranda/`, replaced in one step: it is not tracked, so that no clone and no pull decides what
answers here, and it holds names and figures only. Where it is missing, the default recipe answers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from memoranda.errors import Unavailable
from memoranda.home.durable import FileLock, write_durably
from memoranda.values import dataclass, field, replace

FILE = "recipes.json"
_FORMAT = 1
_MOST_PROMOTIONS = 50


@dataclass(frozen=True, slots=True)
class Tested:
    """What the golden questions said of a recipe with this digest: `hit` and `mrr` as in `GoldenReport`, `at` when."""

    digest: str
    questions: int
    hit: float
    mrr: float
    passed: bool
    at: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A recipe that was added: the directories of its indexes, and how it was tested last."""

    name: str
    indexes: tuple[str, ...]
    added_at: str
    by: str
    tested: Tested | None = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """One switch: when, by whom, from which recipe to which, and whether a worse one was forced."""

    at: str
    by: str
    recipe: str
    former: str
    forced: bool


@dataclass(frozen=True, slots=True)
class Record:
    """The whole file: `active` and its `digest` are None where nothing was chosen or tested yet."""

    active: str | None = None
    digest: str | None = None
    kept: Mapping[str, Kept] = field(default_factory=dict)
    promotions: tuple[Promotion, ...] = ()

    def keep(self, kept: Kept) -> Record:
        return replace(self, kept={**self.kept, kept.name: kept})

    def without(self, name: str) -> Record:
        return replace(self, kept={other: kept for other, kept in self.kept.items() if other != name})


class Serving:
    """The file of one clone, `folder` being `.git/memoranda`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / FILE
        self._lock = threading.Lock()

    def mark(self) -> tuple[int, int, int] | None:
        """Another one after every change; None where nothing was ever chosen."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self) -> Record:
        """What it says. Unavailable when it cannot be read."""
        try:
            told = json.loads(self.path.read_bytes())
            if told["format"] != _FORMAT:
                raise ValueError(f"its format is {told['format']}")
            kept = {name: _kept(name, fields) for name, fields in told["recipes"].items()}
            promotions = tuple(Promotion(**fields) for fields in told["promotions"])
            return Record(told["active"], told["digest"], kept, promotions)
        except FileNotFoundError:
            return Record()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Unavailable(
                f"{self.path} does not say which recipe answers here.",
                why=str(error),
                remedy="Delete it: the default recipe answers then, and `memoranda index add` takes others up again.",
            ) from error

    def change(self, change: Callable[[Record], Record]) -> Record:
        """Replaces what it says, durably, in one step; several processes change it one after the other."""
        with self._lock:
            lock = FileLock(self._folder / "recipes.lock")
            try:
                lock.acquire()
                record = change(self.read())
                write_durably(self.path, json.dumps(_document(record), indent=2).encode() + b"\n")
            finally:
                lock.close()
        return record


def _kept(name: str, fields: Mapping[str, Any]) -> Kept:
    tested = Tested(**fields["tested"]) if fields["tested"] else None
    return Kept(name, tuple(fields["indexes"]), fields["added_at"], fields["by"], tested)


def _document(record: Record) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "active": record.active,
        "digest": record.digest,
        "recipes": {
            kept.name: {
                "indexes": list(kept.indexes), "added_at": kept.added_at, "by": kept.by,
                "tested": _fields(kept.tested) if kept.tested else None,
            }
            for kept in record.kept.values()
        },
        "promotions": [_fields(promotion) for promotion in record.promotions[-_MOST_PROMOTIONS:]],
    }  # fmt: skip


def _fields(value: Tested | Promotion) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__slots__}
