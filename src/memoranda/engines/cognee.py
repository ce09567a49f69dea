"""The engine `cognee`: Cognee keeps documents in datasets, builds graphs of them and finds; whose they are is ours.

A dataset's name there begins with the opaque prefix and says whose it is; a document's name is our id. What Cognee
answers with is shown only where our own row says that the document lies in a place that the caller reads. What is not
of one document (completions, summaries, relations) stands for all of its dataset, and is shown as the most doubtful of
its documents may be.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import NoReturn

from memoranda.context import Context
from memoranda.engines.announced import ANNOUNCED
from memoranda.engines.cognee_keeping import Keeping, missing_dataset, refuse_session
from memoranda.engines.cognee_removing import Removing, standing
from memoranda.engines.cognee_routes import Hit, Routes
from memoranda.engines.contract import (
    CapabilityDocument,
    Check,
    Coverage,
    Dataset,
    DatasetList,
    Entity,
    Gone,
    GraphFound,
    GraphSearchRequest,
    Health,
    IngestRequest,
    Isolation,
    Item,
    Listed,
    OperationContext,
    Passage,
    Pointer,
    Purged,
    Relation,
    Relations,
    Scope,
)
from memoranda.engines.datasets import DatasetRow
from memoranda.engines.foreign import Words, standings
from memoranda.engines.looking import missing
from memoranda.engines.outside import Outside
from memoranda.engines.records import Record, moment
from memoranda.engines.together import Begun, begin, together
from memoranda.errors import CapabilityUnsupported, EngineUnavailable, Forbidden
from memoranda.notes.times import format_instant, parse_instant
from memoranda.values import dataclass

_SETTLED_BY_NOW = timedelta(minutes=1)
_COMPLETIONS = ("RAG_COMPLETION", "GRAPH_COMPLETION")
_APART = {
    None: "The key makes no users, so that two of them could not be tried.",
    False: "It answers callers without a key, or one of two users sees the other's dataset.",
    True: "Two users, made for this and removed, did not see each other's dataset; searches were not tried.",
}
_MOST = 50  # datasets in one search
_WITHHELD = 3  # pointers to what is from outside and not shown
# Nodes of Cognee's own keeping, and not of what a text is about.
_OWN_NODES = frozenset(("DocumentChunk", "TextSummary", "TextDocument", "Document", "NodeSet", "Timestamp"))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The datasets that a search goes to, those of their documents that are from outside, and what was left out."""

    rows: Sequence[DatasetRow]
    doubtful: Mapping[str, Sequence[Record]]
    notices: tuple[str, ...]


class Cognee:
    """One instance of Cognee as an engine."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._routes = Routes(outside.connection)
        self._datasets = outside.records.datasets
        self._keeping = Keeping(outside, self._routes)
        self._removing = Removing(outside, self._routes)

    # What it is

    @property
    def instance(self) -> str:
        return self._outside.instance

    def document(self) -> CapabilityDocument:
        return CapabilityDocument(provider="cognee", engine_instance=self.instance, capabilities=ANNOUNCED["cognee"])

    def isolation(self, tenant: str) -> Isolation:
        return self._outside.isolation(tenant)

    def health(self, context: Context) -> Health:
        """`degraded` when it answers and something it needs is missing, or it does not admit us."""
        began, status, detail = time.monotonic(), "ok", ""
        try:
            code, version = self._routes.health()
            detail = f"Cognee {version}" if version else ""
            if code != 200:
                status, detail = "degraded", f"It answers with status {code}: something that it needs is missing."
            else:
                self._routes.admitted(context.tenant)
        except EngineUnavailable as error:
            status, detail = "degraded" if detail else "unavailable", f"{error.what} {error.why}".strip()
        took = round((time.monotonic() - began) * 1000, 3)
        return Health.model_validate(
            {"engine_instance": self.instance, "provider": "cognee", "status": status, "detail": detail,
             "latency_ms": took}
        )  # fmt: skip

    def probe(self, context: Context) -> tuple[Check, ...]:
        """What can be found out about an instance that is about to be used; it raises nothing."""
        try:
            code, version = self._routes.health()
        except EngineUnavailable as error:
            return (Check(name="reachable", ok=False, detail=f"{error.what} {error.why}".strip()),)
        checks = [
            Check(name="reachable", ok=True, detail=f"It answers its health with status {code}."),
            Check(name="version", ok=bool(version) or None, detail=f"Cognee {version}" if version else "It says none."),
        ]
        apart: bool | None = None
        try:
            self._routes.admitted(context.tenant)
            checks.append(Check(name="authenticated", ok=True, detail="The key is accepted."))
            closed = self._routes.refuses_strangers()
            apart = self._routes.apart(context.tenant, context.random(8).hex()) if closed else False
        except EngineUnavailable as error:
            checks.append(Check(name="authenticated", ok=False, detail=f"{error.what} {error.why}".strip()))
            return tuple(checks)
        checks.append(Check(name="access_control", ok=None if apart else apart, detail=_APART[apart]))
        return tuple(checks)

    # Knowledge

    def ingest(self, context: Context, where: OperationContext, new: IngestRequest) -> Dataset:
        row = self._keeping.ingest(context, where, new)
        if new.build_graph:
            (row,) = self._keeping.build(context, [row])
        return self._shown([row])[0]

    def datasets(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None,
    ) -> DatasetList:  # fmt: skip
        refuse_session(scope)
        places = [place for place in where.reads if place.scope != "session" and scope in (None, place.scope)]
        rows = self._datasets.at(where, self.instance, places, limit=limit + 1, after=after)
        page = [self._keeping.looked(context, row) for row in rows[:limit]]
        following = (page[-1].created_at, page[-1].id) if len(rows) > limit else None
        return DatasetList(items=self._shown(page), next=following)

    def build_graph(
        self, context: Context, where: OperationContext, dataset_ids: tuple[str, ...]
    ) -> tuple[Dataset, ...]:
        rows = self._found(where, dataset_ids)
        counts = self._datasets.counts(where.tenant, [row.id for row in rows])
        if empty := [row.id for row in rows if not counts.get(row.id)]:
            raise CapabilityUnsupported(
                f"{', '.join(empty)}: there is nothing that a graph could be built from.", remedy="Ingest texts first."
            )
        return self._shown(self._keeping.build(context, rows))

    def search_graph(self, context: Context, where: OperationContext, asked: GraphSearchRequest) -> GraphFound:
        return self._found_in(context, where, asked, self._wanted(where, asked))[0]

    def begin(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest
    ) -> Begun[tuple[GraphFound, Mapping[str, DatasetRow]]]:
        rows = self._wanted(where, asked)
        if any(row.status == "building" for row in rows):  # then it is asked more than once
            return begin([partial(self._found_in, context, where, asked, rows)], lambda found: found[0])
        prepared = self._prepared(context, where, asked, rows)
        search = partial(self._searched, context, where, asked, prepared.rows)
        return begin([search], lambda hits: self._told(context, where, asked, prepared, hits[0]))

    def _found_in(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest, rows: Sequence[DatasetRow]
    ) -> tuple[GraphFound, Mapping[str, DatasetRow]]:
        prepared = self._prepared(context, where, asked, rows)
        hits = self._searched(context, where, asked, prepared.rows)
        return self._told(context, where, asked, prepared, hits)

    def _wanted(self, where: OperationContext, asked: GraphSearchRequest) -> Sequence[DatasetRow]:
        if asked.dataset_ids:
            return self._found(where, asked.dataset_ids)
        places = [place for place in where.reads if place.scope != "session"]
        return self._datasets.at(where, self.instance, places, limit=_MOST)

    def _prepared(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest, rows: Sequence[DatasetRow]
    ) -> _Prepared:
        rows = [self._keeping.looked(context, row) for row in rows]
        unbuilt = [row.id for row in rows if not row.built]
        notices = [f"not searched, because no graph was built of it: {', '.join(unbuilt)}"] if unbuilt else []
        ready = [row for row in rows if row.built]
        whole = bool(ready) and (asked.search_type in _COMPLETIONS or asked.search_type == "SUMMARIES")
        doubtful, due = self._doubtful(context, ready) if whole else ({}, set())
        hides = bool(doubtful) and self._outside.company.hides(context, where)
        if whole and (left := [row for row in ready if (hides and row.id in doubtful) or row.id in due]):
            notices.append(f"not searched, because of documents that may not be shown: {', '.join(r.id for r in left)}")
            ready = [row for row in ready if row not in left]
        return _Prepared(ready, doubtful, tuple(notices))

    def _told(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest, prepared: _Prepared,
        hits: Sequence[Hit],
    ) -> tuple[GraphFound, Mapping[str, DatasetRow]]:  # fmt: skip
        rows = prepared.rows
        shown, withheld = self._passages(context, where, asked, rows, hits, prepared.doubtful) if rows else ((), ())
        coverage = Coverage(
            engines=(self.instance,), searched=len(rows), withheld=tuple(withheld), notices=prepared.notices
        )
        return GraphFound(passages=tuple(shown), coverage=coverage), {row.id: row for row in rows}

    def _searched(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest, rows: Sequence[DatasetRow]
    ) -> Sequence[Hit]:
        if not rows:
            return []
        session = context.random(16).hex() if asked.search_type in _COMPLETIONS else None
        return self._routes.search(
            where.tenant, [str(row.record) for row in rows], asked.query, asked.search_type, asked.top_k, session
        )

    def _passages(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest, rows: Sequence[DatasetRow],
        hits: Sequence[Hit], doubtful: Mapping[str, Sequence[Record]],
    ) -> tuple[Sequence[Passage], Sequence[Pointer]]:  # fmt: skip
        """What may be shown, best first, and pointers to what may not; the session has met what is shown."""
        of, now = {str(row.record): row for row in rows}, context.now()
        known = self._outside.records.of_engine(
            where.tenant, self.instance, sorted({hit.document for hit in hits if hit.document})
        )
        outside = any(record.trust == "quarantined" for record in known.values())
        hides = outside and self._outside.company.hides(context, where)  # of whole datasets that was seen to before
        passages, withheld, met = [], [], []
        for hit in sorted(hits, key=lambda hit: -_score(hit))[: asked.top_k]:
            row = of[hit.dataset]
            record = None if hit.document is None else known.get(hit.document)
            if hit.document is not None and (record is None or record.container != row.id or record.due(now)):
                continue  # nobody asked for it to be kept, or it is not to be shown any more
            behind = [record] if record is not None else list(doubtful.get(row.id, ()))
            if hit.document is None and asked.search_type in ("CHUNKS", "CHUNKS_LEXICAL"):
                continue  # a piece of no document of ours
            quarantined = [one for one in behind if one.trust == "quarantined"]
            if quarantined and hides:
                withheld += [Pointer(id=one.id, kind=one.kind, at=one.created_at) for one in quarantined]
                continue
            met += [standing(one).shown() for one in behind]
            labels = {"state": "quarantined" if quarantined else "unreviewed", "dataset": row.id}
            name = record.id if record is not None else row.id
            envelope = self._outside.envelope.wrap(name, self.instance, hit.text, labels)
            passages.append(
                Passage(
                    dataset_id=row.id, text=hit.text, score=round(_score(hit), 6),
                    source=record.id if record is not None else "", envelope=envelope,
                )
            )  # fmt: skip
        self._outside.company.meet(context, where, met)
        return passages, withheld[:_WITHHELD]

    def _doubtful(self, context: Context, rows: Sequence[DatasetRow]) -> tuple[dict[str, Sequence[Record]], set[str]]:
        """By dataset, its documents from outside; and the datasets with a document that is past its retention."""
        now = context.now()
        found = self._outside.records.doubtful(rows[0].tenant, [row.id for row in rows], now)
        doubtful: dict[str, Sequence[Record]] = {}
        for record in found:
            if record.trust == "quarantined":
                doubtful[str(record.container)] = [*doubtful.get(str(record.container), ()), record]
        return doubtful, {str(record.container) for record in found if record.due(now)}

    def relations(self, context: Context, where: OperationContext, dataset_id: str) -> Relations:
        (row,) = self._found(where, (dataset_id,))
        doubtful, due = self._doubtful(context, [row])
        if due or (doubtful and self._outside.company.hides(context, where)):
            raise Forbidden(
                "This graph was built from documents that may not be shown here.",
                why="Some of them are past their retention." if due else "Some of them came from outside.",
                remedy="Forget these documents and build the graph again, or have a person look at it.",
            )
        nodes, edges = self._routes.graph(where.tenant, str(row.record))
        behind = [record for records in doubtful.values() for record in records]
        self._outside.company.meet(context, where, [standing(one).shown() for one in behind])
        entities = tuple(
            Entity(id=str(node.get("id")), name=str(node.get("label", "")), type=str(node.get("type", "")))
            for node in nodes
            if node.get("type") not in _OWN_NODES
        )
        known = {entity.id for entity in entities}
        relations = tuple(
            Relation(
                source=str(edge.get("source")), target=str(edge.get("target")), relation=str(edge.get("label", ""))
            )
            for edge in edges
            if str(edge.get("source")) in known and str(edge.get("target")) in known
        )
        return Relations(entities=entities, relations=relations)

    def delete_dataset(self, context: Context, where: OperationContext, dataset_id: str) -> Purged:
        (row,) = self._found(where, (dataset_id,))
        return self._removing.dataset(context, where, row)

    # Documents

    def list(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None, words: bool = True,
    ) -> Listed:  # fmt: skip
        """Documents; with `words` each is read whole, some at a time, and without no call is made."""
        places = [place for place in where.reads if place.scope != "session" and scope in (None, place.scope)]
        rows = self._outside.records.page(where, self.instance, places, limit=limit + 1, after=after, now=context.now())
        page = rows[:limit]
        items = self._read(context, where, page) if words else self._bare(context, page)
        following = (page[-1].created_at, page[-1].id) if len(rows) > limit else None
        return Listed(items=items, next=following)

    def _bare(self, context: Context, rows: Sequence[Record]) -> tuple[Item, ...]:
        return tuple(standing(row).item(context.now(), hidden=True) for row in rows)

    def _read(self, context: Context, where: OperationContext, rows: Sequence[Record]) -> tuple[Item, ...]:
        """With their words, as far as this session is shown them, which has met them then.

        What is not there any more has none; what was changed there is quarantined.
        """
        told = together([partial(self._text, row) for row in rows])
        there = [(row, Words(text)) for row, text in zip(rows, told, strict=True) if text is not None]
        stands = {one.record.id: one for one in standings(self._outside.records, there, context.now())}
        hides = any(one.quarantined for one in stands.values()) and self._outside.company.hides(context, where)
        open_ones = {key: one for key, one in stands.items() if not (hides and one.quarantined)}
        self._outside.company.meet(context, where, [one.shown() for one in open_ones.values()])
        now = context.now()
        return tuple(stands.get(row.id, standing(row)).item(now, hidden=row.id not in open_ones) for row in rows)

    def _text(self, row: Record) -> str | None:
        dataset = self._datasets.record_of(row.tenant, str(row.container))
        if dataset is None or row.record is None:
            return None
        return self._routes.text(row.tenant, dataset, row.record)

    def forget(self, context: Context, where: OperationContext, item_id: str, *, if_match: str | None) -> Gone:
        record = self._outside.records.get(where.tenant, self.instance, item_id)
        if record is None or record.state != "kept" or not self._reads(where, record) or record.due(context.now()):
            raise missing()
        return self._removing.forget(context, where, record, if_match)

    def purge(self, context: Context, where: OperationContext) -> Purged:
        return self._removing.purge(context, where)

    def expire(self, context: Context, tenant: str) -> tuple[str, ...]:
        """Takes away what is past its retention, the ids of what went; and finds out what came of writes that were
        not answered, and how the builds stand."""
        records = self._outside.records
        pending = records.pending(tenant, self.instance, moment(context.now() - _SETTLED_BY_NOW))
        self._keeping.settle(context, tenant, pending)
        for row in self._datasets.building(tenant, self.instance):
            self._keeping.looked(context, row)
        return tuple(self._removing.expire(context, records.due(tenant, self.instance, context.now())))

    def _unannounced(self, *_: object, **__: object) -> NoReturn:
        raise CapabilityUnsupported(
            "Cognee does not announce this.", why="It keeps documents and graphs, and no memories.",
            remedy="Use the knowledge operations, or choose another engine.",
        )  # fmt: skip

    # A guard refuses what is not announced before any of this is called.
    remember = recall = search = get = update = history = export = review = _unannounced

    # Shared

    def _found(self, where: OperationContext, dataset_ids: Sequence[str]) -> Sequence[DatasetRow]:
        rows = self._datasets.some(where, self.instance, dataset_ids)
        if len(rows) < len(set(dataset_ids)):
            raise missing_dataset()
        return rows

    def _reads(self, where: OperationContext, record: Record) -> bool:
        return bool(record.container and self._datasets.some(where, self.instance, [record.container]))

    def _shown(self, rows: Sequence[DatasetRow]) -> tuple[Dataset, ...]:
        counts = self._datasets.counts(rows[0].tenant, [row.id for row in rows]) if rows else {}
        return tuple(
            Dataset.model_validate(
                {"id": row.id, "engine": row.instance, "scope": row.scope, "owner": row.owner,
                 "classification": row.classification, "documents": counts.get(row.id, 0),
                 "built": min(row.built, counts.get(row.id, 0)),
                 "status": row.status if counts.get(row.id) else "empty",
                 "created_at": format_instant(parse_instant(row.created_at)), "retention_days": row.retention_days,
                 "legal_hold": row.legal_hold}
            )
            for row in rows
        )  # fmt: skip


def _score(hit: Hit) -> float:
    """From 0 to 1. A distance of vectors lies between 0 (the same) and 2; where there is none, the rank counts."""
    if hit.distance is not None:
        return max(0.0, min(1.0, 1 - hit.distance / 2))
    return 1 / (1 + hit.rank)
