"""The engine `mem0`: Mem0 keeps the words and finds them; whose they are and whether they hold is decided here.

An item is one memory of Mem0 at a place of its own (`user_id`), under its own run (`run_id`), with our names and labels
in its metadata. Nothing that Mem0 answers with is shown unless our own row says that it is an item of a place that the
caller reads, and the memory itself says the same. Text is never overwritten: an update is another memory, and the row
of the former one says that it is superseded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from memoranda.context import Context
from memoranda.engines.announced import ANNOUNCED
from memoranda.engines.contract import (
    CapabilityDocument,
    Check,
    Found,
    Gone,
    Health,
    Isolation,
    Item,
    Listed,
    OperationContext,
    Purged,
    RecallRequest,
    RememberRequest,
    Scope,
    UpdateRequest,
)
from memoranda.engines.exporting import Exported, as_lines, as_zip
from memoranda.engines.foreign import Standing, Words, as_note, readable, standings
from memoranda.engines.looking import changed, missing
from memoranda.engines.mem0_reading import places_of, read_each
from memoranda.engines.mem0_recalling import Recalling
from memoranda.engines.mem0_removing import Removing
from memoranda.engines.mem0_routes import Routes
from memoranda.engines.mem0_rows import words_of
from memoranda.engines.mem0_writing import Kept, Writing, ours
from memoranda.engines.naming import Named
from memoranda.engines.outside import Outside
from memoranda.engines.provider import Lasted
from memoranda.engines.records import Record, moment
from memoranda.engines.ruling import Ruled
from memoranda.engines.together import Begun
from memoranda.errors import CapabilityUnsupported, ChainConflict, Unavailable
from memoranda.operations.listing import time_or_none
from memoranda.values import replace

_SETTLED_BY_NOW = timedelta(minutes=1)
_TO_PROBE = "probe"


class Mem0:
    """One instance of Mem0 as an engine."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._routes = Routes(outside.connection)
        self._recalling = Recalling(outside, self._routes)
        self._writing, self._removing = Writing(outside, self._routes), Removing(outside, self._routes)

    # What it is

    @property
    def instance(self) -> str:
        return self._outside.instance

    def document(self) -> CapabilityDocument:
        return CapabilityDocument(provider="mem0", engine_instance=self.instance, capabilities=ANNOUNCED["mem0"])

    def isolation(self, tenant: str) -> Isolation:
        return self._outside.isolation(tenant)

    def health(self, context: Context) -> Health:
        """`unavailable` when it does not answer, `degraded` when it answers and does not admit us."""
        began = time.monotonic()
        status, detail = "ok", ""
        try:
            self._routes.ready()
            self._routes.admitted(context.tenant, self._nobody())
        except Unavailable as error:
            status, detail = "degraded" if self._answers() else "unavailable", _told(error)
        took = round((time.monotonic() - began) * 1000, 3)
        return Health.model_validate(
            {"engine_instance": self.instance, "provider": "mem0", "status": status, "detail": detail,
             "latency_ms": took}
        )  # fmt: skip

    def _answers(self) -> bool:
        try:
            self._routes.ready()
        except Unavailable:
            return False
        return True

    def probe(self, context: Context) -> tuple[Check, ...]:
        """What can be found out about an instance that is about to be used; it raises nothing."""
        checks: list[Check] = []
        try:
            self._routes.ready()
            checks.append(Check(name="reachable", ok=True, detail="It answers as Mem0 does."))
        except Unavailable as error:
            return (Check(name="reachable", ok=False, detail=_told(error)),)
        try:
            self._routes.admitted(context.tenant, self._nobody())
            checks.append(Check(name="authenticated", ok=True, detail="The key is accepted."))
        except Unavailable as error:
            checks.append(Check(name="authenticated", ok=False, detail=_told(error)))
        try:
            version = self._routes.version()
            closed = self._routes.refuses_strangers(self._nobody())
        except Unavailable as error:
            return (*checks, Check(name="access_control", ok=None, detail=_told(error)))
        checks.append(Check(name="version", ok=None if version is None else True, detail=version or "It says none."))
        said = "A call without a key is refused." if closed else "It answers callers without a key."
        checks.append(Check(name="access_control", ok=closed, detail=said))
        return tuple(checks)

    def _nobody(self) -> Named:
        """A place that no memory lies at."""
        prefix = self._outside.naming.prefix(self.instance, "", None)
        return Named(prefix, f"{prefix}:{_TO_PROBE}")

    # Reading

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        return self._recalling.recall(context, where, asked)

    def begin(self, context: Context, where: OperationContext, asked: RecallRequest) -> Begun[Found]:
        """A recall whose questions are on their way when this returns."""
        return self._recalling.begin(context, where, asked)

    def get(self, context: Context, where: OperationContext, item_id: str, *, exact: bool = False) -> Item:
        record = self._writing.found(context, where, item_id, exact=exact)
        (one,) = self._read(context, where, [record])
        if one is None:
            raise missing()
        self._outside.company.meet(context, where, [one.shown()])
        return one.item(context.now())

    def list(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None, words: bool = True,  # noqa: ARG002 - they tell whether it is there at all
    ) -> Listed:  # fmt: skip
        """`after` is (time of the record, id): an order of our own, which stays while items come and go."""
        places, now = places_of(where, () if scope is None else (scope,)), context.now()
        rows = self._outside.records.page(where, self.instance, places, limit=limit + 1, after=after, now=now)
        page = rows[:limit]
        items = self._shown(context, where, page)
        last = page[-1] if len(rows) > limit else None
        return Listed(items=items, next=None if last is None else (last.created_at, last.id))

    def _shown(self, context: Context, where: OperationContext, rows: Sequence[Record]) -> tuple[Item, ...]:
        """As a list says them: what is quarantined without words, to a session that has met nothing of the kind."""
        now = context.now()
        there = [one for one in self._read(context, where, rows) if one is not None]
        hides = any(one.quarantined for one in there) and self._outside.company.hides(context, where)
        open_ones = [one.shown() for one in there if not (hides and one.quarantined)]
        self._outside.company.meet(context, where, open_ones)
        return tuple(one.item(now, hidden=hides and one.quarantined) for one in there)

    def _read(
        self, context: Context, where: OperationContext, rows: Sequence[Record], known_at: datetime | None = None
    ) -> Sequence[Standing | None]:
        """These items as they stand; None for what Mem0 no longer has, or what is not what was written."""

        def prefixes(row: Record) -> Sequence[str]:
            return self._outside.naming.prefixes(self.instance, where.tenant, row.project or None)

        read = read_each(self._outside, self._routes, where.tenant, rows)
        pairs = [
            (row, words_of(row, memory)) if memory is not None and ours(prefixes(row), row, memory) else None
            for row, memory in zip(rows, read, strict=True)
        ]
        stands = iter(standings(self._outside.records, [p for p in pairs if p], context.now(), known_at))
        return [None if pair is None else next(stands) for pair in pairs]

    def place_of(self, where: OperationContext, item_id: str) -> tuple[str, str]:
        """Where a list goes on behind this item."""
        row = self._outside.records.get(where.tenant, self.instance, item_id)
        return (row.created_at if row is not None else "", item_id)

    def hold(
        self, context: Context, where: OperationContext, item_id: str, what: Literal["set", "release"], *,
        reason: str,  # noqa: ARG002 - the audit knows that there was one
    ) -> Ruled:  # fmt: skip
        """Holds the whole chain of an item or releases it, wherever it lies in this project and tenant.

        Whoever asks is an officer, which was found out above, and is given no word of it. NotFound.
        """
        row = self._outside.records.get(where.tenant, self.instance, item_id)
        if row is None or row.state != "kept" or row.project not in ("", where.project):
            raise missing()
        chain = self._outside.records.chain(row)
        ids = [one.id for one in chain]
        self._outside.records.hold(where.tenant, ids, what == "set", moment(context.now()))
        return Ruled(tuple(ids), tuple(ids) if what == "set" else ())

    def history(self, context: Context, where: OperationContext, item_id: str) -> tuple[Lasted, ...]:
        """The chain of an id, oldest first."""
        record = self._writing.found(context, where, item_id)
        rows = sorted(self._outside.records.chain(record), key=lambda row: (row.created_at, row.id))
        rows = [row for row in rows if not row.due(context.now()) and readable(row, where)]
        items = {item.id: item for item in self._shown(context, where, rows)}
        links = standings(self._outside.records, [(row, Words("")) for row in rows], context.now())
        return tuple(
            Lasted(items[link.record.id], not link.after, *_held(link)) for link in links if link.record.id in items
        )

    # Writing

    def remember(
        self, context: Context, where: OperationContext, new: RememberRequest, *, infer: bool = False
    ) -> Item:  # fmt: skip
        """One memory. With `infer` Mem0's model makes memories from it, which cite it; itself is kept beside these."""
        return self._item(context, where, self._writing.remember(context, where, new, infer=infer))

    def update(
        self, context: Context, where: OperationContext, item_id: str, change: UpdateRequest, *, if_match: str | None,
        retention_days: int | None = None, legal_hold: bool = False,
    ) -> Item:  # fmt: skip
        head = self._writing.found(context, where, item_id)
        (one,) = self._read(context, where, [head])
        if one is None:
            raise missing()
        self._writing.refuse_other_state(one, if_match)
        self._outside.company.meet(context, where, [one.shown()])  # its subject comes along
        kept = self._writing.update(
            context,
            where,
            one,
            change,
            retention_days=retention_days,
            legal_hold=legal_hold,
            matched=if_match is not None,
        )
        return self._item(context, where, kept)

    def _item(self, context: Context, where: OperationContext, kept: Kept) -> Item:
        row = self._outside.records.get(where.tenant, self.instance, kept.record.id) or kept.record
        (one,) = standings(self._outside.records, [(row, kept.words)], context.now())
        return one.item(context.now())

    def forget(self, context: Context, where: OperationContext, item_id: str, *, if_match: str | None) -> Gone:
        head = self._writing.found(context, where, item_id)
        if if_match is not None:
            (one,) = self._read(context, where, [head])
            if one is None:
                raise missing()
            self._writing.refuse_other_state(one, if_match)
        return self._removing.forget(context, where, head)

    def review(
        self, context: Context, where: OperationContext, item_id: str, verdict: Literal["accept", "reject"], *,
        comment: str, reviewer: str, if_match: str | None,  # noqa: ARG002
    ) -> Item:  # fmt: skip
        """A person's verdict on the exact words that the engine holds; who decided that it is a person stands above.

        Of `comment` and `reviewer` the audit knows; our rows hold no words.
        """
        head = self._writing.found(context, where, item_id)
        (one,) = self._read(context, where, [head])
        if one is None:
            raise missing()
        self._writing.refuse_other_state(one, if_match)
        row = replace(one.record, content_hash=one.content_hash)
        context.still_allowed()
        try:
            self._outside.records.decide(row, verdict, moment(context.now()))
        except ChainConflict as error:
            raise changed(error) from error
        return self._item(context, where, Kept(row, one.words))

    def export(
        self, context: Context, where: OperationContext, scopes: Sequence[Scope], form: str, *,
        passes: Callable[[tuple[Item, ...]], Sequence[bool]] | None = None,
    ) -> Exported:  # fmt: skip
        """What may be read of these scopes (none: all that may be read), as zip or ndjson: notes, made of the items."""
        if form == "bundle":
            raise CapabilityUnsupported(
                "There is no history of Git to bundle.", why="These memories lie in Mem0.",
                remedy="Export as zip or as ndjson.",
            )  # fmt: skip
        places = places_of(where, scopes)
        self._outside.company.permit(context, where, "export", None)
        rows = [r for r in self._outside.records.at(where, self.instance, places) if r.state == "kept"]
        rows = sorted((r for r in rows if not r.due(context.now())), key=lambda r: (r.created_at, r.id))
        there = [one for one in self._read(context, where, rows) if one is not None]
        passing = [True] * len(there)
        if passes is not None:
            passing = list(passes(tuple(one.item(context.now()) for one in there)))
        given = [one for one, passed in zip(there, passing, strict=True) if passed]
        self._outside.company.meet(context, where, [one.shown() for one in given])
        make = as_zip if form == "zip" else as_lines
        return make(context, places, [as_note(one, context.now()) for one in given])

    def expire(self, context: Context, tenant: str) -> tuple[str, ...]:
        """Takes away what is past its retention, and settles what is not known yet; the ids of what went."""
        for row in self._outside.records.pending(tenant, self.instance, moment(context.now() - _SETTLED_BY_NOW)):
            self._writing.settle(context, row)
        due = self._outside.records.due(tenant, self.instance, context.now())
        return tuple(self._removing.expire(context, due))

    def purge(self, context: Context, where: OperationContext) -> Purged:
        return self._removing.purge(context, where)


def _held(one: Standing) -> tuple[str | None, str | None]:
    return (None, None) if one.held is None else (time_or_none(one.held.start), time_or_none(one.held.end))


def _told(error: Unavailable) -> str:
    return " ".join(part for part in (error.what, error.why) if part)
