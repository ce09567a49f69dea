"""A disk that is full, of a real engine."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def no_file_grows(pid: int) -> Iterator[None]:
    """No file of a process becomes longer than a page, as if there were no room: a write beyond that is an error."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


class Small:
    """A file system of its own of a few megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Not a byte of it is free."""
        filler = self.folder / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        try:
            yield
        finally:
            filler.unlink()


@contextlib.contextmanager
def small_disk(folder: Path, size: str, user: str | None) -> Iterator[Small]:
    """One mounted at `folder` until the end, and owned by `user`. Skipped, and said so, where nobody may mount."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("NOT CHECKED with a full disk of PostgreSQL: nothing may be mounted here")
    try:
        if user is not None:
            shutil.chown(folder, user)
        yield Small(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
