"""What an engine is to everything above it. An operation that an engine does not announce is never called on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from memoranda.context import Context
from memoranda.engines.contract import (
    CapabilityDocument,
    Check,
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
from memoranda.engines.datasets import DatasetRow
from memoranda.engines.exporting import Exported
from memoranda.engines.together import Begun


class Lasted(NamedTuple):
    """One item of a chain: whether it holds now, and from when until when it held; None for an open end."""

    item: Item
    head: bool
    held_from: str | None
    held_to: str | None


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

    def remember(self, context: Context, where: OperationContext, new: RememberRequest, *, infer: bool = False) -> Item:
        """Keeps `new` at `where.writes`; durable when it returns. `infer`: the engine's model extracts facts."""
        ...

    def recall(self, context: Context, where: OperationContext, asked: RecallRequest) -> Found:
        """What is found, best first, whole; unreviewed outside content as the session's state allows."""
        ...

    def get(self, context: Context, where: OperationContext, item_id: str, *, exact: bool = False) -> Item:
        """The head of the item's chain, or with `exact` that very item."""
        ...

    def list(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None, words: bool = True,
    ) -> Listed:  # fmt: skip
        """What holds now, newest first; without `words` an engine that had to ask for each of them does not."""
        ...

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

    def history(self, context: Context, where: OperationContext, item_id: str) -> tuple[Lasted, ...]:
        """The chain of an id, oldest first."""
        ...

    def export(
        self, context: Context, where: OperationContext, scopes: Sequence[Scope], form: str, *,
        passes: Callable[[tuple[Item, ...]], Sequence[bool]] | None = None,
    ) -> Exported:  # fmt: skip
        """What may be read of these scopes (none: all that may be read), as files."""
        ...

    def review(
        self, context: Context, where: OperationContext, item_id: str, verdict: Literal["accept", "reject"], *,
        comment: str, reviewer: str, if_match: str | None,
    ) -> Item:  # fmt: skip
        """A person's verdict on the exact content of the head."""
        ...


@runtime_checkable
class Probing(Protocol):
    """An engine that can be looked at before it is used."""

    def probe(self, context: Context) -> tuple[Check, ...]:
        """What can be found out about an instance that is about to be used; it raises nothing."""
        ...


@runtime_checkable
class KnowledgeEngine(Protocol):
    """An engine that keeps documents in datasets and builds graphs of them. Datasets lie in places, like memories."""

    def ingest(self, context: Context, where: OperationContext, new: IngestRequest) -> Dataset:
        """Keeps the texts in a dataset at `where.writes`, a new one where none is named."""
        ...

    def datasets(
        self, context: Context, where: OperationContext, *, scope: Scope | None, limit: int,
        after: tuple[str, str] | None,
    ) -> DatasetList: ...  # fmt: skip

    def build_graph(
        self, context: Context, where: OperationContext, dataset_ids: tuple[str, ...]
    ) -> tuple[Dataset, ...]: ...

    def search_graph(self, context: Context, where: OperationContext, asked: GraphSearchRequest) -> GraphFound: ...

    def begin(
        self, context: Context, where: OperationContext, asked: GraphSearchRequest
    ) -> Begun[tuple[GraphFound, Mapping[str, DatasetRow]]]:
        """A `search_graph` that is on its way when this returns.

        With what is found come our own rows of the datasets that were searched, by id.
        """
        ...

    def relations(self, context: Context, where: OperationContext, dataset_id: str) -> Relations: ...

    def delete_dataset(self, context: Context, where: OperationContext, dataset_id: str) -> Purged: ...
