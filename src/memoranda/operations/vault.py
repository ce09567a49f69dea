"""The Markdown files of a folder that is taken in: which they are, what they are called, what is in them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memoranda.errors import InvalidPath
from memoranda.notes.paths import check_path

_LARGEST = 64 << 20
_NO_FILE = "it is a link or not a regular file"
_TOO_LONG = 200  # bytes of a file name; file systems end at 255 and copies add to it


def markdown_files(source: Path, left: list[tuple[str, str]]) -> Iterator[str]:
    """The path, relative to `source`, of every Markdown file; what cannot be taken goes to `left`, with the reason."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(source / folder) as found:
                entries = [entry for entry in found if not entry.name.startswith(".")]
        except OSError as error:
            left.append((_printable(folder), f"this folder cannot be read: {error.strerror}"))
            continue
        for entry in entries:
            relative = folder + entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(f"{relative}/")
            elif entry.name.lower().endswith((".md", ".markdown")):
                if reason := _unfit(entry, relative):
                    left.append((_printable(relative), reason))
                else:
                    yield relative


def as_md(name: str) -> str:
    """`notes/x.markdown` becomes `notes/x.md`."""
    return name if name.endswith(".md") else f"{name.rpartition('.')[0]}.md"


def read_file(path: str) -> bytes:
    """The bytes of a regular file of at most 64 MB; OSError says why there are none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, _NO_FILE)
        if status.st_size > _LARGEST:
            raise OSError(errno.EFBIG, "it is larger than 64 MB")
        data = os.read(descriptor, status.st_size + 1)
        if len(data) != status.st_size:  # it is being written, or comes in pieces
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                file.seek(0)
                data = file.read()
        return data
    finally:
        os.close(descriptor)


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _unfit(entry: os.DirEntry[str], relative: str) -> str | None:
    if not entry.is_file(follow_symlinks=False):
        return _NO_FILE
    try:
        if len(entry.name.encode("utf-8")) > _TOO_LONG:
            return "its name is too long"
        check_path(relative)
    except UnicodeEncodeError:
        return "its name is not Unicode"
    except InvalidPath as error:
        return error.why
    return None
