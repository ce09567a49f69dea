"""A server in the place of Mem0, small and in this process: its routes, its answers and its traps, as they were seen.

It keeps everything in a dictionary and finds by common words. The real library behind the same routes, and where there
is one the real server, are asked by `tests/real/test_mem0_real.py`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

from tests.engines.component import Answer, Asked, Component, standing

KEY = "the-administrators-key"
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IDS = ("user_id", "agent_id", "run_id")
Fault = Callable[[Asked, Callable[[], Answer]], Answer]


class Mem0Server:
    """What Mem0 holds, and what it does. `fault` may answer instead of it, or after it has done what it was asked."""

    def __init__(self) -> None:
        self.keys = {KEY}
        self.rows: dict[str, dict[str, Any]] = {}
        self.history: dict[str, list[dict[str, Any]]] = {}
        self.model: Callable[[str], list[str]] = lambda text: [part.strip() for part in text.split(".") if part.strip()]
        self.fault: Fault | None = None
        self.today = date(2026, 10, 2)
        self.component: Component
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self.component.url

    @property
    def asked(self) -> list[Asked]:
        return self.component.asked

    def sent(self, method: str, path: str = "/memories") -> list[Asked]:
        """The calls with this method to this path or below it."""
        return [one for one in self.asked if one.method == method and urlsplit(one.path).path.startswith(path)]

    def __call__(self, asked: Asked) -> Answer:
        if self.fault is not None:
            return self.fault(asked, lambda: self.answer(asked))
        return self.answer(asked)

    def answer(self, asked: Asked) -> Answer:
        parts = urlsplit(asked.path)
        query = dict(parse_qsl(parts.query))
        if parts.path == "/auth/setup-status":
            return Answer(body={"needsSetup": False})
        if parts.path == "/openapi.json":
            return Answer(body={"info": {"title": "Mem0 REST APIs", "version": "1.0.0"}})
        if asked.headers.get("x-api-key") not in self.keys:
            return Answer(401, {"detail": "Invalid API key."})
        with self._lock:
            if parts.path == "/memories":
                return {"POST": self._add, "GET": self._list, "DELETE": self._delete_all}[asked.method](asked, query)
            if parts.path == "/search":
                return self._search(asked.json)
            match = re.fullmatch(r"/memories/([^/]+)(/history)?", parts.path)
            if match is None:
                return Answer(404, {"detail": "Not Found"})
            if not _UUID.fullmatch(match[1]):
                return Answer(502, {"detail": "unknown"})
            if match[2]:
                return Answer(body=self.history.get(match[1], []))
            if asked.method == "GET":
                return Answer(body=self._told(self.rows[match[1]]) if match[1] in self.rows else None)
            if match[1] not in self.rows:
                return Answer(404, {"detail": "Memory not found"})
            if asked.method == "DELETE":
                self._delete(match[1])
                return Answer(body={"message": "Memory deleted successfully"})
        return Answer(405, {})

    def _add(self, asked: Asked, _: dict[str, str]) -> Answer:
        told = asked.json
        ids = {name: told[name] for name in _IDS if told.get(name)}
        if not ids:
            return Answer(400, {"detail": "At least one identifier is required."})
        if "\0" in json.dumps(told, ensure_ascii=False):
            return Answer(502, {"detail": "unknown"})
        text = told["messages"][0]["content"]
        texts = self.model(text) if told.get("infer", True) else [text]
        made = [self._stored(one, ids, told) for one in texts]
        return Answer(body={"results": [{"id": r["id"], "memory": r["memory"], "event": "ADD"} for r in made]})

    def _stored(self, text: str, ids: dict[str, str], told: dict[str, Any]) -> dict[str, Any]:
        id, now = str(uuid4()), datetime.now(UTC).isoformat()
        row = {
            "id": id, "memory": text, "hash": "h", "metadata": dict(told.get("metadata") or {}), "created_at": now,
            "updated_at": None, "expiration_date": told.get("expiration_date"), **ids,
        }  # fmt: skip
        self.rows[id] = row
        self.history[id] = [{"memory_id": id, "event": "ADD", "old_memory": None, "new_memory": text}]
        return row

    def _there(self, filters: dict[str, Any], *, expired: bool) -> Iterator[dict[str, Any]]:
        for row in self.rows.values():
            has = {**row["metadata"], **row}
            fits = all(value == "*" or has.get(name) == value for name, value in filters.items())
            over = row["expiration_date"] is not None and row["expiration_date"] < self.today.isoformat()
            if fits and (expired or not over):
                yield row

    def _list(self, _: Asked, query: dict[str, str]) -> Answer:
        filters = {name: query[name] for name in _IDS if name in query}
        limit = int(query.get("top_k", 20 if filters else 1000))
        expired = query.get("show_expired") == "true" or not filters
        return Answer(body={"results": [self._told(row) for row in self._there(filters, expired=expired)][:limit]})

    def _search(self, told: dict[str, Any]) -> Answer:
        filters = told.get("filters") or {}
        if not set(filters) & set(_IDS):
            return Answer(400, {"detail": "filters must contain at least one of: user_id, agent_id, run_id."})
        asked, found = _words(told["query"]), []
        for row in self._there(filters, expired=bool(told.get("show_expired"))):
            words = _words(row["memory"])
            if common := asked & words:
                found.append({**self._told(row), "score": len(common) / (len(asked | words) ** 0.5)})
        found.sort(key=lambda row: -row["score"])
        return Answer(body={"results": found[: told.get("top_k", 20)]})

    def _delete(self, id: str) -> None:
        row = self.rows.pop(id)
        gone = {"memory_id": id, "event": "DELETE", "old_memory": row["memory"], "new_memory": None}
        self.history.setdefault(id, []).append(gone)

    def _delete_all(self, _: Asked, query: dict[str, str]) -> Answer:
        filters = {name: query[name] for name in _IDS if name in query}
        if not filters:
            return Answer(400, {"detail": "At least one identifier is required."})
        for row in list(self._there(filters, expired=True)):
            self._delete(row["id"])
        return Answer(body={"message": "All relevant memories deleted"})

    def _told(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "score": None}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


@contextmanager
def mem0_standing() -> Iterator[Mem0Server]:
    """A server that answers until the end."""
    server = Mem0Server()
    with standing(server) as component:
        server.component = component
        yield server
