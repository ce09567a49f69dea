"""A stand-in for a server of embeddings: a real one over HTTP, with a model that a test can reckon with."""

from __future__ import annotations

import json
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Model = Callable[[str], list[float]]


def letters(text: str) -> list[float]:
    """How often each of the letters a to h stands in a text."""
    return [float(text.count(letter)) for letter in "abcdefgh"]


_MEANINGS = {
    "doctor": 0, "physician": 0, "medicine": 0, "prescription": 0, "roof": 1, "slates": 1, "tiles": 1,
    "boat": 2, "vessel": 2, "ship": 2, "bread": 3, "baker": 3, "loaf": 3,
}  # fmt: skip


def meanings(text: str) -> list[float]:
    """A model of 64 numbers that knows a few words for a few things; other words point somewhere by their letters."""
    found = [0.0] * 64
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        known = _MEANINGS.get(word)
        found[8 + zlib.crc32(word.encode()) % 56 if known is None else known] += 1.0 if known is None else 4.0
    return found


class StandIn(ThreadingHTTPServer):
    """In the place of a model. `says` are answers to give first (a float waits so long); after `most` answers
    the rest waits until `gate` is opened; `asked`, `keys` and `texts` tell what came."""

    daemon_threads = True

    def __init__(self, model: Model = letters) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model
        self.gate = threading.Event()
        self.most = 1_000_000
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.says: list[tuple[int, dict[str, str], bytes | float]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def texts(self) -> list[str]:
        return [text for asked in self.asked for text in asked["input"]]


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append({**asked, "path": self.path})
        self.server.keys.append(self.headers.get("authorization"))
        status, headers, body = self.server.says.pop(0) if self.server.says else (200, {}, b"")
        if len(self.server.asked) > self.server.most:
            self.server.gate.wait(30)
        if isinstance(body, float):
            time.sleep(body)
            body = b""
        if status == 200 and not body:
            body = _vectors(self.server.model, asked["input"])
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            pass  # whoever asked was killed

    def log_message(self, *_: object) -> None:
        pass


def _vectors(model: Model, texts: list[str]) -> bytes:
    data = [{"object": "embedding", "index": n, "embedding": model(text)} for n, text in enumerate(texts)]
    return json.dumps({"data": data[::-1]}).encode()  # in another order, as the interface allows


@contextmanager
def serving(model: Model = letters) -> Iterator[StandIn]:
    """A server that answers until the end."""
    server = StandIn(model)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()
