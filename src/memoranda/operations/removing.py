"""Taking away what lies in one place, for a service: what may go is decided by the place, not by who wrote it.

The Homes that this works on are a reader's (`OpenHome.seen_by`), so that nothing of another place goes with it, and
nothing of it is told.
"""

from __future__ import annotations

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Conflict, InvalidPointer
from memoranda.index.feeding import RECORDS
from memoranda.index.retention import held
from memoranda.index.rows import EntryRow
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.cascade import Cascade, Lineage, Taken
from memoranda.operations.forgetting import Plan, carry_out
from memoranda.operations.holding import refuse_held
from memoranda.operations.once import permitted, shared_of
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.remains import quoting
from memoranda.operations.space import Space
from memoranda.values import dataclass

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Removal:
    """The notes that went, those that stay under legal hold with their chains, and where words of them remain."""

    notes: tuple[str, ...]
    held: tuple[str, ...]
    remains: tuple[str, ...]


_NOTHING = Removal((), (), ())
_HISTORY = "the history of the Home keeps the words until they are erased from it"
_COPIES = "backups and clones keep what they have; nothing here can reach them"


def forget_chain(context: Context, space: Space, home: OpenHome, note_id: str) -> Removal:
    """Ends the whole chain of a note.

    Raises:
        LegalHold: something of the chain is held; nothing went.
        ConfirmationRequired: a person reviewed it, and no person asks.
        RuleOfTwo: the session has met too much to take away what others read.
    """
    pass_guards(context, Call("forget", writes=True, rules=home.rules))
    for _ in range(_ROUNDS):
        with home.indexes.lock:
            lineage = Lineage(home)
            cascade = lineage.cascade([(("note", note_id), "named")])
        refuse_held(home, cascade.notes)
        _refuse_reviewed(context, home, cascade)
        if (done := _carried_out(context, space, home, lineage, cascade, "forget")) is not None:
            return done
    raise Conflict("Others write on these memories all the time.", remedy="Try again.")


def empty(context: Context, space: Space, home: OpenHome) -> Removal:
    """Takes away everything that this reader's Home shows, but what is held. RuleOfTwo, as for `forget_chain`."""
    pass_guards(context, Call("purge", writes=True, rules=home.rules))
    for _ in range(_ROUNDS):
        home.refresh(context)
        with home.indexes.lock:
            lineage = Lineage(home)
            names = _under_hold(home, lineage)
            free = [note_id for note_id in lineage.versions if note_id not in names]
            cascade = lineage.cascade([(("note", note_id), "purged") for note_id in free])
            names |= {note_id for note_id in names for note_id in lineage.chain(note_id)}
        for note_id in names & cascade.notes.keys():  # what is held keeps what it was made from, and what cites it
            del cascade.notes[note_id], cascade.versions[note_id]
        if not cascade.notes:
            return Removal((), tuple(sorted(names)), ())
        if (done := _carried_out(context, space, home, lineage, cascade, "purge")) is not None:
            return Removal(done.notes, tuple(sorted(names)), done.remains)
    raise Conflict("Others write on these memories all the time.", remedy="Try again.")


def _under_hold(home: OpenHome, lineage: Lineage) -> set[str]:
    """The held notes with their chains."""
    found: set[str] = set()
    for note_id in held(home.indexes.catalog.db, lineage.versions):
        found |= lineage.chain(note_id)
    return found


def _refuse_reviewed(context: Context, home: OpenHome, cascade: Cascade) -> None:
    with home.indexes.lock:
        ledger = home.indexes.catalog.ledger
        reviewed = any(ledger.reviews(note_id=note_id) for note_id in cascade.notes)
    if reviewed and not context.person:
        raise ConfirmationRequired(
            "A person has reviewed this; nothing was removed.",
            why="What a person stands by is not taken away by an agent.",
            remedy="A person with the right to write there can forget it.",
        )


def _carried_out(
    context: Context, space: Space, home: OpenHome, lineage: Lineage, cascade: Cascade, operation: str
) -> Removal | None:
    """None when somebody superseded one of these notes meanwhile."""
    if not cascade.notes:
        return _NOTHING
    versions = list(cascade.all_versions())
    told = {"notes": sorted({v.id for v in versions}), "bytes": sorted({v.blob for v in versions})}
    met = space.met(context, home)
    permit = permitted(context, home, met, operation, shared_of([v.scope for v in versions]), told)
    with home.indexes.lock:
        stays, quotes = quoting(home, lineage, cascade)
    _with_records(home, cascade)
    gone = tuple(sorted({v.id for v in versions if v.live}))
    plan = Plan(home, lineage, cascade, False, False, stays, (), permit=permit)
    if permit is not None:
        permit.use(context)
    if carry_out(context, plan) is None:
        return None
    said = [f"{quote.note}: {quote.why}" for quote in quotes if quote.note is not None]
    return Removal(gone, (), (_HISTORY, _COPIES, *said))


def _with_records(home: OpenHome, cascade: Cascade) -> None:
    """The journal's records of the calls by which these notes were written go with them: they repeat the words."""
    for version in cascade.all_versions():
        for source in version.sources:
            for entry in _record_in(home, source, version.id):
                cascade.entries[entry.id] = Taken("entry", entry.id, entry.path, "records the call")
                cascade.records.add(entry.id)


def _record_in(home: OpenHome, source: str, note_id: str) -> list[EntryRow]:
    """The record of the writing of this very note, if the source leads to it: it may be a caller's own word."""
    if "/journal/" not in source or not source.startswith("nas://"):
        return []
    try:
        pointer = parse_pointer(source)
    except InvalidPointer:
        return []
    whole = home.indexes.whole
    with whole.lock:
        entries = whole.catalog.entries_of(pointer.path)
    return [
        entry
        for entry in entries
        if entry.first <= (pointer.end or 0)
        and (pointer.start or 0) <= entry.last
        and entry.speaker.endswith(RECORDS)
        and entry.text.startswith(f"{note_id}: ")
    ]
