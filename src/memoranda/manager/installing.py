"""Installs engines, renews their secrets, and takes them away again."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from memoranda.errors import ConfigRefused, Conflict, InvalidInput, NotFound, Unavailable
from memoranda.governance.names import checked
from memoranda.manager.inventory import render
from memoranda.manager.kinds import COGNEE_VERSION, SECRETS, Engine
from memoranda.manager.place import Place, engines, get, keep
from memoranda.manager.running import Status, down, running, status, up
from memoranda.values import replace

PINS = Path(__file__).with_name("cognee.txt")
# What the server's folder has to hold, and what of it a file has to say: enough to tell it from another program.
_MEM0_FILES = {
    "main.py": ("/memories", "/search", "verify_auth"), "auth.py": ("ADMIN_API_KEY", "AUTH_DISABLED", "JWT_SECRET"),
    "db.py": ("APP_DB_NAME",), "models.py": ("RefreshTokenJti",), "routers/auth.py": ("setup-status", "/register"),
    "routers/api_keys.py": ("/api-keys",), "alembic.ini": ("script_location",), "alembic/env.py": ("run_migrations",),
}  # fmt: skip
_MEM0_ASKS = (
    "import fastapi, uvicorn, alembic, psycopg, sqlalchemy, jose, passlib, slowapi, mem0; print(mem0.__version__)"
)
_COGNEE_ASKS = "import importlib.metadata, uvicorn; print(importlib.metadata.version('cognee'))"


def install(place: Place, new: Engine, *, python: str = "", environment: Path | None = None) -> Engine:
    """Installs an engine, or carries an installed one over to what is told now; its secrets and its data stay.

    `new.python` and `new.version` are found out here. `environment` is one that exists already, `python` the
    interpreter that a new one is made with.

    Raises:
        Conflict: the engine runs, or its port is another's. ConfigRefused: what is to be run is not what is expected.
    """
    checked("engine", new.id)
    if running(place, new.id) is not None:
        raise Conflict(f"{new.id} runs.", remedy=f"`memoranda engine down {new.id}` first.")
    _check_port(place, new)
    if new.kind == "mem0":
        new = _mem0(new, environment)
    else:
        own = environment or _cognee(place, python or sys.executable)
        new = replace(new, python=str(own / "bin/python"), version=_asked(own / "bin/python", _COGNEE_ASKS, "Cognee"))
        if new.version != COGNEE_VERSION:
            raise ConfigRefused(
                f"This is Cognee {new.version}.", why=f"Its guards are proven with {COGNEE_VERSION}.",
                remedy="Leave `--environment` out: the launcher makes one.",
            )  # fmt: skip
    for other in engines(place):
        if other.id == new.id and other.kind != new.kind:
            raise Conflict(f"{new.id} is an engine of another kind.", remedy="Choose another --id.")
    _seal(place, new)
    keep(place, new)
    _tidy(place)
    render(place)
    return new


def rotate(place: Place, engine_id: str, names: Iterable[str]) -> tuple[list[str], Status]:
    """Gives secrets new values and starts the engine again if it runs. Returns the names, and how the engine is.

    InvalidInput: the engine has no secret of that name.
    """
    engine = get(place, engine_id)
    known = SECRETS[engine.kind]
    told = list(dict.fromkeys(names))
    if not told or set(told) - set(known):
        raise InvalidInput(f"{engine_id} has no such secret.", remedy=f"It has {', '.join(known)}.")
    place.vault.put(engine.id, {**place.vault.get(engine.id), **{name: _fresh(place) for name in told}})
    if running(place, engine.id) is None:
        render(place)
        return told, status(place, engine.id)[0]
    down(place, engine.id)
    return told, up(place, engine.id)


def remove(place: Place, engine_id: str) -> list[str]:
    """Stops an engine and takes it away with its data, its secrets and its keys; returns what is left elsewhere."""
    engine = get(place, engine_id)
    down(place, engine.id)
    place.vault.remove(engine.id)
    shutil.rmtree(place.of(engine.id))
    _tidy(place)
    render(place)
    if engine.postgres is not None:
        where = f"{engine.postgres.host}:{engine.postgres.port}"
        return [f"What Mem0 kept lies in PostgreSQL at {where}: the databases {engine.postgres.database}, mem0_app."]
    return []


def _seal(place: Place, engine: Engine) -> None:
    try:
        there = place.vault.get(engine.id)
    except NotFound:
        there = {}
    lacking = {name: _fresh(place) for name in SECRETS[engine.kind] if name not in there}
    if lacking:
        place.vault.put(engine.id, {**there, **lacking})


def _fresh(place: Place) -> str:
    return base64.urlsafe_b64encode(place.random(33)).decode()


def _check_port(place: Place, new: Engine) -> None:
    for other in engines(place):
        if other.port == new.port and other.id != new.id:
            raise Conflict(f"The port {new.port} is that of {other.id}.", remedy="Choose another --port.")
    try:
        socket.create_server(("127.0.0.1", new.port)).close()
    except OSError as error:
        raise Conflict(
            f"The port {new.port} cannot be listened at.", why=f"{error.strerror}.", remedy="Choose another --port."
        ) from None


def _cognee(place: Place, python: str) -> Path:
    """Cognee's own environment, made where it is not there or was not finished."""
    own = place.folder / "environments" / f"cognee-{COGNEE_VERSION}"
    if (own / "finished").exists():
        return own
    shutil.rmtree(own, ignore_errors=True)
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _run([python, "-m", "venv", str(own)], "An environment for Cognee could not be made.")
    pip = [str(own / "bin/python"), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "-r", str(PINS)]
    _run(pip, "Cognee could not be installed.")
    (own / "finished").write_bytes(b"")
    return own


def _mem0(new: Engine, environment: Path | None) -> Engine:
    """The operator's copy of Mem0's server, once it is what is expected."""
    folder = Path(new.server).absolute()
    for name, words in _MEM0_FILES.items():
        path = folder / name
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        lacking = [word for word in words if word not in text]
        if lacking:
            raise ConfigRefused(
                f"{folder} is not Mem0's server.", why=f"{name} does not have {', '.join(lacking)}.",
                remedy="Name the folder `server` of a copy of mem0ai/mem0 with --server, or MEM0_SERVER_DIR.",
            )  # fmt: skip
    if new.postgres is None:
        raise ConfigRefused("Mem0 needs PostgreSQL with pgvector.", remedy="Say where it is, with --postgres.")
    python = (environment or folder / ".venv") / "bin/python"
    version = _asked(python, _MEM0_ASKS, "what Mem0's server asks for")
    return replace(new, python=str(python), version=version, server=str(folder))


def _asked(python: Path, code: str, what: str) -> str:
    if not python.exists():
        raise ConfigRefused(f"There is no {python}.", remedy="Name the folder of an environment with --environment.")
    quiet = {"PATH": os.defpath, "MEM0_TELEMETRY": "false", "TELEMETRY_DISABLED": "1", "HOME": "/nonexistent"}
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False, env=quiet)
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [""]
        raise ConfigRefused(f"{python} does not have {what}.", why=why[0][:200], remedy="Install it there.")
    return done.stdout.strip().splitlines()[-1]


def _run(words: list[str], failed: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        last = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()][-1:] or [""]
        raise Unavailable(failed, why=last[0][:300], remedy="Look at the message, and try again.")


def _tidy(place: Place) -> None:
    """Environments that no engine uses any more go."""
    used = {Path(one.python).parent.parent for one in engines(place)}
    for own in (place.folder / "environments").glob("*"):
        if own not in used:
            shutil.rmtree(own)
