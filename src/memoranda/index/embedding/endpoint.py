"""Vectors from a server that speaks OpenAI's `POST /embeddings`: texts in batches, patience, and every text once.

What a server has answered is kept by model and content, so that a rebuild asks for nothing again. What it sends is not
trusted: numbers of the wrong kind or count are an error and never a vector.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.errors import InvalidInput, MemorandaError, Unavailable
from memoranda.index.among import among
from memoranda.index.embedding import Passage, Weigh, scaled
from memoranda.index.journal_mode import named_errors, open_cache, transaction

_SCHEMA = "CREATE TABLE vectors (name BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;"
_WHAT = "The cache of embeddings"
_FORMAT = 1
_FINER = 1 << 20  # what the numbers of an answer are multiplied with before they become whole ones
_AGAIN = frozenset((408, 409, 425, 429, 500, 502, 503, 504))
_MOST_ANSWER = 256 << 20  # bytes
_PATIENCE = 3.0  # seconds that a question waits: whoever asks is answered by words then
_GRACE = 0.2  # and so much longer, for what is not the server's time
_REST = 30.0  # seconds for which a server that did not answer a question is not asked another

Send = Callable[[str, bytes, Mapping[str, str], float], tuple[int, Mapping[str, str], bytes]]
"""Posts a body to an address with headers, waiting so many seconds: status, headers in lower case, body."""


class EndpointEmbedder:
    """Vectors of one model behind one address.

    Args:
        url: up to and without `/embeddings`, as in `https://host/v1`.
        model: as the server calls it.
        dimensions: how many numbers it gives; a multiple of 8.
        cache: the folder of what was answered, shared by all Homes; None asks every time.
        key: sent as a bearer token, and never written anywhere.
        batch: texts in one request, at most. `characters`: of a text, more are cut off.
        wait: seconds for one request. `tries`: requests for one batch before it is given up.
        prefixes: what the model wants before a document and before a question (`passage: `, `query: `).
        sleep: waits so many seconds between tries.
    """

    def __init__(
        self, url: str, model: str, dimensions: int, cache: Path | None = None, *, key: str | None = None,
        batch: int = 64, characters: int = 8000, wait: float = 30.0, tries: int = 5,
        prefixes: tuple[str, str] = ("", ""), send: Send | None = None, sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(f"{url!r} is not the address of a server.", remedy="It begins with https:// or http://.")
        if dimensions <= 0 or dimensions % 8:
            raise InvalidInput(f"Vectors of {dimensions} numbers cannot be kept.", remedy="Give a multiple of 8.")
        self.dimensions = dimensions
        self._url = url.rstrip("/") + "/embeddings"
        self._model = model
        self._key = key
        self._batch, self._characters, self._wait, self._tries = batch, characters, wait, tries
        self._prefixes = prefixes
        self._send = send or _post
        self._sleep = sleep
        self._lock = threading.Lock()
        self._rests_until = 0.0
        self._cache = open_cache(cache / "embeddings.sqlite", _SCHEMA, _FORMAT, _WHAT) if cache is not None else None
        if self._cache is not None:
            self._cache.execute("PRAGMA secure_delete = ON")

    @property
    def params(self) -> Mapping[str, object]:
        """The address and the model's name stand for the weights, which nobody outside can see."""
        return {
            "model": self._model, "endpoint": self._url, "dimensions": self.dimensions,
            "prefixes": list(self._prefixes), "characters": self._characters,
        }  # fmt: skip

    def close(self) -> None:
        if self._cache is not None:
            with self._lock:  # a question that nobody waits for any more may still be under way
                self._cache.close()

    def embed(self, passages: Sequence[Passage]) -> list[bytes]:
        """See `Embedder.embed`; each batch is kept as soon as it is there, so what is cut short goes on later.

        Raises:
            Unavailable: the server does not answer, refuses, or answers something else than vectors.
        """
        texts = [f"{passage.title}\n{passage.text}" if passage.title else passage.text for passage in passages]
        prefix, most = self._prefixes[0], self._characters
        return self._all([prefix + text[:most] for text in texts], self._wait, self._tries)

    def embed_question(self, text: str, weigh: Weigh) -> bytes:  # noqa: ARG002
        """See `Embedder.embed_question`; asked once and not for long. Unavailable, see `embed`.

        An answer that comes too late is kept for whoever asks the same again.
        """
        asked = self._prefixes[1] + text[: self._characters]
        name = self._name(asked)
        if kept := self._kept([name]):
            return kept[name]
        if time.monotonic() < self._rests_until:
            raise self._silent("it did not answer a moment ago")
        found: list[bytes] = []
        failed: list[MemorandaError] = []

        def ask() -> None:
            try:
                found.extend(self._all([asked], min(self._wait, _PATIENCE), 1))
                self._rests_until = 0.0
            except MemorandaError as error:
                failed.append(error)

        # In a thread: what a server sends drop by drop ends no wait of a socket.
        thread = threading.Thread(target=ask, name="memoranda-question", daemon=True)
        thread.start()
        thread.join(min(self._wait, _PATIENCE) + _GRACE)
        if found:
            return found[0]
        self._rests_until = time.monotonic() + _REST
        raise failed[0] if failed else self._silent("it takes too long")

    def embed_questions(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of questions that nobody waits for, with the patience of `embed`. Unavailable, see there."""
        prefix, most = self._prefixes[1], self._characters
        return self._all([prefix + text[:most] for text in texts], self._wait, self._tries)

    def forget(self) -> None:
        """Forgets every answer: something that was embedded is to be forgotten, and the cache knows no documents."""
        if self._cache is not None:
            with named_errors(_WHAT), self._lock:
                self._cache.execute("DELETE FROM vectors")

    def _all(self, texts: Sequence[str], wait: float, tries: int) -> list[bytes]:
        names = [self._name(text) for text in texts]
        found = self._kept(names)
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in found and text.strip()}
        order = list(missing)
        for at in range(0, len(order), self._batch):
            some = order[at : at + self._batch]
            vectors = self._asked([missing[name] for name in some], wait, tries)
            fresh = dict(zip(some, vectors, strict=True))
            self._keep(fresh)
            found |= fresh
        nothing = bytes(self.dimensions)
        return [found.get(name, nothing) for name in names]

    # The cache

    def _name(self, text: str) -> bytes:
        told = json.dumps([self._url, self._model, self.dimensions, text])
        return hashlib.sha256(told.encode()).digest()

    def _kept(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        if self._cache is None:
            return {}
        with named_errors(_WHAT), self._lock:
            return dict(among(self._cache, "SELECT name, vector FROM vectors WHERE name IN (?*)", names))

    def _keep(self, fresh: Mapping[bytes, bytes]) -> None:
        if self._cache is not None:
            with named_errors(_WHAT), self._lock, transaction(self._cache):
                self._cache.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", list(fresh.items()))

    # The server

    def _asked(self, texts: Sequence[str], wait: float, tries: int) -> list[bytes]:
        body = json.dumps({"model": self._model, "input": list(texts), "encoding_format": "float"}).encode()
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        why = ""
        retry: str | None = None
        uneven = 0.75 + hashlib.sha256(body).digest()[0] / 512  # so that two that failed together come back apart
        for attempt in range(tries):
            if attempt:
                self._sleep(_pause(attempt, retry, uneven))
            retry = None
            try:
                status, told, answer = self._send(self._url, body, headers, wait)
            except OSError as error:
                why = f"{type(error).__name__}: {error}"
                continue
            if status == 200:
                return [scaled([round(number * _FINER) for number in row]) for row in self._rows(answer, len(texts))]
            why = f"it answered {status}"
            retry = told.get("retry-after")
            if status not in _AGAIN:
                raise Unavailable(
                    f"The embedding server {self._url} refuses.", why=why,
                    remedy="Check its address, the model's name and the key.",
                )  # fmt: skip
        raise self._silent(why if tries == 1 else f"{why}, {tries} times")

    def _silent(self, why: str) -> Unavailable:
        return Unavailable(
            f"The embedding server {self._url} does not answer.", why=why,
            remedy="Recall goes on without it; try again when the server is there.",
        )  # fmt: skip

    def _rows(self, answer: bytes, count: int) -> list[array[float]]:
        try:
            items: list[Any] = json.loads(answer)["data"]
            rows = {item["index"]: array("d", item["embedding"]) for item in items}
            ordered = [rows[n] for n in range(count)]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise self._odd(f"{type(error).__name__} while reading it") from error
        if len(items) != count:
            raise self._odd(f"{len(items)} vectors for {count} texts")
        for row in ordered:
            if len(row) != self.dimensions:
                raise self._odd(f"a vector of {len(row)} numbers in the place of {self.dimensions}")
            if not all(math.isfinite(number) and abs(number) < 1e6 for number in row):
                raise self._odd("a number that is no number")
        return ordered

    def _odd(self, why: str) -> Unavailable:
        return Unavailable(
            f"The embedding server {self._url} answers something else than vectors.", why=why,
            remedy="Check that the address and the model are those of embeddings, and their dimensions.",
        )  # fmt: skip


def _pause(attempt: int, retry: str | None, uneven: float) -> float:
    """Seconds before a further try: as the server asks, up to a minute, else twice as long each time."""
    if retry is not None and retry.isdecimal():
        return min(float(retry), 60.0)
    return min(0.5 * 2.0 ** (attempt - 1), 20.0) * uneven


def _post(url: str, body: bytes, headers: Mapping[str, str], wait: float) -> tuple[int, Mapping[str, str], bytes]:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """A redirection is an answer like another: texts and key go to nobody else."""

        def redirect_request(self, *_: Any) -> None:
            return None

    request = Request(url, data=body, headers=dict(headers), method="POST")
    try:
        with build_opener(Stay).open(request, timeout=wait) as answer:
            data = answer.read(_MOST_ANSWER + 1)
            if len(data) > _MOST_ANSWER:
                raise OSError("the answer is too long")
            whole = answer.headers.get("content-length", "")
            if whole.isdecimal() and len(data) < int(whole):
                raise OSError("the answer was cut off")
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, data
    except HTTPException as error:  # what is cut off in the middle of a chunk, or no HTTP at all
        raise OSError(f"the answer cannot be read: {type(error).__name__}") from error
    except HTTPError as error:
        with error:
            return error.code, {name.lower(): value for name, value in error.headers.items()}, b""
