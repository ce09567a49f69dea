"""Several calls at once, each under the deadline and the trace of the one that asks for them."""

from __future__ import annotations

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
