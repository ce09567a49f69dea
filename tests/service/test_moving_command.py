"""`engine export` and `engine import`, as somebody at the machine gives them: from each engine into another."""

# ruff: noqa: F811 - fixtures of another file

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.engines.contract import PolicyBody, PurgeRequest, RememberRequest
from memoranda.service import memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.policies import put_policy
from tests.cognee_standin import Server
from tests.engines.mem0_standin import KEY, Mem0Server

from .test_hybrid import SIX, USER, ana, cognee, desk, mem0  # noqa: F401 - the fixtures

KEYS = {"EAI_CRED_MEMORY_COGNEE_API_KEY": USER, "EAI_CRED_MEMORY_MEM0_API_KEY": KEY}


@pytest.fixture
def database() -> str:
    """In folders on every run: the command is told a folder and no configuration."""
    return ""


def command(folder: Path, *words: str, code: int = 0) -> Any:
    told = [sys.executable, "-m", "memoranda", "engine", *words, "--agent", "cleo", "--token-file",
            str(folder / "token"), "--data", str(folder / "service"), "--json"]  # fmt: skip
    environment = {**os.environ, **KEYS, "EAI_ENVIRONMENT": "development"}
    done = subprocess.run(told, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stdout + done.stderr
    return json.loads(done.stdout or done.stderr)


def test_memories_go_from_each_engine_into_the_next_and_back(
    desk: Desk, ana: Caller, mem0: Mem0Server, cognee: Server, context: Context, tmp_path: Path
) -> None:
    _, secret = desk.tokens.issue(context, "acme", "ana", None)
    (tmp_path / "token").write_text(f"{secret}\n")
    zipped = tmp_path / "out.zip"

    def on(engine: str) -> None:
        told = {"engine": engine, "mem0_instance": "mem0", "cognee_instance": "cognee"}
        put_policy(desk, ana, "cleo", PolicyBody.model_validate(told))

    on("builtin")
    memories.remember(desk, ana, "cleo", RememberRequest(content=SIX))
    for engine in ("mem0", "hybrid", "builtin"):
        assert command(tmp_path, "export", str(zipped)) == {"file": str(zipped), "count": 1}
        assert zipped.stat().st_mode & 0o777 == 0o600
        memories.purge(desk, ana, "cleo", PurgeRequest(scope="user", confirm=True))
        assert mem0.rows == {}
        on(engine)
        moved = command(tmp_path, "import", str(zipped))
        assert len(moved["kept"]) == 1 and moved["left_out"] == {}
        (new,) = moved["kept"].values()
        assert memories.get(desk, ana, "cleo", new).content == SIX
        assert len(mem0.rows) == (engine != "builtin")


def test_what_cannot_be_done_is_said(desk: Desk, ana: Caller, context: Context, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("nonsense")
    zipped = tmp_path / "out.zip"
    assert command(tmp_path, "export", str(zipped), code=3)["code"] == "memory_unauthenticated"
    _, secret = desk.tokens.issue(context, "acme", "ana", None)
    (tmp_path / "token").write_text(secret)
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "folder", tmp_path / "nowhere/out.zip"):
        assert str(place) in command(tmp_path, "export", str(place), code=6)["detail"]
    assert "cannot be read" in command(tmp_path, "import", str(zipped), code=2)["detail"]
    (tmp_path / "token").unlink()
    assert "token" in command(tmp_path, "export", str(zipped), code=2)["detail"]
    assert not zipped.exists()
