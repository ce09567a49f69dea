"""The few numbers of the intake log that all processes share through a memory map: the file `state`.

Segment, offset up to which the working tree is written, offset up to which its files are synced, boot, and up to where
the log itself is synced. In the native form each number is stored at one stroke, so that another process can read it
without a lock. The first four change inside the writers' lock only.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from pathlib import Path

_STATE = struct.Struct("@QQQ32sQ")  # the last: segment and offset in one number
_WRITERS = struct.Struct("@QQQ32s")
_DURABLE = struct.Struct("@Q")
_APPLIED, _APPLIED_AT = struct.Struct("@Q"), 8
_DURABLE_AT = _STATE.size - _DURABLE.size
_OFFSET_BITS = 40


def boot_id() -> bytes:
    """A name of this run of the operating system: another one means that unsynced files may be torn."""
    if sys.platform == "darwin":
        import ctypes

        size = ctypes.c_size_t(64)
        buffer = ctypes.create_string_buffer(64)
        ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0)
        return buffer.value[:32].ljust(32, b"-")
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()[:32].ljust(32, b"-")
    except OSError:
        return b"unknown".ljust(32, b"-")


class LogState:
    """The numbers in the file at `path`, which is made when it is missing."""

    def __init__(self, path: Path) -> None:
        self.this_boot = boot_id()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if (size := os.fstat(descriptor).st_size) < _STATE.size:
                os.pwrite(descriptor, bytes(_STATE.size - size), size)
            self._map = mmap.mmap(descriptor, _STATE.size)
        finally:
            os.close(descriptor)
        if self.fresh_boot:
            _DURABLE.pack_into(self._map, _DURABLE_AT, 0)

    def numbers(self) -> tuple[int, int, int]:
        """(segment, offset up to which the working tree is written, offset up to which its files are synced)."""
        segment, applied, safe, _ = _WRITERS.unpack_from(self._map)
        return segment, applied, safe

    @property
    def boot(self) -> bytes:
        return bytes(_WRITERS.unpack_from(self._map)[3])

    @property
    def fresh_boot(self) -> bool:
        """Whether the machine was started anew and nobody has looked yet which files were lost by it."""
        return self.boot != self.this_boot

    def usual(self, segment: int) -> int | None:
        """How far the working tree is written when this is the segment, and the boot is this one; else None."""
        current, applied, _, boot = _WRITERS.unpack_from(self._map)
        return applied if current == segment and boot == self.this_boot else None

    def write(self, segment: int, applied: int, safe: int, boot: bytes | None = None) -> None:
        """Sets the numbers (inside the writers' lock); `boot`: of this run of the machine when it is not told."""
        _WRITERS.pack_into(self._map, 0, segment, applied, safe, self.this_boot if boot is None else boot)

    def advance(self, applied: int) -> None:
        """The working tree is written further than before (inside the writers' lock, where all else stays true)."""
        _APPLIED.pack_into(self._map, _APPLIED_AT, applied)

    def durable(self, segment: int) -> int:
        """Up to where some process has synced this segment, 0 when nobody has.

        Never more than what is written: then the log was put back from a copy, and the number is of another one.
        """
        _, applied, _, _, durable = _STATE.unpack_from(self._map)
        offset: int = durable & (1 << _OFFSET_BITS) - 1
        return offset if durable >> _OFFSET_BITS == segment and offset <= applied else 0

    def set_durable(self, segment: int, offset: int) -> None:
        _DURABLE.pack_into(self._map, _DURABLE_AT, segment << _OFFSET_BITS | offset)

    def close(self) -> None:
        self._map.close()
