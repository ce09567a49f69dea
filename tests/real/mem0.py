"""A Mem0 to be asked: the real server where `MEM0_SERVER_DIR` names it, else a stand-in over the real library.

`MEMORANDA_REAL_MEM0` names a virtual environment that has the library (and for the server what that needs).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.calling import call
from tests.openai_standin import OpenAI, Proxy, serving_openai, serving_proxy
from tests.postgres import Server
from tests.real.conftest import free_port

MEM0, SERVER = "MEMORANDA_REAL_MEM0", "MEM0_SERVER_DIR"
KEY = "an-administrators-key-of-the-test"


@dataclass
class RealMem0:
    """One that answers; `real` says whether it is the server itself."""

    url: str
    real: bool
    pid: int
    log: Path
    database: Server
    port: int  # of the database
    models: OpenAI
    proxy: Proxy


@contextlib.contextmanager
def mem0_running() -> Iterator[RealMem0]:
    told = os.environ.get(MEM0)
    if not told:
        pytest.skip(f"NOT CHECKED against the real Mem0: {MEM0} names none (`make test-engines` does)")
    python, source = Path(told) / "bin/python", os.environ.get(SERVER)
    folder = Path(tempfile.mkdtemp(prefix="m0-"))
    folder.chmod(0o755)
    (folder / "own").mkdir(mode=0o700)
    port = free_port()
    database = Server(folder, f"listen_addresses = '127.0.0.1'\nport = {port}")
    database.start()
    try:
        with psycopg.connect(
            f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True
        ) as connection:
            connection.execute("CREATE DATABASE mem0_app")
        with serving_openai() as models, serving_proxy() as proxy:
            own = free_port()
            process = _started(python, source, folder / "own", port, own, models, proxy)
            try:
                _answers(process, own, folder / "own/log")
                url, log = f"http://127.0.0.1:{own}", folder / "own/log"
                yield RealMem0(url, source is not None, process.pid, log, database, port, models, proxy)
            finally:
                process.terminate()
                process.wait(20)
    finally:
        database.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def _started(
    python: Path, source: str | None, own: Path, database: int, port: int, models: OpenAI, proxy: Proxy
) -> subprocess.Popen[bytes]:
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(own), "AUTH_DISABLED": "false", "ADMIN_API_KEY": KEY,
        "JWT_SECRET": "a-secret-of-the-test-that-is-long-enough", "MEM0_TELEMETRY": "false", "MEM0_DIR": str(own),
        "HISTORY_DB_PATH": str(own / "history.db"), "POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": str(database),
        "POSTGRES_DB": "postgres", "POSTGRES_USER": "postgres", "POSTGRES_PASSWORD": "none",
        "POSTGRES_COLLECTION_NAME": "memories", "APP_DB_NAME": "mem0_app", "OPENAI_API_KEY": "sk-stub",
        "OPENAI_BASE_URL": models.url, "MEM0_DEFAULT_LLM_MODEL": "gpt-4o-mini",
        "MEM0_DEFAULT_EMBEDDER_MODEL": "text-embedding-3-small", "PYTHONDONTWRITEBYTECODE": "1", **proxy.environment,
    }  # fmt: skip
    with (own / "log").open("ab") as log:
        if source is None:
            command = [str(python), str(Path(__file__).parents[1] / "mem0_app.py"), str(port)]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        upgrade = [str(python), "-m", "alembic", "upgrade", "head"]
        subprocess.run(upgrade, cwd=source, env=environment, stdout=log, stderr=log, check=True, timeout=120)
        command = [str(python), "-m", "uvicorn", "main:app", "--host", "127.0.0.1", "--port", str(port)]
        return subprocess.Popen(command, cwd=source, env=environment, stdout=log, stderr=log)


def _answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            if call(f"http://127.0.0.1:{port}", "GET", "/auth/setup-status")[0] == 200:
                return
        time.sleep(0.2)
    raise RuntimeError(f"Mem0 does not answer: {log.read_text()[-3000:]}")
