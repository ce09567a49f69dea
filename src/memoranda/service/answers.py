"""What the service answers beyond what engines do: pages, segments, histories, reviews. Types of the contract too."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from memoranda.engines.contract import (
    Coverage,
    EngineName,
    InstanceCapabilities,
    Item,
    Model,
    PolicyVersion,
    ProviderName,
    ScoredItem,
)

Reason = Annotated[str, StringConstraints(max_length=500)]


class Page(Model):
    """One page of items, newest first; `next_cursor` is None at the end."""

    items: tuple[Item, ...]
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


class Engines(Model):
    """The instances that this caller's tenant may use, with what they are used for."""

    engines: tuple[Instance, ...]
    choices: tuple[EngineName, ...] = ("builtin", "mem0", "cognee", "hybrid")


class CredentialSet(Model):
    """That a tenant's key is set; the reference is not repeated."""

    engine_id: str
    set: bool


__all__ = [
    "Budget", "CredentialSet", "Engines", "History", "Instance", "InstanceCapabilities", "Link", "Page",
    "PolicyVersions", "Reason", "RecallAnswer", "RestoreRequest", "ReviewRequest", "SearchAnswer", "Segment",
    "TaintAnswer", "TaintRequest",
]  # fmt: skip
