"""Knowledge and graph: judged by the engine of the agent's policy."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

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
from memoranda.faces.http.calls import Call, taking
from memoranda.faces.http.parts import AgentId, Cursor, DatasetPath, Limit
from memoranda.service import knowledge
from memoranda.service.answers import DatasetPage

router = APIRouter(prefix="/v1/memory/agents/{agent_id}/knowledge", tags=["knowledge"])
Bare = Annotated[Call[Any], Depends(taking())]
_TEXTS = 64 << 20  # bytes: fifty texts


@router.post("", status_code=201, summary="Ingest")
def ingest(call: Annotated[Call[IngestRequest], Depends(taking(IngestRequest, _TEXTS))], agent_id: AgentId) -> Dataset:
    """Keeps 1 to 50 texts as a dataset's documents."""
    dataset: Dataset = knowledge.ingest(call.desk, call.caller, agent_id, call.body)
    return dataset


@router.get("/datasets", summary="List datasets")
def datasets(
    call: Bare,
    agent_id: AgentId,
    scope: Annotated[Scope | None, Query(description="Only this scope.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> DatasetPage:
    """The datasets, newest first, a page at a time."""
    caller = call.caller
    call.nothing()
    page: DatasetPage = knowledge.datasets(call.desk, caller, agent_id, scope=scope, limit=limit, cursor=cursor)
    return page


@router.post("/graph", summary="Build the graph")
def build_graph(
    call: Annotated[Call[GraphRequest], Depends(taking(GraphRequest))], agent_id: AgentId
) -> tuple[Dataset, ...]:
    """Builds the graph of datasets, and answers how they stand."""
    built: tuple[Dataset, ...] = knowledge.build_graph(call.desk, call.caller, agent_id, call.body)
    return built


@router.post("/search", summary="Search datasets")
def search(
    call: Annotated[Call[GraphSearchRequest], Depends(taking(GraphSearchRequest))], agent_id: AgentId
) -> GraphFound:
    """What datasets hold about a question."""
    found: GraphFound = knowledge.search_graph(call.desk, call.caller, agent_id, call.body)
    return found


@router.get("/datasets/{dataset_id}/relations", summary="Relations of a dataset")
def relations(call: Bare, agent_id: AgentId, dataset_id: DatasetPath) -> Relations:
    """The entities of a dataset, and what relates them."""
    caller = call.caller
    call.nothing()
    found: Relations = knowledge.relations(call.desk, caller, agent_id, dataset_id)
    return found


@router.delete("/datasets/{dataset_id}", summary="Delete a dataset")
def delete(call: Bare, agent_id: AgentId, dataset_id: DatasetPath) -> Purged:
    """Deletes a dataset with its documents and its graph."""
    caller = call.caller
    call.nothing()
    gone: Purged = knowledge.delete(call.desk, caller, agent_id, dataset_id)
    return gone
