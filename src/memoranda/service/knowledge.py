"""Knowledge of an agent: judged by the engine of its policy. builtin announces none of it and answers so."""

from __future__ import annotations

from memoranda.engines.contract import (
    Dataset,
    DatasetList,
    GraphFound,
    GraphRequest,
    GraphSearchRequest,
    IngestRequest,
    Purged,
    Relations,
    Scope,
)
from memoranda.engines.provider import KnowledgeEngine
from memoranda.errors import CapabilityUnsupported
from memoranda.service.caller import Caller
from memoranda.service.case import Case
from memoranda.service.desk import Desk
from memoranda.service.pipeline import perform


def _engine(case: Case) -> KnowledgeEngine:
    if not isinstance(case.engine, KnowledgeEngine):  # a guard has compared what it announces
        raise CapabilityUnsupported(f"The engine of this agent does not announce {case.operation}.")
    return case.engine


def ingest(desk: Desk, caller: Caller, agent_id: str, new: IngestRequest) -> Dataset:
    """Keeps texts as documents of one dataset."""
    case = Case(
        desk, caller, "ingest_knowledge", agent_id, scope=new.scope, team=new.team, classification=new.classification,
        fields=tuple(("text", text) for text in new.texts),
        labels={"legal_hold": new.legal_hold, "builds_graph": new.build_graph},
    )  # fmt: skip

    def keep(case: Case) -> Dataset:
        return _engine(case).ingest(case.context, case.where, new)

    return perform(case, keep, items=lambda dataset: (dataset.id,))


def datasets(
    desk: Desk, caller: Caller, agent_id: str, *, scope: Scope | None, limit: int, cursor: str | None
) -> DatasetList:
    """One page of datasets."""
    case = Case(desk, caller, "list_datasets", agent_id, scope=scope)

    def page(case: Case) -> DatasetList:
        return _engine(case).datasets(case.context, case.where, scope=scope, limit=limit, cursor=cursor)

    return perform(case, page, items=lambda page: [dataset.id for dataset in page.items])


def build_graph(desk: Desk, caller: Caller, agent_id: str, asked: GraphRequest) -> tuple[Dataset, ...]:
    """Has the graph of datasets built."""
    case = Case(desk, caller, "build_graph", agent_id)

    def build(case: Case) -> tuple[Dataset, ...]:
        return _engine(case).build_graph(case.context, case.where, asked.dataset_ids)

    return perform(case, build, items=lambda built: [dataset.id for dataset in built])


def search_graph(desk: Desk, caller: Caller, agent_id: str, asked: GraphSearchRequest) -> GraphFound:
    """Passages of datasets for a question."""
    case = Case(desk, caller, "search_graph", agent_id, labels={"search_type": asked.search_type})

    def search(case: Case) -> GraphFound:
        return _engine(case).search_graph(case.context, case.where, asked)

    return perform(case, search, items=lambda found: [passage.dataset_id for passage in found.passages])


def relations(desk: Desk, caller: Caller, agent_id: str, dataset_id: str) -> Relations:
    """The entities of a dataset and what relates them."""
    case = Case(desk, caller, "get_relations", agent_id)

    def read(case: Case) -> Relations:
        return _engine(case).relations(case.context, case.where, dataset_id)

    return perform(case, read, items=lambda _: (dataset_id,))


def delete(desk: Desk, caller: Caller, agent_id: str, dataset_id: str) -> Purged:
    """Takes a dataset away."""
    case = Case(desk, caller, "delete_dataset", agent_id)

    def remove(case: Case) -> Purged:
        return _engine(case).delete_dataset(case.context, case.where, dataset_id)

    return perform(case, remove, items=lambda _: (dataset_id,))
