"""Starts and stops engines. Whether one runs is told by a lock that its process holds as long as it lives."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Literal

from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ConfigRefused, EngineUnavailable, MemorandaError
from memoranda.manager import guard
from memoranda.manager.inventory import render
from memoranda.manager.kinds import Engine, environment
from memoranda.manager.place import Place, engines, get, write_secret
from memoranda.values import dataclass

_GUARDED = "/"  # the guard itself answers there: that costs the engine nothing
_SWITCH = "MEM0_TELEMETRY"
_LOG_KEPT = 4 << 20  # bytes of the log of earlier starts
# What this process has started: an engine outlives whoever started it, and one that has ended is not left a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Status:
    """How an engine is. `state`: running (it answers), starting (its process lives and does not answer), stopped."""

    id: str
    kind: str
    state: Literal["running", "starting", "stopped"]
    base_url: str
    version: str
    tenant: str | None
    pid: int | None


def status(place: Place, engine: str | None = None) -> list[Status]:
    """Of one engine, or of all that are installed."""
    return [_status(place, one) for one in (engines(place) if engine is None else [get(place, engine)])]


def _status(place: Place, engine: Engine) -> Status:
    pid = running(place, engine.id)
    state: Literal["running", "starting", "stopped"] = "stopped"
    if pid is not None:
        state = "running" if _answers(engine, 10.0) else "starting"
    return Status(engine.id, engine.kind, state, engine.base_url, engine.version, engine.tenant, pid)


def running(place: Place, engine: str) -> int | None:
    """The id of the engine's process; None when there is none."""
    for pid in [pid for pid, child in list(_children.items()) if child.poll() is not None]:
        _children.pop(pid, None)
    path = place.of(engine) / "lock"
    if not path.exists():
        return None
    with path.open("r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            told = lock.read().strip()
            return int(told) if told.isdigit() else None
    return None


def up(place: Place, engine_id: str, *, timeout: float = 300.0) -> Status:
    """Starts an engine and waits until it answers; one that runs already is left alone.

    Raises:
        ConfigRefused: a switch is not as it has to be; nothing was started, or it has ended at once.
        EngineUnavailable: it ended, or did not answer within `timeout` seconds.
    """
    engine = get(place, engine_id)
    if running(place, engine.id) is None:
        _start(place, engine, timeout)
    render(place)
    return _status(place, engine)


def down(place: Place, engine_id: str, *, timeout: float = 30.0) -> Status:
    """Ends an engine's process: asked first, ended after `timeout` seconds. Nothing happens when it does not run."""
    engine = get(place, engine_id)
    pid = running(place, engine.id)
    if pid is not None:
        for sign, seconds in ((signal.SIGTERM, timeout), (signal.SIGKILL, 10.0)):
            _signal(pid, sign)
            if _ended(place, engine.id, seconds):
                break
    return _status(place, engine)


def _signal(pid: int, sign: signal.Signals) -> None:
    try:
        os.killpg(pid, sign)  # it leads a group of its own, with whatever it has started
    except ProcessLookupError:
        pass


def _ended(place: Place, engine: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while running(place, engine) is not None:
        if time.monotonic() >= until:
            return False
        time.sleep(0.05)
    return True


def _start(place: Place, engine: Engine, timeout: float) -> None:
    folder = place.of(engine.id)
    told = _environment(place, engine)
    for name in ("data", "nothing"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "empty.env").write_bytes(b"")
    private = folder / "start.env"
    write_secret(private, told)
    try:
        with (folder / "lock").open("a+b") as lock, _log(folder) as log:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise EngineUnavailable(
                    f"{engine.id} is being started by somebody else.", remedy="Look at `memoranda engine status`."
                ) from None
            process = subprocess.Popen(
                [engine.python, "-I", "-u", guard.__file__, str(private)],
                env={"PATH": os.defpath, "LANG": "C.UTF-8"}, cwd=folder / "data", stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, pass_fds=(lock.fileno(),),
            )  # fmt: skip
            _children[process.pid] = process
            lock.truncate(0)
            lock.write(f"{process.pid}\n".encode())
            lock.flush()
        try:
            _wait(engine, process, folder / "log", timeout)
        except MemorandaError:
            _signal(process.pid, signal.SIGKILL)
            process.wait()
            raise
    finally:
        private.unlink(missing_ok=True)  # the engine has deleted it, where it came so far


def _environment(place: Place, engine: Engine) -> dict[str, str]:
    switch = place.environ.get(_SWITCH, "false")
    if engine.kind == "mem0" and switch.lower() != "false":
        raise ConfigRefused(f"{_SWITCH} has to be false.", why="It is set here to something else.",
                            remedy=f"unset {_SWITCH}, or set it to false.")  # fmt: skip
    secrets = place.vault.get(engine.id)
    model = place.resolve(engine.models.credential) if engine.models.credential else ""
    postgres = engine.postgres
    password = place.resolve(postgres.credential) if postgres is not None and postgres.credential else ""
    told = environment(engine, place.of(engine.id), secrets, model, password)
    try:
        guard.check_switches(engine.kind, told)
    except guard.Refused as error:
        raise ConfigRefused(
            f"{engine.id} is not started.", why=str(error), remedy="Install it again without that setting."
        ) from None
    return told


def _log(folder: Path) -> IO[bytes]:
    """The log, readable by its owner alone, begun anew when it has become long."""
    path = folder / "log"
    if path.exists() and path.stat().st_size > _LOG_KEPT:
        path.unlink()
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _wait(engine: Engine, process: subprocess.Popen[bytes], log: Path, timeout: float) -> None:
    until = time.monotonic() + timeout
    while not _answers(engine, 30.0):
        code = process.poll()
        if code is not None:
            last = _last(log)
            refused = ConfigRefused if code == 78 else EngineUnavailable
            raise refused(
                f"{engine.id} has ended before it answered (exit code {code}).", why=last, remedy=f"Look into {log}."
            )
        if time.monotonic() >= until:
            raise EngineUnavailable(
                f"{engine.id} did not answer within {timeout:g} seconds.", why=_last(log), remedy=f"Look into {log}."
            )
        time.sleep(0.2)


def _last(log: Path) -> str:
    lines = [line for line in log.read_bytes()[-20_000:].decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def _answers(engine: Engine, timeout: float) -> bool:
    """Whether a guard of ours listens there and answers; how the engine behind it is, its health says."""
    egress = Egress(EgressSettings("development"))
    try:
        target = egress.to(engine.base_url, name=engine.id, timeout=timeout)
        return target.request("GET", _GUARDED).status == 401
    except EngineUnavailable:
        return False
    finally:
        egress.close()
