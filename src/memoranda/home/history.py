"""What Git remembers: which commit changed which file, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from memoranda.home.disk import read_raw, read_row
from memoranda.home.git import Git
from memoranda.home.store import TreeChange
from memoranda.values import dataclass

_LAST = 253402300799  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class Step:
    """One commit on the way: `at` is the committer's date, the known time of what it brought."""

    commit: str
    at: datetime
    author: str
    subject: str
    changes: list[TreeChange]


def walk(git: Git, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step]:
    """The commits reachable from `new` and not from `old`, parents before children.

    Of a merge only what differs from its first parent counts: the rest was said by the merged commits. `newest` limits
    the walk to that many commits, the newest.
    """
    step: Step | None = None
    for found in walk_rows(git, old, new, newest=newest):
        if isinstance(found, Step):
            if step is not None:
                yield step
            step = found
        elif step is not None:
            step.changes.append(found)
    if step is not None:
        yield step


def walk_rows(git: Git, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step | TreeChange]:
    """As `walk`, and never a whole commit at once: each without its changes, then these one by one."""
    scope = [new] if old is None else [new, f"^{old}"]
    limit = [] if newest is None else [f"-{newest}"]
    fields = git.fields(
        "log", "--reverse", "--topo-order", "--raw", "-z", "--no-renames", "--no-abbrev", "--diff-merges=first-parent",
        "--format=tformat:%H%x00%ct%x00%an%x00%s", *limit, *scope, "--",
    )  # fmt: skip
    for field in fields:  # of each commit four, then two for each file: nothing in them holds a NUL
        if (row := field.lstrip(b"\n")).startswith(b":"):
            yield read_row(row, next(fields))
            continue
        seconds, author, subject = next(fields), next(fields), next(fields)
        at = _time(int(seconds))
        yield Step(field.decode(), at, author.decode("utf-8", "replace"), subject.decode("utf-8", "replace"), [])


def past_blobs(git: Git, old: str | None, new: str, path: str) -> set[str | None]:
    """The blobs that a path has had in the commits from behind `old` to `new`; None when it was not there in one.

    Only the newest thousand commits that changed it are asked.
    """
    scope = [new] if old is None else [new, f"^{old}"]
    out = git.run("log", "-1000", "-z", "--raw", "--no-renames", "--no-abbrev", "--format=", *scope, "--", path)
    rows = read_raw([field.lstrip(b"\n") for field in out.split(b"\0") if field.strip(b"\n")])
    return {blob for row in rows for blob in (row.old, row.new)}


def _time(seconds: int) -> datetime:
    """A commit's date; one that no calendar has, which anybody can write, becomes the nearest that it has."""
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC)
