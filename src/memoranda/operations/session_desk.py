"""Sessions as people look at them: what tainted one, and starting afresh."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidInput, NotFound
from memoranda.index.testimony import SessionEvent
from memoranda.notes.times import format_instant
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.sessions import event
from memoranda.operations.space import Space
from memoranda.trust.labels import Root
from memoranda.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class SessionStory:
    """What befell one session, in the order of time; `tainted` is whether it has met anything from outside.

    Behind its own events stand those that it inherits (`inherit`) from other open sessions of its user and agent.
    """

    session: str
    home: str
    tainted: bool
    private: bool
    events: tuple[SessionEvent, ...]

    def json(self) -> dict[str, object]:
        return {
            "session": self.session, "home": self.home, "tainted": self.tainted, "private": self.private,
            "events": [event_json(e) for e in self.events],
        }  # fmt: skip


def event_json(e: SessionEvent) -> dict[str, object]:
    """One event of a session as data."""
    return {
        "event": e.event, "at": None if e.at is None else format_instant(e.at), "user": e.user, "agent": e.agent,
        "reason": e.reason, "source": e.source, "what": e.what,
    }  # fmt: skip


def event_line(e: SessionEvent) -> str:
    """One event of a session in words: when, what, by which entry or source, why."""
    about = " ".join(filter(None, (e.what, e.source, e.reason)))
    return f"{e.at:%Y-%m-%dT%H:%M:%SZ}  {e.event}  {about}".rstrip() if e.at else f"{e.event}  {about}"


def session_show(context: Context, space: Space, session: str | None = None) -> SessionStory:
    """The story of a session of the nearest Home, of the caller's own when none is named. NotFound.

    It names addresses and gives reasons, which may be somebody else's words: an agent that is told what another session
    has met, has met it.
    """
    pass_guards(context, Call("session_show"))
    home = space.one()
    home.refresh(context)
    name = session or context.session or home.sessions.ambient(context)
    events = story_of(context, home, name)
    if not events:
        raise NotFound(f"Nothing is known of the session {name}.", remedy="A session is known from its first write on.")
    tainted = any(e.event == "taint" or (e.event == "inherit" and e.what != "private") for e in events)
    private = any("private" in (e.event, e.what) for e in events)
    return SessionStory(name, home.name, tainted, private, events)


def story_of(context: Context, home: OpenHome, session: str, roots: Collection[Root] = ()) -> tuple[SessionEvent, ...]:
    """What befell a session, and behind it what it inherits: from sessions that are open, and what is told of `roots`.

    Those are where the taint of something began that it wrote; who met them may have closed his session since. An agent
    that is told of it has met it. Empty when nothing is known of the session.
    """
    events = _events(home, session)
    if not events:
        return ()
    open_ones = home.sessions.shared_with(session)
    inherited = list(_inherited(home, session, open_ones))
    known = {_root_of(e) for e in (*events, *inherited)}
    inherited += _from_elsewhere(home, session, {root for root in roots if root not in known})
    met = {root for root in map(_root_of, (*events, *inherited)) if root is not None}
    if met - home.sessions.met(context).taint.roots:
        home.sessions.raise_taint(context, sorted(met))
    return events + tuple(inherited)


def _root_of(e: SessionEvent) -> Root | None:
    """Where the taint began that an event tells of."""
    if e.event not in ("taint", "inherit") or e.what == "private":
        return None
    return Root(e.what or "person", e.source or "", (e.reason or "").removesuffix(_by(e.session)).strip())


def _by(session: str) -> str:
    return f"(by {session})"


def _inherited(home: OpenHome, session: str, others: Iterable[str]) -> Iterator[SessionEvent]:
    """What other open sessions of the same user and agent have met, which counts for this one too."""
    for root in home.sessions.lost.roots:
        yield SessionEvent(session, "inherit", None, None, None, root.reason, root.source, root.kind, True)
    for other in others:
        for e in _events(home, other):
            if e.event == "private":
                yield replace(e, event="inherit", what="private", reason=f"by {other}")
            elif e.event == "taint":
                yield _inherit(e)


def _from_elsewhere(home: OpenHome, session: str, roots: Collection[Root]) -> Iterator[SessionEvent]:
    """Who has met these, in a session that is over."""
    if not roots:
        return
    for e in _events(home, None):
        if e.event == "taint" and e.session != session and (root := _root_of(e)) in roots:
            roots = {other for other in roots if other != root}  # the first who met it
            yield _inherit(e)


def _inherit(e: SessionEvent) -> SessionEvent:
    return replace(e, event="inherit", reason=f"{e.reason or ''} {_by(e.session)}".strip())


@undisturbed
def _events(home: OpenHome, session: str | None) -> tuple[SessionEvent, ...]:
    return tuple(home.indexes.catalog.ledger.session_events(session))


def session_taint(context: Context, space: Space, reason: str) -> SessionStory:
    """Says that a session has met content from outside: the caller's, or the one that a person names.

    Anybody may; nobody can take it back.
    """
    home = space.writable()
    pass_guards(context, Call("taint", writes=True, text=reason, rules=home.rules))
    if not reason.strip():
        raise InvalidInput("No reason was given.", remedy="Say what brought the outside content in.")
    told = replace(context, person=False)  # what a person reads taints nobody; what a person says does
    home.sessions.raise_taint(told, [Root("tool", context.agent, " ".join(reason.split())[:500])])
    return session_show(context, space, home.sessions.met(told).session)


def session_fresh(context: Context, space: Space, *, lost: bool = False) -> str:
    """Ends the open sessions of this user and agent and begins a clean ambient one; its id. Only for a person.

    All of them: what any open one has met, the ambient one would inherit. `lost`: the person has seen that the ledger
    has lost lines, and says that every session begins anew; what came in until now keeps the taint.
    """
    pass_guards(context, Call("open_session", writes=True))
    if not context.person:
        raise ConfirmationRequired(
            "Only a person can start afresh.",
            why="Standard input or output is not a terminal, and what an agent says lowers no taint.",
            remedy="Run the command in a terminal of your own.",
        )
    home = space.writable()
    home.refresh(context)  # what has no word in the ledger any more is stamped before that is over
    old = home.sessions.ambient(context)
    ended = dict.fromkeys([old, *home.sessions.unclosed(context)])
    lines = [event(session, context, "close") for session in ended]
    home.sessions.tell(context, [*lines, event(old, context, "fresh")], "Start a session afresh")
    if lost:
        home.on_disk.settle_ledger()
    return home.sessions.ambient(context)
