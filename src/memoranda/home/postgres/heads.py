"""The files of notes as they are now, raw, where plain SQL can read them: the view `memory_notes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memoranda.home.objects import GitObject
from memoranda.home.outside import Ours
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.transactions import Cursor
from memoranda.home.record import Record

_PUT = """
INSERT INTO memory_heads (tenant, home, path, blob, content)
SELECT tenant(), %s, path, blob, content
FROM unnest(%s::bytea[], %s::bytea[], %s::bytea[]) AS given(path, blob, content)
ON CONFLICT (tenant, home, path) DO UPDATE SET blob = excluded.blob, content = excluded.content
"""

# One after the other by the key: the planner, which knows nothing of the rows, would read every head of the Home.
_READ = """
SELECT found.blob, found.content FROM (VALUES {names}) AS wanted (blob) CROSS JOIN LATERAL (
  SELECT blob, content FROM memory_heads WHERE home = {home} AND blob = wanted.blob LIMIT 1 OFFSET 0
) AS found
"""


def keep_heads(
    cursor: Cursor, home: int, records: Sequence[Record], ours: Ours, objects: Mapping[str, GitObject]
) -> None:
    """Brings the heads to what these records have made of their files; in the transaction that keeps the objects."""
    now: dict[str, tuple[str, bytes] | None] = {}
    for record in records:
        for change in record.changes:
            if ours.is_note(change.path):
                held = objects.get(change.new) if change.new is not None else None
                data = held.data if held is not None else change.data
                now[change.path] = None if change.new is None else (change.new, data)
    put_heads(cursor, home, now)


def put_heads(cursor: Cursor, home: int, now: Mapping[str, tuple[str, bytes] | None]) -> None:
    """path -> (blob, bytes) of these files, or None for those that are gone."""
    gone = [_bytes(path) for path, held in now.items() if held is None]
    kept = [(_bytes(path), bytes.fromhex(held[0]), held[1]) for path, held in now.items() if held is not None]
    if gone:
        cursor.execute("DELETE FROM memory_heads WHERE home = %s AND path = ANY(%s)", (home, gone))
    if kept:
        cursor.execute(_PUT, (home, *[list(column) for column in zip(*kept, strict=True)]))


def read_heads(store: PostgresStore, blobs: Iterable[str]) -> dict[str, bytes]:
    """blob -> bytes of these, as far as they are the head of a note that the tenant may see."""
    names = ", ".join(f"('\\x{bytes.fromhex(blob).hex()}'::bytea)" for blob in dict.fromkeys(blobs))
    rows = store.ask(_READ.format(names=names, home=int(store.home)))
    return {blob.hex(): content for blob, content in rows}


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
