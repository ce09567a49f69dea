"""What one node keeps of a Home in PostgreSQL: caches in a folder, good for one state of the Home's erasings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from memoranda.home.durable import FileLock, write_durably
from memoranda.home.erasing.erasures import Erasures
from memoranda.home.layout import CACHE, Layout
from memoranda.home.postgres.store import PostgresStore

_GENERATION = "known"
_HELD = "held"  # whoever has the Home open here shares this lock; its time tells when the last one let go
TEMPORARY = "passing"  # below it, what is only there while somebody works on it


def node_layout(folder: Path) -> Layout:
    """The folders of one Home on this node, made where they are missing."""
    layout = _layout(folder)
    layout.own.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / CACHE).mkdir(mode=0o700, exist_ok=True)
    return layout


def _layout(folder: Path) -> Layout:
    return Layout(folder, folder / "node", folder / "node")


def renew(store: PostgresStore, layout: Layout, erasures: Erasures) -> int:
    """Brings the folder to the Home's erasings; their number. When there was one that it does not know, every cache is
    made again: it may hold what was erased, also where this node was away at the time."""
    with store.reading() as cursor:
        generation = store.state(cursor).generation
        if known(layout) == generation:
            return generation
        maps = cursor.execute("SELECT name, map FROM memory_erasures WHERE home = %s", (store.home,)).fetchall()
    empty(layout)
    folder = layout.own / "erased"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in maps:
        write_durably(folder / name, data)
    erasures.finished()
    write_durably(layout.own / _GENERATION, f"{generation}\n".encode())
    return generation


def known(layout: Layout) -> int | None:
    """The erasings that the folder knows of; None for a folder that knows nothing."""
    try:
        return int((layout.own / _GENERATION).read_text())
    except (FileNotFoundError, ValueError):
        return None


def empty(layout: Layout) -> None:
    """Removes every cache; who has one open finds it gone and makes it again."""
    shutil.rmtree(layout.cache, ignore_errors=True)
    shutil.rmtree(layout.own / TEMPORARY, ignore_errors=True)
    layout.cache.mkdir(mode=0o700, exist_ok=True)


def hold(layout: Layout) -> FileLock:
    """Until `let_go` nobody takes the caches away."""
    lock = FileLock(layout.own / _HELD)
    lock.share()
    return lock


def let_go(lock: FileLock) -> None:
    """The caches were used until now."""
    os.utime(lock.descriptor)
    lock.close()


def trim(folders: Iterable[Path], most: int) -> int:
    """Empties the caches of these folders, those first that were not used for longest, until all of them take at most
    `most` bytes; gives the bytes above that are left, since what somebody has open stays."""
    sizes = {folder: size_of(folder) for folder in folders}
    over = sum(sizes.values()) - most
    for folder in sorted(sizes, key=_used) if over > 0 else ():
        if over <= 0:
            break
        lock = FileLock(_layout(folder).own / _HELD)
        try:
            if lock.try_acquire():
                empty(node_layout(folder))
                over -= sizes[folder] - size_of(folder)
        finally:
            lock.close()
    return max(0, over)


def size_of(folder: Path) -> int:
    """The bytes that a folder takes on the disk."""
    size = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += Path(above, name).lstat().st_blocks * 512
    return size


def _used(folder: Path) -> float:
    held = _layout(folder).own / _HELD
    return held.stat().st_mtime if held.exists() else 0.0
