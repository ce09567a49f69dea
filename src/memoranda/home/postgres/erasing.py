"""Erasing in a Home in PostgreSQL: done in a copy on this node, whose objects take the place of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memoranda.context import Context
from memoranda.home.holding import Holding
from memoranda.home.layout import Layout
from memoranda.home.postgres.copying import all_heads, check_out, fill, ids_in, passing, put_from
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.standing import State, still_here
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.transactions import Cursor
from memoranda.home.store import RefMove

if TYPE_CHECKING:
    from memoranda.home.erasing.erase import Blank, Erasure

_ROUNDS = 3  # in which others may write meanwhile


class _Copy(NamedTuple):
    """A copy of a Home in a folder: what held when it was made, the objects and the maps of erasings that it had."""

    state: State
    layout: Layout
    before: set[bytes]
    maps: Mapping[str, bytes]


def erase(
    store: PostgresStore, home: Holding, keys: SealedKeys, turn: AbstractContextManager[object], context: Context,
    blanks: Sequence[Blank], reason: str, testimony: Sequence[Mapping[str, Any]],
) -> Erasure:  # fmt: skip
    """Erases in a copy on this node, and lets its objects take the place of the rows.

    Nobody waits while it looks through the copy: only then does it hold the Home, and begins anew when something was
    written meanwhile. After some rounds it holds the Home from the beginning. `turn` keeps this node's writers away.
    """
    for _ in range(_ROUNDS):
        with passing(home.layout) as folder:
            with _patient(store.reading(), store) as cursor:
                copy = _copied(store, cursor, still_here(store.state(cursor)), home, folder)
            done = _erased(copy, keys, folder, context, blanks, reason, testimony)
            if not done.id:
                return done
            with turn, _patient(store.writing(), store) as cursor:
                if still_here(store.state(cursor, hold=True)).mark == copy.state.mark:
                    _take_over(store, cursor, home, copy)
                    return done
    with passing(home.layout) as folder, turn, _patient(store.writing(), store) as cursor:
        state = still_here(store.state(cursor, hold=True))
        store.join_nothing(cursor)  # what moves while it is read would be missing: each statement sees a later moment
        copy = _copied(store, cursor, state, home, folder)
        done = _erased(copy, keys, folder, context, blanks, reason, testimony)
        if done.id:
            _take_over(store, cursor, home, copy)
        return done


@contextmanager
def _patient(transaction: AbstractContextManager[Cursor], store: PostgresStore) -> Iterator[Cursor]:
    """A transaction that may last as long as it takes, in which this thread reads."""
    with transaction as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL statement_timeout = 0")
        with store.within(cursor):
            yield cursor


def _copied(store: PostgresStore, cursor: Cursor, state: State, home: Holding, folder: Path) -> _Copy:
    layout = fill(store, cursor, state, folder / "home")
    query = "SELECT name, map FROM memory_erasures WHERE home = %s"
    maps = dict(cursor.execute(query, (store.home,)).fetchall())
    check_out(layout, home.replica.id, home.replica.suffix, maps)
    return _Copy(state, layout, ids_in(layout), maps)


def _erased(
    copy: _Copy, keys: SealedKeys, folder: Path, context: Context, blanks: Sequence[Blank], reason: str,
    testimony: Sequence[Mapping[str, Any]],
) -> Erasure:  # fmt: skip
    from memoranda.home.repository import Repository

    with Repository(copy.layout.root, context, keys.beside(folder / "keys")) as repository:
        return repository.erase(context, blanks, reason, testimony)


def _take_over(store: PostgresStore, cursor: Cursor, home: Holding, copy: _Copy) -> None:
    layout, after = copy.layout, ids_in(copy.layout)
    put_from(store, cursor, layout, [oid.hex() for oid in after - copy.before])
    store.erase_in(cursor, copy.before - after)
    moves = [
        RefMove(ref, old, new, "")
        for ref, old in copy.state.refs.items()
        if (new := (layout.common_dir / ref).read_text().strip()) != old
    ]
    store.move_in(cursor, copy.state, moves)
    for path in sorted((layout.own / "erased").glob("*.map")):
        if path.name not in copy.maps:
            query = "INSERT INTO memory_erasures (tenant, home, name, map) VALUES (tenant(), %s, %s, %s)"
            cursor.execute(query, (store.home, path.name, path.read_bytes()))
    all_heads(store, cursor, home.ours.is_note, store.state(cursor).main)
    cursor.execute("UPDATE memory_homes SET generation = generation + 1 WHERE home = %s", (store.home,))
