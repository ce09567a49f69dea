"""What an engine is to everything above it. An operation that an engine does not announce is never called on it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from memoranda.context import Context
from memoranda.engines.contract import (
    CapabilityDocument,
    Dataset,
    DatasetList,
    Found,
    Gone,
    GraphFound,
    GraphSearchRequest,
    Health,
    IngestRequest,
    Isolation,
    Item,
    Listed,
    OperationContext,
    Purged,
    RecallRequest,
    Relations,
    RememberRequest,
    Scope,
    UpdateRequest,
)


class MemoryEngine(Protocol):
    """An engine that keeps memories.

    Every method takes the machine's `Context` (clock, random source, deadline) and the derived `OperationContext`. An
    item that lies in no place of `where.reads` is to the engine as if it did not exist: NotFound. EngineUnavailable
    when the engine does not answer in time; nothing was written then, or the error says that it is not known.
    """

    @property
    def instance(self) -> str: ...

    def document(self) -> CapabilityDocument:
        """What it announces; no credential is read and no engine is called."""
        ...

    def isolation(self, tenant: str) -> Isolation:
        """What separates this tenant from others here."""
        ...

    def health(self, context: Context) -> Health: ...

    def remember(self, context: Context, where: OperationContext, new: RememberRequest) -> Item:
        """Keeps `new` at `where.writes`; durable when it returns."""
        ...

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        """What is found, best first, whole; unreviewed outside content as the session's state allows."""
        ...

    def get(self, context: Context, where: OperationContext, item_id: str, *, exact: bool = False) -> Item:
        """The head of the item's chain, or with `exact` that very item."""
        ...

    def list(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None,
    ) -> Listed: ...  # fmt: skip

    def update(
        self, context: Context, where: OperationContext, item_id: str, change: UpdateRequest, *, if_match: str | None,
        retention_days: int | None = None, legal_hold: bool = False,
    ) -> Item:  # fmt: skip
        """A new item that supersedes the head; PreconditionFailed when `if_match` is not the head's etag.

        It is kept as the head was, for `retention_days` at most, and held where `legal_hold` says so.
        """
        ...

    def forget(self, context: Context, where: OperationContext, item_id: str, *, if_match: str | None) -> Gone: ...

    def purge(self, context: Context, where: OperationContext) -> Purged:
        """Everything at `where.writes` that is not held."""
        ...


@runtime_checkable
class KnowledgeEngine(Protocol):
    """An engine that keeps documents in datasets and builds graphs of them. Datasets lie in places, like memories."""

    def ingest(self, context: Context, where: OperationContext, new: IngestRequest) -> Dataset:
        """Keeps the texts in a dataset at `where.writes`, a new one where none is named."""
        ...

    def datasets(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int, cursor: str | None
    ) -> DatasetList: ...

    def build_graph(
        self, context: Context, where: OperationContext, dataset_ids: tuple[str, ...]
    ) -> tuple[Dataset, ...]: ...

    def search_graph(self, context: Context, where: OperationContext, asked: GraphSearchRequest) -> GraphFound: ...

    def relations(self, context: Context, where: OperationContext, dataset_id: str) -> Relations: ...

    def delete_dataset(self, context: Context, where: OperationContext, dataset_id: str) -> Purged: ...
