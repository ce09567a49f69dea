"""What is written to Mem0 of an item, and the row that we keep of it: one is made from the other here, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from memoranda.context import Context
from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.foreign import Words
from memoranda.engines.mem0_routes import Memory
from memoranda.engines.naming import Named, project_of
from memoranda.engines.records import Record, due_at, moment
from memoranda.notes.model import Note, check_draft
from memoranda.notes.times import parse_instant
from memoranda.trust.labels import Taint
from memoranda.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class New:
    """One item to be kept, as it was decided upon: everything but where it lies and its id."""

    text: str
    subject: str | None
    kind: str
    classification: str
    origin: str
    sources: tuple[str, ...]
    supersedes: tuple[str, ...]
    taint: Taint
    confidence: float | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    retention_days: int | None = None
    legal_hold: bool = False


def checked(item_id: str, new: New, place: Place) -> str:
    """The words as they are kept, once all of the item could be a note. InvalidNote, InvalidTime, InvalidPointer."""
    note = Note(
        item_id, kind=new.kind, subject=new.subject or None, scope=place.scope, owner={}, valid_from=new.valid_from,
        valid_to=new.valid_to, confidence=new.confidence, origin=new.origin, taint=new.taint.labels,
        classification=new.classification, retention_days=new.retention_days, retention_class=None,
        legal_hold=new.legal_hold, sources=new.sources, supersedes=new.supersedes, body=new.text.strip("\n"),
    )  # fmt: skip
    check_draft(note)
    return note.body


def row_of(
    context: Context, where: OperationContext, instance: str, place: Place, named: Named, item_id: str, new: New,
    hashes: tuple[str, str],
) -> Record:  # fmt: skip
    """The row of an item that is about to be written."""
    now = context.now()
    exact, same = hashes
    return Record(
        tenant=where.tenant, id=item_id, instance=instance, state="pending", namespace=named.namespace,
        project=project_of(where, place) or "", scope=place.scope, owner=place.owner, user_id=where.user,
        agent=where.agent, session=where.session, kind=new.kind, classification=new.classification, origin=new.origin,
        chain=item_id, content_hash=exact, same_hash=same, created_at=moment(now), updated_at=moment(now),
        valid_from=_moment(new.valid_from), valid_to=_moment(new.valid_to), due_at=due_at(now, new.retention_days),
        legal_hold=new.legal_hold, taint=tuple(sorted({root.kind for root in new.taint.roots})),
        supersedes=tuple(dict.fromkeys(new.supersedes)), confidence=new.confidence,
        retention_days=new.retention_days,
    )  # fmt: skip


def extract_of(record: Record, item_id: str, id: str, hashes: tuple[str, str]) -> Record:
    """The row of what Mem0's model made from an item."""
    return replace(
        record, id=item_id, record=id, chain=item_id, content_hash=hashes[0], same_hash=hashes[1], generated=True,
        original=record.id, recalled=True, supersedes=(), origin="maintenance",
    )  # fmt: skip


def metadata_of(record: Record, new: New) -> dict[str, Any]:
    """What goes with the words: whose they are, and every label, so that they stand there too."""
    told: dict[str, Any] = {
        "navin_ns": record.namespace, "navin_item": record.id, "navin_scope": record.scope,
        "navin_owner": record.owner, "navin_project": record.project or None, "navin_user": record.user_id,
        "navin_agent": record.agent, "navin_session": record.session, "navin_kind": record.kind,
        "navin_classification": record.classification, "navin_origin": record.origin,
        "navin_confidence": record.confidence, "navin_taint": list(new.taint.labels) or None,
        "navin_valid_from": record.valid_from, "navin_valid_to": record.valid_to,
        "navin_recorded_at": record.created_at, "navin_retention_days": record.retention_days,
        "navin_legal_hold": record.legal_hold, "navin_supersedes": list(record.supersedes) or None,
        "navin_subject": new.subject or None, "navin_sources": list(new.sources) or None,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value is not None}


def expires(record: Record) -> str | None:
    """The day by which Mem0 itself no longer finds it; what is held never goes."""
    if record.due_at is None or record.legal_hold:
        return None
    return f"{parse_instant(record.due_at) + timedelta(days=1):%Y-%m-%d}"


def is_ours(record: Record, place: Named, memory: Memory) -> bool:
    """Whether what Mem0 gave is that item of that place, by what it was written with."""
    written = {record.id, record.original}
    return (
        memory.user_id == place.place
        and memory.metadata.get("navin_ns") == record.namespace == place.namespace
        and memory.metadata.get("navin_item") in written
    )


def words_of(record: Record, memory: Memory) -> Words:
    """What only Mem0 has of an item."""
    if record.original is not None:
        return Words(memory.text, sources=(source_of(record.instance, record.original),))
    told: Mapping[str, Any] = memory.metadata
    subject, sources = told.get("navin_subject"), told.get("navin_sources")
    return Words(
        memory.text, subject if isinstance(subject, str) else None,
        tuple(str(source) for source in sources) if isinstance(sources, list) else (),
    )  # fmt: skip


def source_of(instance: str, item_id: str) -> str:
    """How another item of an engine elsewhere is cited."""
    return f"engine://{instance}/{item_id}"


def _moment(t: datetime | None) -> str | None:
    return None if t is None else moment(t)
