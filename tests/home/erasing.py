"""What the tests of erasing share: what has to go of a note, and a search that knows nothing of the program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from home.tools import git
from memoranda.context import Context
from memoranda.home.erasing.erase import Blank, Lines, Whole
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.space import Space


def objects(root: Path) -> dict[str, bytes]:
    """id and kind -> content of every object that Git can read, whatever reaches it; deltas resolved."""
    done = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=root, capture_output=True, check=True
    )
    out, at, found = done.stdout, 0, {}
    while at < len(out):
        end = out.index(b"\n", at)
        name, kind, size = out[at:end].split()
        found[f"{kind.decode()} {name.decode()}"] = out[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found


def places(root: Path, words: Iterable[str]) -> list[str]:
    """Where any of these words stands: in objects, unpacked, and in the bytes and names of all other files."""
    wanted = [word.lower().encode() for word in words]
    found = [f"{name}: {w}" for name, data in objects(root).items() for w in wanted if w in data.lower()]
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if path.is_file() and not name.startswith((".git/objects/pack/pack-", ".git/objects/pack/multi")):
            data = path.read_bytes().lower() + name.lower().encode("utf-8", "surrogateescape")
            found += [f"{name}: {w}" for w in wanted if w in data]
    return found


def blanks_of(space: Space, context: Context, *ids: str) -> list[Blank]:
    """What `forget --erase` asks for: all versions of these notes, and the entries that they cite."""
    home = space.one()
    home.refresh(context)
    blanks: list[Blank] = []
    for note_id in ids:
        row = home.indexes.catalog.by_id(note_id)[0]
        versions = home.indexes.catalog.at_path(row.path)
        blanks += [Whole(version.blob) for version in versions]
        for source in {source for version in versions for source in version.sources}:
            blanks.append(lines_of(source))
    return blanks


def lines_of(uri: str) -> Lines:
    pointer = parse_pointer(uri)
    assert pointer.rev and pointer.start and pointer.end
    return Lines(pointer.rev, pointer.start, pointer.end)


def commits(root: Path, *refs: str) -> list[tuple[str, ...]]:
    """Who, when and the number of parents of every commit of these refs: what an erasing must not change."""
    rows = git(root, "log", "--topo-order", "--format=%an|%ae|%at|%cn|%ce|%ct|%P", *refs).splitlines()
    told = (row.split("|") for row in rows)
    return sorted((*who, str(len(parents.split()))) for *who, parents in told)
