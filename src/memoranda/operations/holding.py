"""Legal holds: what is held is neither forgotten, erased, rolled back nor let expire, until a person releases it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidInput, LegalHold, Told
from memoranda.home.draft import Draft
from memoranda.index import withheld
from memoranda.index.retention import held
from memoranda.notes.chains import unknown_note
from memoranda.operations.open_home import OpenHome, sought, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """A note that is held: where it stands (None: in no file any more), and what was said about it in the ledger."""

    id: str
    path: str | None
    by: str | None
    reason: str | None

    def json(self) -> dict[str, object]:
        return {"id": self.id, "path": self.path, "by": self.by, "reason": self.reason}


@undisturbed
def _held_among(home: OpenHome, note_ids: Sequence[str]) -> list[str]:
    return held(home.indexes.catalog.db, note_ids)


def refuse_held(home: OpenHome, note_ids: Iterable[str]) -> None:
    """LegalHold when one of these notes, which are about to go, is held."""
    if names := _held_among(home, list(note_ids)):
        raise held_back(names)


def held_back(names: Sequence[str], done: Told | None = None) -> LegalHold:
    """The refusal because of these held notes; `done`: what went all the same."""
    return LegalHold(
        f"{', '.join(names[:5])}{' and more' if len(names) > 5 else ''}: under legal hold.",
        why="What is held is neither forgotten, erased, rolled back nor let expire, nor is what it belongs to.",
        remedy="A security officer releases it: at the service by `POST …/memories/{item_id}/hold`, else a person at a "
        "terminal with `memoranda hold release ID`.",
        done=done,
    )


def holds(context: Context, space: Space) -> list[Held]:
    """The notes of the nearest Home that are held, by id."""
    pass_guards(context, Call("list"))
    home = space.one()
    home.refresh(context)
    return held_notes(home)


@undisturbed
def held_notes(home: OpenHome) -> list[Held]:
    """The notes of this Home that are held, by id."""
    db = home.indexes.catalog.db
    shown = {row[0] for row in db.execute("SELECT DISTINCT id FROM notes WHERE legal_hold = 1")}
    return [_held(home, name) for name in held(db, sorted(shown | withheld.held_ids(db)))]


def _held(home: OpenHome, note_id: str) -> Held:
    catalog = home.indexes.catalog
    row = next(iter(catalog.by_id(note_id)), None)
    said = [hold for hold in withheld.holds(catalog.db, note_id) if hold.event == "set"]
    last = said[-1] if said else None
    return Held(note_id, row.path if row else None, last.user if last else None, last.reason if last else None)


def hold(context: Context, space: Space, note_ids: Sequence[str], event: str, *, reason: str) -> list[Held]:
    """Sets or releases (`event`) the hold on these notes, on record; returns what is held afterwards.

    Raises:
        ConfirmationRequired: nobody is at a terminal.
        InvalidInput: no reason. UnknownNote: one of them does not exist; nothing was done then.
    """
    pass_guards(context, Call(f"{event}_hold", writes=True, text=reason, rules=space.one().rules))
    if not context.person:
        raise ConfirmationRequired(
            "A hold is set and released by a security officer only: here, a person at a terminal.",
            why="Standard input or output is not a terminal.",
            remedy="Run the command in a terminal of your own.",
        )
    if not reason.strip():
        raise InvalidInput("No reason was given.", remedy="Give --reason; it stays on record.")
    wanted = list(dict.fromkeys(note_ids))

    def look(home: OpenHome) -> bool | None:
        home.refresh(context)
        return not _unknown(home, wanted[:1]) or None

    found = sought(context, space.homes(), look)
    home = found[0] if found else space.one()
    if missing := _unknown(home, wanted):
        raise unknown_note(missing[0])
    lines = [
        {"kind": "hold", "id": note_id, "event": event, "user": context.user, "reason": " ".join(reason.split())}
        for note_id in wanted
    ]

    def build(_at: datetime) -> Draft:
        verb = "Hold" if event == "set" else "Release"
        return Draft("hold", f"{verb} {', '.join(wanted)}", (), lines, {}, context.user)

    home.repository.write(context, build)
    home.refresh(context)
    return _held_of(home, wanted)


@undisturbed
def _held_of(home: OpenHome, wanted: Sequence[str]) -> list[Held]:
    return [_held(home, name) for name in held(home.indexes.catalog.db, wanted)]


@undisturbed
def _unknown(home: OpenHome, wanted: Sequence[str]) -> list[str]:
    return [note_id for note_id in wanted if not home.indexes.catalog.knows(note_id)]
