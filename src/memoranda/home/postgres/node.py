"""What one node keeps of a Home in PostgreSQL: caches in a folder, good for one state of the Home's erasings."""

from __future__ import annotations

import shutil
from pathlib import Path

from memoranda.home.durable import write_durably
from memoranda.home.erasing.erasures import Erasures
from memoranda.home.layout import CACHE, Layout
from memoranda.home.postgres.store import PostgresStore

_GENERATION = "known"
TEMPORARY = "passing"  # below it, what is only there while somebody works on it


def node_layout(folder: Path) -> Layout:
    """The folders of one Home on this node, made where they are missing."""
    layout = Layout(folder, folder / "node", folder / "node")
    layout.own.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / CACHE).mkdir(mode=0o700, exist_ok=True)
    return layout


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
