"""The engine `builtin`: memories are notes in the Homes of their tenant and project.

Every method works on the Homes as the places of `where.reads` show them (`index.reader`), by the operations that serve
a person's own Home too. What lies elsewhere is not there: not for a search, not for an id, not for a count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Literal

from memoranda.context import Context
from memoranda.engines.apart import read_apart, rows_apart
from memoranda.engines.contract import (
    MEMORY,
    CapabilityDocument,
    CapabilityGroups,
    Coverage,
    Found,
    Gone,
    Health,
    Isolation,
    Item,
    Listed,
    OperationContext,
    Place,
    Pointer,
    Purged,
    RecallRequest,
    RememberRequest,
    Scope,
    ScoredItem,
    UpdateRequest,
)
from memoranda.engines.exporting import Exported, Given, as_bundle, as_lines, as_zip
from memoranda.engines.homes import Homes
from memoranda.engines.items import items_of, scored_of
from memoranda.engines.looking import changed, found, heads, in_place, keyset, missing, refuse_other_state
from memoranda.engines.placing import circumstances, home_of, places_of, written_place
from memoranda.engines.provider import Lasted
from memoranda.engines.ruling import OnHold, Ruled, end_sessions, hold_chain, on_hold
from memoranda.errors import ChainConflict, Conflict, EngineUnavailable, Forbidden, InvalidInput, NotFound
from memoranda.index.rows import NoteRow
from memoranda.notes.times import Interval, parse_instant
from memoranda.operations import listing, recalling, remembering
from memoranda.operations.asking import TOP
from memoranda.operations.listing import note_uri, still_kept, time_or_none
from memoranda.operations.meeting import hides, meet, quarantined
from memoranda.operations.once import permitted
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.removing import empty, forget_chain
from memoranda.operations.reviewing import decide
from memoranda.operations.space import Space
from memoranda.trust.labels import Root
from memoranda.trust.standing import trust_of
from memoranda.values import replace

INSTANCE = "builtin"
_BUDGET = 100_000  # tokens of an answer, when nobody says how many


class Builtin:
    """The notes as an engine. `homes` is the pool of the Homes of this node; it is closed by who made it."""

    def __init__(self, homes: Homes, instance: str = INSTANCE) -> None:
        self._homes = homes
        self._instance = instance

    # What it is

    @property
    def instance(self) -> str:
        return self._instance

    def document(self) -> CapabilityDocument:
        groups = CapabilityGroups(memory=MEMORY)
        return CapabilityDocument(provider="builtin", engine_instance=self._instance, capabilities=groups)

    def isolation(self, tenant: str) -> Isolation:  # noqa: ARG002 - the same for every tenant
        """Homes in folders are kept apart by this program alone, those in PostgreSQL by the database."""
        return self._homes.shelf.isolation

    def health(self, context: Context) -> Health:  # noqa: ARG002 - nobody is called
        """`degraded` when a Home could not be closed as it should, `unavailable` when nothing can be written."""
        began = time.monotonic()
        status, detail = self._homes.state()
        took = round((time.monotonic() - began) * 1000, 3)
        return Health(engine_instance=self._instance, provider="builtin", status=status, detail=detail, latency_ms=took)

    # Reading

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        places = places_of(where, asked.scopes)
        with self._reading(context, where, places) as (own, space):
            if not places or not space.homes():
                return Found(coverage=Coverage(engines=(self._instance,), searched=0))
            view = recalling.recall(
                own, space, asked.query, budget=asked.budget or _BUDGET, k=asked.top_k or TOP,
                kinds=asked.kinds, include=("notes",),
                as_of=_instant(asked.as_of, "as_of", end=True), known_at=_instant(asked.known_at, "known_at", end=True),
            )  # fmt: skip
            scored: dict[str, ScoredItem] = {}
            for home in space.homes():
                items = read_apart(home, [item for item in view.items if item.home == home.name])
                scored |= scored_of(home, items, self._instance, places, own.now())
            made = any(home.indexes.made > home.made for home in space.homes())
        told = view.coverage
        coverage = Coverage(
            engines=(self._instance,), searched=told.notes, blocked=told.blocked,
            withheld=tuple(Pointer(id=p.id, kind=p.kind, at=p.at) for p in told.withheld),
            notices=(*((_INCOMPLETE,) if told.notices else ()), *((_MADE,) if made else ())),
        )  # fmt: skip
        return Found(items=tuple(scored[item.id] for item in view.items if item.id in scored), coverage=coverage)

    def get(self, context: Context, where: OperationContext, item_id: str, *, exact: bool = False) -> Item:
        places = places_of(where)
        with self._reading(context, where, places) as (own, space):
            home, row = found(own, space, item_id, exact=exact)
            meet(own, home, [row])
            return self._item(home, row, places, own.now())

    def list(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None, words: bool = True,  # noqa: ARG002 - they lie beside everything else
    ) -> Listed:  # fmt: skip
        """`after` is (known time in seconds, id); see `index.newest`."""
        places = places_of(where, () if scope is None else (scope,))
        with self._reading(context, where, places) as (own, space):
            pages: list[tuple[OpenHome, NoteRow]] = []
            for home in space.homes():
                home.refresh(own)
                pages += [(home, row) for row in heads(home, keyset(after), limit + 1, own.now())]
            pages.sort(key=lambda pair: (pair[1].known_from, pair[1].id), reverse=True)
            page = pages[:limit]
            listed: dict[str, Item] = {}
            for home in space.homes():
                rows = [row for other, row in page if other is home]
                listed |= {item.id: item for item in self._told(own, home, rows, places)}
            last = page[-1][1] if len(pages) > limit else None
            following = None if last is None else (str(int(last.known_from.timestamp())), last.id)
            return Listed(items=tuple(listed[row.id] for _, row in page if row.id in listed), next=following)

    def _told(
        self, own: Context, home: OpenHome, rows: Sequence[NoteRow], places: Mapping[str, Place]
    ) -> Sequence[Item]:
        """What a list says: of what is quarantined no words, to a session that has met nothing of the kind."""
        with home.indexes.lock:
            trust = trust_of(home.indexes.catalog, rows)
        hidden = {row.id for row in rows if quarantined(trust[row.blob].state)} if hides(own, home) else set()
        rows = rows_apart(home, rows)
        meet(own, home, [row for row in rows if row.id not in hidden])
        with home.indexes.lock:
            return items_of(home.indexes.catalog, rows, self._instance, places, own.now(), frozenset(hidden))

    # Writing

    def remember(
        self, context: Context, where: OperationContext, new: RememberRequest, *,
        infer: bool = False,  # noqa: ARG002 - there is no model here
    ) -> Item:  # fmt: skip
        """One note. What it supersedes lies in the same place; another is as unknown as one that is not there."""
        text, place = written_place(where)
        places = {**places_of(where), text: place}
        with self._reading(context, where, places, write=home_of(place.scope)) as (own, space):
            home = space.one()
            if new.supersedes or self._homes.shelf.isolation == "logical":
                home.refresh(own, content=False)  # in folders somebody may have edited; else what others wrote is heard
            for item_id in new.supersedes:
                in_place(home, item_id, text)
            done = remembering.remember(own, space, _new_note(new, place.scope))
            return self._written(own, home, done.id, places, fresh=True)

    def update(
        self, context: Context, where: OperationContext, item_id: str, change: UpdateRequest, *, if_match: str | None,
        retention_days: int | None = None, legal_hold: bool = False,
    ) -> Item:  # fmt: skip
        places = places_of(where)
        with self._reading(context, where, places) as (own, space):
            home, head = found(own, space, item_id)
            refuse_other_state(home, head, if_match)
            meet(own, home, [head])  # its subject comes along
            days = [days for days in (head.retention_days, retention_days) if days is not None]
            kept: dict[str, object] = {"retention_days": min(days, default=None)}
            kept |= {"legal_hold": True} if legal_hold else {}
            try:
                seen = None if if_match is None else head
                done = remembering.update(own, space, head.id, change.content, changes=kept, seen=seen)
            except ChainConflict as error:
                raise changed(error) if if_match is not None else error from None
            return self._written(own, home, done.id, places, fresh=True)

    def forget(self, context: Context, where: OperationContext, item_id: str, *, if_match: str | None) -> Gone:
        places = places_of(where)
        with self._reading(context, where, places) as (own, space):
            home, head = found(own, space, item_id)
            refuse_other_state(home, head, if_match)
            try:
                done = forget_chain(own, space, home, head.id, seen=None if if_match is None else head)
            except ChainConflict as error:
                raise changed(error) from None
            return Gone(id=head.id, removed=len(done.notes), remains=done.remains)

    def purge(self, context: Context, where: OperationContext) -> Purged:
        text, place = written_place(where)
        with self._reading(context, where, {text: place}) as (own, space):
            wanted = self._homes.root_of(where.tenant, where.project if home_of(place.scope) == "project" else None)
            for home in space.homes():
                if home.repository.root == wanted:
                    done = empty(own, space, home)
                    kept = [f"under legal hold: {', '.join(done.held)}"] if done.held else []
                    kept += [f"reviewed by a person: {', '.join(done.reviewed)}"] if done.reviewed else []
                    return Purged(removed=len(done.notes), remains=(*kept, *done.remains))
        return Purged(removed=0)

    # Beyond the documents

    def history(self, context: Context, where: OperationContext, item_id: str) -> tuple[Lasted, ...]:
        """The chain of an id, oldest first."""
        places = places_of(where)
        with self._reading(context, where, places) as (own, space):
            home, _ = found(own, space, item_id)
            links = {
                link.id: link
                for link in listing.history(own, Space(own, home.repository.keys, None, None, given=[home]), item_id)
            }
            with home.indexes.lock:
                rows = [row for link in links for row in home.indexes.catalog.by_id(link)[:1]]
            items = {item.id: item for item in self._told(own, home, rows, places)}
        return tuple(
            Lasted(items[link.id], link.head, *_held(link.effective)) for link in links.values() if link.id in items
        )

    def export(
        self, context: Context, where: OperationContext, scopes: Sequence[Scope], form: str, *,
        passes: Callable[[tuple[Item, ...]], Sequence[bool]] | None = None,
    ) -> Exported:  # fmt: skip
        """What may be read of these scopes (none: all that may be read), as zip, ndjson or bundle.

        `passes` says of items whether they are given out. RuleOfTwo; Forbidden for a bundle of a Home that ever held
        what may not be read, or that holds what does not pass.
        """
        places = places_of(where, scopes)
        with self._reading(context, where, places) as (own, space):
            for home in space.homes():
                home.refresh(own)
                permitted(own, home, space.met(own, home), "export", None, {})
            every = [one for home in space.homes() for one in self._given(own, home, places)]
            passing = [True] * len(every) if passes is None else passes(tuple(one.item for one in every))
            given = [one for one, passed in zip(every, passing, strict=True) if passed]
            if form == "bundle":
                if len(given) < len(every):
                    raise Forbidden(
                        "This Home cannot be given out whole.", why="It holds what the injection filter blocks.",
                        remedy="Export as zip or as ndjson, or have a person export it.",
                    )  # fmt: skip
                with self._homes.whole(where.tenant, where.project) as whole:
                    if whole is None:
                        raise missing()
                    return as_bundle(own, places, whole)
            make = as_zip if form == "zip" else as_lines
            return make(own, places.values(), given)

    def _given(self, own: Context, home: OpenHome, places: Mapping[str, Place]) -> Iterator[Given]:
        with home.indexes.lock:
            catalog = home.indexes.catalog
            every = list(catalog.live_notes())
            kept = {row.row for row in still_kept(home, every, own.now())}
            rows = [row for row in every if row.row in kept]
        rows = rows_apart(home, rows)
        meet(own, home, rows)
        with home.indexes.lock:
            items = items_of(home.indexes.catalog, rows, self._instance, places, own.now())
        for row, item in zip(rows, items, strict=True):
            if (data := home.repository.blob(row.blob)) is not None:
                yield Given(row.id, row.path, data, item)

    def review(
        self, context: Context, where: OperationContext, item_id: str, verdict: Literal["accept", "reject"], *,
        comment: str, reviewer: str, if_match: str | None,
    ) -> Item:  # fmt: skip
        """A person's verdict on the exact content of the head; who decided that it is a person stands above."""
        places = places_of(where)
        with self._reading(context, where, places) as (own, space):
            home, head = found(own, space, item_id)
            refuse_other_state(home, head, if_match)
            person = replace(own, user=reviewer, person=True)
            one = Space(person, home.repository.keys, None, None, given=[home])
            try:
                decide(person, one, [note_uri(home, head)], verdict, comment=comment or None)
            except Conflict as error:
                raise changed(error) from error
            return self._written(own, home, head.id, places)

    def met(self, context: Context, where: OperationContext) -> tuple[str, ...]:
        """What the session of this call has met by now, as labels. Nothing is made or written."""
        with self._reading(context, where, {}) as (own, space):
            homes = space.homes()
            return space.met(own, homes[0]).taint.labels if homes else ()

    def taint(self, context: Context, where: OperationContext, reason: str) -> tuple[str, ...]:
        """The session of this call has met something from outside; what it has met by now, as labels. Durable."""
        with self._reading(context, where, places_of(where), write="project") as (own, space):
            home = space.one()
            pass_guards(own, Call("taint", writes=True, text=reason, rules=home.rules))
            if not reason.strip():
                raise InvalidInput("No reason was given.", remedy="Say what brought the outside content in.")
            told = replace(own, person=False)
            home.sessions.raise_taint(told, [Root("tool", where.agent, " ".join(reason.split())[:500])])
            return space.met(told, home).taint.labels

    def hold(
        self, context: Context, where: OperationContext, item_id: str, what: Literal["set", "release"], *, reason: str
    ) -> Ruled:
        """Holds the whole chain of an item or releases it, wherever it lies in the Homes of this project and tenant.

        Whoever asks is an officer, which was found out above, and is given no word of it. NotFound.
        """
        own = circumstances(context, where)
        for project in (where.project, None):
            with self._homes.whole(where.tenant, project) as home, suppress(NotFound):
                if home is not None:
                    return hold_chain(own, home, item_id, what, reason)
        raise missing()

    def holds(self, context: Context, tenant: str, projects: Sequence[str]) -> Sequence[OnHold]:
        """What is held in the Homes of these projects and of the tenant as a whole. See `hold`."""
        found: tuple[OnHold, ...] = ()
        for project in (*projects, None):
            with self._homes.whole(tenant, project) as home:
                if home is not None:
                    found += tuple(on_hold(context, home, self._instance, project))
        return found

    def end_sessions(self, context: Context, where: OperationContext) -> tuple[int, tuple[str, ...]]:
        """Ends the session of this call, or without one all sessions of its user and agent.

        How many were open, and what one that begins now has met, as labels. That it is a person's word was found out
        above.
        """
        with self._reading(context, where, {}) as (own, space):
            ended = [end_sessions(own, home) for home in space.homes()]
            anew = replace(own, session=None)
            met = [label for home in space.homes() for label in home.sessions.met(anew).taint.labels]
        return max(ended, default=0), tuple(dict.fromkeys(met))

    # Between

    @contextmanager
    def _reading(
        self, context: Context, where: OperationContext, places: Mapping[str, Place], *, write: str | None = None
    ) -> Iterator[tuple[Context, Space]]:
        own = circumstances(context, where)
        try:
            with self._homes.reading(own, where.tenant, where.project, places, write=write) as space:
                yield own, space
        except OSError as error:
            raise EngineUnavailable(
                "The memories cannot be reached at the moment.",
                why=f"The disk answers: {error.strerror or 'an error'}.",
            ) from error

    def _written(
        self, own: Context, home: OpenHome, item_id: str, places: Mapping[str, Place], *, fresh: bool = False
    ) -> Item:
        """What was written; with `fresh`, a note of its own that another thread may have taken in with its own."""

        def taken_in() -> NoteRow | None:
            with home.indexes.lock:
                row = next(iter(home.indexes.catalog.by_id(item_id)), None) if fresh else None
                if row is None:
                    home.indexes.catch_up(content=False)
                    row = next(iter(home.indexes.catalog.by_id(item_id)), None)
                return row

        with home.repository.as_written():
            row = home.indexes.mending(taken_in)
        if row is None:
            raise missing()  # somebody has forgotten it in the same moment
        return self._item(home, row, places, own.now())

    def _item(self, home: OpenHome, row: NoteRow, places: Mapping[str, Place], now: datetime) -> Item:
        rows = rows_apart(home, [row])
        if not rows:
            raise missing()
        with home.indexes.lock:
            return items_of(home.indexes.catalog, rows, self._instance, places, now)[0]


_MADE = "This node had no caches of these memories and has made them; the answer is whole, and took longer for it."
_INCOMPLETE = "Something of the indexes could not be used; the answer may miss what they would have found."


def _held(interval: Interval | None) -> tuple[str | None, str | None]:
    return (None, None) if interval is None else (time_or_none(interval.start), time_or_none(interval.end))


def _instant(text: str | None, what: str, *, end: bool = False) -> datetime | None:
    return None if text is None else parse_instant(text, what=what, end_of_day=end)


def _new_note(new: RememberRequest, scope: Scope) -> remembering.NewNote:
    sources = dict.fromkeys((*((new.source,) if new.source is not None else ()), *new.sources))
    return remembering.NewNote(
        new.content, subject=new.subject, kind=new.kind, scope=scope, sources=tuple(sources),
        valid_from=_instant(new.valid_from, "valid_from"), valid_to=_instant(new.valid_to, "valid_to"),
        confidence=new.confidence, supersedes=new.supersedes, origin=new.origin, retention_days=new.retention_days,
        legal_hold=new.legal_hold, classification=new.classification,
    )  # fmt: skip
