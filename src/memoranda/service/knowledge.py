"""Knowledge of an agent: judged by the engine of its policy. builtin announces none of it and answers so."""

from __future__ import annotations

from memoranda.engines.contract import (
    Dataset,
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
from memoranda.service.answers import DatasetPage
from memoranda.service.caller import Caller
from memoranda.service.case import Case
from memoranda.service.cursors import seal, unseal
from memoranda.service.desk import Desk
from memoranda.service.memories import changeable
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
        return _engine(case).ingest(case.context, case.where, _by_policy(case, new))

    return perform(case, keep, items=lambda dataset: (dataset.id,))


def _by_policy(case: Case, new: IngestRequest) -> IngestRequest:
    """As the policy has it: the shorter retention, and a hold that is on for everything."""
    policy = case.policy.policy
    days = [days for days in (new.retention_days, policy.retention_days) if days is not None]
    hold = new.legal_hold or policy.legal_hold
    return new.model_copy(update={"retention_days": min(days, default=None), "legal_hold": hold})


def datasets(
    desk: Desk, caller: Caller, agent_id: str, *, scope: Scope | None, limit: int, cursor: str | None
) -> DatasetPage:
    """One page of datasets, newest first."""
    case = Case(desk, caller, "list_datasets", agent_id, scope=scope)

    def page(case: Case) -> DatasetPage:
        where = case.where
        about = ("datasets", where.user, where.agent, where.project, scope or "")
        after = None if cursor is None else unseal(desk.keys, case.tenant, about, cursor)
        listed = _engine(case).datasets(case.context, where, scope=scope, limit=limit, after=after)
        following = None if listed.next is None else seal(desk.keys, case.tenant, about, listed.next)
        return DatasetPage(items=listed.items, next_cursor=following)

    return perform(case, page, items=lambda page: [dataset.id for dataset in page.items])


def build_graph(desk: Desk, caller: Caller, agent_id: str, asked: GraphRequest) -> tuple[Dataset, ...]:
    """Has the graph of datasets built."""
    case = Case(desk, caller, "build_graph", agent_id)

    def build(case: Case) -> tuple[Dataset, ...]:
        return _engine(case).build_graph(case.context, changeable(case), asked.dataset_ids)

    return perform(case, build, items=lambda built: [dataset.id for dataset in built])


def search_graph(desk: Desk, caller: Caller, agent_id: str, asked: GraphSearchRequest) -> GraphFound:
    """Passages of datasets for a question."""
    case = Case(desk, caller, "search_graph", agent_id, labels={"search_type": asked.search_type})

    def search(case: Case) -> GraphFound:
        return _filtered(case, _engine(case).search_graph(case.context, case.where, asked))

    return perform(case, search, items=lambda found: [passage.dataset_id for passage in found.passages])


def _filtered(case: Case, found: GraphFound) -> GraphFound:
    """Past the injection filter: what it blocks is dropped and counted, what it doubts is labelled."""
    if not found.passages:
        return found
    verdicts = case.desk.injection.judge([passage.text for passage in found.passages])
    kept = tuple(
        passage.model_copy(update={"suspicious": verdict.suspicious}) if verdict.suspicious else passage
        for passage, verdict in zip(found.passages, verdicts, strict=True)
        if not verdict.blocked
    )
    blocked = len(found.passages) - len(kept)
    return GraphFound(passages=kept, coverage=found.coverage.model_copy(update={"blocked": blocked}))


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
        return _engine(case).delete_dataset(case.context, changeable(case), dataset_id)

    return perform(case, remove, items=lambda _: (dataset_id,))
