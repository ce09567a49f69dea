"""Git's index file, version 2, written by ourselves when thousands of files came at once.

Git would read and hash every one of them again to learn its times; we have just written them and know. Source of the
format: Documentation/gitformat-index.txt. Anything but a plain version 2 is left to Git.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

from memoranda.home.durable import sync_data

_HEADER = struct.Struct(">4sII")
_STAT = struct.Struct(">10I20sH")
_LONG_NAME = 0xFFF
_WORD = 0xFFFFFFFF
_MUST_UNDERSTAND = frozenset(range(ord("a"), ord("z") + 1))  # an extension in lower case changes what entries mean


def read_entries(path: Path) -> dict[bytes, bytes] | None:
    """path -> the bytes of its entry; None when the file is not a plain version 2 (or holds a conflict)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    if len(data) < _HEADER.size + 20:
        return None
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version != 2:
        return None
    if any(data[-20:]) and hashlib.sha1(data[:-20], usedforsecurity=False).digest() != data[-20:]:
        return None
    found: dict[bytes, bytes] = {}
    at = _HEADER.size
    for _ in range(count):
        flags = int.from_bytes(data[at + 60 : at + 62], "big")
        if flags & 0x7000:  # extended, or a stage of a conflict
            return None
        end = data.index(b"\0", at + _STAT.size)
        name = data[at + _STAT.size : end]
        size = (_STAT.size + len(name) + 8) // 8 * 8
        found[name] = data[at : at + size]
        at += size
    while at < len(data) - 20:
        if data[at] in _MUST_UNDERSTAND:
            return None
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    return found


def blob_of(entry: bytes) -> str:
    """The blob that an entry stages."""
    return entry[40:60].hex()


def make_entry(name: bytes, blob: str, status: os.stat_result | None, executable: bool) -> bytes:
    """The entry of a file; without its status Git looks at the content the next time."""
    mode = 0o100755 if executable else 0o100644
    if status is None:
        numbers = (0, 0, 0, 0, 0, 0, mode, 0, 0, 0)
    else:
        ctime, mtime = divmod(status.st_ctime_ns, 10**9), divmod(status.st_mtime_ns, 10**9)
        rest = (status.st_dev & _WORD, status.st_ino & _WORD, mode, status.st_uid & _WORD, status.st_gid & _WORD)
        numbers = (ctime[0] & _WORD, ctime[1], mtime[0] & _WORD, mtime[1], *rest, status.st_size & _WORD)
    head = _STAT.pack(*numbers, bytes.fromhex(blob), min(len(name), _LONG_NAME))
    return head + name + bytes(8 - (_STAT.size + len(name)) % 8)


def write_entries(path: Path, entries: Mapping[bytes, bytes]) -> None:
    """Writes an index with these entries, synced."""
    body = _HEADER.pack(b"DIRC", 2, len(entries)) + b"".join(entries[name] for name in sorted(entries))
    with path.open("wb") as file:
        file.write(body)
        file.write(hashlib.sha1(body, usedforsecurity=False).digest())
        file.flush()
        sync_data(file.fileno())


def bring_forward(
    entries: dict[bytes, bytes],
    touched: Mapping[str, tuple[str | None, str | None]],
    ours: Callable[[str, str | None, str | None], bool],
    status: Callable[[str, str], os.stat_result | None],
    executable: Callable[[str], bool],
) -> None:
    """Moves entries from the blob before to the blob now; what is not `ours` (path, staged, before) stays."""
    for name, (old, new) in touched.items():
        key = name.encode("utf-8", "surrogateescape")
        found = blob_of(entries[key]) if key in entries else None
        if found != new and not ours(name, found, old):
            continue
        if new is None:
            entries.pop(key, None)
        else:
            found_now = status(name, new)
            program = executable(name) if found_now is None else bool(found_now.st_mode & stat.S_IXUSR)
            entries[key] = make_entry(key, new, found_now, program)
