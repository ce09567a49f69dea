"""Trees and commits compared object by object, for a store that no Git can read: it costs what differs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from memoranda.errors import HomeDamaged
from memoranda.home.history import Step
from memoranda.home.objects import FILE_MODE, PROGRAM_MODE, TREE_MODE, GitObject, read_tree
from memoranda.home.store import TreeChange

Read = Callable[[Sequence[str]], list[GitObject | None]]
_REGULAR = (FILE_MODE, PROGRAM_MODE)
_LAST = 253402300799  # the end of the year 9999
Entry = tuple[bytes, str]  # mode, id


def tree_of(commit: GitObject) -> str:
    """The id of a commit's tree."""
    return commit.data[5:45].decode()


def parents_of(commit: GitObject) -> list[str]:
    """The ids of a commit's parents, the first one first."""
    found = []
    for line in commit.data[46:].split(b"\n"):
        if not line.startswith(b"parent "):
            break
        found.append(line[7:].decode())
    return found


def changes(read: Read, old: str | None, new: str | None) -> list[TreeChange]:
    """The files that differ between two trees (ids, None for an empty one), by path."""
    found: list[TreeChange] = []
    level: list[tuple[bytes, str | None, str | None]] = [(b"", old, new)]
    while level:
        names = list(dict.fromkeys(name for _, *pair in level for name in pair if name is not None))
        trees = dict(zip(names, _needed(read, names), strict=True))
        following: list[tuple[bytes, str | None, str | None]] = []
        for above, one, other in level:
            _compare(above, _entries(trees, one), _entries(trees, other), found, following)
        level = following
    found.sort(key=lambda change: change.path.encode("utf-8", "surrogateescape"))
    return found


def _compare(
    above: bytes, before: dict[bytes, Entry], after: dict[bytes, Entry], found: list[TreeChange],
    following: list[tuple[bytes, str | None, str | None]],
) -> None:  # fmt: skip
    for name in before.keys() | after.keys():
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        path = above + name
        folders = _if_of(was, (TREE_MODE,)), _if_of(now, (TREE_MODE,))
        files = _if_of(was, _REGULAR), _if_of(now, _REGULAR)
        if folders != (None, None):
            following.append((path + b"/", *folders))
        if files != (None, None):
            found.append(TreeChange(path.decode("utf-8", "surrogateescape"), *files))


def _if_of(entry: Entry | None, modes: Sequence[bytes]) -> str | None:
    return entry[1] if entry is not None and entry[0] in modes else None


def _entries(trees: dict[str, GitObject], name: str | None) -> dict[bytes, Entry]:
    return {} if name is None else {entry: (mode, oid) for mode, entry, oid in read_tree(trees[name].data)}


def files(read: Read, root: str) -> Iterator[tuple[str, str]]:
    """(path, blob) of the regular files of a tree, in the order of their paths."""
    todo: list[tuple[bytes, bytes, str]] = [(b"", TREE_MODE, root)]
    while todo:
        path, mode, oid = todo.pop()
        if mode in _REGULAR:
            yield path.decode("utf-8", "surrogateescape"), oid
        elif mode == TREE_MODE:
            (tree,) = _needed(read, [oid])
            prefix = path + b"/" if path else b""
            todo += [(prefix + name, kind, target) for kind, name, target in read_tree(tree.data)][::-1]


def walk(read: Read, old: str | None, new: str, newest: int | None = None) -> Iterator[Step]:
    """The commits reachable from `new` and not from `old`, parents before children; `newest` limits their number.

    Of a merge only what differs from its first parent counts.
    """
    for commit in _between(read, old, new, newest):
        first = parents_of(commit)[:1]
        before = tree_of(_needed(read, first)[0]) if first else None
        yield step_of(commit, changes(read, before, tree_of(commit)))


def step_of(commit: GitObject, changed: list[TreeChange]) -> Step:
    """One commit as a step of its history."""
    head, _, message = commit.data.partition(b"\n\n")
    fields = {line.partition(b" ")[0]: line.partition(b" ")[2] for line in head.split(b"\n")}
    seconds = int(fields[b"committer"].rsplit(b" ", 2)[1])
    author = fields[b"author"].rpartition(b" <")[0].decode("utf-8", "replace")
    subject = " ".join(message.split(b"\n\n", 1)[0].decode("utf-8", "replace").split("\n")).strip()
    return Step(commit.oid, datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC), author, subject, changed)


def _between(read: Read, old: str | None, new: str, newest: int | None) -> list[GitObject]:
    """The commits of `old..new`, oldest first. By far most histories are one row."""
    known = _ancestors(read, old, new) if old is not None else set()
    found: list[GitObject] = []
    seen: set[str] = set(known)
    todo = [new]
    row: list[GitObject] = []
    while todo:
        name = todo.pop()
        if name in seen or name == old:
            continue
        seen.add(name)
        (commit,) = _needed(read, [name])
        row.append(commit)
        if newest is not None and len(row) >= newest:
            break
        todo += parents_of(commit)[::-1]
    found = row[::-1]
    return found if _is_row(found) else _sorted(found)


def _is_row(commits: Sequence[GitObject]) -> bool:
    return all(len(parents_of(commit)) <= 1 for commit in commits)


def _sorted(commits: Sequence[GitObject]) -> list[GitObject]:
    """Parents before children."""
    by_name = {commit.oid: commit for commit in commits}
    done: dict[str, None] = {}
    for commit in commits:
        todo = [commit.oid]
        while todo:
            name = todo[-1]
            missing = [p for p in parents_of(by_name[name]) if p in by_name and p not in done]
            if missing:
                todo += missing
            else:
                done.setdefault(todo.pop())
    return [by_name[name] for name in done]


def _ancestors(read: Read, old: str, new: str) -> set[str]:
    """The ancestors of `old` that are met from `new` by another way than `old`; empty where history is one row."""
    if is_ancestor(read, old, new, first_parents=True):
        return set()
    found: set[str] = set()
    todo = [old]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            (commit,) = read([name])
            todo += parents_of(commit) if commit is not None else []
    return found


def is_ancestor(read: Read, old: str, new: str, *, first_parents: bool = False) -> bool:
    """Whether the commit `old` is `new` or one of its ancestors; False also when it does not exist."""
    if old == new:
        return True
    (target,) = read([old])
    if target is None:
        return False
    oldest = _seconds(target)
    seen: set[str] = set()
    todo = [(-_seconds(commit), commit.oid) for commit in read([new]) if commit is not None]
    while todo:
        when, name = heapq.heappop(todo)
        if name == old:
            return True
        if -when < oldest - 86400 and not first_parents:
            continue  # clocks differ, but not by a day within one Home
        (commit,) = read([name])
        for parent in parents_of(commit)[: 1 if first_parents else None] if commit is not None else ():
            if parent not in seen:
                seen.add(parent)
                (found,) = read([parent])
                if found is not None:
                    heapq.heappush(todo, (-_seconds(found), parent))
    return False


def _seconds(commit: GitObject) -> int:
    line = commit.data[commit.data.index(b"\ncommitter ") :].split(b"\n", 2)[1]
    return int(line.rsplit(b" ", 2)[1])


def _needed(read: Read, names: Sequence[str]) -> list[GitObject]:
    found = []
    for name, item in zip(names, read(names), strict=True):
        if item is None:
            raise HomeDamaged(f"The object {name[:12]} is missing.", remedy="Restore the database from a backup.")
        found.append(item)
    return found
