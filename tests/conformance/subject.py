"""What the suite asks: an engine, and the words for it that make a test short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import Item, OperationContext, RecallRequest, RememberRequest, Scope, UpdateRequest
from tests.engines.asking import asking


@dataclass
class Subject:
    """An engine under test; `sessions` is the builtin whose sessions count for it."""

    name: str
    engine: Any
    sessions: Builtin

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

    def listed(self, context: Context, where: OperationContext | None = None, **more: Any) -> list[Item]:
        told = {"scope": None, "limit": 50, "after": None, **more}
        return list(self.engine.list(context, where or asking(), **told).items)
