"""Taking documents and datasets out of Cognee, by their exact ids, and saying what it keeps all the same."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.context import Context
from memoranda.engines.cognee_routes import Routes
from memoranda.engines.contract import Gone, OperationContext, Purged
from memoranda.engines.datasets import DatasetRow
from memoranda.engines.foreign import Standing, Words
from memoranda.engines.looking import changed
from memoranda.engines.outside import Outside
from memoranda.engines.placing import written_place
from memoranda.engines.records import Record, moment
from memoranda.notes.times import Interval
from memoranda.operations.holding import held_back
from memoranda.operations.once import shared_of

_FILES = "Cognee's vector and graph files may keep the words of a deleted document until its dataset is deleted"
_COPIES = "backups of the engine keep what they have; nothing here can reach them"


def standing(record: Record) -> Standing:
    """A document as it stands: Cognee gives pieces of its words, never all of them, so it is as our row has it."""
    return Standing(
        record, Words(""), record.trust, record.stamp, record.content_hash, (), Interval(None, None)
    )  # fmt: skip


class Removing:
    """What removes from one instance."""

    def __init__(self, outside: Outside, routes: Routes) -> None:
        self._outside, self._routes, self._records = outside, routes, outside.records
        self._datasets = outside.records.datasets

    def forget(self, context: Context, where: OperationContext, record: Record, if_match: str | None) -> Gone:
        """One document. LegalHold: it is held. RuleOfTwo: the session has met too much. PreconditionFailed."""
        if if_match is not None and if_match != standing(record).etag:
            raise changed(None)
        if record.legal_hold:
            raise held_back([record.id])
        self._outside.company.permit(context, where, "forget", shared_of([record.scope]))
        context.still_allowed()
        self._removed(context, [record])
        return Gone(id=record.id, removed=1, remains=(_FILES, _COPIES))

    def dataset(self, context: Context, where: OperationContext, row: DatasetRow) -> Purged:
        """A whole dataset. LegalHold: it, or a document of it, is held; nothing was removed."""
        rows = self._records.within(row.tenant, row.id)
        held = [record.id for record in rows if record.legal_hold]
        if row.legal_hold or held:
            raise held_back([row.id, *held])
        self._outside.company.permit(context, where, "purge", shared_of([row.scope]))
        context.still_allowed()
        return Purged(removed=self._whole(context, row, rows), remains=(_COPIES,))

    def purge(self, context: Context, where: OperationContext) -> Purged:
        """Everything at one place but what is held. A dataset with nothing held goes as a whole."""
        _, place = written_place(where)
        self._outside.company.permit(context, where, "purge", place.scope)
        context.still_allowed()
        removed, held, parts = 0, [], False
        for row in self._datasets.at(where, self._outside.instance, [place]):
            rows = self._records.within(row.tenant, row.id)
            stays = [record for record in rows if record.legal_hold or row.legal_hold]
            held += [record.id for record in stays]
            if stays or row.legal_hold:
                going = [record for record in rows if record not in stays]
                parts = parts or bool(going)
                removed += len(self._removed(context, going))
            else:
                removed += self._whole(context, row, rows)
        remains = [f"under legal hold: {', '.join(held)}"] if held else []
        return Purged(removed=removed, remains=(*remains, *((_FILES,) if parts else ()), _COPIES))

    def expire(self, context: Context, rows: Sequence[Record]) -> list[str]:
        """Takes away what is past its retention; the ids of what went."""
        return self._removed(context, rows, tombstone=False)

    def _whole(self, context: Context, row: DatasetRow, rows: Sequence[Record]) -> int:
        if row.record is not None:
            self._routes.delete(row.tenant, row.record)
        now = moment(context.now())
        self._records.end(row.tenant, [record.id for record in rows], now)
        self._datasets.change(row.tenant, row.id, state="gone", record=None, status="empty", updated_at=now)
        return len(rows)

    def _removed(self, context: Context, rows: Sequence[Record], *, tombstone: bool = True) -> list[str]:
        """The ids of what went. What could not be removed stands as it did, and the error says so."""
        gone: list[str] = []
        for record in rows:
            dataset = self._datasets.record_of(record.tenant, str(record.container))
            if dataset is not None and record.record is not None:
                self._routes.delete(record.tenant, dataset, record.record)
            self._records.end(record.tenant, [record.id], moment(context.now()), tombstone=tombstone)
            gone.append(record.id)
        return gone
