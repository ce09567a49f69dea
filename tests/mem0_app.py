"""A server in the place of Mem0's over the real library `mem0ai`: `python mem0_app.py PORT`, where that is installed.

Mem0's server is on no registry, its library is. The routes, their answers and their traps are those that were seen of
the server of August 2026; `tests/real/test_mem0_real.py` runs the same against that one where `MEM0_SERVER_DIR` names
it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sys
import traceback
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

IDS = ("user_id", "agent_id", "run_id")


def memory() -> Any:
    from mem0 import Memory

    model = {"api_key": os.environ["OPENAI_API_KEY"], "openai_base_url": os.environ["OPENAI_BASE_URL"]}
    store = {
        "host": os.environ["POSTGRES_HOST"], "port": int(os.environ["POSTGRES_PORT"]),
        "user": os.environ["POSTGRES_USER"],
        "password": os.environ["POSTGRES_PASSWORD"], "dbname": os.environ["POSTGRES_DB"],
        "collection_name": os.environ["POSTGRES_COLLECTION_NAME"],
    }  # fmt: skip
    return Memory.from_config(
        {
            "version": "v1.1",
            "vector_store": {"provider": "pgvector", "config": store},
            "llm": {"provider": "openai", "config": {**model, "model": os.environ["MEM0_DEFAULT_LLM_MODEL"]}},
            "embedder": {"provider": "openai", "config": {**model, "model": os.environ["MEM0_DEFAULT_EMBEDDER_MODEL"]}},
            "history_db_path": os.environ["HISTORY_DB_PATH"],
        }
    )


class Refused(Exception):
    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.memory = memory()
        self.registered = False
        self.keys: dict[str, tuple[str, bytes]] = {}  # id -> (label, hash of the key)

    def admits(self, key: str) -> bool:
        if hmac.compare_digest(key.encode(), os.environ["ADMIN_API_KEY"].encode()):
            return True
        told = hashlib.sha256(key.encode()).digest()
        return any(hmac.compare_digest(told, known) for _, known in self.keys.values())


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            status, answer = self.route(json.loads(body) if body else {})
        except Refused as refused:
            status, answer = refused.status, {"detail": refused.detail}
        except ValueError as error:  # the library's own errors for what a client did wrong
            status, answer = (404 if "not found" in str(error) else 400), {"detail": str(error)}
        except Exception:  # noqa: BLE001 - what the server does with whatever its library raises
            traceback.print_exc()
            status, answer = 502, {"detail": "unknown"}
        told = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def route(self, body: dict[str, Any]) -> tuple[int, Any]:
        parts, method = urlsplit(self.path), self.command
        query, steps = dict(parse_qsl(parts.query)), parts.path.strip("/").split("/")
        if parts.path == "/auth/setup-status":
            return 200, {"needsSetup": not self.server.registered}
        if parts.path == "/openapi.json":
            return 200, {"info": {"title": "Mem0 REST APIs", "version": "1.0.0"}}
        if parts.path == "/auth/register":
            if self.server.registered:
                raise Refused(403, "Registration is closed.")
            self.server.registered = True
            return 200, {"access_token": "none", "refresh_token": "none", "token_type": "bearer"}
        if not self.server.admits(self.headers.get("x-api-key") or ""):
            raise Refused(401, "Authentication required.")
        if steps[0] == "api-keys":
            return self.keys(method, steps, body)
        if steps[0] == "search":
            return 200, self.search(body)
        if steps == ["memories"]:
            return {"POST": self.add, "GET": self.list, "DELETE": self.delete_all}[method](body, query)
        if steps[0] == "memories":
            return self.one(method, steps)
        raise Refused(404, "Not Found")

    def keys(self, method: str, steps: list[str], body: dict[str, Any]) -> tuple[int, Any]:
        if method == "POST":
            id, key = str(uuid.uuid4()), f"m0sk_{secrets.token_urlsafe(24)}"
            self.server.keys[id] = body["label"], hashlib.sha256(key.encode()).digest()
            return 201, {"id": id, "key": key, "label": body["label"], "key_prefix": key[:12]}
        if method == "DELETE" and self.server.keys.pop(steps[1], None):
            return 200, {"message": "API key revoked."}
        raise Refused(404, "API key not found.")

    def add(self, body: dict[str, Any], _: dict[str, str]) -> tuple[int, Any]:
        if not any(body.get(name) for name in IDS):
            raise Refused(400, "At least one identifier (user_id, agent_id, run_id) is required.")
        messages = body.pop("messages")
        return 200, self.server.memory.add(messages=messages, **{k: v for k, v in body.items() if v is not None})

    def list(self, _: dict[str, Any], query: dict[str, str]) -> tuple[int, Any]:
        filters = {name: query[name] for name in IDS if query.get(name)}
        more = {"top_k": int(query["top_k"])} if "top_k" in query else {}
        if not filters:  # an administrator is given everything
            rows = self.server.memory.vector_store.list(top_k=more.get("top_k", 1000))[0]
            return 200, {"results": [{"id": row.id, "memory": row.payload.get("data")} for row in rows]}
        return 200, self.server.memory.get_all(
            filters=filters, show_expired=query.get("show_expired") == "true", **more
        )

    def search(self, body: dict[str, Any]) -> Any:
        more = {name: body[name] for name in ("top_k", "threshold", "show_expired") if body.get(name) is not None}
        return self.server.memory.search(query=body["query"], filters=body.get("filters") or {}, **more)

    def one(self, method: str, steps: list[str]) -> tuple[int, Any]:
        if len(steps) == 3:
            return 200, self.server.memory.history(memory_id=steps[1])
        if method == "GET":
            return 200, self.server.memory.get(steps[1])
        self.server.memory.delete(memory_id=steps[1])
        return 200, {"message": "Memory deleted successfully"}

    def delete_all(self, _: dict[str, Any], query: dict[str, str]) -> tuple[int, Any]:
        filters = {name: query[name] for name in IDS if query.get(name)}
        if not filters:
            raise Refused(400, "At least one identifier is required.")
        self.server.memory.delete_all(**filters)
        return 200, {"message": "All relevant memories deleted"}

    do_GET = do_POST = do_PUT = do_DELETE = any

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    Server(int(sys.argv[1])).serve_forever()
