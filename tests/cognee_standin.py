"""A stand-in for Cognee's HTTP routes, as far as Memoranda and its guard use them: what it answers, the real one does.

`Cognee.answer` is one request; `serving_cognee` puts it behind a socket and can go wrong there (`says`), `Asgi` makes
an application of it that the guard can load. The real suite asks both the same (tests/real). Documents are searched
once their graph was built; the models are those of `openai_standin`. Kept in `file`, if there is one.
"""

from __future__ import annotations

import email.parser
import email.policy
import hashlib
import hmac
import json
import socket
import struct
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.openai_standin import names, vector

PATHS = ("/api/v1/auth/login", "/api/v1/datasets", "/api/v1/add", "/api/v1/cognify", "/api/v1/search")
_SPACE = uuid.UUID(int=7)
_vector = lru_cache(1000)(vector)


class Cognee:
    """What it keeps is in `told`, which can be kept in a file. `slow` seconds pass before a build is finished."""

    def __init__(self, environ: Mapping[str, str] | None = None, file: Path | None = None) -> None:
        self.environ, self.file, self.lock = dict(environ or {}), file, threading.RLock()
        self.slow = 0.0
        self.uptime = 1e9
        self.open = False  # every user reads everything
        self.calls: list[tuple[str, str, Any]] = []
        self.told: dict[str, Any] = {"users": {}, "keys": {}, "datasets": {}, "reads": []}
        if file is not None and file.exists():
            self.told = json.loads(file.read_text())
        name, password = self.environ.get("DEFAULT_USER_EMAIL"), self.environ.get("DEFAULT_USER_PASSWORD")
        if name and password and name not in self.told["users"]:
            self.register(name, password)

    def register(self, name: str, password: str) -> str:
        one = str(uuid.uuid5(_SPACE, name))
        self.told["users"][name] = {"id": one, "email": name, "hashed_password": hashed(password)}
        self.keep()
        return one

    def keep(self) -> None:
        if self.file is not None:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.told))

    # Who

    def session(self, user: Mapping[str, str]) -> str:
        secret = self.environ.get("FASTAPI_USERS_JWT_SECRET", "s").encode()
        bound = f"{user['email']}\n{user['hashed_password']}".encode()
        return f"{user['id']}.{hmac.new(secret, bound, 'sha256').hexdigest()}"

    def salted(self, key: str) -> str:
        return "pbkdf2_sha256$1$" + hashed(self.environ.get("API_KEY_HASH_SALT", "") + key)

    def who(self, headers: Mapping[str, str]) -> str | None:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        for user in self.told["users"].values():
            if bearer and hmac.compare_digest(bearer, self.session(user)):
                return str(user["id"])
        key = self.told["keys"].get(self.salted(headers.get("x-api-key", "-")))
        return None if key is None else str(key["user"])

    # What

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        """(status, what is answered as JSON)."""
        parts = urlsplit(target)
        path = parts.path.removeprefix("/api/v1")
        with self.lock:
            self.calls.append((method, target, body))
            if path == "/health":
                return 200, {"status": "ready", "health": "healthy", "version": "1.6.5"}
            if path == "/auth/login":
                return self._login(body)
            if path == "/auth/register":
                told = json.loads(body)
                return 201, {"id": self.register(told["email"], told["password"]), "email": told["email"]}
            user = self.who(headers)
            if user is not None and path == "/health/detailed":
                return 200, {"status": "healthy", "uptime": self.uptime}
            if user is None:
                return 401, {"detail": "Unauthorized"}
            return self._known(user, method, path, parse_qs(parts.query), headers, body)

    def _login(self, body: bytes) -> tuple[int, Any]:
        told = {name: value[0] for name, value in parse_qs(body.decode()).items()}
        user = self.told["users"].get(told.get("username", ""))
        if user is None or user["hashed_password"] != hashed(told.get("password", "")):
            return 400, {"detail": "LOGIN_BAD_CREDENTIALS"}
        return 200, {"access_token": self.session(user), "token_type": "bearer"}

    def _known(
        self, user: str, method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        steps = path.strip("/").split("/")
        if steps[:2] == ["auth", "api-keys"] or path == "/users/me":
            return self._keys(user, method, steps, body)
        if path == "/datasets" and method == "POST":
            return 200, self._dataset(user, json.loads(body)["name"])
        if path == "/datasets":
            return 200, [_shown(one) for one in self.told["datasets"].values() if self._may(user, one)]
        if path == "/datasets/status":
            known = self.told["datasets"]
            return 200, {one: self._state(known[one]) for one in query.get("dataset", []) if known[one]["status"]}
        if steps[0] == "users" and method == "DELETE":
            self.told["users"] = {name: one for name, one in self.told["users"].items() if one["id"] != steps[1]}
            return 204, None
        if steps[0] == "datasets":
            return self._of_dataset(user, method, steps[1], steps[2:], query)
        if path == "/add":
            return self._add(user, headers, body)
        asked = json.loads(body)
        if steps[:2] == ["permissions", "datasets"]:
            return self._permit(user, method, steps[2], asked)
        wanted = [self.told["datasets"].get(one) for one in asked["datasetIds"]]
        if any(one is None or not self._may(user, one, path == "/cognify") for one in wanted):
            return 403, {"detail": "Request owner does not have necessary permission. [PermissionDeniedError]"}
        return self._cognify(wanted) if path == "/cognify" else self._search(wanted, asked)

    def _may(self, user: str, one: Mapping[str, Any], owner: bool = False) -> bool:
        return self.open or one["owner"] == user or (not owner and [user, one["id"]] in self.told["reads"])

    def _keys(self, user: str, method: str, steps: list[str], body: bytes) -> tuple[int, Any]:
        if steps[0] == "users":
            return 200, {"id": user}
        if method == "POST":
            key = hashed(uuid.uuid4().hex)
            self.told["keys"][self.salted(key)] = {"user": user, "id": str(uuid.uuid4())}
            self.keep()
            return 200, {"key": key, "id": self.told["keys"][self.salted(key)]["id"]}
        self.told["keys"] = {name: one for name, one in self.told["keys"].items() if one["id"] != steps[-1]}
        self.keep()
        return 200, None

    def _permit(self, user: str, method: str, other: str, wanted: list[str]) -> tuple[int, Any]:
        if any(not self._may(user, self.told["datasets"][one], True) for one in wanted):
            return 403, {"detail": "[PermissionDeniedError]"}
        for one in wanted:
            kept = [pair for pair in self.told["reads"] if pair != [other, one]]
            self.told["reads"] = [*kept, [other, one]] if method == "POST" else kept
        return 200, {"message": "Permission assigned to principal"}

    def _dataset(self, user: str, name: str) -> Any:
        one = str(uuid.uuid5(_SPACE, f"{user}\n{name}"))
        fresh = {"id": one, "name": name, "owner": user, "data": {}, "status": "", "until": 0.0}
        found = self.told["datasets"].setdefault(one, fresh)
        self.keep()
        return _shown(found)

    def _of_dataset(
        self, user: str, method: str, one: str, rest: list[str], query: Mapping[str, Any]
    ) -> tuple[int, Any]:
        found = self.told["datasets"].get(one)
        if found is None or not self._may(user, found, method == "DELETE"):
            return 403, {"detail": "Request owner does not have necessary permission. [PermissionDeniedError]"}
        if method == "DELETE":
            if rest:
                found["data"].pop(rest[1], None)
            else:
                del self.told["datasets"][one]
            self.keep()
            return 200, None
        if rest == ["graph"]:
            return 200, self._graph(found)
        if rest[:1] == ["data"] and rest[-1] == "raw":
            held = found["data"].get(rest[1])
            return (404, {"detail": "not found"}) if held is None else (200, held["text"].encode())
        listed = [{"id": data, "name": one["name"]} for data, one in found["data"].items()]
        if rest == ["data", "count"]:
            return 200, {"count": len(listed)}
        begin = int(query.get("offset", ["0"])[0])
        return 200, listed[begin : begin + int(query.get("limit", ["1000"])[0])]

    def _add(self, user: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        head = f"Content-Type: {headers['content-type']}\r\n\r\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
        one, texts = "", []
        for part in form.iter_parts():
            content = part.get_payload(decode=True)
            if 'name="datasetId"' in part["content-disposition"]:
                one = content.decode()
            elif part.get_filename():
                texts.append((part.get_filename().rpartition(".")[0], lines(content.decode())))
        found = self.told["datasets"].get(one)
        if found is None or not self._may(user, found, True):
            return 403, {"detail": "[PermissionDeniedError]"}
        told = []
        for name, text in texts:  # the same text in the same dataset is the same document, under its first name
            data = str(uuid.uuid5(_SPACE, f"{one}\n{text}"))
            found["data"].setdefault(data, {"name": name, "text": text})
            told.append({"data_id": data})
        self.keep()
        return 200, {"status": "PipelineRunCompleted", "dataset_id": one, "data_ingestion_info": told}

    def _state(self, one: dict[str, Any]) -> str:
        if one["status"] == "STARTED" and time.time() >= one["until"]:
            one["status"] = "COMPLETED"
            one["built"] = list(one["data"])
        return f"DATASET_PROCESSING_{one['status']}"

    def _cognify(self, wanted: list[Any]) -> tuple[int, Any]:
        for one in wanted:
            one["status"], one["until"] = "STARTED", time.time() + self.slow
            self._state(one)
        self.keep()
        return 200, {
            one["id"]: {"status": "PipelineRunStarted", "pipeline_run_id": str(uuid.uuid4())} for one in wanted
        }

    def _search(self, wanted: list[Any], asked: Mapping[str, Any]) -> tuple[int, Any]:
        if any(not one.get("built") for one in wanted):
            return 404, {"detail": "No searchable memory in dataset. [NoDataError]"}
        answers = []
        for one in wanted:
            near = _vector(asked["query"])
            texts = [(data, one["data"][data]["text"]) for data in one["built"] if data in one["data"]]
            scored = sorted(
                (1 - sum(a * b for a, b in zip(near, _vector(text), strict=True)), data, text) for data, text in texts
            )[: asked["topK"]]
            kind = asked["searchType"]
            if kind == "CHUNKS_LEXICAL":
                found: Any = [{"text": text, "document_id": data} for _, data, text in scored]
            elif kind.endswith("COMPLETION"):
                found = [f"Answer: {' '.join(text for _, _, text in scored)}"]
            else:
                of = kind == "CHUNKS"
                found = [
                    {"text": text, "document_id": data if of else None, "score": far} for far, data, text in scored
                ]
            answers.append({"dataset_id": one["id"], "dataset_name": one["name"], "search_result": found})
        return 200, answers

    def _graph(self, one: Mapping[str, Any]) -> Any:
        nodes: dict[str, Any] = {}
        edges = []
        for data in one.get("built", []):
            text = one["data"].get(data, {}).get("text", "")
            chunk = str(uuid.uuid5(_SPACE, f"chunk\n{data}"))
            nodes[chunk] = {"id": chunk, "label": f"DocumentChunk_{chunk}", "type": "DocumentChunk",
                            "properties": {"text": text}}  # fmt: skip
            found = names(text)
            ids = [str(uuid.uuid5(_SPACE, name)) for name in found]
            for name, node in zip(found, ids, strict=True):
                nodes[node] = {
                    "id": node,
                    "label": name.lower(),
                    "type": "Entity",
                    "properties": {"name": name.lower()},
                }
                edges.append({"source": chunk, "target": node, "label": "contains"})
            for a, b in pairwise(ids):
                edges.append({"source": a, "target": b, "label": "stands_before"})
        return {"nodes": list(nodes.values()), "edges": edges}


def lines(text: str) -> str:
    """A text as it is kept."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _shown(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": one["id"], "name": one["name"], "createdAt": "2026-11-30T20:50:41.014687", "ownerId": one["owner"]}


class Asgi:
    """The same as an application in a process of its own."""

    def __init__(self, cognee: Cognee) -> None:
        self.cognee = cognee

    def openapi(self) -> Any:
        return {"paths": dict.fromkeys(PATHS)}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        target = scope["path"] + "?" + scope["query_string"].decode()
        status, told = self.cognee.answer(scope["method"], target, headers, body)
        sent = told if isinstance(told, bytes) else json.dumps(told).encode()
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(sent)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": sent})


class Server(ThreadingHTTPServer):
    """Behind a socket. `says` are faults for the next requests whose path holds the first of the pair: a status and a
    body, `reset` (in the middle of the answer), `slow` (a byte a second), `after` (it is done, and the line is cut)."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, cognee: Cognee) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cognee = cognee
        self.says: list[tuple[str, Any]] = []
        self.always: Any = None  # the fault of every request from now on
        self.gone = False  # open connections are dropped

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # whoever asked has gone


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _do(self) -> None:
        if self.server.gone:
            self.close_connection = True
            return None
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.server.always is not None:
            return self._wrong(self.server.always)
        fault = next((one for one in self.server.says if one[0] in self.path), None)
        if fault is not None:
            self.server.says.remove(fault)
            if fault[1] != "after":
                return self._wrong(fault[1])
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, told = self.server.cognee.answer(self.command, self.path, headers, body)
        if fault is not None:
            return self._wrong("reset")
        return self._say(status, told if isinstance(told, bytes) else json.dumps(told).encode())

    do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _do

    def _say(self, status: int, sent: bytes) -> None:
        if status == 204:
            self.send_response(204)
            self.end_headers()
            return
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def _wrong(self, fault: Any) -> None:
        if isinstance(fault, tuple):
            status, said = fault
            return self._say(status, said if isinstance(said, bytes) else json.dumps(said).encode())
        self.send_response(200)
        self.send_header("content-length", "1000")
        self.end_headers()
        self.wfile.write(b"{")
        self.wfile.flush()
        if fault == "slow":
            for _ in range(60):
                time.sleep(1)
                self.wfile.write(b" ")
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        return None

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving_cognee(cognee: Cognee | None = None) -> Iterator[Server]:
    """The stand-in, until the end."""
    server = Server(cognee or Cognee())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
