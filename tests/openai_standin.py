"""A stand-in for a language model and an embedder that speak OpenAI's protocol: real HTTP, answers one can reckon with.

A text's vector counts its words, so that texts that share words lie near each other. Asked for an object by a schema
(`response_format` or a tool), it fills the schema: a graph gets a node for every capitalised word and an edge from each
to the next, a summary the first words of the text, anything else the least that fits. `says` are answers to give first.
`serving_proxy` is a way out that leads nowhere and tells who wanted to go where.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 1536


def vector(text: str, size: int = DIMENSIONS) -> list[float]:
    """The words of a text, counted in `size` buckets, of length one; never all zero."""
    found = [0.0] * size
    for word in re.findall(r"\w+", text.lower()) or [""]:
        found[zlib.crc32(word.encode()) % size] += 1.0
    length = sum(x * x for x in found) ** 0.5
    return [x / length for x in found]


def names(text: str) -> list[str]:
    """The capitalised words of a text, each once, in their order."""
    return list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]{2,}\b", text)))[:12]


def filled(schema: dict[str, Any], text: str) -> Any:
    """An object that fits `schema`, made of `text`."""
    return _filled(schema, text, schema.get("$defs") or schema.get("definitions") or {}, "")


def _filled(schema: dict[str, Any], text: str, defs: dict[str, Any], name: str) -> Any:
    if "$ref" in schema:
        return _filled(defs[schema["$ref"].rsplit("/", 1)[-1]], text, defs, name)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _filled(schema[several][0], text, defs, name)
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        if {"nodes", "edges"} <= set(properties):
            return _graph(properties, text, defs)
        return {key: _filled(inner, text, defs, key) for key, inner in properties.items()}
    if kind == "array":
        return []
    if kind in ("number", "integer"):
        return 1
    if kind == "boolean":
        return False
    return " ".join(text.split()[:24]) or name or "nothing"


def _graph(properties: dict[str, Any], text: str, defs: dict[str, Any]) -> dict[str, Any]:
    found = names(text)
    ends = list(itertools.pairwise(found))
    told = {
        "nodes": [{"id": one.lower(), "name": one, "type": "Thing", "description": one, "label": one} for one in found],
        "edges": [
            {"source_node_id": one.lower(), "target_node_id": other.lower(), "relationship_name": "stands_before",
             "description": f"{one} stands before {other}"}
            for one, other in ends
        ],
    }  # fmt: skip
    graph = {key: _filled(inner, text, defs, key) for key, inner in properties.items() if key not in told}
    for key in told:
        item = properties[key].get("items", {})
        item = defs[item["$ref"].rsplit("/", 1)[-1]] if "$ref" in item else item
        known = item.get("properties") or {}
        graph[key] = [
            {name: one.get(name, _filled(inner, text, defs, name)) for name, inner in known.items()} if known else one
            for one in told[key]
        ]
    return graph


class OpenAI(ThreadingHTTPServer):
    """In the place of the models. `says` are (status, body) to give first, a body that is a number waits so many
    seconds and then answers as usual; `texts` is every text that came, `calls` the paths."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.gate = threading.Event()  # chats about `held` wait until it is set
        self.held = ""
        self.asked: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.says: list[tuple[int, Any]] = []
        self.broken = False  # chat answers words that are no JSON

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def texts(self) -> str:
        return json.dumps(self.asked, ensure_ascii=False)

    def chat(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The answer to a chat: extend it for what an engine asks in words alone."""
        said = [m for m in asked["messages"] if m["role"] == "user" and m.get("content")]
        text = _words(said[-1]["content"] if said else "")
        tools = asked.get("tools")
        schema = ((asked.get("response_format") or {}).get("json_schema") or {}).get("schema")
        message: dict[str, Any] = {"role": "assistant", "content": f"Answer: {text[-400:]}"}
        if self.broken:
            message["content"] = "{not JSON"
        elif tools:
            told = json.dumps(filled(tools[0]["function"]["parameters"], text))
            call = {"id": "call_1", "type": "function", "function": {"name": tools[0]["function"]["name"],
                    "arguments": told}}  # fmt: skip
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        elif schema is not None:
            message["content"] = json.dumps(filled(schema, text))
        elif (asked.get("response_format") or {}).get("type") == "json_object":
            message["content"] = json.dumps(self.extracted(text))
        return message

    def extracted(self, text: str) -> Any:
        """What is answered to `json_object`: an engine says in its prompt what it wants; this is what Mem0 wants."""
        lines = [line.split(":", 1)[-1].strip() for line in text.splitlines() if line.strip().startswith("user:")]
        facts = lines or [text.strip()[:200]]
        return {
            "facts": facts,
            "memory": [{"id": str(n), "text": fact, "event": "ADD"} for n, fact in enumerate(facts)],
        }


class _Handler(BaseHTTPRequestHandler):
    server: OpenAI
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.calls.append(self.path)
        self._answer(200, {"object": "list", "data": [{"id": "gpt-4o-mini", "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        server.asked.append(asked)
        server.calls.append(self.path)
        if server.says:
            status, body = server.says.pop(0)
            if not isinstance(body, int | float):
                return self._answer(status, body)
            time.sleep(body)
        if self.path.endswith("/embeddings"):
            return self._answer(200, self._embedded(asked))
        if server.held and server.held in json.dumps(asked["messages"]):
            server.gate.wait(60)
        return self._answer(200, {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": asked.get("model", ""),
            "choices": [{"index": 0, "finish_reason": "stop", "message": server.chat(asked)}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        })  # fmt: skip

    def _embedded(self, asked: dict[str, Any]) -> dict[str, Any]:
        given = asked["input"]
        size = asked.get("dimensions") or DIMENSIONS
        texts = [given] if isinstance(given, str) else given
        data = []
        for n, text in enumerate(texts):
            found: Any = vector(text if isinstance(text, str) else str(text), size)
            if asked.get("encoding_format") == "base64":
                found = base64.b64encode(struct.pack(f"<{size}f", *found)).decode()
            data.append({"object": "embedding", "index": n, "embedding": found})
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": asked.get("model", ""), "data": data, "usage": usage}

    def _answer(self, status: int, body: Any) -> None:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)
        except ConnectionError:
            pass  # whoever asked was killed

    def log_message(self, *_: object) -> None:
        pass


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content if isinstance(part, dict))


class Proxy(ThreadingHTTPServer):
    """A proxy that lets nothing through and keeps who asked for what in `asked`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Recording)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make it the only way out but for this machine itself."""
        around = "127.0.0.1,localhost"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        return {**dict.fromkeys(names, self.url), "NO_PROXY": around, "no_proxy": around}


class _Recording(BaseHTTPRequestHandler):
    server: Proxy

    def _record(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_error(502)

    do_CONNECT = do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_PATCH = do_OPTIONS = _record

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _serving(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        if isinstance(server, OpenAI):
            server.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving_openai() -> Iterator[OpenAI]:
    """The models, until the end."""
    with _serving(OpenAI()) as server:
        yield server


@contextmanager
def serving_proxy() -> Iterator[Proxy]:
    """The way out that must stay unused, until the end."""
    with _serving(Proxy()) as server:
        yield server
