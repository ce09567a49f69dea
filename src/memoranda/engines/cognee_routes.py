"""Cognee's HTTP routes, as far as they are used, and what its answers mean.

A credential is an API key (`X-Api-Key`), or `email:password` of a user of Cognee's: then a session is begun and kept,
which spares the time that Cognee takes to hash a key at each call. No call bears a session of Cognee's but completions,
each one of its own: Cognee would put what was asked before in front of the next question, whichever dataset it is to.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

from memoranda.engines.connection import Answer, Connection, Secret
from memoranda.errors import EngineUnavailable, NotFound
from memoranda.values import dataclass

_API = "/api/v1"
_RENEW = 2700.0  # seconds after which a session is begun anew; Cognee's last an hour
_SESSIONS = 1000
_PAGE = 1000
Building = Literal["none", "started", "completed", "errored"]
_BUILDING: dict[str, Building] = {
    "DATASET_PROCESSING_INITIATED": "started", "DATASET_PROCESSING_STARTED": "started",
    "DATASET_PROCESSING_COMPLETED": "completed", "DATASET_PROCESSING_ERRORED": "errored",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that a search found: in which dataset of Cognee's, its words, the document, and how far away it is.

    `document` and `distance` are None where Cognee tells none; `rank` counts from 0 within the dataset.
    """

    dataset: str
    text: str
    document: str | None
    distance: float | None
    rank: int


class Routes:
    """One instance of Cognee. Thread-safe. Every method raises EngineUnavailable for what cannot be used."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection, self._clock = connection, clock
        self._lock = threading.Lock()
        self._sessions: dict[str, tuple[str, float]] = {}

    # Datasets and documents

    def dataset(self, tenant: str, name: str) -> str:
        """The id of the dataset of this name, which is made where there is none."""
        answer = self._ask(tenant, "POST", "/datasets", json={"name": name})
        return self._text(answer, "id")

    def add(self, tenant: str, dataset: str, texts: Sequence[tuple[str, str]]) -> None:
        """Gives texts, each under a name, to a dataset. What `named` finds afterwards is kept."""
        content, kind = _form(dataset, texts)
        answer = self._ask(tenant, "POST", "/add", content=content, headers={"content-type": kind})
        status = answer.data.get("status", "") if isinstance(answer.data, dict) else ""
        if "Completed" not in str(status):
            raise self._connection.odd(answer, "It did not take the documents in.")

    def named(self, tenant: str, dataset: str) -> dict[str, str]:
        """The ids of a dataset's documents by their names."""
        found: dict[str, str] = {}
        for page in range(1000):
            query = {"limit": str(_PAGE), "offset": str(page * _PAGE)}
            answer = self._ask(tenant, "GET", f"/datasets/{dataset}/data", query=query)
            rows = self._rows(answer, answer.data)
            found |= {str(row.get("name")): str(row.get("id")) for row in rows}
            if len(rows) < _PAGE:
                return found
        raise self._connection.odd(Answer(200, None), "Its list of documents does not end.")

    def text(self, tenant: str, dataset: str, document: str) -> str | None:
        """All words of a document; None where there is no such."""
        answer = self._asked(tenant, "GET", f"/datasets/{dataset}/data/{document}/raw", raw=True)
        if answer.status in (403, 404):
            return None
        if answer.status != 200:
            raise self._connection.odd(answer)
        try:
            return str(answer.data, "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self._connection.odd(answer, "What it gave is not text.") from None

    def delete(self, tenant: str, dataset: str, document: str | None = None) -> None:
        """Deletes a document of a dataset, or all of it; what is not there any more is deleted."""
        path = f"/datasets/{dataset}" + (f"/data/{document}" if document is not None else "")
        answer = self._asked(tenant, "DELETE", path)
        if answer.status in (403, 404) and not self._there(tenant, dataset):
            return
        if answer.status not in (200, 204):
            raise self._connection.odd(answer)
        if answer.data not in (None, {"status": "success"}):  # it says something else than that it has done it
            raise self._connection.odd(answer, "It did not say that it has deleted it.")

    def _there(self, tenant: str, dataset: str) -> bool:
        answer = self._ask(tenant, "GET", "/datasets")
        return any(row.get("id") == dataset for row in self._rows(answer, answer.data))

    # The graph

    def build(self, tenant: str, datasets: Sequence[str]) -> None:
        """Begins to build the graphs of datasets, and does not wait."""
        answer = self._ask(tenant, "POST", "/cognify", json={"datasetIds": list(datasets), "runInBackground": True})
        told = answer.data if isinstance(answer.data, dict) else {}
        for one in datasets:
            run = told.get(one)
            if not isinstance(run, dict) or "Errored" in str(run.get("status", "Errored")):
                raise self._connection.odd(answer, "It did not begin to build the graph.")

    def building(self, tenant: str, datasets: Sequence[str]) -> dict[str, Building]:
        """How the builds of these datasets stand."""
        found: dict[str, Building] = {}
        for one in datasets:  # it takes several, but then forgets the others when one is not there
            answer = self._ask(tenant, "GET", "/datasets/status", query={"dataset": one})
            told = answer.data.get(one) if isinstance(answer.data, dict) else ""
            if told not in _BUILDING and (told is not None or answer.data):
                raise self._connection.odd(answer, "It does not say how the build stands.")
            found[one] = _BUILDING.get(str(told), "none")
        return found

    def uptime(self, tenant: str | None) -> float | None:
        """For how many seconds it has been running; None where it does not say."""
        answer = self._asked(tenant, "GET", "/health/detailed", api="")
        told = answer.data.get("uptime") if isinstance(answer.data, dict) else None
        return float(told) if isinstance(told, int | float) else None

    def graph(self, tenant: str, dataset: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The nodes and the edges of a dataset's graph."""
        answer = self._ask(tenant, "GET", f"/datasets/{dataset}/graph")
        told = answer.data if isinstance(answer.data, dict) else {}
        return self._rows(answer, told.get("nodes")), self._rows(answer, told.get("edges"))

    # Finding

    def search(
        self, tenant: str, datasets: Sequence[str], query: str, kind: str, top: int, session: str | None
    ) -> list[Hit]:
        """What datasets hold about a question. NotFound where the graph of one was never built."""
        asked = {"query": query, "searchType": kind, "datasetIds": list(datasets), "topK": top}
        if session is not None:
            asked["sessionId"] = session
        answer = self._asked(tenant, "POST", "/search", json=asked)
        if answer.status == 404:
            raise NotFound("One of these datasets cannot be searched yet.", remedy="Build its graph first.")
        if answer.status != 200:
            raise self._connection.odd(answer)
        found: list[Hit] = []
        for part in self._rows(answer, answer.data):
            dataset, results = part.get("dataset_id"), part.get("search_result")
            if dataset not in datasets:
                raise self._connection.odd(answer, "It answered for a dataset that was not asked.")
            results = results if isinstance(results, list) else [results]
            found += [self._hit(answer, str(dataset), one, rank) for rank, one in enumerate(results)]
        return found

    def _hit(self, answer: Answer, dataset: str, told: Any, rank: int) -> Hit:
        if isinstance(told, str):
            return Hit(dataset, told, None, None, rank)
        text = told.get("text") if isinstance(told, dict) else None
        if not isinstance(text, str):
            raise self._connection.odd(answer, "What it found has no words.")
        document, score = told.get("document_id"), told.get("score")
        return Hit(
            dataset, text, str(document) if document else None,
            float(score) if isinstance(score, int | float) else None, rank,
        )  # fmt: skip

    # Health

    def health(self) -> tuple[int, str]:
        """(status, version) of what says how it is; nobody's key is needed."""
        reply = self._connection.target().request("GET", "/health")
        told = self._connection.target().answer(reply) if reply.body else {}
        return reply.status, str(told.get("version", "")) if isinstance(told, dict) else ""

    def admitted(self, tenant: str | None) -> None:
        """Returns where the key is accepted."""
        self._ask(tenant, "GET", "/users/me")

    def refuses_strangers(self) -> bool:
        """Whether a call without a key is refused."""
        return self._connection.target().request("GET", f"{_API}/datasets").status == 401

    def apart(self, tenant: str | None, mark: str) -> bool | None:
        """Whether of two users, made for this and removed again, one learns nothing of the other's dataset.

        None where the key makes no users. `mark` is in their names, and is nobody else's.
        """
        users = [(f"probe-{n}-{mark}@memoranda.example", f"Pr0be-{mark}") for n in (1, 2)]
        made: list[str] = []
        try:
            for user, password in users:
                answer = self._asked(tenant, "POST", "/auth/register", json={"email": user, "password": password})
                if answer.status != 201:
                    return None
                made.append(self._text(answer, "id"))
            one, other = ({"authorization": f"Bearer {self._login(':'.join(user))}"} for user in users)
            dataset = self._as(one, "POST", "/datasets", json={"name": f"probe-{mark}"})
            theirs = self._as(other, "GET", f"/datasets/{self._text(dataset, 'id')}/data")
            listed = self._as(other, "GET", "/datasets")
            self._as(one, "DELETE", f"/datasets/{self._text(dataset, 'id')}")
            return theirs.status in (403, 404) and mark not in str(listed.data)
        finally:
            for user_id in made:
                self._asked(tenant, "DELETE", f"/users/{user_id}")

    def _as(self, headers: Mapping[str, str], method: str, path: str, **more: Any) -> Answer:
        target = self._connection.target()
        reply = target.request(method, _API + path, headers=headers, **more)
        return Answer(reply.status, target.answer(reply) if reply.body else None)

    # Asking

    def _ask(self, tenant: str | None, method: str, path: str, **more: Any) -> Answer:
        answer = self._asked(tenant, method, path, **more)
        if answer.status not in (200, 201):
            raise self._connection.odd(answer)
        return answer

    def _asked(self, tenant: str | None, method: str, path: str, *, api: str = _API, **more: Any) -> Answer:
        tries = 0

        def authorized(secret: Secret) -> Mapping[str, str]:
            nonlocal tries
            tries += 1
            key = secret.reveal()
            if "@" not in key or ":" not in key:
                return {"x-api-key": key}
            return {"authorization": f"Bearer {self._session(key, anew=tries > 1)}"}

        return self._connection.ask(tenant, method, api + path, authorized=authorized, **more)

    def _session(self, key: str, *, anew: bool) -> str:
        """The session of a user of Cognee's."""
        mark = hashlib.sha256(key.encode()).hexdigest()
        with self._lock:
            token, until = self._sessions.get(mark, ("", 0.0))
        if anew or self._clock() >= until:
            token = self._login(key)
            with self._lock:
                if len(self._sessions) >= _SESSIONS:
                    self._sessions.clear()
                self._sessions[mark] = token, self._clock() + _RENEW
        return token

    def _login(self, key: str) -> str:
        user, _, password = key.partition(":")
        target = self._connection.target()
        form = urlencode({"username": user, "password": password}).encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        reply = target.request("POST", f"{_API}/auth/login", content=form, headers=headers)
        if reply.status != 200:
            refused = EngineUnavailable(
                f"The engine {self._connection.instance} does not let this user in.",
                why=f"It answered the login with status {reply.status}.",
                remedy="Set the present password where the reference of the instance leads.",
            )
            refused.asked = False
            raise refused
        return self._text(Answer(200, target.answer(reply)), "access_token")

    def _text(self, answer: Answer, name: str) -> str:
        told = answer.data.get(name) if isinstance(answer.data, dict) else None
        if not isinstance(told, str) or not told:
            raise self._connection.odd(answer, f"Its answer has no `{name}`.")
        return told

    def _rows(self, answer: Answer, told: Any) -> list[dict[str, Any]]:
        if not isinstance(told, list) or not all(isinstance(row, dict) for row in told):
            raise self._connection.odd(answer, "Its answer is no list.")
        return told


def _form(dataset: str, texts: Sequence[tuple[str, str]]) -> tuple[bytes, str]:
    """The body of a form, and its type. Texts go as files: what is sent as a field may be read as a path or a page."""
    contents = [(name, text.encode("utf-8", "surrogatepass")) for name, text in texts]
    told = hashlib.sha256(b"".join(content for _, content in contents)).hexdigest()
    edge = f"memoranda-{told}"  # no text can hold the hash of itself
    parts = [f'--{edge}\r\nContent-Disposition: form-data; name="datasetId"\r\n\r\n{dataset}\r\n'.encode()]
    for name, content in contents:
        head = f'Content-Disposition: form-data; name="data"; filename="{name}.txt"\r\nContent-Type: text/plain\r\n\r\n'
        parts += [f"--{edge}\r\n{head}".encode(), content, b"\r\n"]
    return b"".join(parts) + f"--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"
