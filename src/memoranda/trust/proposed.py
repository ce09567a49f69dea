"""What waits for a review and would take the place of reviewed notes: these stay, and are contested meanwhile.

That is all that a note comes to which supersedes a reviewed one and is quarantined, and an edit of its file. What a
person has rejected proposes nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memoranda.index.among import among
from memoranda.index.catalog import Catalog
from memoranda.index.rows import Shown
from memoranda.index.tables import texts_of
from memoranda.notes.chains import Chains
from memoranda.notes.ids import told_id
from memoranda.trust.edited import State, edited, reviewed_notes, typed_over
from memoranda.trust.standing import Trust, believed, trust_of

_COLUMNS = "n.id, n.blob, n.taint, n.known_from"


class _Proposal(NamedTuple):
    """A note that would take the place of another, with what `trust_of` has to know of it."""

    over: str
    id: str
    blob: str
    taint: tuple[str, ...]
    known_from: int


def proposed_by(catalog: Catalog, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """id -> the ids of the notes that would supersede it and wait for their review, of those of these reviewed notes
    that have any; its own id for an edit of its file. The ids are as they may be told to anybody.
    """
    if not catalog.ledger.has_reviews():
        return {}
    wanted = list(dict.fromkeys(ids))
    proposals = [*_superseding(catalog, wanted), *_edits(catalog, wanted)]
    trust = trust_of(catalog, proposals)
    found: dict[str, dict[str, None]] = {}
    for one in sorted(proposals, key=lambda one: (one.known_from, one.id)):
        how = trust[one.blob]
        if how.state != "reviewed" and not how.rejected:
            told = told_id(one.id) if how.state == "quarantined" and one.id != one.over else one.id
            found.setdefault(one.over, {})[told] = None
    return {note_id: tuple(others) for note_id, others in found.items()}


def proposed_to(catalog: Catalog, row: Shown, trust: Trust) -> tuple[str, ...]:
    """The ids of the notes that stand where this one, which waits for its review, would stand: its own for an edit."""
    over = {note_id for note_id, stands in edited(catalog).items() if stands.path == row.path}
    if trust.was_reviewed:
        return tuple(sorted({*over, row.id}))
    firm = reviewed_notes(catalog).reviews if catalog.ledger.has_reviews() else {}
    for old in row.supersedes:
        if trust.state == "quarantined" or trust.rejected or old in firm:
            chain = catalog.component(old)
            over.update(Chains(believed(catalog, chain)).heads_of(old) if catalog.by_id(old) else ())
    return tuple(sorted(over - {row.id}))


def _superseding(catalog: Catalog, ids: Iterable[str]) -> Iterator[_Proposal]:
    joined = "FROM edges e JOIN notes n ON n.row = e.row AND n.live = 1 AND n.id != e.old"
    for row in among(catalog.db, f"SELECT e.old, {_COLUMNS} {joined} WHERE e.old IN (?*)", ids):
        yield _proposal(row)


def _edits(catalog: Catalog, ids: list[str]) -> Iterator[_Proposal]:
    accepted, stands = reviewed_notes(catalog).reviews, edited(catalog)
    files: dict[str, list[_Proposal]] = {}
    for row in among(catalog.db, f"SELECT n.id, {_COLUMNS} FROM notes n WHERE n.live = 1 AND n.id IN (?*)", ids):
        files.setdefault(row[0], []).append(_proposal(row))
    for note_id in ids:
        here = files.get(note_id, [])
        if here and not any(file.blob in accepted.get(note_id, ()) for file in here):
            yield from here
        elif not here and note_id in stands and (state := typed_over(catalog, stands[note_id])) is not None:
            yield _typed(catalog, note_id, state)


def _typed(catalog: Catalog, note_id: str, state: State) -> _Proposal:
    (row,) = catalog.rows([state.row])
    return _Proposal(note_id, row.id, row.blob, row.taint, state.known_from)


def _proposal(row: tuple[str, str, str, str, int]) -> _Proposal:
    return _Proposal(row[0], row[1], row[2], texts_of(row[3]), row[4])
