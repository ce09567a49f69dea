"""Ledgers that went apart: what one lacks of another, and both taken together.

A segment only grows. Of two states of one segment the longer is taken; where they went apart, the lines of both. Lines
are never dropped here, and what they are worth each line says by its MAC.
"""

from __future__ import annotations

from typing import Any

from memoranda.home.ledger import REDACTED, read_lines
from memoranda.home.objects import GitObject, TreeEditor, make_object, read_tree
from memoranda.home.store import ObjectStore


def segments(store: ObjectStore, commit: str | None) -> dict[str, str] | None:
    """path -> blob of every segment of the ledger at a commit; None when that cannot be read (any more)."""
    if commit is None:
        return {}
    root = store.get(f"{commit}^{{tree}}")
    if root is None:
        return None
    found: dict[str, str] = {}
    for _, folder, tree in read_tree(root.data):
        inside = store.get(tree)
        if inside is None or inside.kind != "tree":
            return None
        for _, name, blob in read_tree(inside.data):
            found[f"{folder.decode('utf-8', 'replace')}/{name.decode('utf-8', 'replace')}"] = blob
    return found


def lacks(store: ObjectStore, ledger: str | None, other: str) -> bool | None:
    """Whether the ledger at one commit lacks a line that it has at the other; None when the other cannot be read."""
    mine, theirs = segments(store, ledger) or {}, segments(store, other)
    if theirs is None:
        return None
    for path, blob in theirs.items():
        if mine.get(path) == blob:
            continue
        data, own = _read(store, blob), _read(store, mine.get(path))
        if data is None:
            return None
        if not (own or b"").startswith(data) and not set(data.splitlines()) <= set((own or b"").splitlines()):
            return True
    return False


def joined(
    store: ObjectStore, base: str | None, other: str, *, own: str | None = None
) -> tuple[str, list[GitObject]] | None:
    """The tree of both ledgers together, and the objects that are new; None when `base` has everything already.

    The lines of `base` come first. Of `own`, the folder of this clone, nobody else knows more than a beginning: what
    differs there from `base` is not taken, since an erasing here has redacted it.
    """
    mine, theirs = segments(store, base) or {}, segments(store, other) or {}
    made: list[GitObject] = []
    root = store.get(f"{base}^{{tree}}") if base else None

    def tree(oid: str) -> bytes:
        found = store.get(oid)
        return found.data if found is not None else b""

    editor = TreeEditor(tree, root.oid if root is not None else None)
    changed = False
    for path, blob in sorted(theirs.items()):
        if mine.get(path) == blob or (data := _read(store, blob)) is None:
            continue
        before = _read(store, mine.get(path)) or b""
        if path.partition("/")[0] == own and not data.startswith(before):
            continue
        both = _both(before, data)
        if both != before:
            fresh = make_object("blob", both, mine.get(path))
            made.append(fresh)
            editor.put(path, fresh.oid)
            changed = True
    return (editor.write(made.append), made) if changed else None


def _both(before: bytes, data: bytes) -> bytes:
    if data.startswith(before):
        return data
    known = set(before.splitlines())
    likely: dict[tuple[int, object], list[dict[str, Any]]] = {}
    for line in known:
        for fields in read_lines(line):
            likely.setdefault((len(line), fields.get("n")), []).append(fields)
    fresh: list[bytes] = []
    for line in data.splitlines():
        for fields in read_lines(line) if line not in known else ():
            # Of a line that an erasing has redacted on one side only, the first form stays.
            if not any(_redacted(fields, other) for other in likely.get((len(line), fields.get("n")), ())):
                fresh.append(line)
    return before + b"".join(line + b"\n" for line in fresh)


def _redacted(one: object, other: object) -> bool:
    """Whether these are the same line, but for words that an erasing has taken out of one of them."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(key == "mac" or _redacted(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_redacted, one, other))
    if isinstance(one, str) and isinstance(other, str) and len(one) == len(other):
        return one == other or REDACTED in (one[: len(REDACTED)], other[: len(REDACTED)])
    return one == other


def _read(store: ObjectStore, blob: str | None) -> bytes | None:
    found = store.get(blob) if blob is not None else None
    return found.data if found is not None and found.kind == "blob" else None
