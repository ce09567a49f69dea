"""A group of commits that are made together, as `commit.json` keeps it."""

from __future__ import annotations

import json
from pathlib import Path

from memoranda.errors import HomeDamaged
from memoranda.notes.lazyre import lazy
from memoranda.values import dataclass

_NAME = lazy(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Position:
    """Everything up to record `seq` is in Git; the record ends at `offset` of `segment`."""

    segment: int
    offset: int
    seq: int


State = tuple[str | None, str | None, int]
"""A commit of the branch, one of the ledger, and the last record that they hold."""


@dataclass(frozen=True, slots=True)
class Group:
    """Where the refs stood and where they go; `row` are the states from which groups alone led here, oldest first."""

    before: Position
    after: Position
    branch: str
    main: tuple[str | None, str | None]
    ledger: tuple[str | None, str]
    row: tuple[State, ...] = ()


def read_group(path: Path) -> Group:
    """What `encode_group` has written; HomeDamaged when it is something else."""
    try:
        raw = json.loads(path.read_bytes())
        before, after = Position(*raw["before"]), Position(*raw["after"])
        row = tuple((main, ledger, seq) for main, ledger, seq in raw.get("row", ()))
        (old, new), (former, latter) = raw["main"], raw["ledger"]
        numbers = (before.segment, before.offset, before.seq, after.segment, after.offset, after.seq)
        names = (*(name for name in (old, new, former) if name is not None), latter)
        if not all(type(n) is int and n >= 0 for n in numbers) or not all(_NAME.fullmatch(name) for name in names):
            raise ValueError("A number or a name of an object is none.")
        return Group(before, after, str(raw["branch"]), (old, new), (former, latter), row)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise HomeDamaged(
            "The committer's note commit.json cannot be read.",
            why=str(error),
            remedy="Open the Home again: what it says is worked out from the log and the ledger.",
        ) from error


def encode_group(group: Group) -> bytes:
    def place(p: Position) -> list[int]:
        return [p.segment, p.offset, p.seq]

    fields = {
        "before": place(group.before), "after": place(group.after), "branch": group.branch,
        "main": group.main, "ledger": group.ledger, "row": group.row,
    }  # fmt: skip
    return json.dumps(fields).encode() + b"\n"
