"""A person at a machine of their own: everything that a face reads from the environment points into `tmp_path`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


class Person:
    """Runs the program as a real process, in `work`, with a home folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        (folder / "user").mkdir()
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("MEMORANDA", "GIT_", "XDG_"))
        } | {"HOME": str(folder / "user"), "XDG_DATA_HOME": str(folder / "data"), "USER": "dana", "LOGNAME": "dana"}

    def run(
        self, *words: str, cwd: Path | None = None, input: str | bytes | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One command; output as text."""
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            [sys.executable, "-m", "memoranda", *words],
            cwd=cwd or self.work,
            env=self.env | (env or {}),
            input=data if data is not None else b"",
            capture_output=True,
            timeout=60,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def says(self, *words: str, **more: Any) -> str:
        """The standard output of a command that must succeed and have nothing to complain about."""
        done = self.run(*words, **more)
        assert done.returncode == 0, done.stderr + done.stdout
        assert done.stderr == ""
        return done.stdout

    def json(self, *words: str, code: int = 0, **more: Any) -> Any:
        """The one JSON document of a command that must end with `code`."""
        done = self.run("--json", *words, **more)
        assert done.returncode == code, done.stderr + done.stdout
        assert done.stderr == ""
        return json.loads(done.stdout)

    def refused(self, *words: str, code: int, **more: Any) -> Any:
        """The problem document of a command that must fail with `code`; without --json the same is said in words."""
        document = self.json(*words, code=code, **more)
        assert set(document) == {"type", "title", "status", "code", "detail", "why", "remedy"}
        assert document["type"] == f"urn:memoranda:{document['code']}"
        told = self.run(*words, **more)
        assert told.returncode == code and told.stdout == ""
        assert told.stderr.startswith(f"memoranda: {document['detail']}")
        assert "Traceback" not in told.stderr
        return document

    def home(self, name: str = "notes") -> Path:
        """A fresh Home in the person's folder."""
        folder = self.folder / name
        self.json("init", str(folder))
        return folder


def git(folder: Path, *words: str) -> str:
    """Plain Git, without anybody's settings."""
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)
