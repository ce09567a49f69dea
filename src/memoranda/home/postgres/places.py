"""Which Homes a tenant has in PostgreSQL, and how one comes to be."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.context import Context
from memoranda.home.marker import Marker, home_name, write_marker
from memoranda.home.postgres.locks import lock
from memoranda.home.postgres.standing import STATE, State, state_of
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.transactions import Cursor
from memoranda.notes.ids import new_id
from memoranda.values import dataclass

# A Home that is being moved here is not there yet; one that was moved to a folder has only left its rows.
READY, COMING, MOVED = "ready", "coming", "moved"


@dataclass(frozen=True, slots=True)
class Place:
    """One Home's row. `home` is its number, `place` what it is for: `tenant`, or `project:NAME`."""

    home: int
    place: str
    id: str
    name: str
    marker: bytes
    replica: str
    suffix: str | None
    state: str


_COLUMNS = "home, place, id, name, marker, replica, suffix, state"


def find_place(store: PostgresStore, place: str) -> Place | None:
    """The Home at a place of the tenant; None when there is none."""
    with store.reading() as cursor:
        return _found(cursor, place)


def places(store: PostgresStore) -> list[Place]:
    """All of the tenant's Homes, by place."""
    with store.reading() as cursor:
        rows = cursor.execute(f"SELECT {_COLUMNS} FROM memory_homes ORDER BY place").fetchall()
    return [Place(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Sight:
    """A Home and what holds in it, as one question told both."""

    place: Place
    state: State


def sights(store: PostgresStore, wanted: Sequence[str]) -> dict[str, Sight]:
    """place -> those of the tenant's Homes at these places that there are, in one question."""
    # A name comes as digits: whatever it holds, it is no SQL.
    names = ", ".join(f"convert_from('\\x{place.encode().hex()}', 'UTF8')" for place in wanted)
    rows = store.ask(f"SELECT {_COLUMNS}, {STATE} FROM memory_homes WHERE place IN ({names})")
    told = (Sight(Place(*row[:8]), state_of(row[8:])) for row in rows)
    return {sight.place.place: sight for sight in told}


def make_place(store: PostgresStore, context: Context, place: str, name: str) -> Place:
    """The Home at a place, made when there is none; of two nodes that want it, one makes it."""
    marker = Marker(new_id("home", context.random), home_name(name))
    replica = new_id("rep", context.random)
    made = Place(0, place, marker.id, marker.name, write_marker(marker), replica, None, READY)
    with store.writing() as cursor:
        return _found(cursor, place) or add_place(cursor, store.tenant, made)


def add_place(cursor: Cursor, tenant: str, place: Place) -> Place:
    """Adds a Home's row in a transaction; gives the one that is there afterwards."""
    lock(cursor, f"{tenant}\nhomes")
    (number,) = cursor.execute("SELECT coalesce(max(home), 0) + 1 FROM memory_homes").fetchone() or (1,)
    query = (
        "INSERT INTO memory_homes (tenant, home, place, id, name, marker, replica, suffix, seq, generation, state)"
        " VALUES (tenant(), %s, %s, %s, %s, %s, %s, %s, 0, 0, %s) ON CONFLICT (tenant, place) DO NOTHING"
    )
    values = place.place, place.id, place.name, place.marker, place.replica, place.suffix, place.state
    cursor.execute(query, (number, *values))
    found = _found(cursor, place.place)
    assert found is not None
    return found


def _found(cursor: Cursor, place: str) -> Place | None:
    row = cursor.execute(f"SELECT {_COLUMNS} FROM memory_homes WHERE place = %s", (place,)).fetchone()
    return None if row is None else Place(*row)
