"""A note of a Home as an item of the contract."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.engines.contract import Item, Place, ScoredItem
from memoranda.index.among import among
from memoranda.index.catalog import Catalog
from memoranda.index.retention import held
from memoranda.index.rows import NoteRow
from memoranda.index.tables import SELECT_NOTE, note_row
from memoranda.notes.belonging import belongs_to
from memoranda.notes.chains import Chains
from memoranda.notes.pointers import parse_pointer
from memoranda.notes.times import format_instant
from memoranda.operations import presenting
from memoranda.operations.listing import time_or_none
from memoranda.operations.open_home import OpenHome
from memoranda.trust.standing import believed, trust_of


def items_of(
    catalog: Catalog, rows: Sequence[NoteRow], engine: str, places: Mapping[str, Place], now: datetime,
    hidden: frozenset[str] = frozenset(),
) -> list[Item]:  # fmt: skip
    """These notes as items, in their order; under the lock of the indexes.

    Of those whose ids are `hidden`, which are quarantined, neither words nor what is the outside's own word.
    """
    told = facts_of(catalog, rows, engine, places, now)
    less: dict[str, Any] = {"subject": None, "content": None, "sources": ()}
    return [Item(**facts, **less) if row.id in hidden else Item(**facts, **_words(row)) for row, facts in told]


def facts_of(
    catalog: Catalog, rows: Sequence[NoteRow], engine: str, places: Mapping[str, Place], now: datetime
) -> list[tuple[NoteRow, dict[str, Any]]]:
    """Each of these notes with what an item says of it beside its words; under the lock of the indexes."""
    trust = trust_of(catalog, rows)
    kept = frozenset(held(catalog.db, [row.id for row in rows]))
    linked = catalog.linked(row.id for row in rows)
    found = []
    for row in rows:
        after = _successors(catalog, row) if row.id in linked else ()
        found.append((row, _facts(row, engine, places, now, trust[row.blob].state, row.id in kept, after)))
    return found


def _words(row: NoteRow) -> dict[str, Any]:
    return {"subject": row.subject, "content": row.body, "sources": row.sources}


def _facts(
    row: NoteRow, engine: str, places: Mapping[str, Place], now: datetime, trust: str, on_hold: bool,
    after: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    place = places[belongs_to(row.scope, row.owner)]
    return {
        "id": row.id, "engine": engine, "scope": place.scope, "owner": place.owner, "kind": row.kind,
        "classification": row.classification, "origin": row.origin, "confidence": row.confidence,
        "taint": ("external",) if trust == "quarantined" else row.taint, "reviewed": trust == "reviewed",
        "trust": trust, "state": _state(row, after, now), "valid_from": time_or_none(row.valid_from),
        "valid_to": time_or_none(row.valid_to), "recorded_at": format_instant(row.known_from),
        "supersedes": row.supersedes, "superseded_by": after, "retention_days": row.retention_days,
        "legal_hold": on_hold, "etag": _etag(row, trust, on_hold, after),
    }  # fmt: skip


def scored_of(
    home: OpenHome, items: Sequence[presenting.Item], engine: str, places: Mapping[str, Place], now: datetime
) -> dict[str, ScoredItem]:
    """What a recall found in one Home, by id; without what was taken away since."""
    with home.indexes.lock:
        catalog = home.indexes.catalog
        found = map(note_row, among(catalog.db, f"{SELECT_NOTE}WHERE n.id IN (?*)", (item.id for item in items)))
        states = {(row.id, row.blob): row for row in found}
        rows = [states.get((item.id, parse_pointer(item.uri).rev or "")) for item in items]
        facts = {row.id: told for row, told in facts_of(catalog, [r for r in rows if r], engine, places, now)}
    scored = {}
    for item in items:
        if (told := facts.get(item.id)) is not None:
            own = {
                "subject": item.subject, "content": item.text, "sources": item.sources, "state": item.state,
                "trust": item.trust, "taint": item.taint, "superseded_by": item.superseded_by, "score": item.score,
                "why": item.why, "suspicious": item.suspicious, "envelope": item.envelope,
            }  # fmt: skip
            scored[item.id] = ScoredItem(**{**told, **own})
    return scored


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
