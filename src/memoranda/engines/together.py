"""Several calls at once, each under the deadline and the trace of the one that asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
MOST = 8  # of one caller at a time


def together(calls: Sequence[Callable[[], T]], most: int = MOST) -> list[T]:
    """What each of these gives, in their order. The first error ends it, once all that had begun are over."""
    if len(calls) <= 1:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(most, len(calls)), "memoranda-engine") as pool:
        begun = [pool.submit(copy_context().run, call) for call in calls]
        try:
            return [future.result() for future in begun]
        finally:
            for future in begun:
                future.cancel()


_QUICK = 0.002  # seconds of a call, up to which threads would cost more than they save


def soon(calls: Sequence[Callable[[], T]]) -> list[T]:
    """The same for many small calls: one after the other as long as they are quick, else the rest of them at once."""
    found: list[T] = []
    slow = 0
    for n, call in enumerate(calls):
        began = time.perf_counter()
        found.append(call())
        slow += time.perf_counter() - began > _QUICK
        if slow > 1 and n + 2 < len(calls):
            return found + together(calls[n + 1 :])
    return found
