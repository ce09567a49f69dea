"""An item of an engine elsewhere as an item of the contract: its words from there, all else from our own rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.engines.company import Shown
from memoranda.engines.contract import Item, OperationContext
from memoranda.engines.exporting import Given
from memoranda.engines.naming import project_of
from memoranda.engines.records import Record, Records
from memoranda.notes.chains import Chains
from memoranda.notes.model import Note, write_note
from memoranda.notes.paths import file_name, folder_for, title_of
from memoranda.notes.times import Interval, format_instant, parse_instant
from memoranda.trust.labels import Root, State, Taint, note_state
from memoranda.values import dataclass

_CHANGED = "its words are not those that were kept"


@dataclass(frozen=True, slots=True)
class Words:
    """What only the engine has of an item."""

    content: str
    subject: str | None = None
    sources: tuple[str, ...] = ()


def readable(record: Record, where: OperationContext) -> bool:
    """Whether an item lies in a place that this context reads."""
    return any(
        (record.scope, record.owner, record.project) == (place.scope, place.owner, project_of(where, place) or "")
        for place in where.reads
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """An item as it stands now: how far its words may be trusted, and its place in its chain.

    `held` is when it held as it was known then; None when it never did. `content_hash` is that of the words as they
    are.
    """

    record: Record
    words: Words
    trust: State
    taint: Taint
    content_hash: str
    after: tuple[str, ...]
    held: Interval | None

    @property
    def quarantined(self) -> bool:
        return self.trust == "quarantined"

    def shown(self) -> Shown:
        return Shown(self.record.id, self.record.classification, self.quarantined)

    def state(self, now: datetime) -> str:
        """current, ended, future or superseded."""
        record = self.record
        if self.after:
            return "superseded"
        if record.valid_from is not None and now < parse_instant(record.valid_from):
            return "future"
        ended = record.valid_to is not None and parse_instant(record.valid_to) <= now
        return "ended" if ended and record.kind != "episodic" else "current"

    def holds(self, at: datetime) -> bool:
        """Whether it held at this time. An episode is a record: it begins and does not end."""
        if self.held is None:
            return False
        begun = self.held.start is None or self.held.start <= at
        return begun and (self.record.kind == "episodic" or self.held.end is None or at < self.held.end)

    def visible(self, now: datetime, as_of: datetime | None, known_at: datetime | None) -> bool:
        """Whether a question about these times may be answered with it; with none it is about now, and looser."""
        if known_at is not None and parse_instant(self.record.created_at) > known_at:
            return False
        if as_of is not None:
            return self.holds(as_of)
        return not self.after or self.holds(now)  # its successor has not taken over yet

    @property
    def etag(self) -> str:
        """Names its exact state."""
        told = "\n".join((self.record.id, self.content_hash, self.trust, str(self.record.legal_hold), *self.after))
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    def item(self, now: datetime, *, hidden: bool = False) -> Item:
        """As the contract has it; `hidden`: without words, nor what else may be the outside's own word."""
        return Item(**self.fields(now, hidden=hidden))

    def fields(self, now: datetime, *, hidden: bool = False) -> dict[str, Any]:
        """The fields of the item."""
        record, words = self.record, self.words
        told: dict[str, Any] = {"subject": words.subject, "content": words.content, "sources": words.sources}
        return {
            "id": record.id, "engine": record.instance, "scope": record.scope, "owner": record.owner,
            "kind": record.kind, "classification": record.classification, "origin": record.origin,
            "confidence": record.confidence, "taint": self.taint.labels, "reviewed": self.trust == "reviewed",
            "trust": self.trust, "state": self.state(now), "valid_from": _short(record.valid_from),
            "valid_to": _short(record.valid_to), "recorded_at": _short(record.created_at),
            "supersedes": record.supersedes, "superseded_by": self.after, "retention_days": record.retention_days,
            "legal_hold": record.legal_hold, "generated": record.generated, "etag": self.etag,
            **({"subject": None, "content": None, "sources": ()} if hidden else told),
        }  # fmt: skip


def standings(
    records: Records, found: Sequence[tuple[Record, Words]], now: datetime, known_at: datetime | None = None,
    chains: Mapping[str, Chains] | None = None,
) -> list[Standing]:  # fmt: skip
    """How these items of one tenant and one instance stand, in their order; as it was known at `known_at`.

    `chains` are theirs, where they are at hand.
    """
    if chains is None:
        chains = records.chains([record for record, _ in found])
    return [_standing(records, record, words, chains, known_at or now) for record, words in found]


def _standing(
    records: Records, record: Record, words: Words, chains: Mapping[str, Chains], known_at: datetime
) -> Standing:
    content_hash = records.exact_hash(record.tenant, words.content)
    trust, taint = record.trust, record.stamp
    if content_hash != record.content_hash:  # somebody changed it where it lies: nobody here knows who
        taint = taint | Taint.of(Root("unresolved", record.id, _CHANGED))
        trust = note_state(reviewed=False, was_reviewed=record.verdict == "accept", taint=taint, written=False)
    chain = chains.get(record.chain)
    after: tuple[str, ...] = ()
    held: Interval | None = Interval(_time(record.valid_from), _time(record.valid_to))
    if chain is not None:
        if record.id not in chain.heads_of(record.id, known_at):
            after = chain.successors(record.id)
        held = chain.effective(record.id, known_at)
    return Standing(record, words, trust, taint, content_hash, after, held)


def as_note(one: Standing, now: datetime) -> Given:
    """An item as a note that anybody can read: the file that builtin would have made of it."""
    record, words = one.record, one.words
    owner = _OWNER.get(record.scope)
    note = Note(
        record.id, kind=record.kind, subject=words.subject, scope=record.scope,
        owner={} if owner is None else {owner: record.owner}, valid_from=_time(record.valid_from),
        valid_to=_time(record.valid_to), confidence=record.confidence, origin=record.origin, taint=one.taint.labels,
        classification=record.classification, retention_days=record.retention_days, retention_class=None,
        legal_hold=record.legal_hold, generated=record.generated, sources=words.sources, supersedes=record.supersedes,
        body=words.content,
    )  # fmt: skip
    at = parse_instant(record.created_at)
    path = f"{folder_for(words.subject, at)}/{file_name(title_of(words.content), record.id)}"
    return Given(record.id, path, write_note(note, at.replace(microsecond=0), words.sources), one.item(now))


_OWNER = {"user": "user", "agent": "agent", "shared_agents": "agent", "project": "project", "team": "team"}


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)


def _short(text: str | None) -> str | None:
    return None if text is None else format_instant(parse_instant(text))
