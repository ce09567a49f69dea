"""Carries a Home from a folder to PostgreSQL and back: every object, every ref, the keys and what lies beside them.

Nobody may write in it meanwhile. Whoever is killed on the way repeats it: what is there already is passed over, and the
Home counts in its new place only when all of it is there and was compared.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import Conflict, HomeBusy, HomeDamaged, InvalidInput
from memoranda.home.durable import sync_path
from memoranda.home.git import Git
from memoranda.home.keys import Keys, Lines
from memoranda.home.layout import MARKER, Layout, is_home
from memoranda.home.objects import GitObject
from memoranda.home.outside import Ours
from memoranda.home.plain_git import plain_git
from memoranda.home.postgres.copying import all_heads, check_out, fill, objects_in_folder
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.node import node_layout
from memoranda.home.postgres.places import COMING, MOVED, READY, Place, add_place, find_place
from memoranda.home.postgres.rows import Writer
from memoranda.home.postgres.standing import BRANCH
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.repository import Repository
from memoranda.home.store import RefMove
from memoranda.values import dataclass, replace

Progress = Callable[[str, int, int], None]
_AT_ONCE = 1000  # objects of one transaction
_COMING = ".coming"


@dataclass(frozen=True, slots=True)
class Moved:
    """What was carried over: objects of Git that are there now, and how many of them this run has written."""

    objects: int
    written: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where a Home lies in PostgreSQL: its tenant's rows (`store` of no Home), keys, and place; `node` for copies."""

    store: PostgresStore
    keys: SealedKeys
    place: str
    node: Path

    def of(self, home: int) -> PostgresStore:
        """The rows of one Home."""
        return self.store.beside(home)


def to_postgres(context: Context, root: Path, keys: Keys, target: Target, progress: Progress | None = None) -> Moved:
    """Carries the Home at `root` over. The folder stays as it is. What a Home left there that was moved out is used.

    Raises:
        Conflict: another Home lies at that place. HomeBusy: somebody's Git is at work, or somebody writes.
        InvalidInput: the folder stands on another branch than main.
    """
    with Repository(root, context, keys) as home:
        home.look(context)
        if (why := home.flush()) is not None:
            raise HomeBusy("The Home cannot be moved now.", why=f"{why}.", remedy="Try again when that is over.")
        if home.branch() != BRANCH:
            raise InvalidInput("The Home stands on another branch.", remedy="Check out `main` in it, then move it.")
        layout, head, last = home.layout, home.head(), home.snapshot().seq
        marker = home.store.get(f"{head}:{MARKER}")
        assert marker is not None
        told = home.marker, home.replica
    here, replica = told
    place = _place(target, Place(0, target.place, here.id, here.name, marker.data, replica.id, replica.suffix, COMING))
    store = target.of(place.home)
    refs = _refs(layout)
    names = _reachable(layout, list(refs.values()))
    written = 0
    if place.state == COMING:
        _carry_keys(keys, target.keys, place.id)
        written = _carry_objects(store, layout, names, progress)
        if _refs(layout) != refs:
            raise HomeBusy("Somebody writes in the Home.", remedy="Stop whoever does, and move it again.")
        _settle(store, layout, refs, last, Ours(here))
    with objects_in_folder(store, node_layout(target.node)) as copy:
        _compare(copy, refs, names)
    if place.state == COMING:
        with store.writing() as cursor:
            cursor.execute("UPDATE memory_homes SET state = %s WHERE home = %s", (READY, store.home))
        store.join()
    return Moved(len(names), written)


def to_folder(root: Path, keys: Keys, target: Target) -> Moved:
    """Carries the Home at a place to the folder `root`, which may not be there yet. The rows stay as they are, and no
    node answers by them or writes there any more.

    Who writes in it meanwhile waits, and is refused when it is over or takes long. Errors: see `to_postgres`.
    """
    place = find_place(target.store, target.place)
    if place is None or place.state == COMING:
        raise InvalidInput("There is no such Home in PostgreSQL.", remedy="Name its tenant and its project.")
    if is_home(root):
        raise Conflict("There is a Home in that folder already.", remedy="Move it away first.")
    store, coming = target.of(place.home), root.with_name(f"{root.name}{_COMING}")
    if coming.exists():
        shutil.rmtree(coming)  # of a run that was killed
    with store.writing() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL statement_timeout = 0")
        state = store.state(cursor, hold=True)
        layout = fill(store, cursor, state, coming)
        query = "SELECT name, map FROM memory_erasures WHERE home = %s"
        maps = dict(cursor.execute(query, (store.home,)).fetchall())
        check_out(layout, place.replica, place.suffix, maps)
        names = _reachable(layout, list(state.refs.values()))
        _compare(layout, state.refs, names)
        _carry_keys(target.keys, keys, place.id)
        for path in sorted(coming.rglob("*")):
            if not path.is_symlink():
                sync_path(path)
        cursor.execute("UPDATE memory_homes SET state = %s WHERE home = %s", (MOVED, store.home))
        coming.rename(root)
        sync_path(root.parent)
    return Moved(len(names), len(names))


def _place(target: Target, wanted: Place) -> Place:
    with target.store.writing() as cursor:
        place = add_place(cursor, target.store.tenant, wanted)
        if (place.id, place.replica) != (wanted.id, wanted.replica):
            raise Conflict("Another Home lies at that place in PostgreSQL.", remedy="Move that one away first.")
        if place.state == MOVED:  # it comes back
            cursor.execute("UPDATE memory_homes SET state = %s WHERE home = %s", (COMING, place.home))
            place = replace(place, state=COMING)
    return place


def _refs(layout: Layout) -> dict[str, str]:
    """The refs that a Home needs: its branch, and what is the program's own."""
    out = plain_git(layout.root, "for-each-ref", "--format=%(refname) %(objectname)", BRANCH, "refs/memoranda")
    rows = (line.split(" ") for line in out.decode().splitlines())
    return {row[0]: row[1] for row in rows}


def _reachable(layout: Layout, commits: Sequence[str]) -> list[tuple[str, str]]:
    """(id, path) of what these commits reach, versions of one path one behind the other."""
    out = plain_git(layout.root, "rev-list", "--objects", *commits).decode("utf-8", "surrogateescape")
    rows = [(line[:40], line[41:]) for line in out.splitlines()]
    return [row for _, row in sorted(enumerate(rows), key=lambda item: (item[1][1], -item[0]))]


def _carry_objects(
    store: PostgresStore, layout: Layout, names: Sequence[tuple[str, str]], progress: Progress | None
) -> int:
    with store.reading() as cursor:
        there = {oid.hex() for oid in store.every_id(cursor)}
    missing = [row for row in names if row[0] not in there]
    if gone := there.difference(name for name, _ in names):  # erased in the folder since it was here
        store.erase({bytes.fromhex(name) for name in gone}, hints={}, merge=())
    writer, newest = Writer(), dict[str, str]()
    git = Git(layout)
    try:
        for at in range(0, len(missing), _AT_ONCE):
            part = missing[at : at + _AT_ONCE]
            with store.writing() as cursor:
                store.insert_rows(cursor, writer.rows(_objects(git, part, newest)))
            if progress is not None:
                progress("moving objects", at + len(part), len(missing))
    finally:
        git.close()
    return len(missing)


def _objects(git: Git, part: Sequence[tuple[str, str]], newest: dict[str, str]) -> Iterator[GitObject]:
    found = git.objects().get_many([oid for oid, _ in part])
    for (oid, path), item in zip(part, found, strict=True):
        if item is None:
            raise HomeDamaged(f"The object {oid[:12]} is missing.", remedy="Run `git fsck`, restore from a clone.")
        yield GitObject(item[1], item[2], oid, newest.get(path) if path else None)
        newest[path] = oid


def _settle(store: PostgresStore, layout: Layout, refs: dict[str, str], last: int, ours: Ours) -> None:
    with store.writing() as cursor, store.within(cursor):
        state = store.state(cursor, hold=True)
        moves = [RefMove(ref, state.refs.get(ref), commit, "") for ref, commit in refs.items()]
        store.move_in(cursor, state, [move for move in moves if move.old != move.new])
        maps = sorted((layout.own / "erased").glob("*.map"))
        for path in maps:
            cursor.execute(
                "INSERT INTO memory_erasures (tenant, home, name, map) VALUES (tenant(), %s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                (store.home, path.name, path.read_bytes()),
            )
        cursor.execute(
            "UPDATE memory_homes SET seq = %s, generation = %s WHERE home = %s", (last, len(maps), store.home)
        )
        all_heads(store, cursor, ours.is_note, refs.get(BRANCH))


def _compare(copy: Layout, refs: Mapping[str, str], names: Sequence[tuple[str, str]]) -> None:
    """HomeDamaged unless this repository has these refs and reaches just these objects, each with its own bytes."""
    plain_git(copy.root, "fsck", "--strict", "--no-dangling")
    there = _refs(copy)
    if there != refs or {oid for oid, _ in _reachable(copy, list(there.values()))} != {oid for oid, _ in names}:
        raise HomeDamaged("The Home is not the same in its new place.", remedy="Move it again; the old one is whole.")


def _carry_keys(keys: Keys, there: Keys, home: str) -> None:
    """What vouches for the ledger, knows what is forgotten, and was settled for the Home."""
    for purpose, owner, key, own in keys.of(home):
        if not own:
            there.take_in(purpose, owner, key)
        elif not there.adopt(purpose, owner, key):
            raise Conflict("Another key lies there for this Home.", remedy="Find out who has made it.")
    for owner in (home, f"{home}-once"):
        _carry_lines(keys.settled(owner).read(), there.settled(owner))
    _carry_lines(keys.forgotten(home).read(), there.forgotten(home))


def _carry_lines(data: bytes, there: Lines) -> None:
    before = there.read()
    if data.startswith(before) and data != before:
        there.add(data[len(before) :])
    elif data != before:
        raise Conflict("Something else is settled for this Home there.", remedy="Ask who has moved it before.")
