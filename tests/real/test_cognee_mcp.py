"""The real MCP server of Cognee, started as `docs/engines.md` says, in front of the real Cognee behind our guard."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.calling import call, listening
from tests.real.conftest import Cognee, free_port

pytestmark = pytest.mark.xdist_group("cognee")
PACKAGES = "MEMORANDA_REAL_COGNEE_MCP"  # the folder with what it needs beside Cognee
EVENTS = "application/json, text/event-stream"


@pytest.fixture(scope="module")
def server(cognee: Cognee, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    told = os.environ.get(PACKAGES)
    if not told:
        pytest.skip(f"NOT CHECKED against the real MCP server of Cognee: {PACKAGES} names none")
    home, port = tmp_path_factory.mktemp("mcp"), free_port()
    token = cognee.user("mcp")["authorization"].removeprefix("Bearer ")
    environment = {
        "PATH": os.defpath, "HOME": str(home), "PYTHONPATH": told, "COGNEE_API_KEY": token, "TELEMETRY_DISABLED": "1",
        "COGNEE_LOGS_DIR": str(home), "FASTMCP_CHECK_FOR_UPDATES": "off", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"), "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    words = ["--transport", "http", "--port", str(port), "--api-url", cognee.base, "--api-auth-scheme", "bearer"]
    code = "import sys; from src import main_mcp; main_mcp()"
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [cognee.engine.python, "-c", code, *words], env=environment, cwd=home, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 120
        while not listening(port):
            assert process.poll() is None and time.monotonic() < until, (home / "log").read_text()[-2000:]
            time.sleep(0.2)
        assert token not in Path(f"/proc/{process.pid}/cmdline").read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def asked(server: str, method: str, params: Any, **headers: str) -> tuple[int, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return call(server, "POST", "/mcp", body, accept=EVENTS, **headers)


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.requirement("S-021")
def test_it_listens_on_this_machine_and_nowhere_else(server: str) -> None:
    assert listening(int(server.rpartition(":")[2])) == {"127.0.0.1"}
    assert asked(server, "initialize", HELLO)[0] == 200


def test_a_page_that_takes_the_name_of_this_machine_is_refused(server: str) -> None:
    assert asked(server, "initialize", HELLO, host="evil.example")[0] in (400, 403, 421)
    assert asked(server, "initialize", HELLO, origin="https://evil.example")[0] in (400, 403)
