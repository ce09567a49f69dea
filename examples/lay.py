"""Makes a Home of the template in `examples/home`: `python examples/lay.py TARGET`.

A repository cannot hold another one, so the template is a plain folder. This gives it its history back: one commit a
note, at the time at which it was written down, each day's journals before the notes that cite them. So `git log -p`
reads like the year that the template tells, and `--known-at` has something to go by.

Needs Python's standard library and git only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

TEMPLATE = Path(__file__).parent / "home"
_RECORDED = re.compile(rb"^recorded_at: (\S+)$", re.M)
_ENTRY = re.compile(rb"^## (\S+) ", re.M)
_AGENT = re.compile(rb"nas://[^/\s]+/agents/([^/\s]+)/journal/")


@dataclass(frozen=True)
class Step:
    """One commit: when (aware, UTC), who, why, and the files with their bytes."""

    at: datetime
    author: str
    reason: str
    files: dict[str, bytes]


def steps(template: Path = TEMPLATE) -> list[Step]:
    """The commits that lead to the template, oldest first; no time goes back."""
    laid: dict[str, bytes] = {}
    journals: list[Step] = []
    notes: list[Step] = []
    for file in sorted(template.rglob("*")):
        if not file.is_file():
            continue
        path, data = file.relative_to(template).as_posix(), file.read_bytes()
        if path.startswith("memory/notes/"):
            found = _RECORDED.search(data)
            if found is None:
                raise ValueError(f"{path} does not say when it was recorded")
            agent = _AGENT.search(data)
            notes.append(Step(_time(found[1]), agent[1].decode() if agent else "maud", _reason(data), {path: data}))
        elif "/journal/" in path:
            last = _time(_ENTRY.findall(data)[-1])
            agent_name = path.split("/")[1]
            journals.append(Step(last, agent_name, f"Journal of {agent_name}, {last:%Y-%m-%d}", {path: data}))
        else:
            laid[path] = data
    first = min(step.at for step in [*journals, *notes])
    ordered = sorted([*journals, *notes], key=lambda step: (step.at.date(), "/notes/" in min(step.files), step.at))
    result = [Step(first, "maud", "Make this folder a Home", laid)]
    for step in ordered:
        result.append(Step(max(step.at, result[-1].at), step.author, step.reason, step.files))
    return result


def _time(text: bytes) -> datetime:
    return datetime.fromisoformat(text.decode().replace("Z", "+00:00")).astimezone(UTC)


def _reason(note: bytes) -> str:
    text = note.decode().split("\n---\n", 1)[1].strip().splitlines()[0].lstrip("# ")
    return "Remember: " + textwrap.shorten(text, 60, placeholder=" …")


def lay(target: Path, template: Path = TEMPLATE) -> None:
    """Makes a Home at `target`, which must not exist or be empty.

    Raises:
        FileExistsError: something lies there.
        subprocess.CalledProcessError: git failed; it has said why on standard error.
    """
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty")
    target.mkdir(parents=True, exist_ok=True)
    # Whoever runs this may have settings of their own, or be inside another repository's hook.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args: str, data: bytes | None = None) -> None:
        subprocess.run(["git", *args], cwd=target, env=env, input=data, check=True)

    git("init", "--quiet", "--initial-branch=main", "--object-format=sha1", "--template=")
    git("fast-import", "--quiet", "--date-format=raw", data=b"".join(map(_import_lines, steps(template))))
    git("reset", "--quiet", "--hard", "main")


def _import_lines(step: Step) -> bytes:
    stamp = f"{step.author} <{step.author}@pelorma.example> {int(step.at.timestamp())} +0000\n".encode()
    reason = step.reason.encode() + b"\n"
    out = [b"commit refs/heads/main\nauthor ", stamp, b"committer ", stamp, b"data %d\n" % len(reason), reason]
    for path, data in step.files.items():
        out += [b"M 100644 inline ", path.encode(), b"\ndata %d\n" % len(data), data, b"\n"]
    return b"".join(out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/lay.py TARGET")
    try:
        lay(Path(sys.argv[1]))
    except FileExistsError as error:
        sys.exit(str(error))
