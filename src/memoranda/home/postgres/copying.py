"""A Home between PostgreSQL and a folder: what Git itself has to do is done there, on the very objects of the rows.

`memoranda move` carries a Home over with it, an erasing and a bundle work on a copy that is gone afterwards.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.home.git import Git
from memoranda.home.history import Step
from memoranda.home.holding import Holding
from memoranda.home.layout import Layout, layout_of
from memoranda.home.objects import GitObject, entry_header
from memoranda.home.plain_git import plain_git
from memoranda.home.postgres import packs
from memoranda.home.postgres.heads import put_heads
from memoranda.home.postgres.node import TEMPORARY
from memoranda.home.postgres.rows import Row, Writer
from memoranda.home.postgres.standing import BRANCH, State
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.transactions import Cursor
from memoranda.home.store import TreeChange

if TYPE_CHECKING:
    from memoranda.home.inventory import Text

_REF_DELTA = 7
_AT_ONCE = 2000
_EVERY = "SELECT oid, kind, base, data FROM memory_objects WHERE home = %s"


# From rows to a folder


@contextmanager
def passing(layout: Layout) -> Iterator[Path]:
    """A folder of this node that is gone afterwards; what a killed process left of others goes when caches go."""
    above = layout.own / TEMPORARY
    above.mkdir(mode=0o700, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=above))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def objects_in_folder(store: PostgresStore, node: Layout) -> Iterator[Layout]:
    """A repository of Git with all objects and refs of a Home, without its files."""
    with passing(node) as folder:
        with store.reading() as cursor:
            layout = fill(store, cursor, store.state(cursor), folder / "home")
        yield layout


def fill(store: PostgresStore, cursor: Cursor, state: State, root: Path) -> Layout:
    """Makes a repository at `root` with the objects and refs of a Home, as this transaction sees them."""
    root.mkdir(parents=True)
    plain_git(root, "init", "-q", "--template=", "--object-format=sha1", f"--initial-branch={BRANCH[11:]}")
    layout = layout_of(root)
    (layout.git_dir / "info").mkdir(exist_ok=True)
    layout.own.mkdir(parents=True, exist_ok=True)
    pack = layout.objects / "pack" / "fresh.pack"
    pack.parent.mkdir(exist_ok=True)
    write_pack_of(cursor, store.home, pack)
    plain_git(root, "index-pack", "--strict", str(pack))
    name = pack.read_bytes()[-20:].hex()
    for suffix in (".pack", ".idx", ".rev"):
        if (made := pack.with_suffix(suffix)).exists():
            made.replace(pack.with_name(f"pack-{name}{suffix}"))
    for ref, commit in state.refs.items():
        path = layout.common_dir / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{commit}\n")
    return layout


def write_pack_of(cursor: Cursor, home: int, path: Path) -> int:
    """Writes all objects of a Home as one pack, each as its row has it; how many."""
    count = 0
    with path.open("w+b") as file:
        file.write(_pack_header(0))
        for row in every_row(cursor, home):
            count += 1
            size = len(zlib.decompress(row.data))
            if row.base is None:
                file.write(entry_header(row.kind, size) + row.data)
            else:
                file.write(entry_header(_REF_DELTA, size) + row.base + row.data)
        file.seek(0)
        file.write(_pack_header(count))  # how many there are is known when all are written
        file.seek(0)
        digest = hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False))
        file.write(digest.digest())
    return count


def _pack_header(count: int) -> bytes:
    return b"PACK" + (2).to_bytes(4, "big") + count.to_bytes(4, "big")


def every_row(cursor: Cursor, home: int) -> Iterator[Row]:
    """All objects of a Home, read some thousand at a time; each once."""
    yield from packs.every_row(cursor, home)
    with cursor.connection.cursor(name="every", binary=True) as reader:
        reader.execute(_EVERY, (home,))
        while rows := [Row(*row) for row in reader.fetchmany(_AT_ONCE)]:
            joined = packs.among(cursor, home, [row.oid for row in rows])  # written once more after it was joined
            yield from (row for row in rows if row.oid not in joined)


def check_out(layout: Layout, replica: str, suffix: str | None, maps: Mapping[str, bytes]) -> None:
    """Gives a filled repository the files of its branch, and what makes it the same clone as its rows are."""
    plain_git(layout.root, "-c", "core.autocrlf=false", "read-tree", "HEAD")
    plain_git(layout.root, "-c", "core.autocrlf=false", "checkout-index", "-a", "-f", "-q")
    told = {"id": replica, "suffix": suffix, "inode": layout.git_dir.stat().st_ino}
    (layout.own / "replica.json").write_text(json.dumps(told), encoding="utf-8")
    for name, data in maps.items():
        (layout.own / "erased").mkdir(exist_ok=True)
        (layout.own / "erased" / name).write_bytes(data)


# What Git is asked


def told(store: PostgresStore, node: Layout, new: str) -> Iterator[Step | TreeChange]:
    """As `Holding.told`."""
    from memoranda.home.history import walk_rows

    with objects_in_folder(store, node) as layout:
        git = Git(layout)
        try:
            yield from walk_rows(git, None, new)
        finally:
            git.close()


def verify(store: PostgresStore, node: Layout, commits: Sequence[str]) -> list[str]:
    """What Git finds wrong in what these commits reach."""
    with objects_in_folder(store, node) as layout:
        git = Git(layout)
        try:
            return git.check(commits)
        finally:
            git.close()


def texts(store: PostgresStore, home: Holding, *, history: bool) -> Iterator[Text]:
    """As `Holding.texts`."""
    from memoranda.home.inventory import Text, in_history, ledger_text

    head, seen = home.head(), set[str]()
    for path, blob in store.files(head) if head else ():
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        yield Text("name", shown, shown)
        seen.add(blob)
        if (data := home.blob(blob)) is not None:
            yield Text("file", shown, data.decode("utf-8", "replace"))
    if not history:
        for path, _, data in home.ledger_segments():
            yield ledger_text(path, data)
        return
    with objects_in_folder(store, home.layout) as layout:
        git = Git(layout)
        try:
            yield from in_history(git, layout, seen)
        finally:
            git.close()


# From a folder to rows


def ids_in(layout: Layout) -> set[bytes]:
    """The ids of all objects that a repository has."""
    git = Git(layout)
    try:
        out = git.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
    finally:
        git.close()
    return {bytes.fromhex(name) for name in out.decode("ascii").split()}


def reachable_in(layout: Layout, commits: Sequence[str]) -> list[str]:
    """The ids of what these commits reach, each tree near those that it resembles, older ones first."""
    out = plain_git(layout.root, "rev-list", "--objects", "--reverse", "--no-object-names", *commits)
    return list(dict.fromkeys(out.decode("ascii").split()))


def put_from(store: PostgresStore, cursor: Cursor, layout: Layout, names: Iterable[str]) -> int:
    """Keeps these objects of a repository as rows; how many."""
    git = Git(layout)
    writer, count = Writer(), 0
    try:
        part: list[GitObject] = []
        for found in git.get_many(list(names)):
            if found is not None:
                part.append(GitObject(found[1], found[2], found[0]))
            if len(part) >= 200:
                count += _put(store, cursor, writer, part)
                part = []
        count += _put(store, cursor, writer, part)
    finally:
        git.close()
    return count


def _put(store: PostgresStore, cursor: Cursor, writer: Writer, part: Sequence[GitObject]) -> int:
    store.insert_rows(cursor, writer.rows(part))
    return len(part)


def all_heads(store: PostgresStore, cursor: Cursor, is_note: Any, main: str | None) -> None:
    """Makes the heads of a Home anew from its branch; in the transaction that has moved it."""
    held = dict(cursor.execute("SELECT path, blob FROM memory_heads WHERE home = %s", (store.home,)).fetchall())
    wanted = {path: blob for path, blob in store.files(main) if is_note(path)} if main is not None else {}
    names = [path.decode("utf-8", "surrogateescape") for path in held]
    put_heads(cursor, store.home, dict.fromkeys(name for name in names if name not in wanted))
    fresh = [
        (path, blob)
        for path, blob in wanted.items()
        if held.get(path.encode("utf-8", "surrogateescape")) != bytes.fromhex(blob)
    ]
    for at in range(0, len(fresh), 200):  # few at a time: no statement takes longer than an answer may
        part = fresh[at : at + 200]
        found = store.get_all([blob for _, blob in part])
        there = {path: (blob, item.data) for (path, blob), item in zip(part, found, strict=True) if item}
        put_heads(cursor, store.home, there)
