"""Notes that were edited after their review: the last reviewed bytes stand until a person has decided.

The file says something else by then, and what it says waits for its review. A file that is gone is no edit: a note ends
with its file. A file in which another id was typed is one: the note stands as long as that file waits for a review.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from memoranda.index.among import among
from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.index.testimony import Review
from memoranda.trust.reviews import accepted, reviewed_blobs
from memoranda.values import dataclass

_COLUMNS = "row, id, path, blob, key, live, known_from, known_to"


class State(NamedTuple):
    """What a file said from `known_from` to `known_to` (seconds; None: it says so now, and is `live`)."""

    row: int
    id: str
    path: str
    blob: str
    key: str
    live: int
    known_from: int
    known_to: int | None

    def known(self, at: int | None) -> bool:
        """Whether the file said so at that time (seconds; None: now)."""
        if at is None:
            return bool(self.live)
        return self.known_from <= at and (self.known_to is None or at < self.known_to)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The notes that stand accepted, by id: the attestations of their accepted bytes by blob, the newest last, and
    their `states`, the oldest first.

    `keys` are the documents of the accepted bytes as far as they stand now; `edited` is as `edited` gives it for now.
    """

    reviews: Mapping[str, Mapping[str, Review]]
    states: Mapping[str, Sequence[State]]
    keys: Sequence[str]
    edited: Mapping[str, State]


def reviewed_notes(catalog: Catalog) -> Reviewed:
    """What stands accepted; read again when somebody has written, or other reviews may count than before."""
    mark = (catalog.mark(), catalog.ledger.rule())
    if catalog.reviewed is None or catalog.reviewed[0] != mark:
        catalog.reviewed = (mark, _read(catalog))
    found = catalog.reviewed[1]
    assert isinstance(found, Reviewed)
    return found


def edited(catalog: Catalog, known_at: datetime | None = None) -> Mapping[str, State]:
    """id -> the last reviewed state of each note whose file says something else, which nobody has accepted, now or as
    of `known_at`.
    """
    if not catalog.ledger.has_reviews():
        return {}
    found = reviewed_notes(catalog)
    if known_at is None:
        return found.edited
    return _edited(catalog, found.reviews, found.states, int(known_at.timestamp()))


def reviewed_keys(catalog: Catalog, known_at: datetime | None = None) -> Sequence[str]:
    """The documents of the accepted bytes that stand now, or stood at `known_at`."""
    if not catalog.ledger.has_reviews():
        return ()
    found = reviewed_notes(catalog)
    if known_at is None:
        return found.keys
    at = int(known_at.timestamp())
    there = (s for states in found.states.values() for s in states if s.known(at) and s.blob in found.reviews[s.id])
    return sorted({state.key for state in (*there, *edited(catalog, known_at).values())})


def as_reviewed(catalog: Catalog, rows: Iterable[NoteRow]) -> list[NoteRow]:
    """These notes as they stand: in the place of each that was edited since its review, its last reviewed state."""
    stands = edited(catalog)
    if not stands:
        return list(rows)
    given = list(rows)
    wanted = {stands[row.id].row for row in given if row.id in stands}
    found = {row.id: row for row in catalog.rows(sorted(wanted))}
    return [found.get(row.id, row) for row in given]


def _read(catalog: Catalog) -> Reviewed:
    reviews = accepted(catalog)
    states: dict[str, list[State]] = {}
    for row in among(catalog.db, f"SELECT {_COLUMNS} FROM notes WHERE id IN (?*) ORDER BY row", sorted(reviews)):
        states.setdefault(row[1], []).append(State._make(row))
    stands = _edited(catalog, reviews, states, None)
    every = [state for of_note in states.values() for state in of_note]
    keys = {state.key for state in every if state.live and state.blob in reviews[state.id]}
    return Reviewed(reviews, states, sorted(keys | {state.key for state in stands.values()}), stands)


def _edited(
    catalog: Catalog, reviews: Mapping[str, Mapping[str, Review]], states: Mapping[str, Sequence[State]], at: int | None
) -> dict[str, State]:
    found = {}
    for note_id, of_note in states.items():
        last = None
        if not all(state.live for state in of_note):
            last = _last(catalog, of_note, list(reviews[note_id]), at)
        if last is not None:
            found[note_id] = last
    return found


def _last(catalog: Catalog, states: Sequence[State], blobs: Sequence[str], at: int | None) -> State | None:
    there = [state for state in states if state.known(at)]
    if any(state.blob in blobs for state in there):
        return None
    once = [state for state in states if state.blob in blobs and (at is None or state.known_from <= at)]
    last = max(once, key=lambda state: (blobs.index(state.blob), state.row), default=None)
    if last is None or there:
        return last
    return last if typed_over(catalog, last, at) is not None else None


def typed_over(catalog: Catalog, last: State, at: int | None = None) -> State | None:
    """What the file in which a note stood says under another id; None when the file was gone since, or when a person
    has accepted that.
    """
    until = last.known_to
    query = f"SELECT {_COLUMNS} FROM notes WHERE path = ? AND row > ? ORDER BY row"
    for state in map(State._make, catalog.db.execute(query, (last.path, last.row)).fetchall()):
        if until is None or state.known_from > until:
            return None
        if state.known(at):
            return None if reviewed_blobs(catalog, [state.blob]) else state
        until = state.known_to
    return None
