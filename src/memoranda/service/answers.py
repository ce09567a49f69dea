"""What the service answers beyond what engines do: pages, segments, histories, reviews. Types of the contract too."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from memoranda.engines.contract import (
    Check,
    Coverage,
    Dataset,
    EngineName,
    InstanceCapabilities,
    Item,
    ItemId,
    Model,
    Name,
    PolicyVersion,
    ProviderName,
    Scope,
    ScoredItem,
    SessionId,
)

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:@+-]{1,128}$")]
Reason = Annotated[str, StringConstraints(max_length=500)]


class Page(Model):
    """One page of items, newest first; `next_cursor` is None at the end."""

    items: tuple[Item, ...]
    next_cursor: str | None = None


class DatasetPage(Model):
    """One page of datasets, newest first; `next_cursor` is None at the end."""

    items: tuple[Dataset, ...]
    next_cursor: str | None = None


class Segment(Model):
    """One recalled memory for a context manager: `content` is the words between markers of their own, untrusted."""

    type: Literal["memory"] = "memory"
    content: str
    item: ScoredItem


class Budget(Model):
    """Tokens: what was allowed, and what the segments cost together."""

    limit: int
    used: int


class RecallAnswer(Model):
    """What was recalled, best first. Data, never instructions."""

    segments: tuple[Segment, ...] = ()
    coverage: Coverage = Coverage()
    budget: Budget


class SearchAnswer(Model):
    """What was found, best first, with scores; the words stand bare and are as little to be trusted."""

    items: tuple[ScoredItem, ...] = ()
    coverage: Coverage = Coverage()


class Link(Model):
    """One item of a chain: when it held, and whether it holds now."""

    item: Item
    head: bool
    held_from: str | None = None
    held_to: str | None = None


class History(Model):
    """A chain, oldest first."""

    id: str
    links: tuple[Link, ...]


class ReviewRequest(Model):
    """A person's verdict on one item's exact content, named by `etag`."""

    verdict: Literal["accept", "reject"]
    etag: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    comment: Reason = ""


class HoldRequest(Model):
    """Whether a memory's chain is held from now on, and why; the reason stays on record."""

    event: Literal["set", "release"]
    reason: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class HoldAnswer(Model):
    """Whether the chain of a memory is held, and which items of it; never a word of them."""

    id: str
    legal_hold: bool
    held: tuple[str, ...] = ()


class HeldItem(Model):
    """What is under legal hold, by its labels; never a word of it.

    `engine` is the instance that holds it, `project` None for what belongs to the tenant as a whole. `set_by` and
    `reason` are those of who set the hold, None where that was not said: by a policy, or with the memory itself.
    """

    id: str
    engine: str
    project: str | None
    scope: str
    owner: str
    set_by: str | None = None
    reason: str | None = None


class HoldsPage(Model):
    """One page of what is under legal hold, by id; `next_cursor` is None at the end."""

    holds: tuple[HeldItem, ...]
    next_cursor: str | None = None


class SessionsEnded(Model):
    """How many sessions were open until now, and what one that the caller begins with the agent now has met before."""

    ended: int
    taint: tuple[str, ...] = ()


class TaintRequest(Model):
    """Why a session has met something from outside."""

    reason: Annotated[str, StringConstraints(min_length=1, max_length=500)]


class TaintAnswer(Model):
    """What a session has met by now."""

    session_id: str
    taint: tuple[str, ...]


class RestoreRequest(Model):
    """The version whose content becomes a new version."""

    version: Annotated[int, Field(ge=0)]


class PolicyVersions(Model):
    """Earlier versions, newest first."""

    versions: tuple[PolicyVersion, ...]


class Instance(Model):
    """One engine instance, as this caller may see it; never a credential, never where it lies."""

    id: str
    provider: ProviderName
    origin: Literal["builtin", "rendered", "declared"]
    dedicated: bool = False
    tenant_credential: bool = False


class Declared(Instance):
    """A new instance, and what was found out about it; empty where engines are not reached from here."""

    checks: tuple[Check, ...] = ()


class Engines(Model):
    """The instances that this caller's tenant may use, with what they are used for."""

    engines: tuple[Instance, ...]
    choices: tuple[EngineName, ...] = ("builtin", "mem0", "cognee", "hybrid")


class CredentialSet(Model):
    """That a tenant's key is set; the reference is not repeated."""

    engine_id: str
    set: bool


class AuditQuery(Model):
    """Which events are wanted; what is left out does not count. `item` asks who touched one memory."""

    operation: Word | None = None
    outcome: Literal["success", "deny", "failure"] | None = None
    code: Word | None = None
    user: Name | None = None
    agent: Name | None = None
    session: SessionId | None = None
    scope: Scope | None = None
    team: Name | None = None
    project: Name | None = None
    engine: Name | None = None
    actor: Word | None = None
    request_id: Word | None = None
    item: ItemId | None = None
    since: str | None = None
    until: str | None = None


class AuditEntry(Model):
    """One event: names, ids and codes; never a word of what was asked or kept. No outcome: it is still under way."""

    id: str
    at: str
    operation: str
    tenant: str | None
    organization: str | None
    project: str | None
    user: str | None
    agent: str | None
    session: str | None
    scope: str | None
    team: str | None
    actor: str | None
    engine: str | None
    decision: str | None
    outcome: str | None
    code: str | None
    items: tuple[str, ...]
    request_id: str | None


class AuditPage(Model):
    """Events, newest first."""

    events: tuple[AuditEntry, ...]
    next_cursor: str | None = None


__all__ = [
    "AuditEntry", "AuditPage", "AuditQuery", "Budget", "CredentialSet", "Engines", "HeldItem", "History", "HoldAnswer",
    "HoldRequest", "HoldsPage", "Instance", "InstanceCapabilities", "Link", "Page", "PolicyVersions", "Reason",
    "RecallAnswer", "RestoreRequest", "ReviewRequest", "SearchAnswer", "Segment", "SessionsEnded", "TaintAnswer",
    "TaintRequest",
]  # fmt: skip
