"""What people rule over in a Home: that a chain is held, and that a session has come to its end."""

from __future__ import annotations

from typing import Literal, NamedTuple

from memoranda.context import Context
from memoranda.engines.looking import missing
from memoranda.index.rows import NoteRow
from memoranda.notes.ids import is_note_id
from memoranda.operations.holding import held_notes, hold
from memoranda.operations.listing import still_kept
from memoranda.operations.open_home import OpenHome
from memoranda.operations.session_desk import session_fresh
from memoranda.operations.sessions import event
from memoranda.operations.space import Space
from memoranda.values import replace


class OnHold(NamedTuple):
    """A memory or a dataset under legal hold: what may be said of it to an officer who cannot read it.

    `project` is empty for what belongs to the tenant as a whole; `set_by` and `reason` are None where nobody said them.
    """

    id: str
    engine: str
    project: str
    scope: str
    owner: str
    set_by: str | None = None
    reason: str | None = None


class Ruled(NamedTuple):
    """The items of a chain, and those of them that are held now."""

    chain: tuple[str, ...]
    held: tuple[str, ...]


def hold_chain(own: Context, home: OpenHome, item_id: str, what: Literal["set", "release"], reason: str) -> Ruled:
    """Holds a whole chain or releases it, in the name of the officer who asks. NotFound when this Home has no such."""
    home.refresh(own)
    with home.indexes.lock:
        rows = still_kept(home, home.indexes.catalog.component(item_id), own.now()) if is_note_id(item_id) else []
        chain = tuple(dict.fromkeys(row.id for row in rows))
    if item_id not in chain:
        raise missing()
    officer = replace(own, person=True)
    held = hold(officer, _alone(officer, home), chain, what, reason=reason)
    return Ruled(chain, tuple(one.id for one in held))


def on_hold(own: Context, home: OpenHome, engine: str, project: str | None) -> list[OnHold]:
    """Everything in a Home that is held, by id, also what stands in no file any more."""
    home.refresh(own)
    found = []
    with home.indexes.lock:
        for one in held_notes(home):
            row = next(iter(home.indexes.catalog.by_id(one.id)), None)
            scope = row.scope if row else ""
            found.append(OnHold(one.id, engine, project or "", scope, _owner(row, project), one.by, one.reason))
    return found


def _owner(row: NoteRow | None, project: str | None) -> str:
    """Whose a note is: of a session its name, of what everybody shares nothing."""
    if row is None:
        return ""
    field = {"shared_agents": "agent"}.get(row.scope, row.scope)
    return row.owner.get(field) or (project or "" if field == "project" else "")


def end_sessions(own: Context, home: OpenHome) -> int:
    """Ends the session of a call, or where it names none all of its user and agent; how many of them were open."""
    home.refresh(own)  # what has no word in the ledger any more is stamped before that is over
    open_ones = home.sessions.unclosed(own)
    if own.session is None:
        person = replace(own, person=True)
        session_fresh(person, _alone(person, home))
        return len(open_ones)
    if own.session not in open_ones:
        return 0
    home.sessions.tell(own, [event(own.session, own, "close")], "A session has ended")
    return 1


def _alone(context: Context, home: OpenHome) -> Space:
    return Space(context, home.repository.keys, None, None, given=[home])
