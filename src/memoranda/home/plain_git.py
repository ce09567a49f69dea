"""Git on a folder that is no Home yet, or a clone in the making."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from memoranda.errors import GitFailed


def plain_git(folder: Path, *arguments: str) -> bytes:
    """Git where there is no Home yet: nothing of the folder's configuration can run in `init` and `ls-files`."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", f"safe.directory={folder}"]
    try:
        done = subprocess.run(
            ["git", *options, *arguments], cwd=folder, env=environment, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise GitFailed("The program `git` was not found.", remedy="Install Git and try again.") from error
    if done.returncode != 0:
        raise GitFailed(f"git {arguments[0]} failed in {folder}.", why=done.stderr.decode("utf-8", "replace").strip())
    return done.stdout
