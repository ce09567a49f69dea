"""Several calls at once, each under the deadline and the trace of the one that asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
MOST = 8  # of one caller at a time
# Threads that wait for an answer and do little else. They stay for the next call: to begin one takes longer than what
# it has to do here. As many as all requests of a service may ever wait for, so that none waits for another's engine.
_WAITING = ThreadPoolExecutor(1024, "memoranda-engine")


class Begun(Generic[R]):
    """Calls that are on their way, and what is to be made of their answers by whoever waits for them."""

    def __init__(self, waiting: Sequence[Future[Any]], made: Callable[[list[Any]], R]) -> None:
        self.waiting, self._made = waiting, made

    def then(self, more: Callable[[R], T]) -> Begun[T]:
        """The same calls, of whose answers more is made."""
        made = self._made
        return Begun(self.waiting, lambda answers: more(made(answers)))

    def finish(self) -> R:
        """What is made of the answers, in the calls' order; the first error that there was, once all are over."""
        wait(self.waiting)
        return self._made([one.result() for one in self.waiting])


def begin(calls: Sequence[Callable[[], T]], made: Callable[[list[T]], R]) -> Begun[R]:
    """Begins these calls; `made` is what becomes of their answers."""
    return Begun([_WAITING.submit(copy_context().run, call) for call in calls], made)


def next_ready(several: Mapping[str, Begun[R]]) -> str:
    """Of which of these all answers have come first."""
    while True:
        for name, one in several.items():
            if all(future.done() for future in one.waiting):
                return name
        wait([f for one in several.values() for f in one.waiting if not f.done()], None, FIRST_COMPLETED)


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """What each of a few calls gives, in their order, all at the same time; the last of them is made here."""
    if not calls:
        return []
    others: Begun[list[T]] = begin(calls[:-1], list)
    try:
        own = calls[-1]()
    finally:
        found = others.finish()
    return [*found, own]


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
