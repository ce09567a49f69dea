"""A note of a Home as an item of the contract."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.engines.contract import Item, Place
from memoranda.index.catalog import Catalog
from memoranda.index.retention import held
from memoranda.index.rows import NoteRow
from memoranda.notes.belonging import belongs_to
from memoranda.notes.chains import Chains
from memoranda.notes.times import format_instant
from memoranda.operations.listing import time_or_none
from memoranda.trust.standing import believed, trust_of


def items_of(
    catalog: Catalog, rows: Sequence[NoteRow], engine: str, places: Mapping[str, Place], now: datetime,
    hidden: frozenset[str] = frozenset(),
) -> list[Item]:  # fmt: skip
    """These notes as items, in their order; under the lock of the indexes.

    Of those whose ids are `hidden`, which are quarantined, neither words nor what is the outside's own word.
    """
    trust = trust_of(catalog, rows)
    kept = frozenset(held(catalog.db, [row.id for row in rows]))
    linked = catalog.linked(row.id for row in rows)
    return [_item(catalog, row, engine, places, now, trust[row.blob].state, row.id in kept, row.id in linked,
                  row.id in hidden) for row in rows]  # fmt: skip


def _item(
    catalog: Catalog, row: NoteRow, engine: str, places: Mapping[str, Place], now: datetime, trust: str, on_hold: bool,
    linked: bool, hidden: bool,
) -> Item:  # fmt: skip
    after = _successors(catalog, row) if linked else ()
    place = places[belongs_to(row.scope, row.owner)]
    told: dict[str, Any] = dict(
        id=row.id, engine=engine, scope=place.scope, owner=place.owner, kind=row.kind,
        subject=None if hidden else row.subject, content=None if hidden else row.body,
        classification=row.classification, sources=() if hidden else row.sources, origin=row.origin,
        confidence=row.confidence, taint=("external",) if trust == "quarantined" else row.taint,
        reviewed=trust == "reviewed", trust=trust, state=_state(row, after, now),
        valid_from=time_or_none(row.valid_from), valid_to=time_or_none(row.valid_to),
        recorded_at=format_instant(row.known_from), supersedes=row.supersedes, superseded_by=after,
        retention_days=row.retention_days, legal_hold=on_hold, etag=_etag(row, trust, on_hold, after),
    )  # fmt: skip
    return Item(**told)


def etag_of(catalog: Catalog, row: NoteRow) -> str:
    """The name of the exact state of a note; under the lock of the indexes."""
    trust = trust_of(catalog, [row])[row.blob].state
    return _etag(row, trust, bool(held(catalog.db, [row.id])), _successors(catalog, row))


def _etag(row: NoteRow, trust: str, on_hold: bool, after: Sequence[str]) -> str:
    told = "\n".join((row.id, row.blob, trust, str(on_hold), *after))
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _successors(catalog: Catalog, row: NoteRow) -> tuple[str, ...]:
    """The notes that hold instead of this one now; none for a head."""
    chain = catalog.component(row.id)
    chains = Chains(believed(catalog, chain))
    return () if chains.is_head(row.id) else chains.successors(row.id)


def _state(row: NoteRow, after: Sequence[str], now: datetime) -> str:
    if after:
        return "superseded"
    if row.valid_from is not None and now < row.valid_from:
        return "future"
    if row.valid_to is not None and row.valid_to <= now and row.kind != "episodic":
        return "ended"
    return "current"
