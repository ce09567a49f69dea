"""The same work with two other memories from PyPI: index 1,000 notes, then search them.

Each peer gets an environment of its own under `.bench/`, in which it is driven by a small program that calls what its
authors call (`_peer_basic_memory.py`, `_peer_memd.py`): basic-memory with keywords only, memd with the offline embedder
of the bare package; no model is loaded. Both time themselves, without their start. Peers are asked for their eight or
so best; ours is the whole recall. A peer that cannot be installed here is named, and the rest goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench._common import (
    CACHE,
    ROOT,
    Line,
    Options,
    context,
    discard,
    elapsed,
    faster,
    files,
    median,
    new_home,
    opened,
    questions,
    tell,
)
from memoranda.operations.importing import import_folder
from memoranda.operations.recalling import recall

TITLE = "peers: 1,000 notes"


@dataclass(frozen=True, slots=True)
class Peer:
    """`times` is what the issue asks of our indexing, 0 for nothing; `least` the oldest Python that it takes."""

    package: str
    pinned: str
    worker: str
    least: tuple[int, int]
    times: float


_PEERS = (
    Peer("basic-memory", "0.24.1", "_peer_basic_memory.py", (3, 12), 20),
    Peer("memd-engine", "0.5.2", "_peer_memd.py", (3, 11), 0),
)


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(1_000):
        for peer in _PEERS:
            try:
                yield from _beside(peer, size, options)
            except _Absent as reason:
                yield Line(f"{peer.package} {peer.pinned}", 0, "", note=f"not measured: {reason}")


class _Absent(Exception):
    """Why a peer cannot be measured here."""


def _beside(peer: Peer, size: int, options: Options) -> Iterator[Line]:
    python = _environment(peer)
    asked = questions(options.samples(200) + 20)
    indexed = [_index(size) for _ in range(3)]
    running = _start(peer, python, size)
    try:
        told = _answer(running, peer)
        indexed += [_index(size) for _ in range(3)]
        name = f"{peer.package} {told['version']}"
        ours, theirs = 1 / median(indexed), 1 / told["seconds"]
        what = f"index {size:,} notes"
        if peer.times:
            yield faster(what, size * ours, name, size * theirs, peer.times, unit="/s")
        else:
            yield Line(
                what, size * ours, "/s", name, size * theirs, ours / theirs, note="ours includes files and commits"
            )
        mine: list[float] = []
        other: list[float] = []
        with opened(CACHE / "peer-home") as (space, _):
            space.watch()
            for n, question in enumerate(asked):
                mine.append(elapsed(partial(recall, context(), space, question)))
                other.append(_ask(running, question, peer))
                if n < 20:  # both warm up
                    mine.clear()
                    other.clear()
        yield _search("search, p50", median(mine), name, median(other))
    finally:
        if running.stdin:
            running.stdin.close()
        running.wait()


def _search(what: str, ours: float, name: str, theirs: float) -> Line:
    return Line(what, ours, "ms", name, theirs, ours / theirs, "faster", ours < theirs)


def _index(size: int) -> float:
    """Seconds until 1,000 files are imported, committed, indexed and can be recalled."""
    source = files(size)
    root = new_home("peer-home")
    started = time.perf_counter()
    with opened(root) as (space, _):
        import_folder(context(), space, source)
    return time.perf_counter() - started


def _start(peer: Peer, python: Path, size: int) -> subprocess.Popen[str]:
    place = CACHE / f"peer-{peer.package}"
    discard(place)
    place.mkdir()
    source = shutil.copytree(files(size), place / "notes")  # basic-memory writes into the files
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    env |= {
        "HOME": str(place), "BASIC_MEMORY_HOME": str(source), "BASIC_MEMORY_CONFIG_DIR": str(place / "config"),
        "BASIC_MEMORY_AUTO_UPDATE": "false", "BASIC_MEMORY_LOG_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1",
        "MEMD_EMBEDDER": "hash",
    }  # fmt: skip
    # -P: our folder must not stand in for modules of theirs.
    command = [str(python), "-P", str(ROOT / "bench" / peer.worker), str(source), str(place / "data")]
    with (place / "errors").open("w") as errors:
        return subprocess.Popen(
            command, env=env, cwd=place, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )


def _ask(running: subprocess.Popen[str], question: str, peer: Peer) -> float:
    assert running.stdin is not None
    running.stdin.write(question + "\n")
    running.stdin.flush()
    return float(_answer(running, peer)["ms"])


def _answer(running: subprocess.Popen[str], peer: Peer) -> Any:
    assert running.stdout is not None
    line = running.stdout.readline()
    if not line:
        said = (CACHE / f"peer-{peer.package}" / "errors").read_text(encoding="utf-8").strip().splitlines()
        raise _Absent(f"it ended with {running.wait()}: {said[-1] if said else 'without a word'}")
    return json.loads(line)


# Environments


def _environment(peer: Peer) -> Path:
    """The interpreter of the peer's environment, made once."""
    folder = CACHE / f"venv-{peer.package}-{peer.pinned}"
    python = folder / "bin" / "python"
    if (folder / "done").exists():
        return python
    base = _interpreter(peer.least)
    tell(f"installing {peer.package} {peer.pinned} (once)")
    discard(folder)
    install = [str(python), "-m", "pip", "install", "--quiet", f"{peer.package}=={peer.pinned}"]
    for command in ([str(base), "-m", "venv", str(folder)], install):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise _Absent(f"it cannot be installed here ({said[-1] if said else done.returncode})")
    (folder / "done").touch()
    return python


def _interpreter(least: tuple[int, int]) -> Path:
    """A Python that is new enough: BENCH_PYTHON, our own, one on the PATH, one that pyenv keeps."""
    named = [os.environ.get("BENCH_PYTHON"), sys.executable]
    on_path = [shutil.which(f"python3.{minor}") for minor in range(least[1], 20)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    kept = sorted(str(path) for path in pyenv.glob("3.*/bin/python"))
    check = f"import sys, venv, ensurepip; sys.exit(sys.version_info < {least})"
    for candidate in (*named, *on_path, *kept):
        if candidate and subprocess.run([candidate, "-c", check], capture_output=True, check=False).returncode == 0:
            return Path(candidate)
    raise _Absent(f"it needs Python {least[0]}.{least[1]}, and there is none here (BENCH_PYTHON can name one)")
