"""What Git remembers: which commit changed which file, and when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from memoranda.home.disk import read_raw
from memoranda.home.git import Git
from memoranda.home.store import TreeChange


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
    scope = [new] if old is None else [new, f"^{old}"]
    limit = [] if newest is None else [f"-{newest}"]
    out = git.run(
        "log", "--reverse", "--topo-order", "--raw", "-z", "--no-renames", "--no-abbrev", "--diff-merges=first-parent",
        "--format=%x01%H%x02%ct%x02%an%x02%s%x01", *limit, *scope, "--",
    )  # fmt: skip
    parts = out.split(b"\x01")
    for at in range(1, len(parts) - 1, 2):
        commit, seconds, author, subject = parts[at].split(b"\x02", 3)
        raw = parts[at + 1].strip(b"\n").lstrip(b"\0").strip(b"\n")
        yield Step(
            commit.decode(),
            datetime.fromtimestamp(int(seconds), UTC),
            author.decode("utf-8", "replace"),
            subject.decode("utf-8", "replace"),
            read_raw(raw) if raw else [],
        )
