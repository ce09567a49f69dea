"""What others have written, read level by level and not object by object: it is asked for in as many questions as a
path has folders, for both refs and every commit together, before anybody needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memoranda.home.objects import TREE_MODE, GitObject, read_tree
from memoranda.home.postgres.trees import Read, parents_of, tree_of

_MOST = 64  # commits; of more, those who need them ask themselves
_Pair = tuple[str | None, str | None, bool]  # two trees, and whether the files that differ are wanted as well


def read_ahead(read: Read, old: Mapping[str, str | None], new: Mapping[str, str | None], row: str) -> list[GitObject]:
    """Has `read` meet the commits and trees between these refs; gives the files that the newest state has anew.

    Of the ref `row`, each commit behind the old one is wanted, since it tells when something became known; of the
    others the newest. Where something is missing, it is passed over: another transaction may have erased it.
    """
    tips = [name for name in (*new.values(), *old.values()) if name is not None]
    found = {item.oid: item for item in read(tips) if item is not None}
    pairs = [(_tree(found, old.get(ref)), _tree(found, tip), True) for ref, tip in new.items()]
    pairs += _between(read, found, old.get(row), new.get(row))
    files: dict[str, None] = {}
    while pairs:
        names = dict.fromkeys(name for one, other, _ in pairs for name in (one, other) if name is not None)
        found |= {item.oid: item for item in read([*names, *files]) if item is not None}
        following: dict[_Pair, None] = {}
        for pair in pairs:
            _differences(found, pair, following, files)
        pairs = list(following)
    found |= {item.oid: item for item in read([name for name in files if name not in found]) if item is not None}
    return [found[name] for name in files if name in found]


def _between(read: Read, found: Mapping[str, GitObject], old: str | None, new: str | None) -> Iterable[_Pair]:
    """The trees of each commit behind `old` and of the one before it."""
    commit = found.get(new) if new is not None else None
    pairs: list[_Pair] = []
    while commit is not None and old is not None and commit.oid != old and len(pairs) < _MOST:
        parents = parents_of(commit)
        before = read(parents[:1])[0] if parents else None
        pairs.append((None if before is None else tree_of(before), tree_of(commit), False))
        commit = before
    return pairs if len(pairs) > 1 else ()  # one alone is the whole difference


def _tree(found: Mapping[str, GitObject], commit: str | None) -> str | None:
    item = found.get(commit) if commit is not None else None
    return None if item is None else tree_of(item)


def _differences(
    found: Mapping[str, GitObject], pair: _Pair, following: dict[_Pair, None], files: dict[str, None]
) -> None:
    one, other, wanted = pair
    before, after = _entries(found, one), _entries(found, other)
    for name, (mode, oid) in after.items():
        was = before.get(name)
        if was == (mode, oid):
            continue
        if mode == TREE_MODE:
            following[(was[1] if was is not None and was[0] == TREE_MODE else None, oid, wanted)] = None
        elif wanted:
            files[oid] = None


def _entries(found: Mapping[str, GitObject], tree: str | None) -> dict[bytes, tuple[bytes, str]]:
    item = found.get(tree) if tree is not None else None
    return {} if item is None else {name: (mode, oid) for mode, name, oid in read_tree(item.data)}
