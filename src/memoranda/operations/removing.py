"""Taking away what lies in one place, for a service: what may go is decided by the place, not by who wrote it.

The Homes that this works on are a reader's (`OpenHome.seen_by`), so that nothing of another place goes with it, and
nothing of it is told.
"""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Conflict, InvalidPointer
from memoranda.index.feeding import RECORDS
from memoranda.index.retention import held
from memoranda.index.rows import EntryRow, NoteRow
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.cascade import Cascade, Lineage, Taken
from memoranda.operations.forgetting import Plan, carry_out
from memoranda.operations.holding import refuse_held
from memoranda.operations.listing import head_at_hand, refuse_another
from memoranda.operations.once import permitted, shared_of
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.remains import quoting
from memoranda.operations.space import Space
from memoranda.values import dataclass

_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Removal:
    """The notes that went, and where words of them remain; with their chains, those that stay under legal hold, and
    those that stay since a person reviewed them and no person asks."""

    notes: tuple[str, ...]
    remains: tuple[str, ...]
    held: tuple[str, ...] = ()
    reviewed: tuple[str, ...] = ()


_NOTHING = Removal((), ())
_HISTORY = "the history of the Home keeps the words until they are erased from it"
_COPIES = "backups and clones keep what they have; nothing here can reach them"


def forget_chain(
    context: Context, space: Space, home: OpenHome, note_id: str, *, seen: NoteRow | None = None
) -> Removal:
    """Ends the whole chain of a note; with `seen`, only while that is its head.

    Raises:
        ChainConflict: another note than was seen holds by now.
        LegalHold: something of the chain is held; nothing went.
        ConfirmationRequired: a person reviewed it, and no person asks.
        RuleOfTwo: the session has met too much to take away what others read.
    """
    pass_guards(context, Call("forget", writes=True, rules=home.rules))
    for _ in range(_ROUNDS):
        with home.indexes.lock:
            if seen is not None:
                refuse_another(seen, head_at_hand(home, note_id))
            lineage = Lineage(home)
            cascade = lineage.cascade([(("note", note_id), "named")])
        refuse_held(home, cascade.notes)
        _refuse_reviewed(context, home, cascade)
        if (done := _carried_out(context, space, home, lineage, cascade, "forget")) is not None:
            return done
    raise Conflict("Others write on these memories all the time.", remedy="Try again.")


def empty(context: Context, space: Space, home: OpenHome) -> Removal:
    """Takes away everything that this reader's Home shows, but what is held, and for an agent what a person reviewed.

    RuleOfTwo, as for `forget_chain`.
    """
    pass_guards(context, Call("purge", writes=True, rules=home.rules))
    for _ in range(_ROUNDS):
        home.refresh(context)
        with home.indexes.lock:
            lineage = Lineage(home)
            on_hold = _with_chains(lineage, held(home.indexes.catalog.db, lineage.versions))
            firm = set() if context.person else _with_chains(lineage, _reviewed(home, lineage.versions))
            stays = on_hold | firm
            cascade = lineage.cascade([(("note", name), "purged") for name in lineage.versions if name not in stays])
        for name in stays & cascade.notes.keys():  # it cites what goes, and stays all the same
            del cascade.notes[name], cascade.versions[name]
        done = _carried_out(context, space, home, lineage, cascade, "purge")
        if done is not None:
            live = {v.id for name in stays for v in lineage.versions[name] if v.live}
            kept = tuple(sorted(live & on_hold)), tuple(sorted(live & firm - on_hold))
            return Removal(done.notes, done.remains, *kept)
    raise Conflict("Others write on these memories all the time.", remedy="Try again.")


def _with_chains(lineage: Lineage, names: Iterable[str]) -> set[str]:
    return {name for one in names for name in lineage.chain(one)}


def _reviewed(home: OpenHome, names: Iterable[str]) -> list[str]:
    """Those of these notes of which a person has decided something."""
    ledger = home.indexes.catalog.ledger
    return [name for name in names if ledger.reviews(note_id=name)] if ledger.has_reviews() else []


def _refuse_reviewed(context: Context, home: OpenHome, cascade: Cascade) -> None:
    with home.indexes.lock:
        reviewed = _reviewed(home, cascade.notes)
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
    return Removal(gone, (_HISTORY, _COPIES, *said))


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
