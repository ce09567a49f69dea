"""What the suite asks: an engine, and the words for it that make a test short."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import (
    Dataset,
    GraphFound,
    GraphSearchRequest,
    IngestRequest,
    Item,
    OperationContext,
    RecallRequest,
    RememberRequest,
    Scope,
    UpdateRequest,
)
from tests.conformance.faults import Elsewhere
from tests.engines.asking import asking

PATIENCE = 150.0  # seconds that the graph of a few words may take


@dataclass
class Subject:
    """An engine under test. `provider` is what it announces itself as; `sessions` is the builtin whose sessions count
    for it; `knowledge` the engine that has its documents, None where it keeps none.
    `elsewhere` makes what lies elsewhere fail; `upkeep` are the engines whose upkeep is done by themselves.
    """

    name: str
    engine: Any
    sessions: Builtin
    provider: str
    knowledge: Any = None
    elsewhere: Elsewhere | None = None
    upkeep: tuple[Any, ...] = ()

    @property
    def keeps_memories(self) -> bool:
        return "remember" in self.engine.document().capabilities.memory

    # Whatever it keeps

    def keep(self, context: Context, text: str, scope: Scope = "user", *, by: Any = None, **more: Any) -> str:
        """Has the engine keep a text, as a memory or as a document, and returns the id of the item."""
        if self.keeps_memories:
            return self.remember(context, text, scope, by=by, **more).id
        dataset = self.ingest(context, text, scope=scope, by=by, **more)
        where = by or asking(writes=scope)
        there = self.listed(context, where.model_copy(update={"reads": (where.writes,)}), limit=1000)
        return next(item.id for item in there if self._in(where, item, dataset))

    def _in(self, where: OperationContext, item: Item, dataset: Dataset) -> bool:
        records = self.knowledge._outside.records
        return bool(records.get(where.tenant, self.knowledge.instance, item.id).container == dataset.id)

    def listed(self, context: Context, where: OperationContext | None = None, **more: Any) -> list[Item]:
        told = {"scope": None, "limit": 50, "after": None, **more}
        return list(self.engine.list(context, where or asking(), **told).items)

    # Memories

    def remember(self, context: Context, text: str, scope: Scope = "user", *, by: Any = None, **more: Any) -> Item:
        where = by or asking(writes=scope)
        return self.engine.remember(context, where, RememberRequest(content=text, **more))

    def recall(self, context: Context, query: str, where: OperationContext | None = None, **more: Any) -> list[Item]:
        return list(self.found(context, query, where, **more).items)

    def found(self, context: Context, query: str, where: OperationContext | None = None, **more: Any) -> Any:
        return self.engine.recall(context, where or asking(), RecallRequest(query=query, **more))

    def texts(self, context: Context, query: str, where: OperationContext | None = None, **more: Any) -> list[str]:
        return [str(item.content) for item in self.recall(context, query, where, **more)]

    def update(self, context: Context, item_id: str, text: str, if_match: str | None = None, **more: Any) -> Item:
        where = more.pop("where", asking())
        return self.engine.update(context, where, item_id, UpdateRequest(content=text), if_match=if_match, **more)

    def get(self, context: Context, item_id: str, where: OperationContext | None = None, **more: Any) -> Item:
        return self.engine.get(context, where or asking(), item_id, **more)

    # Knowledge

    def ingest(
        self, context: Context, *texts: str, scope: Scope = "user", by: OperationContext | None = None, **more: Any
    ) -> Dataset:
        where = by or asking(writes=scope)
        return self.knowledge.ingest(context, where, IngestRequest(texts=texts, scope=scope, **more))

    def datasets(self, context: Context, where: OperationContext | None = None, **more: Any) -> tuple[Dataset, ...]:
        told = {"scope": None, "limit": 50, "after": None, **more}
        return self.knowledge.datasets(context, where or asking(), **told).items

    def built(self, context: Context, *texts: str, **more: Any) -> Dataset:
        """A dataset of these texts, once its graph is built."""
        made = self.ingest(context, *texts, build_graph=True, **more)
        return self.wait(context, made.id, more.get("by"))

    def wait(self, context: Context, dataset_id: str, where: OperationContext | None = None) -> Dataset:
        until = time.monotonic() + PATIENCE
        while True:
            (found,) = [one for one in self.datasets(context, where) if one.id == dataset_id]
            if found.status != "building":
                return found
            assert time.monotonic() < until, found
            time.sleep(0.2)

    def search(self, context: Context, query: str, where: OperationContext | None = None, **more: Any) -> GraphFound:
        asked = GraphSearchRequest(query=query, **more)
        return self.knowledge.search_graph(context, where or asking(), asked)
