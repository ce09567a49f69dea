"""Writing to Mem0: announced in our own rows, sent once, and settled before anybody is told that it is kept.

A write whose outcome the engine did not tell is looked for under its own run. Found, it is kept; not there, and nothing
more to come of it, it is as if it had never been; else the caller is told that it is not known, with the id by which it
will be.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from memoranda.context import Context
from memoranda.engines.contract import OperationContext, Place, RememberRequest, UpdateRequest
from memoranda.engines.egress import within
from memoranda.engines.foreign import Standing, Words, readable
from memoranda.engines.looking import changed, missing
from memoranda.engines.mem0_routes import Memory, Routes
from memoranda.engines.mem0_rows import New, checked, expires, extract_of, is_ours, metadata_of, row_of, source_of
from memoranda.engines.naming import Named, named_of
from memoranda.engines.outside import Outside
from memoranda.engines.placing import circumstances, written_place
from memoranda.engines.records import Record, moment
from memoranda.errors import (
    CapabilityUnsupported,
    ChainConflict,
    Forgotten,
    MemorandaError,
    OutcomeUnknown,
    Unavailable,
)
from memoranda.notes.chains import Chains
from memoranda.notes.ids import new_id
from memoranda.notes.times import parse_instant
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.tomb_book import REMEDY
from memoranda.trust.labels import CLEAN, Root, Taint
from memoranda.values import dataclass, replace

_WAITS = (0.05, 0.2, 0.5, 1.0)  # seconds between looks for what may still come
_SETTLING = 5.0  # seconds that settling may take beyond the deadline of the call
_NEVER = timedelta(minutes=15)  # after which what is not there does not come any more


@dataclass(frozen=True, slots=True)
class Kept:
    """An item that was written, and its words as they were sent."""

    record: Record
    words: Words


class Writing:
    """What writes to one instance."""

    def __init__(self, outside: Outside, routes: Routes) -> None:
        self._outside, self._routes = outside, routes
        self._records, self._naming, self._company = outside.records, outside.naming, outside.company

    # Finding what is to be changed

    def found(self, context: Context, where: OperationContext, item_id: str, *, exact: bool = False) -> Record:
        """The row that an id means: the head of its chain, or with `exact` that very one. NotFound, in the same words,
        for what is nowhere and for what is another's."""
        row = self._records.get(where.tenant, self._outside.instance, item_id)
        if row is None or not readable(row, where):
            raise missing()
        if row.state == "pending":
            row = self.settle(context, row)
        if row is None or row.state != "kept" or row.due(context.now()):
            raise missing()
        if exact:
            return row
        chain = {one.id: one for one in self._records.chain(row)}
        heads = Chains(one.link() for one in chain.values()).heads_of(row.id)
        head = chain[heads[-1]]
        if head.due(context.now()) or not readable(head, where):
            raise missing()
        return head

    def refuse_other_state(self, one: Standing, if_match: str | None) -> None:
        """PreconditionFailed when it is not in the state that the caller has seen."""
        if if_match is not None and if_match != one.etag:
            raise changed(None)

    # Keeping

    def remember(self, context: Context, where: OperationContext, new: RememberRequest, *, infer: bool) -> Kept:
        """One memory at `where.writes`."""
        _, place = written_place(where)
        sources = tuple(dict.fromkeys((*((new.source,) if new.source is not None else ()), *new.sources)))
        fields = (("subject", new.subject or ""), *(("source", source) for source in sources))
        self._guarded(context, where, "remember", place, new.content, fields)
        self._superseded(where, place, new.supersedes)
        taint = self._stamp(context, where, sources)
        if new.origin == "external":
            taint |= Taint.of(Root("tool", "", "remembered as something from outside"))
        made = New(
            new.content, new.subject, new.kind, new.classification, new.origin, sources, new.supersedes, taint,
            new.confidence, _instant(new.valid_from), _instant(new.valid_to), new.retention_days, new.legal_hold,
        )  # fmt: skip
        return self._keep(context, where, place, made, infer=infer)

    def update(
        self, context: Context, where: OperationContext, head: Standing, change: UpdateRequest, *,
        retention_days: int | None, legal_hold: bool, matched: bool,
    ) -> Kept:  # fmt: skip
        """A new item in the place of the head, that supersedes it."""
        old = head.record
        place = Place.model_validate({"scope": old.scope, "owner": old.owner})
        self._guarded(context, where, "update", place, change.content, (("subject", head.words.subject or ""),))
        taken_over = head.taint if head.trust != "reviewed" else CLEAN
        days = [days for days in (old.retention_days, retention_days) if days is not None]
        made = New(
            change.content, head.words.subject, old.kind, old.classification, "agent", (), (old.id,),
            self._stamp(context, where, ()) | taken_over, old.confidence,
            context.now().replace(microsecond=0), None, min(days, default=None), legal_hold or old.legal_hold,
        )  # fmt: skip
        try:
            return self._keep(context, where, place, made, infer=not old.recalled)
        except ChainConflict as error:
            raise changed(error) if matched else error from None

    def _guarded(
        self, context: Context, where: OperationContext, operation: str, place: Place, text: str,
        fields: Sequence[tuple[str, str]],
    ) -> None:  # fmt: skip
        if place.scope == "session":
            raise CapabilityUnsupported(
                "The memory of sessions is kept by builtin.", why="It never goes to an engine elsewhere."
            )
        own = circumstances(context, where)
        pass_guards(own, Call(operation, writes=True, text=text, fields=tuple(fields)))
        self._company.permit(context, where, operation, place.scope)

    def _superseded(self, where: OperationContext, place: Place, ids: Sequence[str]) -> None:
        """What is superseded lies in the same place; another is as unknown as one that is not there."""
        rows = self._records.some(where.tenant, self._outside.instance, list(dict.fromkeys(ids)))
        here = where.model_copy(update={"reads": (place,)})
        there = {row.id for row in rows if row.state == "kept" and readable(row, here)}
        if there != set(ids):
            raise missing()

    def _stamp(self, context: Context, where: OperationContext, sources: Sequence[str]) -> Taint:
        head = source_of(self._outside.instance, "")
        own = {source.removeprefix(head) for source in sources if source.startswith(head)}
        taint = self._company.stamp(context, where, [s for s in sources if not s.startswith(head)])
        rows = {row.id: row for row in self._records.some(where.tenant, self._outside.instance, sorted(own))}
        for item_id in own:
            row = rows.get(item_id)
            if row is None or not readable(row, where):
                taint |= Taint.of(Root("unresolved", item_id, "the source cannot be resolved"))
            elif row.trust != "reviewed":
                taint |= row.stamp
        return taint

    def _keep(self, context: Context, where: OperationContext, place: Place, new: New, *, infer: bool) -> Kept:
        item_id = new_id("mem", context.random)
        text = checked(item_id, new, place)
        hashes = self._records.hashes(where.tenant, text)
        lifted = self._refuse_forgotten(context, where, place, hashes[1])
        named = self._naming.place(self._outside.instance, where, place)
        row = row_of(context, where, self._outside.instance, place, named, item_id, new, hashes)
        record = replace(row, recalled=not infer)
        context.still_allowed(last=False)
        self._records.add([record])
        metadata = metadata_of(record, new)

        def add(at: Named, *, infer: bool) -> list[tuple[str, str]]:
            return self._routes.add(
                where.tenant, at, item_id, where.agent, text, metadata, infer=infer, expires=expires(record)
            )

        (id, _), *more = self._sent(record, partial(add, named.beside if infer else named, infer=False), named)
        record = replace(record, record=id)
        for surplus, _ in more:  # a message is one memory
            self._routes.delete(where.tenant, surplus)
        made: list[tuple[str, str]] = []
        if infer:
            made = self._sent(record, partial(add, named, infer=True), named, beside=True)
        self._refuse_moved(context, record, made)
        self._kept(context, record, made)
        if lifted:
            self._records.lift(where.tenant, lifted)
        return Kept(record, Words(text, new.subject or None, new.sources))

    def _refuse_moved(self, context: Context, record: Record, made: Sequence[tuple[str, str]]) -> None:
        """When the engine has it and nobody was told: what may no longer be kept is taken back."""
        try:
            context.still_allowed()
        except MemorandaError:
            try:
                self._taken_back(record, made)
            except Unavailable:  # whatever lies under its run is past its retention, and removed by the next expiry
                now = moment(context.now())
                self._records.change(
                    record.tenant, record.id, state="kept", recalled=False, legal_hold=False, due_at=now, updated_at=now
                )
            raise

    def _taken_back(self, record: Record, made: Sequence[tuple[str, str]]) -> None:
        for id in (str(record.record), *(id for id, _ in made)):
            self._routes.delete(record.tenant, id)
        self._dropped(record)

    def _kept(self, context: Context, record: Record, made: Sequence[tuple[str, str]]) -> None:
        """The engine has it: its row says so, and there are rows of what was made from it."""
        extracts = [
            extract_of(record, new_id("mem", context.random), id, self._records.hashes(record.tenant, words))
            for id, words in made
        ]
        try:
            self._records.keep(record, extracts)
        except ChainConflict:  # somebody else superseded the same meanwhile
            self._taken_back(record, made)
            raise

    def _refuse_forgotten(
        self, context: Context, where: OperationContext, place: Place, same_hash: str
    ) -> list[str]:  # fmt: skip
        """Forgotten when these words may not come back; for a person, the tombstones that are lifted."""
        tombs = self._records.tombstones(where, place, same_hash)
        if tombs and not context.person:
            raise Forgotten(
                f"The same content was forgotten on {tombs[0].updated_at[:10]}.",
                why="What was forgotten does not come back by an agent, an import or a job.",
                remedy=REMEDY,
            )
        return [tomb.id for tomb in tombs]

    # Settling

    def _sent(
        self, record: Record, add: Callable[[], list[tuple[str, str]]], named: Named, *, beside: bool = False
    ) -> list[tuple[str, str]]:
        """What was stored. `beside`: the words themselves are stored already, and go if this does not come to be."""
        try:
            return add()
        except Unavailable as error:
            return self._found_out(record, named, error, beside=beside)
        except MemorandaError:
            self._undone(record, beside=beside)
            raise

    def _found_out(
        self, record: Record, named: Named, error: Unavailable, *, beside: bool
    ) -> list[tuple[str, str]]:  # fmt: skip
        at = named if record.recalled or beside else named.beside
        asked = False
        with within(_SETTLING):
            for wait in (0.0, *_WAITS) if error.asked else ():
                threading.Event().wait(wait)
                try:
                    there = self._routes.stored(record.tenant, at, record.id)
                except Unavailable:
                    continue
                if there:
                    return [(memory.id, memory.text) for memory in there]
                if asked := error.finished:
                    break
            if error.asked and not asked:
                raise self._unknown(record, error) from error
            self._undone(record, beside=beside)
        raise error

    def _unknown(self, record: Record, error: Unavailable) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"It is not known whether {record.id} is kept.", item_id=record.id,
            why=f"{error.why or error.what} It could not be found out.",
            remedy=f"Read {record.id} later: it is there, or it is not and never will be.",
        )  # fmt: skip

    def _undone(self, record: Record, *, beside: bool) -> None:
        """Nothing of it is left: the row goes, and before it what was stored of it."""
        if beside and record.record is not None:
            self._routes.delete(record.tenant, record.record)
        self._dropped(record)

    def _dropped(self, record: Record) -> None:
        self._records.end(record.tenant, [record.id], "", tombstone=False)

    def settle(self, context: Context, row: Record) -> Record | None:
        """What came of a write whose outcome was not known: its row, kept by now; None when it is not there."""
        named = named_of(row.namespace, row.scope, row.owner)
        there = self._routes.stored(row.tenant, named if row.recalled else named.beside, row.id)
        made = [] if row.recalled else self._routes.stored(row.tenant, named, row.id)
        if there and (row.recalled or made):
            record = replace(row, record=there[0].id)
            self._kept(context, record, [(memory.id, memory.text) for memory in made])
            return self._records.get(row.tenant, row.instance, row.id)
        if context.now() - parse_instant(row.created_at) > _NEVER:
            for memory in (*there, *made):
                self._routes.delete(row.tenant, memory.id)
            self._dropped(row)
        return None


def ours(naming_prefixes: Sequence[str], row: Record, memory: Memory) -> bool:
    """Whether what Mem0 gave is the item of this row, and the row's namespace one of the caller's."""
    return row.namespace in naming_prefixes and is_ours(row, lies_at(row), memory)


def lies_at(row: Record) -> Named:
    """Where the item of a row lies: at its place, or beside it where a model made memories of it."""
    named = named_of(row.namespace, row.scope, row.owner)
    return named if row.recalled or row.original is not None else named.beside


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
