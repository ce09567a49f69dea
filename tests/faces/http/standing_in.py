"""Stand-ins for the operations of the service: what the face hands to them, and what it makes of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from memoranda.engines import contract as c
from memoranda.engines.contract import Item
from memoranda.errors import (
    CapabilityUnsupported,
    ComponentUnavailable,
    ConfirmationRequired,
    Forbidden,
    NotFound,
    PreconditionFailed,
    Unauthenticated,
)
from memoranda.service import answers as a

TOKENS = {"ana": "acme", "bob": "umbrella"}
AUTH = {"authorization": "Bearer ana"}


class StandIns:
    """An operation is found by its name, whatever its family; `told` keeps what it was called with."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.told: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.claims: list[Mapping[str, str]] = []
        self.fails: Exception | None = None

    # who calls

    def authenticate(self, desk: Any, context: Any, bearer: str | None, request_id: str) -> Any:
        if bearer not in TOKENS:
            raise Unauthenticated("Nobody is known by this credential.")
        return SimpleNamespace(tenant=TOKENS[bearer], user=bearer, request_id=request_id, context=context)

    def refuse_claims(self, desk: Any, caller: Any, claims: Mapping[str, str]) -> None:
        self.claims.append(claims)
        for word, value in claims.items():
            if value != getattr(caller, word, None):
                raise Forbidden(f"The {word} of a request is not for the caller to say.")

    def seen(self, name: str, *given: Any, **named: Any) -> None:
        self.told.append((name, given, named))
        if self.fails is not None:
            raise self.fails

    # memories

    def remember(self, desk: Any, caller: Any, agent_id: str, new: c.RememberRequest, **named: Any) -> Item:
        self.seen("remember", caller, agent_id, new, **named)
        item_id = f"mem_{len(self.items):04d}"
        item = Item(
            id=item_id, engine="builtin", scope=new.scope or "user", owner=caller.user, kind=new.kind,
            content=new.content, etag=f"e{len(self.items)}",
        )  # fmt: skip
        self.items[item_id] = item
        return item

    def list_items(self, desk: Any, caller: Any, agent_id: str, **named: Any) -> a.Page:
        self.seen("list_items", caller, agent_id, **named)
        shown = list(self.items.values())
        if not named["include_content"]:
            shown = [item.model_copy(update={"content": None}) for item in shown]
        return a.Page(items=tuple(shown[: named["limit"]]))

    def recall(self, desk: Any, caller: Any, agent_id: str, asked: c.RecallRequest) -> a.RecallAnswer:
        self.seen("recall", caller, agent_id, asked)
        return a.RecallAnswer(budget=a.Budget(limit=asked.budget or 2000, used=0))

    def search(self, desk: Any, caller: Any, agent_id: str, asked: c.RecallRequest) -> a.SearchAnswer:
        self.seen("search", caller, agent_id, asked)
        return a.SearchAnswer()

    def get(self, desk: Any, caller: Any, agent_id: str, item_id: str, **named: Any) -> Item:
        self.seen("get", caller, agent_id, item_id, **named)
        if item_id not in self.items:
            raise NotFound("There is no such memory.")
        return self.items[item_id]

    def update(
        self, desk: Any, caller: Any, agent_id: str, item_id: str, change: c.UpdateRequest, **named: Any
    ) -> Item:
        self.seen("update", caller, agent_id, item_id, change, **named)
        if item_id not in self.items:
            raise NotFound("There is no such memory.")
        if named["if_match"] not in (None, self.items[item_id].etag):
            raise PreconditionFailed("It has changed meanwhile.")
        return self.items[item_id].model_copy(update={"content": change.content, "etag": "new"})

    def forget(self, desk: Any, caller: Any, agent_id: str, item_id: str, **named: Any) -> c.Gone:
        self.seen("forget", caller, agent_id, item_id, **named)
        if self.items.pop(item_id, None) is None:
            raise NotFound("There is no such memory.")
        return c.Gone(id=item_id, removed=1)

    def purge(self, desk: Any, caller: Any, agent_id: str, asked: c.PurgeRequest, **named: Any) -> c.Purged:
        self.seen("purge", caller, agent_id, asked, **named)
        if not asked.confirm:
            raise ConfirmationRequired("Nothing was removed.")
        return c.Purged(removed=0)

    def export(self, desk: Any, caller: Any, agent_id: str, asked: c.ExportRequest) -> Any:
        self.seen("export", caller, agent_id, asked)
        return SimpleNamespace(file_name="memories.zip", media_type="application/zip", chunks=lambda: iter([b"PK"]))

    def history(self, desk: Any, caller: Any, agent_id: str, item_id: str, **named: Any) -> a.History:
        return a.History(id=item_id, links=(a.Link(item=self.get(desk, caller, agent_id, item_id), head=True),))

    def review(self, desk: Any, caller: Any, agent_id: str, item_id: str, verdict: a.ReviewRequest) -> Item:
        return self.get(desk, caller, agent_id, item_id)

    def taint(self, desk: Any, caller: Any, agent_id: str, session_id: str, told: a.TaintRequest) -> a.TaintAnswer:
        self.seen("taint", caller, agent_id, session_id, told)
        return a.TaintAnswer(session_id=session_id, taint=("external",))

    # policies and engines

    def get_policy(self, desk: Any, caller: Any, agent_id: str) -> c.PolicyVersion:
        self.seen("get_policy", caller, agent_id)
        return c.PolicyVersion(version=0)

    def put_policy(self, desk: Any, caller: Any, agent_id: str, body: c.PolicyBody, **named: Any) -> c.PolicyVersion:
        self.seen("put_policy", caller, agent_id, body, **named)
        return c.PolicyVersion(version=1, **dict(body))

    def policy_versions(self, desk: Any, caller: Any, agent_id: str) -> a.PolicyVersions:
        return a.PolicyVersions(versions=())

    def restore_policy(self, desk: Any, caller: Any, agent_id: str, version: int, **named: Any) -> c.PolicyVersion:
        self.seen("restore_policy", caller, agent_id, version, **named)
        return c.PolicyVersion(version=2, restored_from=version)

    def etag(self, version: c.PolicyVersion) -> str:
        return f"v{version.version}"

    def list_engines(self, desk: Any, caller: Any) -> a.Engines:
        return a.Engines(engines=(a.Instance(id="builtin", provider="builtin", origin="builtin"),))

    def capabilities(self, desk: Any, caller: Any, engine_id: str) -> c.InstanceCapabilities:
        return c.InstanceCapabilities(
            provider="builtin", engine_instance=engine_id, capabilities=c.CapabilityGroups(memory=c.MEMORY),
            isolation="logical", session_memory=True,
        )  # fmt: skip

    def health(self, desk: Any, caller: Any, engine_id: str) -> c.Health:
        return c.Health(engine_instance=engine_id, provider="builtin", status="ok")

    def declare(self, desk: Any, caller: Any, new: c.InstanceDeclaration) -> a.Instance:
        return a.Instance(id=new.id, provider=new.provider, origin="declared")

    def remove(self, desk: Any, caller: Any, engine_id: str) -> None:
        self.seen("remove", caller, engine_id)

    def set_credential(self, desk: Any, caller: Any, engine_id: str, body: c.CredentialBody) -> a.CredentialSet:
        return a.CredentialSet(engine_id=engine_id, set=True)

    def remove_credential(self, desk: Any, caller: Any, engine_id: str) -> a.CredentialSet:
        return a.CredentialSet(engine_id=engine_id, set=False)

    # knowledge

    def ingest(self, desk: Any, caller: Any, *rest: Any, **named: Any) -> Any:
        raise CapabilityUnsupported("builtin keeps no knowledge.")

    datasets = build_graph = search_graph = relations = delete = ingest


class Component:
    """A component that can be down."""

    def __init__(self) -> None:
        self.up = True

    def ready(self) -> None:
        if not self.up:
            raise ComponentUnavailable("http://opa.internal:8181 does not answer.")


def desk() -> Any:
    names = ("database", "relations", "decisions", "injection", "audit")
    return SimpleNamespace(**{name: Component() for name in names})
