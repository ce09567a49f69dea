"""Where a Home stands: what one reading of its row tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memoranda.errors import ComponentUnavailable
from memoranda.home.store import LEDGER_REF

BRANCH = "refs/heads/main"
# What `State` tells of a row of `memory_homes`.
STATE = """seq, generation, (SELECT coalesce(max(n), 0) FROM memory_lines),
  (SELECT jsonb_object_agg(name, commit) FROM memory_refs WHERE memory_refs.home = memory_homes.home),
  memory_homes.state = 'moved'"""


class State(NamedTuple):
    """What one reading of a Home's row tells: the last record, how often texts were erased, the tenant's newest line
    beside its keys, where the refs stand, and whether the Home lies elsewhere by now."""

    seq: int
    generation: int
    lines: int
    refs: Mapping[str, str]
    moved: bool = False

    @property
    def mark(self) -> tuple[int, int]:
        """Grows with every write and every erasing."""
        return self.generation, self.seq

    @property
    def main(self) -> str | None:
        return self.refs.get(BRANCH)

    @property
    def ledger(self) -> str | None:
        return self.refs.get(LEDGER_REF)


def state_of(row: Sequence[Any]) -> State:
    """From what `STATE` selects."""
    return State(row[0], row[1], row[2], row[3] or {}, row[4])


def still_here(state: State) -> State:
    """ComponentUnavailable when the Home was carried to a folder: what is written here now would be lost."""
    if state.moved:
        raise ComponentUnavailable(
            "These memories do not lie in PostgreSQL any more.", why="`memoranda move` has carried them to folders.",
            remedy="Serve them from there, or move them back.",
        )  # fmt: skip
    return state
