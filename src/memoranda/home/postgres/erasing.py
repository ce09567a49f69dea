"""Erasing in a Home in PostgreSQL: done in a copy on this node, whose objects take the place of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.home.holding import Holding
from memoranda.home.layout import Layout
from memoranda.home.postgres.copying import all_heads, check_out, fill, ids_in, passing, put_from
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.store import Cursor, PostgresStore, State
from memoranda.home.store import RefMove

if TYPE_CHECKING:
    from memoranda.home.erasing.erase import Blank, Erasure


def erase(
    store: PostgresStore, home: Holding, keys: SealedKeys, context: Context, blanks: Sequence[Blank], reason: str,
    testimony: Sequence[Mapping[str, Any]],
) -> Erasure:  # fmt: skip
    """Erases in a copy on this node, and takes its objects over in the transaction that has held the Home meanwhile."""
    from memoranda.home.repository import Repository

    with passing(home.layout) as folder, store.writing() as cursor:
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        cursor.execute("SET LOCAL statement_timeout = 0")
        with store.within(cursor):
            state = store.state(cursor, hold=True)
            layout = fill(store, cursor, state, folder / "home")
            query = "SELECT name, map FROM memory_erasures WHERE home = %s"
            maps = dict(cursor.execute(query, (store.home,)).fetchall())
            check_out(layout, home.replica.id, home.replica.suffix, maps)
            before = ids_in(layout)
            with Repository(layout.root, context, keys.beside(folder / "keys")) as copy:
                done = copy.erase(context, blanks, reason, testimony)
            if not done.id:
                return done
            _take_over(store, cursor, state, layout, before, maps)
            all_heads(store, cursor, home.ours.is_note, store.state(cursor).main)
            query = "UPDATE memory_homes SET generation = generation + 1 WHERE home = %s"
            cursor.execute(query, (store.home,))
    return done


def _take_over(
    store: PostgresStore, cursor: Cursor, state: State, layout: Layout, before: set[bytes], maps: Mapping[str, bytes]
) -> None:
    after = ids_in(layout)
    put_from(store, cursor, layout, [oid.hex() for oid in after - before])
    store.erase_in(cursor, before - after)
    moves = [
        RefMove(ref, old, new, "")
        for ref, old in state.refs.items()
        if (new := (layout.common_dir / ref).read_text().strip()) != old
    ]
    store.move_in(cursor, state, moves)
    for path in sorted((layout.own / "erased").glob("*.map")):
        if path.name not in maps:
            query = "INSERT INTO memory_erasures (tenant, home, name, map) VALUES (tenant(), %s, %s, %s)"
            cursor.execute(query, (store.home, path.name, path.read_bytes()))
