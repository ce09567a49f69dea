"""Who asks, when, and with what: the first argument of every operation.

Nothing below a face reads the clock, the environment or the random source of the machine: a face makes a `Context`
and hands it down, so that the same input gives the same answer, and a test can be any hour of any day.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

from memoranda.values import dataclass, field, replace


def system_clock() -> datetime:
    """The machine's time, aware, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Context:
    """The derived circumstances of one call; never taken from what an agent sends.

    `user` and `agent` are names, `session` an id (`ses_…`) or None, which joins the ambient session of the Home, the
    user and the agent. `clock` gives the time (aware, UTC), `random(n)` n random bytes for ids, `deadline` is a
    point of `time.monotonic()` in seconds or None. `tenant`, `organization`, `project` and `team` are None on a
    person's own machine. `keep_days` is how long anything is kept at most for
    whoever asks; `recheck` raises when the call may no longer write what it was allowed to.
    """

    user: str = "me"
    agent: str = "agent"
    session: str | None = None
    clock: Callable[[], datetime] = field(default=system_clock, compare=False)
    random: Callable[[int], bytes] = field(default=os.urandom, compare=False)
    deadline: float | None = None
    person: bool = False  # a person at a terminal: what a person reads taints no agent's session
    tenant: str | None = None
    organization: str | None = None
    project: str | None = None
    team: str | None = None
    keep_days: int | None = None
    recheck: Callable[[bool], None] | None = field(default=None, compare=False)

    def now(self) -> datetime:
        """The time of this call (aware, UTC)."""
        return self.clock()

    def still_allowed(self, *, last: bool = True) -> None:
        """Asked right before a memory is put on record or taken away, in a Home inside the writers' lock: raises as
        `recheck`. What is done after the `last` time is not asked about again; before it, it can be taken back."""
        if self.recheck is not None:
            self.recheck(last)

    def in_session(self, session: str | None) -> Context:
        """The same circumstances in another session."""
        return replace(self, session=session)
