"""Mem0's routes, as far as they are used: each names exact identifiers, and nothing here could leave them out.

Mem0 lists everything to an administrator who names nobody, and deletes by whatever filter it is given; its keys bound
no memory. So a place is named by its own identifier (`user_id`), an item by that and by its run (`run_id`), or by
Mem0's own id, which is a UUID or is not sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from memoranda.engines.connection import Answer, Connection
from memoranda.engines.naming import Named
from memoranda.errors import EngineUnavailable, InvalidNote
from memoranda.values import dataclass

MOST = 1000  # that Mem0 gives at once
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAME = re.compile(r"[0-9a-f]{32}:[^\s*]+")


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as Mem0 tells of it. `score` is of a search: larger is nearer."""

    id: str
    text: str
    user_id: str
    run_id: str
    metadata: Mapping[str, Any]
    score: float = 0.0


class Routes:
    """The routes of one instance."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self, tenant: str, place: Named, item: str, agent: str, text: str, metadata: Mapping[str, Any], *, infer: bool,
        expires: str | None,
    ) -> list[tuple[str, str]]:  # fmt: skip
        """(id, words) of what was stored at a place as this item; EngineUnavailable when nothing was."""
        body = {
            "messages": [{"role": "user", "content": text}], "user_id": _name(place.place),
            "agent_id": _name(place.agent(agent)), "run_id": _name(place.item(item)), "metadata": dict(metadata),
            "infer": infer,
        }  # fmt: skip
        if expires is not None:
            body["expiration_date"] = expires
        answer = self._ask(tenant, "POST", "/memories", json=body)
        if answer.status in (400, 422):
            raise InvalidNote("The engine does not take this memory.", why=f"It answered with status {answer.status}.")
        made = [(row.get("id"), row.get("memory")) for row in self._results(answer) if row.get("event") == "ADD"]
        if not made:
            nothing = self._connection.odd(answer, "It answered that it stored nothing.")
            nothing.asked = False  # it has said what it did
            raise nothing
        if not all(isinstance(id, str) and _UUID.fullmatch(id) and isinstance(words, str) for id, words in made):
            raise self._connection.odd(answer, "It stored something under an id that is none.")
        return [(str(id), str(words)) for id, words in made]

    def stored(self, tenant: str, place: Named, item: str) -> list[Memory]:
        """What lies at a place as this item."""
        query = {"user_id": _name(place.place), "run_id": _name(place.item(item)), "show_expired": "true"}
        answer = self._ask(tenant, "GET", "/memories", query={**query, "top_k": str(MOST)})
        return [self._memory(answer, row) for row in self._results(answer)]

    def at(self, tenant: str, place: Named) -> list[Memory]:
        """What lies at a place, at most `MOST`."""
        query = {"user_id": _name(place.place), "top_k": str(MOST), "show_expired": "true"}
        answer = self._ask(tenant, "GET", "/memories", query=query)
        return [self._memory(answer, row) for row in self._results(answer)]

    def get(self, tenant: str, id: str) -> Memory | None:
        """The memory with Mem0's own id; None where there is none."""
        if not _UUID.fullmatch(id):
            return None
        answer = self._ask(tenant, "GET", f"/memories/{id}")
        if answer.status == 404 or (answer.status == 200 and answer.data is None):
            return None
        self._expect(answer)
        if not isinstance(answer.data, dict):
            raise self._connection.odd(answer, "It answered something else than a memory.")
        return self._memory(answer, answer.data)

    def search(self, tenant: str, place: Named, query: str, top_k: int, *, expired: bool) -> list[Memory]:
        """What is found at one place, best first."""
        body = {
            "query": query, "filters": {"user_id": _name(place.place)}, "top_k": min(top_k, MOST),
            "show_expired": expired,
        }  # fmt: skip
        answer = self._ask(tenant, "POST", "/search", json=body)
        return [self._memory(answer, row) for row in self._results(answer)]

    def delete(self, tenant: str, id: str) -> bool:
        """Whether it was there; it is not any more."""
        if not _UUID.fullmatch(id):
            return False
        answer = self._ask(tenant, "DELETE", f"/memories/{id}")
        if answer.status == 404:
            return False
        self._expect(answer)
        if not isinstance(answer.data, dict) or "message" not in answer.data:
            raise self._connection.odd(answer, "It did not say that it has deleted it.")
        return True

    def remembered_of(self, tenant: str, id: str) -> int | None:
        """How many rows of its history Mem0 keeps of a memory that it no longer has; None: it did not say."""
        if not _UUID.fullmatch(id):
            return 0
        try:
            answer = self._ask(tenant, "GET", f"/memories/{id}/history")
        except EngineUnavailable:  # what was removed is removed: whoever asked tells that this is not known
            return None
        if answer.status == 200 and isinstance(answer.data, list):
            return len(answer.data)
        return 0 if answer.status == 404 else None

    def ready(self) -> None:
        """EngineUnavailable unless it answers; nobody's key is sent."""
        answer = self._connection.public("GET", "/auth/setup-status")
        self._expect(answer)
        if not isinstance(answer.data, dict) or "needsSetup" not in answer.data:
            raise self._connection.odd(answer, "What answers there is no Mem0.")

    def admitted(self, tenant: str | None, probe: Named) -> None:
        """EngineUnavailable unless the key is accepted: a place that nobody has is listed."""
        answer = self._ask(tenant, "GET", "/memories", query={"user_id": _name(probe.place), "top_k": "1"})
        self._results(answer)

    def refuses_strangers(self, probe: Named) -> bool:
        """Whether the same call without a key is refused."""
        query = {"user_id": _name(probe.place), "top_k": "1"}
        return self._connection.public("GET", "/memories", query=query).status in (401, 403)

    def version(self) -> str | None:
        """What it says of itself; None where it says nothing."""
        answer = self._connection.public("GET", "/openapi.json")
        info = answer.data.get("info") if answer.status == 200 and isinstance(answer.data, dict) else None
        version = info.get("version") if isinstance(info, dict) else None
        return version if isinstance(version, str) and len(version) <= 40 else None

    # Between

    def _ask(self, tenant: str | None, method: str, path: str, **more: Any) -> Answer:
        return self._connection.ask(tenant, method, path, **more)

    def _expect(self, answer: Answer) -> None:
        if answer.status != 200:
            self._refused(answer)

    def _refused(self, answer: Answer) -> NoReturn:
        error: EngineUnavailable = self._connection.odd(answer)
        error.asked = answer.status >= 500  # else it was understood, and not done
        raise error

    def _results(self, answer: Answer) -> list[Mapping[str, Any]]:
        self._expect(answer)
        rows = answer.data.get("results") if isinstance(answer.data, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._connection.odd(answer, "It answered something else than a list of memories.")
        return rows

    def _memory(self, answer: Answer, row: Mapping[str, Any]) -> Memory:
        metadata = row.get("metadata")
        id, text, score = row.get("id"), row.get("memory"), row.get("score")
        if not isinstance(id, str) or not isinstance(text, str):
            raise self._connection.odd(answer, "It answered something else than a memory.")
        return Memory(
            id, text, str(row.get("user_id") or ""), str(row.get("run_id") or ""),
            metadata if isinstance(metadata, dict) else {},
            float(score) if isinstance(score, int | float) and not isinstance(score, bool) else 0.0,
        )  # fmt: skip


def _name(name: str) -> str:
    """An identifier of ours, or nothing is sent: no wildcard, no empty one."""
    if not _NAME.fullmatch(name):
        raise ValueError("this names nobody")
    return name
