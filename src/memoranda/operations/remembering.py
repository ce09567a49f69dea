"""Remember and update: one note, one commit, with its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from memoranda.context import Context
from memoranda.home.draft import Change, Draft
from memoranda.index.feeding import RECORDS
from memoranda.index.retention import held
from memoranda.index.rows import NoteRow
from memoranda.notes.chains import Neighbours, check_supersedes, unknown_note
from memoranda.notes.ids import blob_id, new_id
from memoranda.notes.journal import key_of, render_entry
from memoranda.notes.model import Note, check_draft, write_note
from memoranda.notes.paths import file_name, folder_for, title_of
from memoranda.notes.pointers import written
from memoranda.operations.forgotten import lifted, refuse_forgotten
from memoranda.operations.journaling import Sheets, ledger_line
from memoranda.operations.once import permitted
from memoranda.operations.open_home import OpenHome, sought, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.sessions import Met
from memoranda.operations.space import Space
from memoranda.operations.stamping import taint_of_sources
from memoranda.trust.labels import CLEAN, Root, Taint
from memoranda.trust.standing import believed, trust_of
from memoranda.values import dataclass, replace

_RECORDED = 2000  # characters of the text that the journal repeats; the rest stands in the note


@dataclass(frozen=True, slots=True)
class Remembered:
    """A note that was written. `uri` names its exact bytes, `sources` what it cites.

    `proposal`: it is quarantined, so that it only proposes to supersede these notes, until a person has reviewed it.
    """

    id: str
    uri: str
    path: str
    home: str
    sources: tuple[str, ...]
    supersedes: tuple[str, ...]
    session: str
    proposal: bool = False

    def json(self) -> dict[str, object]:
        return {
            "id": self.id, "uri": self.uri, "path": self.path, "home": self.home, "sources": list(self.sources),
            "supersedes": list(self.supersedes), "session": self.session, "proposal": self.proposal,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewNote:
    """What a caller asks to be remembered; the names are those of the note's fields."""

    text: str
    subject: str | None = None
    kind: str = "fact"
    scope: str = "user"
    sources: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confidence: float | None = None
    supersedes: tuple[str, ...] = ()
    origin: str = "agent"
    retention_days: int | None = None
    retention_class: str | None = None
    legal_hold: bool = False
    classification: str = "internal"


def remember(context: Context, space: Space, new: NewNote) -> Remembered:
    """Writes one note; durable when it returns.

    Raises:
        InvalidNote, InvalidTime, InvalidPointer: the note may not be written as it is.
        UnknownNote, ChainConflict: a note in `supersedes` does not exist, or may not be superseded by this one.
        ReadOnlyHome: the Home cannot be written.
    """
    home = space.writable()
    if new.supersedes:  # an editor may have written them a moment ago
        home.refresh(context)
        sought(context, [home], lambda home: _knows(home, new.supersedes) or None)
    return _remember(context, space, home, new, "remember")


def update(
    context: Context,
    space: Space,
    note_id: str,
    text: str,
    *,
    changes: dict[str, Any] | None = None,
    correct: bool = False,
    seen: NoteRow | None = None,
) -> Remembered:
    """Writes a note that supersedes the head of `note_id`'s chain and takes over what is not changed.

    The new note holds from now on, or from `changes["valid_from"]`; with `correct` it takes over the old interval and
    says that the old note never held. `seen` is the head that the caller means, and no other is superseded.
    UnknownNote, ChainConflict (the chain has two heads, or another one than was seen).
    """
    pass_guards(context, Call("update"))
    home, head = head_of(context, space, note_id)
    if seen is not None:
        from memoranda.operations.listing import refuse_another

        refuse_another(seen, head)
    new = NewNote(
        text,
        subject=head.subject,
        kind=head.kind,
        scope=head.scope,
        valid_from=head.valid_from if correct else context.now().replace(microsecond=0),
        valid_to=head.valid_to if correct else None,
        confidence=head.confidence,
        classification=head.classification,
        supersedes=(head.id,),
        retention_days=head.retention_days,
        retention_class=head.retention_class,
        legal_hold=_is_held(home, head.id),
    )
    changed = replace(new, **(changes or {}))
    if head.retention_days is not None and changed.retention_days is not None:  # of two the shorter wins
        changed = replace(changed, retention_days=min(head.retention_days, changed.retention_days))
    home.refresh(context)
    told = {**_told(changed), "note": head.id, "bytes": head.blob, "correct": correct}
    if "valid_from" not in (changes or {}):
        told["valid_from"] = None  # from now on, whenever that is
    # Whoever updates what lies in a place, it stays in that place.
    owner = head.owner if home.indexes.places is not None and changed.scope == head.scope else None
    return _remember(context, space, home, changed, "update", _taken_over(home, head), told, owner)


def _told(new: NewNote) -> dict[str, Any]:
    """All of a new note, for a person who is to allow it."""
    return {name: getattr(new, name) for name in NewNote.__match_args__}


def head_of(context: Context, space: Space, note_id: str) -> tuple[OpenHome, NoteRow]:
    """The Home and the row of the note that holds now on this id's chain; UnknownNote, ChainConflict."""
    from memoranda.operations.listing import the_head

    found = sought(context, space.homes(), lambda home: the_head(home, note_id))
    if found is None:
        raise unknown_note(note_id)
    return found


@undisturbed
def _knows(home: OpenHome, ids: Sequence[str]) -> bool:
    return all(home.indexes.catalog.knows(note_id) for note_id in ids)


@undisturbed
def _is_held(home: OpenHome, note_id: str) -> bool:
    return bool(held(home.indexes.catalog.db, [note_id]))


@undisturbed
def _taken_over(home: OpenHome, head: NoteRow) -> Taint:
    """What comes along with the fields of a note that nobody has reviewed: its subject may be an attacker's word."""
    trust = trust_of(home.indexes.catalog, [head])[head.blob]
    return trust.taint if trust.state != "reviewed" else CLEAN


def _remember(
    context: Context, space: Space, home: OpenHome, new: NewNote, operation: str, taken_over: Taint = CLEAN,
    told: Mapping[str, Any] | None = None, owner: Mapping[str, str] | None = None,
) -> Remembered:  # fmt: skip
    fields = (("subject", new.subject or ""), *[("source", source) for source in new.sources])
    pass_guards(context, Call(operation, writes=True, text=new.text, fields=fields, rules=home.rules))
    met = space.met(context, home)
    permit = permitted(context, home, met, operation, new.scope, told or partial(_told, new))
    session = met.session
    note_id = new_id("mem", context.random)
    taint = met.taint | taken_over
    if new.sources:
        taint = taint | taint_of_sources(space.homes(), new.sources)
    if new.origin == "external":
        taint = taint | Taint.of(Root("tool", note_id, "remembered as something from outside"))
    note = Note(
        note_id,
        kind=new.kind,
        subject=new.subject or None,
        scope=new.scope,
        owner=_owner(new.scope, context, home, session) if owner is None else owner,
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        confidence=new.confidence,
        origin=new.origin,
        taint=taint.labels,
        classification=new.classification,
        retention_days=new.retention_days,
        retention_class=new.retention_class,
        legal_hold=new.legal_hold,
        sources=new.sources,
        supersedes=tuple(dict.fromkeys(new.supersedes)),
        body=new.text.strip("\n"),
    )
    check_draft(note)
    lifts: list[dict[str, Any]] = []
    done: list[Remembered] = []
    name = home.name

    def build(now: datetime) -> Draft:
        context.still_allowed()
        if note.supersedes:
            _check_chain(home, note)
        lifts[:] = refuse_forgotten(context, home, note.body)  # here, where everybody's records are known
        sources, changes = note.sources, list[Change]()
        lines = list[dict[str, Any]]([*met.lines, *lifts])
        if not sources:
            source, changes, line = _record_call(context, home, note, met, now)
            sources = (source,)
            lines.append(line)
        data = write_note(note, now.replace(microsecond=0), sources)
        folder = home.folder_with_room(folder_for(note.subject, now))
        title = title_of(note.body)
        path = f"{folder}/{file_name(title, note_id)}"
        blob = blob_id(data)
        uri = written(name, path, blob)
        proposal = bool(note.supersedes and taint)
        done.append(Remembered(note_id, uri, path, name, sources, note.supersedes, session, proposal))
        lines.append(
            {
                "kind": "write", "op": operation, "id": note_id, "path": path, "session": session,
                "agent": context.agent, "user": context.user, "origin": note.origin, "taint": taint.records(),
            }
        )  # fmt: skip
        verb = "Update" if operation == "update" else "Remember"
        about = f" {note.subject}" if note.subject else ""
        reason = f"{verb}{about}: {title}"
        trailers = {"Id": note_id, "Session": session, "Agent": context.agent}
        return Draft(operation, reason, [Change(path, data, blob=blob), *changes], lines, trailers, context.agent)

    if permit is not None:
        permit.use(context)
    record = home.repository.write(context, build)
    if lifts:
        lifted(home, lifts, record.at)
    return done[-1]


def _owner(scope: str, context: Context, home: OpenHome, session: str) -> dict[str, str]:
    """The fields that say whose a note of this scope is."""
    if scope == "user":
        return {"user": context.user}
    if scope in ("agent", "shared_agents"):
        return {"agent": context.agent}
    if scope == "session":
        return {"user": context.user, "agent": context.agent, "session": session}
    if scope == "project":
        return {"project": context.project or home.name}
    return {"team": context.team} if scope == "team" and context.team else {}


@undisturbed
def _check_chain(home: OpenHome, note: Note) -> None:
    """Inside the writers' lock, with everybody's records taken in: no two writers can give a chain two heads."""
    home.indexes.catch_up()
    catalog = home.indexes.catalog

    def neighbours(note_id: str) -> Neighbours | None:
        rows = catalog.by_id(note_id)
        if not rows:
            return None
        # A quarantined note only proposes to supersede: it must not keep anybody else from doing so.
        after = [row for other in catalog.successors(note_id) for row in catalog.by_id(other)]
        links = believed(catalog, [rows[0], *after])
        return Neighbours(links[0].supersedes, tuple(x.id for x in links[1:] if note_id in x.supersedes))

    check_supersedes(note.id, note.supersedes, neighbours)


def _record_call(
    context: Context, home: OpenHome, note: Note, met: Met, now: datetime
) -> tuple[str, list[Change], dict[str, Any]]:
    """The journal entry that records the call, as the note's source: (pointer, changes, ledger line)."""
    entry = new_id("j", context.random)
    text = note.body if len(note.body) <= _RECORDED else note.body[:_RECORDED].rstrip() + " …"
    said = (entry, now, f"{context.agent} {RECORDS}", f"{note.id}: {text}")
    data = render_entry(*said)
    sheets = Sheets(home)
    sheets.add(context.agent, now.date(), data, entry)
    changes, places = sheets.finish()
    path, blob, first, last = places[entry]
    pointer = written(home.name, path, blob, first, last)
    return pointer, changes, ledger_line(entry, key_of(*said), met.session, context, note.origin, met.taint)
