"""Takes objects out of a Git repository for good: out of packs, loose files, and what was derived from them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from memoranda.errors import GitFailed
from memoranda.home.durable import sync_path
from memoranda.home.git import Git

_INDEX_MAGIC = b"\xfftOc\0\0\0\2"
_BESIDE = (".pack", ".rev", ".bitmap", ".mtimes", ".promisor", ".keep", ".idx")
_ASIDE = "tmp_objdir-memoranda"
_DERIVED = ("info/commit-graph", "info/commit-graphs", "pack/multi-pack-index", "info/packs")


def pack_ids(git: Git, index: Path) -> list[bytes]:
    """The ids of the objects in a pack, by its index."""
    data = index.read_bytes()
    if data.startswith(_INDEX_MAGIC):
        count = int.from_bytes(data[8 + 255 * 4 : 8 + 256 * 4], "big")
        start = 8 + 256 * 4
        return [data[at : at + 20] for at in range(start, start + 20 * count, 20)]
    rows = git.run("show-index", stdin=data).splitlines()
    return [bytes.fromhex(row.split()[1].decode()) for row in rows]


def purge(git: Git, objects: Path, drop: set[bytes], hints: Mapping[bytes, bytes], merge: Iterable[str]) -> int:
    """Removes the objects `drop`; returns how many packs were written again.

    Everything else stays, also what nothing reaches. The packs named in `merge` are joined with those that had to be
    written again. `hints` gives names by which Git finds what resembles an object. Safe to repeat after any crash.
    """
    folder = objects / "pack"
    merge = set(merge)
    stale: list[Path] = []
    keep: set[bytes] = set()
    promised = False
    for index in sorted(folder.glob("pack-*.idx")):
        if not index.with_suffix(".pack").exists():
            _remove_pack(index)  # half of it was removed before a crash
            continue
        ids = pack_ids(git, index)
        if index.stem in merge or not drop.isdisjoint(ids):
            stale.append(index)
            keep.update(ids)
            promised = promised or index.with_suffix(".promisor").exists()
    keep -= drop
    fresh = _pack(git, folder, keep, hints, promised) if keep else set()
    for name in _DERIVED:  # before the packs go that they name
        path = objects / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for left in folder.glob("multi-pack-index-*"):
        left.unlink()
    if (objects / "info").is_dir():
        sync_path(objects / "info")
    for index in stale:
        if index.stem not in fresh:
            _remove_pack(index)
    _remove_loose(objects, drop)
    _remove_temporary(objects)
    sync_path(folder)
    return len(stale)


def _pack(git: Git, folder: Path, keep: set[bytes], hints: Mapping[bytes, bytes], promised: bool) -> set[str]:
    """Writes a pack of exactly these objects, looks whether they are all in it, and returns its name."""
    rows = b"".join(b"%s %s\n" % (oid.hex().encode(), _one_line(hints.get(oid, b""))) for oid in sorted(keep))
    aside = folder.parent / _ASIDE  # what Git does not sync must not bear the name of a pack when the power goes
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    said = git.run("pack-objects", "-q", "--delta-base-offset", "--non-empty", str(aside / "pack"), stdin=rows)
    names = {f"pack-{name}" for name in said.decode("ascii").split()}
    written: set[bytes] = set()
    for name in names:
        written.update(pack_ids(git, aside / f"{name}.idx"))
        if promised:
            (aside / f"{name}.promisor").touch()
    if keep - written:
        raise GitFailed(
            "Git left objects out of a new pack.", why=f"{len(keep - written)} are missing.",
            remedy="Nothing was deleted; run `git fsck` in the Home.",
        )  # fmt: skip
    made = sorted(aside.iterdir(), key=lambda path: path.suffix == ".idx")  # the index last: it makes a pack visible
    for path in made:
        sync_path(path)
    for path in made:
        path.replace(folder / path.name)
    sync_path(folder)
    aside.rmdir()
    return names


def _one_line(name: bytes) -> bytes:
    return b"" if b"\n" in name else name


def _remove_pack(index: Path) -> None:
    for suffix in _BESIDE:  # the pack first: what is found without one is known for the rest of it
        index.with_suffix(suffix).unlink(missing_ok=True)


def _remove_loose(objects: Path, drop: set[bytes]) -> None:
    for folder in objects.glob("[0-9a-f][0-9a-f]"):
        gone = [path for path in folder.iterdir() if _id_of(folder.name + path.name) in drop]
        for path in gone:
            path.unlink()
        if gone:
            sync_path(folder)


def _id_of(name: str) -> bytes:
    try:
        return bytes.fromhex(name)
    except ValueError:
        return b""


def _remove_temporary(objects: Path) -> None:
    """What a killed Git left half-written; one that is at work at this moment fails and can be run again."""
    for pattern in ("pack/tmp_*", "pack/.tmp-*", "[0-9a-f][0-9a-f]/tmp_obj_*", "tmp_objdir-*", "incoming-*"):
        for path in objects.glob(pattern):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def still_there(git: Git, objects: Path, drop: set[bytes]) -> set[bytes]:
    """Those of these objects that the repository itself still holds."""
    found: set[bytes] = set()
    for index in (objects / "pack").glob("pack-*.idx"):
        found |= drop.intersection(pack_ids(git, index))
    for folder in objects.glob("[0-9a-f][0-9a-f]"):
        found |= drop.intersection(_id_of(folder.name + path.name) for path in folder.iterdir())
    return found


def alternates(objects: Path) -> list[str]:
    """The object folders of other repositories that this one borrows from."""
    try:
        lines = (objects / "info" / "alternates").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    return [line for line in lines if line.strip() and not line.startswith("#")]
