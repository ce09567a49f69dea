"""Taking memories out of Mem0: one by one, by their exact ids, and never by what a filter would find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from memoranda.context import Context
from memoranda.engines.contract import Gone, OperationContext, Purged
from memoranda.engines.mem0_routes import MOST, Routes
from memoranda.engines.naming import named_of
from memoranda.engines.outside import Outside
from memoranda.engines.placing import written_place
from memoranda.engines.records import Record, moment
from memoranda.engines.together import MOST as AT_ONCE
from memoranda.engines.together import together
from memoranda.errors import ConfirmationRequired, Unavailable
from memoranda.operations.holding import held_back
from memoranda.operations.once import shared_of

_COPIES = "backups of the engine keep what they have; nothing here can reach them"
_UNTOLD = "Mem0's history may keep the words of what was removed, until its operator empties it; it did not say"
_MESSAGES = "Mem0's table of messages may keep what was sent for extraction, until its operator empties it"


class Removing:
    """What removes from one instance."""

    def __init__(self, outside: Outside, routes: Routes) -> None:
        self._outside, self._routes, self._records = outside, routes, outside.records

    def forget(self, context: Context, where: OperationContext, head: Record) -> Gone:
        """The whole chain of an item, with what a model made of it.

        Raises:
            LegalHold: something of it is held. ConfirmationRequired: a person reviewed it, and no person asks.
            RuleOfTwo: the session has met too much to take away what others read.
        """
        chain = sorted(self._records.chain(head), key=lambda row: (row.created_at, row.id))
        derived = self._records.derived(head.tenant, head.instance, [row.id for row in chain])
        rows = [*derived, *chain]  # the head goes last, so that nothing comes back to life on the way
        if held := [row.id for row in rows if row.legal_hold]:
            raise held_back(held)
        if not context.person and any(row.verdict is not None for row in rows):
            raise ConfirmationRequired(
                "A person has reviewed this; nothing was removed.",
                why="What a person stands by is not taken away by an agent.",
                remedy="A person with the right to write there can forget it.",
            )
        self._outside.company.permit(context, where, "forget", shared_of([row.scope for row in rows]))
        ids = [str(row.record) for row in rows if row.record is not None]
        context.still_allowed()
        gone = self._removed(context, rows, one_by_one=True)
        told = [self._routes.remembered_of(head.tenant, id) for id in ids]
        rows_kept = sum(count or 0 for count in told)
        remains = [_UNTOLD] if None in told else [_kept_history(rows_kept)] if rows_kept else []
        remains += [_MESSAGES] if derived else []
        originals = sorted({row.original for row in chain if row.original is not None})
        remains += [f"{item_id}: it was made from this, which is kept" for item_id in originals]
        return Gone(id=head.id, removed=len(gone), remains=(*remains, _COPIES))

    def purge(self, context: Context, where: OperationContext) -> Purged:
        """Everything at one place, but what is held, and for an agent what a person has reviewed."""
        _, place = written_place(where)
        self._outside.company.permit(context, where, "purge", place.scope)
        rows = self._records.at(where, self._outside.instance, [place])
        held = _with_chains(rows, [row for row in rows if row.legal_hold])
        firm = _with_chains(rows, [] if context.person else [row for row in rows if row.verdict is not None])
        going = [row for row in rows if row.id not in held | firm]
        context.still_allowed()
        gone = self._removed(context, going)
        stays = {row.record for row in rows if row.id in held | firm}
        strays = self._strays(where, rows, stays)
        remains = [f"under legal hold: {', '.join(sorted(held))}"] if held else []
        remains += [f"reviewed by a person: {', '.join(sorted(firm - held))}"] if firm - held else []
        remains += [_kept_history(len(gone)), _MESSAGES] if gone else []
        return Purged(removed=len(gone) + strays, remains=(*remains, _COPIES))

    def _strays(self, where: OperationContext, rows: Sequence[Record], stays: set[str | None]) -> int:
        """What lies at the place under our names and has no row: a write that nobody ever heard of."""
        _, place = written_place(where)
        known, found = {row.record for row in rows}, 0
        for prefix in self._outside.naming.places(self._outside.instance, where, place):
            for named in (prefix, prefix.beside):
                while True:
                    there = self._routes.at(where.tenant, named)
                    strays = [
                        memory.id for memory in there
                        if memory.id not in known | stays and memory.user_id == named.place
                        and memory.metadata.get("navin_ns") == named.namespace
                    ]  # fmt: skip
                    found += sum(together([partial(self._routes.delete, where.tenant, id) for id in strays]))
                    if len(there) < MOST or not strays:
                        break
        return found

    def expire(self, context: Context, rows: Sequence[Record]) -> list[str]:
        """Takes away what is past its retention; the ids of what went. The same words may come again."""
        return self._removed(context, rows, tombstone=False)

    def _removed(
        self, context: Context, rows: Sequence[Record], *, tombstone: bool = True, one_by_one: bool = False
    ) -> list[str]:  # fmt: skip
        """The ids of what went. What could not be removed stands as it did; then the error says so at the end."""
        gone: list[str] = []
        step = 1 if one_by_one else AT_ONCE
        for at in range(0, len(rows), step):
            some = rows[at : at + step]
            errors = together([partial(self._deleted, row) for row in some])
            done = [row.id for row, error in zip(some, errors, strict=True) if error is None]
            if done:
                self._records.end(rows[0].tenant, done, moment(context.now()), tombstone=tombstone)
                gone += done
            for error in errors:
                if error is not None:
                    raise error
        return gone

    def _deleted(self, row: Record) -> Unavailable | None:
        try:
            for id in self._ids(row):
                self._routes.delete(row.tenant, id)
        except Unavailable as error:
            return error
        return None

    def _ids(self, row: Record) -> list[str]:
        """Mem0's ids of an item: its own, or where that was never told, those of what lies under its run."""
        if row.record is not None:
            return [row.record]
        named = named_of(row.namespace, row.scope, row.owner)
        return [m.id for at in (named, named.beside) for m in self._routes.stored(row.tenant, at, row.id)]


def _kept_history(rows: int) -> str:
    return f"Mem0's history keeps the words of what was removed ({rows} rows), until its operator empties it"


def _with_chains(rows: Iterable[Record], some: Iterable[Record]) -> set[str]:
    """The ids of these, of their chains, and of what they were made from and what was made from them."""
    every = list(rows)
    chains = {row.chain for row in some}
    while True:
        ids = {row.id for row in every if row.chain in chains}
        more = {row.chain for row in every if row.original in ids}
        more |= {row.chain for row in every if row.id in {r.original for r in every if r.id in ids}}
        if more <= chains:
            return ids
        chains |= more
