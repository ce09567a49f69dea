"""Keeping documents in Cognee, and building its graphs: announced in our own rows first, settled before the answer.

The names of the documents there are our ids: what came of a write that was not answered is found out by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from memoranda.context import Context
from memoranda.engines.cognee_routes import Routes
from memoranda.engines.contract import CLASSIFICATION_ORDER, IngestRequest, OperationContext, Place
from memoranda.engines.datasets import DatasetRow
from memoranda.engines.naming import project_of
from memoranda.engines.outside import Outside
from memoranda.engines.placing import circumstances, written_place
from memoranda.engines.records import Record, due_at, moment
from memoranda.errors import (
    CapabilityUnsupported,
    EngineUnavailable,
    Forgotten,
    MemorandaError,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from memoranda.notes.ids import new_id
from memoranda.notes.model import check_text
from memoranda.notes.times import parse_instant
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.tomb_book import REMEDY
from memoranda.values import replace

_EARLY = 10.0  # seconds in which a build is not asked about twice: it only says that it was begun
_SECOND = 2.0  # by which an uptime may be told too small
_BUILDS = 3  # how often a build that its engine forgot is begun
_LONGEST = timedelta(hours=2)  # after which a build is taken for failed
_NEVER = timedelta(minutes=15)  # after which what is not there does not come any more


class Keeping:
    """What writes to one instance."""

    def __init__(self, outside: Outside, routes: Routes) -> None:
        self._outside, self._routes, self._records = outside, routes, outside.records
        self._datasets = outside.records.datasets

    def ingest(self, context: Context, where: OperationContext, new: IngestRequest) -> DatasetRow:
        """The dataset that the texts were added to, a new one where none is named.

        Raises:
            InvalidNote: a text is empty, or holds what is no character. Forgotten: one of the texts was.
            NotFound: the named dataset does not lie where the request writes.
            EngineUnavailable: nothing was kept, or it is not known whether; then the ids are told.
        """
        _, place = written_place(where)
        refuse_session(place.scope)
        new = new.model_copy(update={"texts": tuple(_lines(text) for text in new.texts)})
        own = circumstances(context, where)
        for text in new.texts:
            check_text(text)
            pass_guards(own, Call("ingest_knowledge", writes=True, text=text))
        self._outside.company.permit(context, where, "remember", place.scope)
        context.still_allowed(last=False)
        for text in new.texts:
            self._refuse_forgotten(context, where, place, text)
        dataset = self._dataset(context, where, place, new)
        fresh = self._rows(context, where, place, dataset, new)
        if fresh:
            self._records.add([record for record, _ in fresh])
            self._send(dataset, fresh)
        self._refuse_moved(context, dataset, [record for record, _ in fresh], made=new.dataset_id is None)
        status = dataset.status if dataset.status in ("building", "built") else "ingested"
        higher = _higher(dataset.classification, new.classification)
        return self._set(dataset, updated_at=moment(context.now()), classification=higher, status=status)

    def _refuse_forgotten(self, context: Context, where: OperationContext, place: Place, text: str) -> None:
        tombs = self._records.tombstones(where, place, self._records.hashes(where.tenant, text)[1])
        if tombs and not context.person:
            raise Forgotten(
                f"The same content was forgotten on {tombs[0].updated_at[:10]}.",
                why="What was forgotten does not come back by an agent, an import or a job.",
                remedy=REMEDY,
            )
        self._records.lift(where.tenant, [tomb.id for tomb in tombs])

    def _dataset(self, context: Context, where: OperationContext, place: Place, new: IngestRequest) -> DatasetRow:
        if new.dataset_id is not None:
            here = where.model_copy(update={"reads": (place,)})
            found = self._datasets.some(here, self._outside.instance, [new.dataset_id])
            if not found:
                raise missing_dataset()
            return found[0]
        named, now = self._outside.naming.place(self._outside.instance, where, place), moment(context.now())
        row = DatasetRow(
            where.tenant, new_id("ds", context.random), self._outside.instance, "pending", named.namespace,
            project_of(where, place) or "", place.scope, place.owner, where.user, where.agent, new.classification,
            now, now, retention_days=new.retention_days, legal_hold=new.legal_hold,
        )  # fmt: skip
        record = self._routes.dataset(where.tenant, row.name)  # an empty one of a name that nobody else has, if we die
        row = replace(row, record=record, state="kept")
        self._datasets.add(row)
        return row

    def _rows(
        self, context: Context, where: OperationContext, place: Place, dataset: DatasetRow, new: IngestRequest
    ) -> list[tuple[Record, str]]:
        """The documents that are not there yet, and their texts: Cognee keeps the same text once."""
        there = {row.content_hash for row in self._records.within(where.tenant, dataset.id) if row.state == "kept"}
        taint, now, found = self._outside.company.stamp(context, where, ()), context.now(), []
        kinds = tuple(sorted({root.kind for root in taint.roots}))
        for text in new.texts:
            exact, same = self._records.hashes(where.tenant, text)
            if exact in there:
                continue
            there.add(exact)
            item_id = new_id("doc", context.random)
            found.append((
                Record(
                    where.tenant, item_id, self._outside.instance, "pending", dataset.namespace, dataset.project,
                    place.scope, place.owner, where.user, where.agent, "semantic", new.classification, "agent",
                    item_id, exact, same, moment(now), moment(now), container=dataset.id, session=where.session,
                    due_at=due_at(now, new.retention_days), retention_days=new.retention_days,
                    legal_hold=new.legal_hold, taint=kinds,
                ),
                text,
            ))  # fmt: skip
        return found

    def _send(self, dataset: DatasetRow, fresh: Sequence[tuple[Record, str]]) -> None:
        failed: Unavailable | None = None
        try:
            self._routes.add(dataset.tenant, str(dataset.record), [(record.id, text) for record, text in fresh])
        except Unavailable as error:
            failed = error
        except MemorandaError:
            self._records.lift(dataset.tenant, [record.id for record, _ in fresh])
            raise
        if failed is not None and not failed.asked:
            self._records.lift(dataset.tenant, [record.id for record, _ in fresh])
            raise failed
        ids = [record.id for record, _ in fresh]
        try:
            there = self._routes.named(dataset.tenant, str(dataset.record))
        except Unavailable as error:
            raise _unknown(ids, failed or error) from error
        lost = [record for record, _ in fresh if record.id not in there]
        kept = [replace(record, record=there[record.id]) for record, _ in fresh if record.id in there]
        if kept:
            self._records.keep_alone(kept)
        if failed is not None and lost and not failed.finished:  # what is not there yet may come
            raise _unknown([record.id for record in lost], failed)
        if lost:
            self._records.lift(dataset.tenant, [record.id for record in lost])
            if failed is not None:
                raise failed
            raise EngineUnavailable(
                f"The engine {self._outside.instance} did not keep {len(lost)} of {len(fresh)} texts.",
                why="It said that it had taken them, and does not list them.",
                remedy="Look at the engine's health, then send the texts again: what is there is not kept twice.",
            )

    def _refuse_moved(self, context: Context, dataset: DatasetRow, fresh: Sequence[Record], *, made: bool) -> None:
        """When the engine has them and nobody was told: what may no longer be kept is taken back.

        `made`: the dataset was made for them, and goes too.
        """
        try:
            context.still_allowed()
        except MemorandaError:
            now = moment(context.now())
            for record in fresh:  # first, so that what cannot be removed now is seen by nobody, and by the next expiry
                self._records.change(record.tenant, record.id, legal_hold=False, due_at=now, updated_at=now)
            if made:
                self._datasets.change(dataset.tenant, dataset.id, state="gone", updated_at=now)
            with suppress(Unavailable):
                self._removed(dataset, fresh, whole=made)
            raise

    def _removed(self, dataset: DatasetRow, fresh: Sequence[Record], *, whole: bool) -> None:
        ids = [record.id for record in fresh]
        for row in self._records.some(dataset.tenant, dataset.instance, ids):
            if row.record is not None and not whole:
                self._routes.delete(dataset.tenant, str(dataset.record), row.record)
        if whole:
            self._routes.delete(dataset.tenant, str(dataset.record))
        self._records.lift(dataset.tenant, ids)

    def settle(self, context: Context, tenant: str, rows: Sequence[Record]) -> None:
        """Finds out what came of documents whose write was not answered: they are kept by now, or are no more."""
        for row in rows:
            dataset = self._of(tenant, row)
            there = {} if dataset is None else self._routes.named(tenant, str(dataset.record))
            if row.id in there:
                self._records.keep_alone([replace(row, record=there[row.id])])
            elif context.now() - parse_instant(row.created_at) > _NEVER:
                self._records.lift(tenant, [row.id])

    def _of(self, tenant: str, row: Record) -> DatasetRow | None:
        place = Place.model_validate({"scope": row.scope, "owner": row.owner})
        where = OperationContext(
            tenant=tenant, project=row.project or "none", user=row.user_id, agent=row.agent, reads=(place,)
        )
        found = self._datasets.some(where, row.instance, [str(row.container)])
        return found[0] if found else None

    # Graphs

    def build(self, context: Context, rows: Sequence[DatasetRow]) -> list[DatasetRow]:
        """Begins to build these graphs; it goes on in the background, and `looked` tells how it stands."""
        context.still_allowed()
        now = moment(context.now())
        for row in rows:  # before it is asked for: a build that we do not know of would be nobody's
            self._datasets.change(row.tenant, row.id, status="building", building_since=now, builds=1, updated_at=now)
        try:
            self._routes.build(rows[0].tenant, [str(row.record) for row in rows])
        except Unavailable as error:
            if not error.asked:
                for row in rows:
                    self._datasets.change(row.tenant, row.id, status=row.status, building_since=row.building_since)
            raise
        return [replace(row, status="building", building_since=now, builds=1) for row in rows]

    def looked(self, context: Context, row: DatasetRow) -> DatasetRow:
        """How a graph stands now that its engine was asked. One that its engine has forgotten is begun again."""
        if row.status != "building":
            return row
        told = self._routes.building(row.tenant, [str(row.record)])[str(row.record)]
        now, since = context.now(), parse_instant(str(row.building_since))
        if told == "completed":
            built = self._datasets.counts(row.tenant, [row.id]).get(row.id, 0)
            return self._set(row, status="built", built=built, updated_at=moment(now))
        if told == "errored" or now - since > _LONGEST:
            return self._set(row, status="failed", updated_at=moment(now))
        if self._forgotten(row, now, since):
            if row.builds >= _BUILDS:
                return self._set(row, status="failed", updated_at=moment(now))
            self._routes.build(row.tenant, [str(row.record)])
            return self._set(row, builds=row.builds + 1, building_since=moment(now))
        return row

    def _forgotten(self, row: DatasetRow, now: datetime, since: datetime) -> bool:
        """Whether the engine was started after the build was begun: it says that it builds, and nobody does."""
        lasts = (now - since).total_seconds()
        up = self._routes.uptime(row.tenant) if lasts > _EARLY else None
        return up is not None and up + _SECOND < lasts

    def _set(self, row: DatasetRow, **changes: object) -> DatasetRow:
        self._datasets.change(row.tenant, row.id, **changes)
        return replace(row, **changes)  # type: ignore[arg-type]


def refuse_session(scope: str | None) -> None:
    """CapabilityUnsupported for what belongs to a session."""
    if scope == "session":
        raise CapabilityUnsupported(
            "Knowledge belongs to no session.",
            why="The memory of a session stays in builtin, and never goes to Mem0 or Cognee.",
            remedy="Use another scope.",
        )


def missing_dataset() -> NotFound:
    """The refusal of an id that no dataset of the caller has."""
    return NotFound("There is no such dataset here.", remedy="The list of datasets shows the ids of what there is.")


def _lines(text: str) -> str:
    """A text as Cognee keeps it: every line ends with a line feed alone."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unknown(ids: Sequence[str], error: Unavailable) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"It is not known whether {', '.join(ids[:5])}{' and more' if len(ids) > 5 else ''} were kept.",
        item_id=ids[0],
        why=error.why or error.what,
        remedy="A list shows them once that is found out; to send the same texts again does no harm.",
    )


def _higher(one: str, other: str) -> str:
    return max(one, other, key=CLASSIFICATION_ORDER.index)
