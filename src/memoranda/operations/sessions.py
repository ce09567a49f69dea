"""Sessions: which one a call belongs to, and what it has met. Their taint lies in the Home, not in a process.

A call that names no session joins the ambient one of its Home, user and agent. What such a session, or one that an
agent opened itself, has met is what any open session of that user and agent has met: leaving the session out or
opening another one launders nothing. Only a session that a person or the harness opened stands for itself.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.context import Context
from memoranda.home.draft import Draft
from memoranda.home.holding import Holding
from memoranda.home.record import Record
from memoranda.index.indexes import Indexes
from memoranda.notes.times import parse_instant
from memoranda.trust.labels import CLEAN, Root, Taint, inherit
from memoranda.values import dataclass, field

CLEAN_STARTERS = ("person", "hook")
LOST = Root("unresolved", "refs/memoranda/ledger", "the ledger has lost lines, so nobody knows what a session has met")


@dataclass(slots=True)
class _Session:
    """What is known of one session."""

    user: str | None = None
    agent: str | None = None
    taint: Taint = CLEAN
    private: bool = False
    opened_by: str | None = None
    open_for: set[tuple[object, object]] = field(default_factory=set)  # users and agents that are at work in it
    vouched: bool = False  # whether user and agent are known from a line that is
    since: datetime | None = None  # when it first met something from outside


@dataclass(frozen=True, slots=True)
class Met:
    """The session of a call, what it has met, and the ledger lines that its first use has to bring along."""

    session: str
    taint: Taint = CLEAN
    private: bool = False
    lines: tuple[dict[str, Any], ...] = field(default=())


class SessionBook:
    """The sessions of one Home, kept up by every record that this process reads or writes."""

    def __init__(self, repository: Holding, indexes: Indexes) -> None:
        self._repository = repository
        self._indexes = indexes
        self._lock = threading.RLock()
        self._sessions: dict[str, _Session] = {}
        self._epochs: dict[tuple[str, str], int] = {}
        self._answers: dict[tuple[str | None, str, str], Met] = {}  # what `met` said, void with the next event
        self._news = 0  # records with events that were heard
        self._others: str | None = None  # the ledger with which lines of other clones were taken in last
        self._pen = repository.pen(repository.replica.id)
        repository.subscribe('"kind":"session"', self._heard)
        self._missed = repository.hear()
        self._read()

    def _read(self) -> None:
        """Begins with the events that the catalog knows; what is heard meanwhile is among them the next time."""
        indexes = self._indexes
        while True:
            news = self._news
            indexes.catch_up()
            with indexes.lock:
                events = indexes.mending(lambda: list(indexes.catalog.ledger.session_events()))
                others = indexes.catalog.state("others")
            with self._lock:
                self._others = others
                if news != self._news:
                    continue
                self._sessions.clear()
                self._epochs.clear()
                self._answers.clear()
                for e in events:
                    fields = {"session": e.session, "event": e.event, "user": e.user, "agent": e.agent, "by": e.what}
                    more = {"reason": e.reason, "source": e.source, "what": e.what, "at": e.at}
                    self._apply(fields | more, e.vouched)
                return

    def _heard(self, record: Record) -> None:
        with self._lock:
            self._news += 1
            for text in record.ledger:
                if '"kind":"session"' in text:
                    self._apply(json.loads(text), self._pen.vouches(text))

    def _listen(self) -> None:
        """What other processes did to sessions counts from the moment in which it is durable."""
        missed = self._repository.hear()
        if missed != self._missed:
            self._read()
            self._missed = missed

    def compare(self) -> None:
        """Lines that another clone wrote come with its ledger, and not as records: the catalog has just met them."""
        with self._indexes.lock:
            others = self._indexes.catalog.state("others")
        if others != self._others:
            self._read()

    def _apply(self, fields: Mapping[str, Any], vouched: bool) -> None:
        """Takes in one event. What makes more of a session counts only when it is vouched for."""
        session, event = str(fields.get("session")), fields.get("event")
        with self._lock:
            self._answers.clear()
            known = self._sessions.setdefault(session, _Session())
            if vouched > known.vouched or known.user is None:
                known.user, known.agent, known.vouched = fields.get("user"), fields.get("agent"), vouched
            pair = (fields.get("user"), fields.get("agent"))
            if event in ("open", "taint", "private"):
                # Also in a session that was closed, or is somebody else's: what he met there goes on with him.
                known.open_for.add(pair)
            if event == "taint":
                at = fields.get("at")
                since = parse_instant(at) if isinstance(at, str | datetime) else None
                known.since = min(filter(None, (known.since, since)), default=None)
                known.taint = known.taint | Taint.of(
                    Root(
                        str(fields.get("what") or "person"), str(fields.get("source") or ""),
                        str(fields.get("reason") or ""),
                    )
                )  # fmt: skip
            elif event == "private":
                known.private = True
            elif event == "open" and known.opened_by is None:
                known.opened_by = str(fields.get("by")) if vouched else "agent"
            elif event == "close" and vouched:
                known.open_for.discard(pair)
            elif event == "fresh" and vouched:
                who = (str(fields.get("user")), str(fields.get("agent")))
                self._epochs[who] = self._epochs.get(who, 0) + 1

    # Asking

    @property
    def lost(self) -> Taint:
        """What every session has met while the ledger lacks lines: whatever these said."""
        return Taint.of(LOST) if self._repository.ledger_lost is not None else CLEAN

    def ambient(self, context: Context, *, ahead: int = 0) -> str:
        """The session of calls that name none: it goes on until a person starts afresh; `ahead`: after so many."""
        self._listen()
        return self._ambient(context.user, context.agent, ahead)

    def _ambient(self, user: str, agent: str, ahead: int = 0) -> str:
        epoch = self._epochs.get((user, agent), 0) + ahead
        told = f"{self._repository.marker.id}\n{user}\n{agent}" + (f"\n{epoch}" if epoch else "")
        return f"ses_{hashlib.sha256(told.encode()).hexdigest()[:16]}"

    def met(self, context: Context) -> Met:
        """The session of a call with everything that it has met, in whichever process."""
        self._listen()
        lost = self.lost
        asked = (context.session, context.user, context.agent)
        held = None if lost or context.person else self._answers.get(asked)
        if held is not None:
            return held
        with self._lock:
            met = self._met(context, lost)
            if not (lost or context.person or met.lines):  # with lines it is another one as soon as they are written
                self._answers[asked] = met
            return met

    def _met(self, context: Context, lost: Taint) -> Met:
        session = context.session or self._ambient(context.user, context.agent)
        if context.person:
            return Met(session)
        known = self._sessions.get(session) or _Session()
        pair = (context.user, context.agent)
        opening: tuple[dict[str, Any], ...] = ()
        if pair not in known.open_for:  # new, somebody else's, or closed and gone on with
            opening = (event(session, context, "open", by="agent" if context.session else "ambient"),)
        if known.opened_by in CLEAN_STARTERS and pair == (known.user, known.agent) and pair in known.open_for:
            return Met(session, known.taint | lost, known.private, opening)
        taint, private = known.taint | lost, known.private
        for other in self._open_ones(context):
            taint, private = taint | other.taint, private or other.private
        return Met(session, taint, private, opening)

    def _open_ones(self, context: Context) -> list[_Session]:
        pair = (context.user, context.agent)
        return [s for s in self._sessions.values() if pair in s.open_for]

    def shared_with(self, session: str) -> list[str]:
        """The other open sessions whose taint this one bears as well: it was opened clean by nobody."""
        self._listen()
        with self._lock:
            known = self._sessions.get(session)
            if known is None or known.opened_by in CLEAN_STARTERS:
                return []
            return [name for name, s in self._sessions.items() if s is not known and s.open_for & known.open_for]

    def unclosed(self, context: Context, *, by: tuple[str, ...] = ()) -> list[str]:
        """The ids of the sessions of this user and agent that nobody has closed; `by`: opened by these only."""
        with self._lock:
            return [
                session
                for session, known in self._sessions.items()
                if (context.user, context.agent) in known.open_for and (not by or known.opened_by in by)
            ]

    def knows(self, session: str) -> bool:
        """Whether this session was opened."""
        known = self._sessions.get(session)
        return known is not None and known.opened_by is not None

    def closed(self, session: str) -> bool:
        """Whether this session was closed, and nobody has taken it up since."""
        known = self._sessions.get(session)
        return known is not None and (known.user, known.agent) not in known.open_for

    def roots_of(self, session: str) -> frozenset[Root]:
        """What this session itself has met, without what it inherits from others."""
        known = self._sessions.get(session)
        return known.taint.roots if known is not None else frozenset()

    def open_taint(self) -> Taint:
        """What any open session of this Home has met: an edit that is found meanwhile may have come from it."""
        self._listen()
        with self._lock:
            return inherit(self.lost, [known.taint for known in self._sessions.values() if known.open_for])

    def tainted_since(self) -> datetime | None:
        """When the first of the open sessions met something from outside."""
        with self._lock:
            return min((s.since for s in self._sessions.values() if s.since is not None and s.open_for), default=None)

    # Telling

    def tell(self, context: Context, events: Sequence[Mapping[str, Any]], reason: str) -> None:
        """Writes events durably, before anything is done because of them."""
        lines = [dict(line) for line in events]
        trailers = {"Session": ", ".join(sorted({str(line["session"]) for line in lines})), "Agent": context.agent}

        def build(_at: datetime) -> Draft:
            return Draft("session", reason, (), lines, trailers, context.agent)

        self._repository.write(context, build)

    def raise_taint(self, context: Context, roots: Sequence[Root]) -> None:
        """The session of this call has met something from outside; nothing new is written when it had already."""
        if context.person:
            return
        met = self.met(context)
        # What it only inherits it would lose when the session that it comes from is closed.
        fresh = [root for root in roots if root not in self.roots_of(met.session)]
        if not fresh and not met.lines:
            return  # known, and nobody has closed it since
        lines = [
            event(met.session, context, "taint", reason=root.reason, source=root.source, what=root.kind)
            for root in fresh
        ]
        self.tell(context, [*met.lines, *lines], "A session met content from outside")

    def raise_private(self, context: Context) -> None:
        """The session of this call was given private text."""
        if context.person:
            return
        met = self.met(context)
        if not met.private:
            self.tell(context, [*met.lines, event(met.session, context, "private")], "A session was given private text")


def event(session: str, context: Context, what_happened: str, **more: str) -> dict[str, Any]:
    """A ledger line about a session."""
    return {
        "kind": "session", "session": session, "event": what_happened, "user": context.user, "agent": context.agent,
        **more,
    }  # fmt: skip
