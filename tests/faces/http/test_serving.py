"""The command line of the service, in processes of its own: a first start, its printed commands, an end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from fastapi.testclient import TestClient
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from memoranda.context import Context
from memoranda.engines.contract import OperationContext, Place, RememberRequest
from memoranda.faces.http import app as application
from memoranda.faces.http import create_app
from memoranda.faces.http.config import Config
from memoranda.service.opening import open_desk

from .standing_in import furnish

ENVIRONMENT = {**os.environ, "EAI_ENVIRONMENT": "development"}


def command(*words: str, environment: str = "development") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memoranda", *words], capture_output=True, text=True, check=False,
        env={**os.environ, "EAI_ENVIRONMENT": environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serving") / "service"


@pytest.fixture(scope="module")
def greeting(folder: Path) -> Iterator[str]:
    """What a first start says; it serves meanwhile, and ends on SIGTERM."""
    words = ["serve", "--example", "--data", str(folder), "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(
        [sys.executable, "-m", "memoranda", *words], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert server.stdout is not None
    lines = []
    for line in server.stdout:
        lines.append(line)
        if "/openapi.json" in line:
            break
    yield "".join(lines)
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
    server.stdout.close()


def test_the_printed_commands_work(greeting: str) -> None:
    script = "\n".join(line.strip() for line in greeting.splitlines() if line.startswith(("  export", "  curl")))
    assert script.count("curl") == 3
    done = subprocess.run(["bash", "-euc", script.replace("curl -s", "echo; curl -sS")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made, recalled, document = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert made["content"] == "Acme is billed on the first of the month."
    assert recalled["segments"][0]["item"]["id"] == made["id"]
    assert "/v1/memory/agents/{agent_id}/memories" in document["paths"]


def test_the_commands_of_the_document_work(greeting: str) -> None:
    page = (Path(__file__).parents[3] / "docs/service.md").read_text(encoding="utf-8")
    base, token = re.search(r"http://[\d.:]+", greeting), re.search(r"TOKEN=(\S+)", greeting)
    assert base is not None and token is not None
    block = re.search(r"```sh\n(curl.*?)```", page, re.S)
    assert block is not None and block[1].count("curl") == 5
    script = f"BASE={base[0]} TOKEN={token[1]}\n{block[1].replace('curl -s ', 'echo; curl -fsS ')}"
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert told[1]["segments"][0]["item"]["id"] == told[0]["id"]
    assert told[0]["id"] in {item["id"] for item in told[2]["items"]}
    assert told[-1]["provider"] == "builtin"


def test_tokens_are_shown_once_and_kept_nowhere(greeting: str, folder: Path) -> None:
    secrets = set(re.findall(r"mem_tok_\w+", greeting))
    assert len(secrets) == 3
    for secret in secrets:
        for path in folder.rglob("*"):
            if path.is_file():
                assert secret.rpartition("_")[2].encode() not in path.read_bytes(), path
    listed = command("admin", "token", "list", "--tenant", "example", "--data", str(folder))
    assert listed.returncode == 0 and "agent=cleo" in listed.stdout
    assert not any(secret in listed.stdout for secret in secrets)


def test_the_operator_administers_beside_the_running_service(greeting: str, folder: Path) -> None:
    base = re.search(r"http://[\d.:]+", greeting)
    assert base is not None
    at = ["--tenant", "example", "--data", str(folder)]
    assert command("admin", "user", "add", "bob", *at, "--role", "developer").returncode == 0
    made = command("admin", "token", "add", *at, "--user", "bob", "--json")
    token = json.loads(made.stdout)["rows"][0]

    def status(path: str) -> str:
        told = ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", f"{base[0]}/v1/memory{path}"]
        header = ["-H", f"Authorization: Bearer {token['secret']}"]
        return subprocess.run([*told, *header], capture_output=True, text=True, check=True).stdout

    assert status("/engines") == "200"
    assert status("/agents/cleo/memories") == "403"
    grant = ["--user", "user:example/bob", "--relation", "can_invoke"]
    assert command("admin", "relation", "add", "cleo", *at, *grant).returncode == 0
    assert status("/agents/cleo/memories") == "200"
    assert command("admin", "relation", "remove", "cleo", *at, *grant).returncode == 0
    assert status("/agents/cleo/memories") == "403"
    assert command("admin", "token", "revoke", token["id"], *at).returncode == 0
    assert status("/engines") == "401"
    verified = command("audit", "verify", "--data", str(folder))
    assert verified.returncode == 0, verified.stdout


def test_what_the_example_made_starts_nowhere_but_in_development(greeting: str, folder: Path) -> None:
    for environment in ("staging", "production"):
        words = ("serve", "--data", str(folder), "--listen", "127.0.0.1:0")
        refused = command(*words, environment=environment)
        assert refused.returncode == 2 and "token of the example" in refused.stderr
        example = command(*words, "--example", environment=environment)
        assert example.returncode == 2 and "development" in example.stderr
        listed = command("admin", "token", "list", "--data", str(folder), environment=environment)
        assert listed.returncode == 0, listed.stderr  # what the refusal says to do can be done


def test_a_configuration_is_checked_without_starting(tmp_path: Path) -> None:
    file = tmp_path / "memoranda.toml"
    file.write_text("threads = 4\n", encoding="utf-8")
    assert command("config", "check", str(file), environment="production").returncode == 0
    file.write_text("[opa]\nurl = 'http://opa.internal'\n", encoding="utf-8")
    refused = command("config", "check", str(file), "--json", environment="production")
    assert refused.returncode == 2
    told = json.loads(refused.stdout)
    assert told["code"] == "memory_config_refused" and "`opa.url`" in told["detail"]


def test_the_official_client_of_mcp_works_with_an_agents_token(greeting: str) -> None:
    base = re.search(r"http://[\d.:]+", greeting)
    token = re.search(r"TOKEN=(\S+)", greeting)
    assert base is not None and token is not None

    async def session() -> tuple[list[str], bool, str]:
        with_token = create_mcp_http_client(headers={"authorization": f"Bearer {token[1]}"})
        async with with_token, Client(streamable_http_client(f"{base[0]}/mcp", http_client=with_token)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            made = await client.call_tool("nas_remember", {"text": "The harbour closes at ten."})
            found = await client.call_tool("nas_recall", {"query": "When does the harbour close?"})
            return names, bool(made.is_error), str(found.content)

    names, failed, found = anyio.run(session)
    assert "nas_recall" in names and not failed
    assert "The harbour closes at ten." in found


def test_what_is_past_its_retention_is_removed_while_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "_FIRST", 0.0)
    written = datetime.now(UTC) - timedelta(days=3)
    desk = open_desk(Context(clock=lambda: written), tmp_path / "data")
    header = furnish(desk)["ana"]
    place = Place(scope="user", owner="ana")
    where = OperationContext(tenant="acme", project="crm", user="ana", agent="cleo", reads=(place,), writes=place)
    for days in (1, 30):
        new = RememberRequest(content=f"For {days} days.", retention_days=days)
        desk.builtin.remember(Context(clock=lambda: written), where, new)
    with TestClient(create_app(Config(environment="development"), desk)) as client:
        for _ in range(100):
            events = client.get("/v1/memory/audit", params={"operation": "expire"}, headers=header).json()["events"]
            if events:
                break
            time.sleep(0.05)
        assert [event["outcome"] for event in events] == ["success"]
    kept = [path.read_text() for path in (tmp_path / "data" / "homes").rglob("memory/notes/**/*.md")]
    assert len(kept) == 1 and "For 30 days." in kept[0]
    desk.close()
