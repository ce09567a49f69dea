"""Old objects of a Home joined into pages: hundreds share a row, and what resembles each other one stream.

A write adds a row for each of its objects, fourteen for a note. When enough of them lie there they are joined: a *page*
is a deflated run of objects, each as its row had it, near those that it is a delta against; the *ids* of a pack, in
order and cut into rows, say in which page each object stands. Whoever asks for an object finds it there when no row of
its own has it. Nothing looks into a page but this module.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg

from memoranda.errors import HomeBusy
from memoranda.home.postgres.rows import Row

AT_LEAST = 20_000  # rows that are worth joining: those of some 1,400 notes
_AT_MOST = 50_000  # of one pack: what is held in memory while it is made, some 30 MB
_PAGE = 128 << 10  # bytes of a page before it is deflated: whoever wants one object inflates so much
_ENTRY = struct.Struct(">20sIH")  # of the ids: object, page, place in it
_TOGETHER = 64  # ids of one row: it stays in the table's own block
_OBJECT = struct.Struct(">20sB?20sI")  # in a page: object, kind, whether it is a delta, against what, bytes

_FIND = f"""
SELECT wanted.oid, packs.pack, substring(ids.entries FROM position(wanted.oid IN ids.entries) + 20 FOR 6)
FROM unnest(%(names)s::bytea[]) AS wanted(oid)
CROSS JOIN (SELECT pack FROM memory_packs WHERE home = %(home)s) AS packs
CROSS JOIN LATERAL (
  SELECT entries FROM memory_pack_ids WHERE home = %(home)s AND pack = packs.pack AND first <= wanted.oid
  ORDER BY first DESC LIMIT 1
) AS ids
WHERE position(wanted.oid IN ids.entries) %% {_ENTRY.size} = 1
"""
_PAGES = """
SELECT wanted.pack, wanted.page, found.data FROM unnest(%s::bigint[], %s::integer[]) AS wanted(pack, page)
CROSS JOIN LATERAL (
  SELECT data FROM memory_pack_pages WHERE home = %s AND pack = wanted.pack AND page = wanted.page LIMIT 1 OFFSET 0
) AS found
"""
_LIKE = """
SELECT ids.entries FROM memory_packs AS packs CROSS JOIN LATERAL (
  SELECT entries FROM memory_pack_ids WHERE home = packs.home AND pack = packs.pack AND first <= %(high)s
  ORDER BY first DESC LIMIT 2
) AS ids WHERE packs.home = %(home)s
"""

_SINCE = "0006"  # the tables' version that brought them

Cursor = psycopg.Cursor[Any]


# Reading


def find(cursor: Cursor, home: int, names: Collection[bytes]) -> dict[bytes, Row]:
    """The rows that those of these objects had which lie in packs, and some of those that they are deltas of."""
    if not names:
        return {}
    places = _places(cursor, home, names)
    wanted = sorted({(pack, page) for pack, page, _ in places.values()})
    if not wanted:
        return {}
    cursor.execute(_PAGES, ([pack for pack, _ in wanted], [page for _, page in wanted], home))
    found: dict[bytes, Row] = {}
    for pack, page, data in cursor.fetchall():
        inside = [at for of_pack, of_page, at in places.values() if (of_pack, of_page) == (pack, page)]
        found.update((row.oid, row) for row in _unpacked(data, inside))
    return found


def among(cursor: Cursor, home: int, names: Collection[bytes]) -> set[bytes]:
    """Those of these objects that lie in packs."""
    return set(_places(cursor, home, names))


def _places(cursor: Cursor, home: int, names: Collection[bytes]) -> dict[bytes, tuple[int, int, int]]:
    """Where the objects lie: pack, page, place in it."""
    cursor.execute(_FIND, {"names": list(names), "home": home})
    return {oid: (pack, *struct.unpack(">IH", place)) for oid, pack, place in cursor.fetchall()}


def alike(cursor: Cursor, home: int, low: bytes, high: bytes) -> set[bytes]:
    """Objects in packs with ids between these two: two of them where there are several."""
    found: set[bytes] = set()
    for (entries,) in cursor.execute(_LIKE, {"home": home, "high": high}).fetchall():
        found.update(oid for oid, _, _ in _ENTRY.iter_unpack(entries) if low <= oid <= high)
    return found


def every_id(cursor: Cursor, home: int) -> Iterator[bytes]:
    """The ids of all objects in packs."""
    with cursor.connection.cursor(name="ids", binary=True) as reader:
        for (entries,) in reader.execute("SELECT entries FROM memory_pack_ids WHERE home = %s", (home,)):
            yield from (oid for oid, _, _ in _ENTRY.iter_unpack(entries))


def every_row(cursor: Cursor, home: int) -> Iterator[Row]:
    """All objects in packs, as their rows were."""
    with cursor.connection.cursor(name="pages", binary=True) as reader:
        reader.itersize = 20
        query = "SELECT data FROM memory_pack_pages WHERE home = %s ORDER BY pack, page"
        for (data,) in reader.execute(query, (home,)):
            yield from _unpacked(data)


# Writing


def allowed(cursor: Cursor) -> bool:
    """Whether no program runs on the tables that knows of no packs."""
    row = cursor.execute("SELECT oldest FROM compatible").fetchone()
    return row is not None and str(row[0]) >= _SINCE


def join(cursor: Cursor, home: int, *, at_least: int = AT_LEAST) -> int:
    """Joins rows of a Home to a pack, in the transaction of `cursor`; how many it took, 0 where it is not worth it.

    Nobody else joins or erases in this Home meanwhile: the caller holds `joining`. Writers go on: what they add is not
    touched, and what they have read is found in its new place.
    """
    limit = max(at_least, _AT_MOST)
    query = "SELECT oid, kind, base, data FROM memory_objects WHERE home = %s ORDER BY ctid LIMIT %s"
    rows = [Row(*row) for row in cursor.execute(query, (home, limit)).fetchall()]
    if len(rows) < max(at_least, 1):
        return 0
    there = among(cursor, home, [row.oid for row in rows])
    fresh = [row for row in rows if row.oid not in there]
    if fresh:
        _write(cursor, home, _in_families(fresh))
    cursor.execute("DELETE FROM memory_objects WHERE home = %s AND oid = ANY(%s)", (home, [row.oid for row in rows]))
    if cursor.rowcount != len(rows):
        raise HomeBusy("Somebody else has removed objects of the Home.", remedy="It is tried again by itself.")
    return len(rows)


def part(cursor: Cursor, home: int) -> int:
    """Gives every object in packs a row of its own again; how many packs there were. An erasing needs it."""
    packs = cursor.execute("SELECT count(*) FROM memory_packs WHERE home = %s", (home,)).fetchone()
    if not packs or not packs[0]:
        return 0
    insert = (
        "INSERT INTO memory_objects (tenant, home, oid, kind, base, data) VALUES (tenant(), %s, %s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING"
    )
    with cursor.connection.cursor(binary=True) as writer:
        for some in _parts(every_row(cursor, home), 500):
            writer.executemany(insert, [(home, *row) for row in some])
    for table in ("memory_pack_pages", "memory_pack_ids", "memory_packs"):
        cursor.execute(f"DELETE FROM {table} WHERE home = %s", (home,))
    return int(packs[0])


def _write(cursor: Cursor, home: int, rows: Sequence[Row]) -> None:
    query = (
        "INSERT INTO memory_packs (tenant, home, pack, objects)"
        " SELECT tenant(), %s, coalesce(max(pack), 0) + 1, %s FROM memory_packs WHERE home = %s RETURNING pack"
    )
    (pack,) = cursor.execute(query, (home, len(rows), home)).fetchone() or (1,)
    entries: list[bytes] = []
    insert = "INSERT INTO memory_pack_pages (tenant, home, pack, page, data) VALUES (tenant(), %s, %s, %s, %s)"
    for number, page in enumerate(_pages(rows)):
        cursor.execute(insert, (home, pack, number, _packed(page)))
        entries += (_ENTRY.pack(row.oid, number, at) for at, row in enumerate(page))
    entries.sort()
    cut = [entries[at : at + _TOGETHER] for at in range(0, len(entries), _TOGETHER)]
    query = (
        "INSERT INTO memory_pack_ids (tenant, home, pack, first, entries)"
        " SELECT tenant(), %s, %s, first, entries FROM unnest(%s::bytea[], %s::bytea[]) AS given(first, entries)"
    )
    cursor.execute(query, (home, pack, [some[0][:20] for some in cut], [b"".join(some) for some in cut]))


def _in_families(rows: Sequence[Row]) -> list[Row]:
    """The rows, each behind what it is a delta against; kinds apart, since they do not resemble each other."""
    known = {row.oid for row in rows}
    below: dict[bytes, list[Row]] = {}
    roots: list[Row] = []
    for row in rows:
        if row.base is not None and row.base in known:
            below.setdefault(row.base, []).append(row)
        else:
            roots.append(row)
    done: list[Row] = []
    for root in sorted(roots, key=lambda row: row.kind):
        todo = [root]
        while todo:
            row = todo.pop()
            done.append(row)
            todo += below.pop(row.oid, ())
    return done


def _pages(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows, with their data inflated, in runs of a page's size."""
    page: list[Row] = []
    size = 0
    for row in rows:
        data = zlib.decompress(row.data)
        page.append(row._replace(data=data))
        size += _OBJECT.size + len(data)
        if size >= _PAGE:
            yield page
            page, size = [], 0
    if page:
        yield page


def _packed(page: Sequence[Row]) -> bytes:
    heads = (_OBJECT.pack(row.oid, row.kind, row.base is not None, row.base or b"", len(row.data)) for row in page)
    return zlib.compress(struct.pack(">H", len(page)) + b"".join(heads) + b"".join(row.data for row in page))


def _unpacked(data: bytes, wanted: Collection[int] | None = None) -> Iterator[Row]:
    """The rows of a page; with `wanted` those in these places, and what stands in the page that they are deltas of."""
    whole = zlib.decompress(data)
    (count,) = struct.unpack_from(">H", whole)
    heads = [_OBJECT.unpack_from(whole, 2 + number * _OBJECT.size) for number in range(count)]
    needed = {heads[number][0] for number in wanted or ()}
    at = len(whole)
    for oid, kind, is_delta, base, size in reversed(heads):  # what an object is a delta of stands before it
        at -= size
        if wanted is None or oid in needed:
            if is_delta:
                needed.add(base)
            yield Row(oid, kind, base if is_delta else None, zlib.compress(whole[at : at + size], 1))


def _parts(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    part: list[Row] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def lacking(rows: Mapping[bytes, Row], names: Iterable[bytes]) -> list[bytes]:
    """What of these objects, and of what the rows are deltas against, the rows do not have."""
    needed = dict.fromkeys(names)
    needed.update((row.base, None) for row in rows.values() if row.base is not None)
    return [name for name in needed if name not in rows]
