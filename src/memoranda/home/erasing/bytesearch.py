"""Looks through everything that a Home consists of, byte for byte, for what was erased."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from memoranda.home.erasing.leftovers import files_below
from memoranda.home.erasing.needles import Needles
from memoranda.home.erasing.survey import ENTRY
from memoranda.home.git import CatFile
from memoranda.home.layout import Layout

_OF_A_PACK = (".pack", ".idx", ".rev", ".keep", ".bitmap", ".mtimes", ".graph", ".promisor")


def in_objects(reader: CatFile, oids: Iterable[str], needles: Needles) -> Iterator[str]:
    """The objects, unpacked and with their deltas resolved, that hold a line of the text or a rare word of it."""
    for found in reader.get_many(list(oids)):
        if found is None:
            continue
        name, kind, data = found
        if kind == "tree":
            held = any(needles.stands_in(entry) for _, entry, _ in ENTRY.findall(data))
        else:
            held = needles.holds(data)
        if held:
            yield f"{kind} {name}"


def in_files(layout: Layout, needles: Needles, unchanged: set[str]) -> Iterator[str]:
    """The files, of Git's directory and of the working tree, that hold it.

    `unchanged` are the paths of files that are what Git's objects say, and are not read a second time.
    """
    for place in dict.fromkeys((layout.git_dir, layout.common_dir)):
        for path in files_below(place, without="objects"):
            if _holds(needles, path, apart=path.name == "index"):
                yield f".git/{path.relative_to(place).as_posix()}"
    for path in _beside_objects(layout.objects):
        if _holds(needles, path):
            yield f".git/objects/{path.relative_to(layout.objects).as_posix()}"
    for path in files_below(layout.root, without=".git"):
        name = path.relative_to(layout.root).as_posix()
        if name in unchanged:
            continue
        if _holds(needles, path):
            yield name


def _beside_objects(place: Path) -> Iterator[Path]:
    """Files among Git's objects that are none: no loose object, no pack and nothing that belongs to one."""
    for path in files_below(place):
        loose = len(path.parent.name) == 2 and len(path.name) == 38
        if not loose and path.suffix not in _OF_A_PACK:
            yield path


def _holds(needles: Needles, path: Path, *, apart: bool = False) -> bool:
    name = path.name.encode("utf-8", "surrogateescape")
    return needles.holds(path.read_bytes(), apart=apart) or needles.holds(name)
