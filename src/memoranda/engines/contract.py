"""The contract that every engine keeps: context, capabilities, each operation's request and result, and errors.

`contracts/v1/memory-provider.schema.json` and the OpenAPI document are generated from these types
(`schema_document`); a test holds the file against them. Names, defaults and closed sets are those of the requirement
documents, to the letter. Times are RFC 3339 texts; a naive one is UTC. Every model refuses fields that it does not
know.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

SCHEMA_VERSION: Literal["1.0"] = "1.0"

ProviderName = Literal["builtin", "mem0", "cognee"]
EngineName = Literal["builtin", "mem0", "cognee", "hybrid"]
Isolation = Literal["logical", "backend", "dedicated_instance"]  # from the weakest to the strongest
Scope = Literal["session", "user", "agent", "shared_agents", "project", "team", "organization", "global"]
Kind = Literal["episodic", "semantic", "procedural", "preference", "fact"]
Classification = Literal["public", "internal", "confidential", "restricted"]  # from the lowest to the highest
Mode = Literal["session", "long_term", "agent", "shared", "knowledge_graph"]
Origin = Literal["agent", "human", "external", "maintenance", "import"]
MemoryCapability = Literal[
    "remember", "recall", "search", "update", "forget", "list", "get", "purge", "get_health", "get_capabilities"
]
KnowledgeCapability = Literal["ingest_knowledge", "build_graph", "search_graph", "get_relations", "delete_dataset"]
SearchType = Literal["CHUNKS", "CHUNKS_LEXICAL", "SUMMARIES", "RAG_COMPLETION", "GRAPH_COMPLETION"]
Operation = Literal[
    "remember", "recall", "search", "update", "forget", "list", "get", "purge", "get_health", "get_capabilities",
    "ingest_knowledge", "build_graph", "search_graph", "get_relations", "delete_dataset",
    "export", "history", "review", "taint",
]  # fmt: skip

ISOLATIONS: tuple[str, ...] = get_args(Isolation)
CLASSIFICATION_ORDER: tuple[str, ...] = get_args(Classification)
MEMORY: tuple[MemoryCapability, ...] = get_args(MemoryCapability)
KNOWLEDGE: tuple[KnowledgeCapability, ...] = get_args(KnowledgeCapability)
MODE_OF: dict[str, Mode] = {
    "session": "session", "user": "long_term", "project": "long_term", "organization": "long_term",
    "global": "long_term", "agent": "agent", "shared_agents": "shared", "team": "shared",
}  # fmt: skip

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$")]
SessionId = Annotated[str, StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f]{1,128}$")]
Content = Annotated[str, StringConstraints(min_length=1, max_length=1_048_576)]
Query = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Uri = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
ItemId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$")]
Days = Annotated[int, Field(ge=1, le=36_500)]


class Model(BaseModel):
    """A value of the contract: immutable, and closed to unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _is_none(value: object) -> bool:
    return value is None


# The context


class Place(Model):
    """One owner's part of a scope: what a context may read, or writes to.

    `owner` is the id of the user, agent, project, team or organization; for `session` it is the session; for `global`
    it is empty.
    """

    scope: Scope
    owner: str


class OperationContext(Model):
    """Who asks, and where: derived on the server from the identity and the registry, never sent.

    `reads` are all places that this caller may be given anything from by this operation; `writes` is the one place that
    it writes to, None where it writes nothing.
    """

    tenant: Name
    organization: Name | None = None
    project: Name
    user: Name
    agent: Name
    session: SessionId | None = None
    scope: Scope | None = None
    team: Name | None = None
    reads: tuple[Place, ...] = ()
    writes: Place | None = None
    request_id: str = ""


# Capabilities and health


class CapabilityGroups(Model):
    """What an instance can do, in two groups."""

    memory: tuple[MemoryCapability, ...] = ()
    knowledge: tuple[KnowledgeCapability, ...] = ()


class CapabilityDocument(Model):
    """What an engine instance declares of itself; read without any credential of the engine."""

    schema_version: Literal["1.0"] = SCHEMA_VERSION
    provider: ProviderName
    engine_instance: str
    capabilities: CapabilityGroups


class InstanceCapabilities(CapabilityDocument):
    """The same, with what the caller's own tenant is guaranteed there."""

    isolation: Isolation
    session_memory: bool


class Health(Model):
    """How an engine is: `ok`, `degraded` (it answers, and something is missing) or `unavailable`."""

    engine_instance: str
    provider: ProviderName
    status: Literal["ok", "degraded", "unavailable"]
    detail: str = ""
    latency_ms: float | None = None


class Check(Model):
    """What was found out about an instance when it was declared; `ok` is None where it could not be."""

    name: Literal["reachable", "authenticated", "version", "access_control"]
    ok: bool | None
    detail: str = ""


# Memories


class RememberRequest(Model):
    """One memory to keep."""

    content: Content
    scope: Scope | None = Field(None, description="Left out: the policy's default_scope.")
    kind: Kind = "fact"
    classification: Classification = "internal"
    session_id: SessionId | None = None
    team: Name | None = None
    retention_days: Days | None = None
    legal_hold: bool = False
    source: Uri | None = None
    subject: Annotated[str, StringConstraints(max_length=400)] | None = None
    sources: Annotated[tuple[Uri, ...], Field(max_length=50)] = ()
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    supersedes: Annotated[tuple[ItemId, ...], Field(max_length=50)] = ()
    origin: Origin = "agent"


class UpdateRequest(Model):
    """What an item says from now on; a new item supersedes it."""

    content: Content


class RecallRequest(Model):
    """A question, for recall and for search alike."""

    query: Query
    scopes: Annotated[tuple[Scope, ...], Field(max_length=8)] = Field((), description="Empty: all that may be read.")
    top_k: Annotated[int, Field(ge=1, le=100)] | None = Field(None, description="Left out: the policy's recall_top_k.")
    session_id: SessionId | None = None
    budget: Annotated[int, Field(ge=1, le=100_000)] | None = None
    kinds: Annotated[tuple[Kind, ...], Field(max_length=5)] = ()
    as_of: str | None = None
    known_at: str | None = None


class PurgeRequest(Model):
    """Empties one scope of what the caller may write there; nothing happens without `confirm`."""

    scope: Scope
    confirm: bool = False
    team: Name | None = None
    session_id: SessionId | None = None


class ExportRequest(Model):
    """What may be read of `scopes` (empty: all that may be read)."""

    scopes: Annotated[tuple[Scope, ...], Field(max_length=8)] = ()
    format: Literal["zip", "ndjson", "bundle"] = "zip"


class Item(Model):
    """One memory. `etag` names its exact state; `content` is None where it was not asked for.

    `engine` is the instance that holds it, `state` current, ended, future or superseded, `trust` reviewed, unreviewed,
    contested, unclaimed or quarantined.
    """

    id: str
    engine: str
    scope: Scope
    owner: str
    kind: Kind
    subject: str | None = None
    content: str | None = None
    classification: Classification = "internal"
    sources: tuple[str, ...] = ()
    origin: Origin = "agent"
    confidence: float | None = None
    taint: tuple[str, ...] = ()
    reviewed: bool = False
    trust: str = "unreviewed"
    state: str = "current"
    valid_from: str | None = None
    valid_to: str | None = None
    recorded_at: str | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    retention_days: int | None = None
    legal_hold: bool = False
    etag: str = ""
    content_withheld: bool = Field(default=False, description="The injection filter blocks its words for agents.")
    generated: bool = Field(default=False, description="A model made it; `sources` says from what.")


class ScoredItem(Item):
    """A memory that was found. `why` says what made the score; `suspicious` what the injection filter doubts in it."""

    score: float
    why: dict[str, Any] = Field(default_factory=dict)
    suspicious: tuple[str, ...] = ()
    envelope: str = Field("", description="The same words as untrusted data, between markers: what a model is given.")


class Pointer(Model):
    """What was found and is not shown: an id, a kind and a time, none of its words."""

    id: str
    kind: str
    at: str


class Coverage(Model):
    """What an answer covers: what was looked at, left out, and by which engines."""

    engines: tuple[str, ...] = ()
    searched: int | None = None
    blocked: int = 0
    withheld: tuple[Pointer, ...] = ()
    notices: tuple[str, ...] = ()
    failed: tuple[str, ...] = Field(default=(), description="The engines that did not answer; the rest is what came.")


class Found(Model):
    """What an engine found, best first."""

    items: tuple[ScoredItem, ...] = ()
    coverage: Coverage = Coverage()


class Listed(Model):
    """One page of what an engine holds, newest first; `next` is where the following page begins, None at the end."""

    items: tuple[Item, ...] = ()
    next: tuple[str, str] | None = None


class Purged(Model):
    """What was taken away: `removed` counts items; `remains` says what could not be removed, and why."""

    removed: int
    remains: tuple[str, ...] = ()


class Gone(Purged):
    """An item that was forgotten, with its chain."""

    id: str


# Knowledge


class IngestRequest(Model):
    """Texts to keep as one dataset's documents."""

    texts: Annotated[tuple[Content, ...], Field(min_length=1, max_length=50)]
    scope: Scope = "agent"
    team: Name | None = None
    dataset_id: ItemId | None = None
    classification: Classification = "internal"
    retention_days: Days | None = None
    legal_hold: bool = False
    build_graph: bool = False


class GraphRequest(Model):
    """The datasets whose graph is to be built."""

    dataset_ids: Annotated[tuple[ItemId, ...], Field(min_length=1, max_length=50)]


class GraphSearchRequest(Model):
    """A question to datasets."""

    query: Query
    dataset_ids: Annotated[tuple[ItemId, ...], Field(max_length=50)] = ()
    top_k: Annotated[int, Field(ge=1, le=100)] = 10
    search_type: SearchType = "CHUNKS"


class Dataset(Model):
    """One dataset of documents."""

    id: str
    engine: str
    scope: Scope
    owner: str
    classification: Classification = "internal"
    documents: int = 0
    built: int = Field(0, description="How many of its documents are in its graph.")
    status: Literal["empty", "ingested", "building", "built", "failed"] = "ingested"
    created_at: str | None = None
    retention_days: int | None = None
    legal_hold: bool = False


class DatasetList(Model):
    """One page of datasets; `next` as in `Listed`."""

    items: tuple[Dataset, ...] = ()
    next: tuple[str, str] | None = None


class Passage(Model):
    """One thing found in a dataset."""

    dataset_id: str
    text: str
    score: float | None = Field(None, description="From 0 to 1, larger is better; of the same kind in every type.")
    source: str = Field("", description="The id of the document that it stands in, where that is one.")
    envelope: str = Field("", description="The same words as untrusted data, between markers: what a model is given.")
    suspicious: tuple[str, ...] = ()


class GraphFound(Model):
    """What a search of datasets found."""

    passages: tuple[Passage, ...] = ()
    coverage: Coverage = Coverage()


class Entity(Model):
    """A node of a graph."""

    id: str
    name: str
    type: str = ""


class Relation(Model):
    """An edge of a graph, between ids of entities."""

    source: str
    target: str
    relation: str


class Relations(Model):
    """The entities of a dataset and what relates them."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()


# The policy of an agent


class Policy(Model):
    """What an agent's memory may be. Every default is that of the requirement document."""

    modes: tuple[Mode, ...] = ("session", "long_term", "agent")
    write_scopes: tuple[Scope, ...] = ("session", "user", "agent")
    read_scopes: tuple[Scope, ...] = ("session", "user", "agent")
    default_scope: Scope = "user"
    allowed_kinds: tuple[Kind, ...] = ("episodic", "semantic", "procedural", "preference", "fact")
    max_classification: Classification = "confidential"
    allow_personal_data: bool = True
    retention_days: Days | None = None
    legal_hold: bool = False
    infer: bool = False
    shared_with: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    teams: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    global_access: bool = False
    required_isolation: Isolation = "logical"
    recall_top_k: Annotated[int, Field(ge=1, le=100)] = 8


class PolicyBody(Model):
    """The body of `PUT …/policy`: which engine, and the policy."""

    engine: EngineName = "builtin"
    mem0_instance: Name | None = None
    cognee_instance: Name | None = None
    policy: Policy = Policy()


class PolicyVersion(PolicyBody):
    """A policy as it stands, or stood: `version` counts from 1; version 0 is the default that nobody has changed."""

    version: int
    created_at: str | None = None
    created_by: str | None = None
    restored_from: int | None = None


# Engine instances


class InstanceDeclaration(Model):
    """An engine instance as a platform administrator declares it."""

    id: Name
    provider: Literal["mem0", "cognee"]
    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/@?#]+[^\s@?#]*$", max_length=500)]
    tenant_id: Name | None = Field(None, description="Dedicates the instance to this tenant.")
    credential_ref: Annotated[str, StringConstraints(pattern=r"^(openbao|env)://\S+$", max_length=500)] | None = None
    access_control: bool = False
    tls_verify: bool = True
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = 30
    manager_cluster: Name | None = None
    manager_service: Name | None = None


class CredentialBody(Model):
    """A tenant's own key on a shared instance: a reference, never the key."""

    credential_ref: Annotated[str, StringConstraints(pattern=r"^openbao://\S+$", max_length=500)]


# Errors


class Problem(Model):
    """RFC 9457, with a stable `code`. It names no tenant, no other caller, and no content."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    why: str | None = None
    remedy: str | None = None
    retry_after: int | None = Field(None, exclude_if=_is_none, description="Seconds until an engine is asked again.")
    item_id: str | None = Field(
        None, exclude_if=_is_none, description="The item of a write of which it is not known whether it is kept."
    )
