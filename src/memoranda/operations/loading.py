"""The automatic context: what is loaded without being asked for. Reviewed notes that hold now, and nothing else."""

from __future__ import annotations

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.operations.automatic import BUDGET, AutomaticContext, Loaded, fitted, loaded_of
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space


def automatic_context(context: Context, space: Space, *, budget: int = BUDGET) -> AutomaticContext:
    """What is loaded automatically from all open Homes, nearest first, in a stable order within `budget` tokens.

    Heads that a person has reviewed and that hold now. A reviewed note that was edited, or that an unreviewed one
    supersedes, stays with its reviewed bytes and is marked as contested. InvalidInput for a budget below 1.
    """
    pass_guards(context, Call("context"))
    if budget < 1:
        raise InvalidInput("The budget is below one token.", remedy="Give a positive number.")
    items: list[Loaded] = []
    inputs: list[tuple[str, str | None]] = []
    for home in space.homes():
        home.refresh(context)
        items += loaded_of(context, home)
        with home.indexes.lock:
            inputs.append((home.name, home.indexes.catalog.state("commit")))
    return fitted(items, budget, inputs)
