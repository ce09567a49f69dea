"""The automatic context: what is loaded without being asked for. Reviewed notes that hold now, and nothing else.

A model is given each note between markers of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.operations.automatic import BUDGET, AutomaticContext, Loaded, fitted, loaded_of, said_in
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.presenting import LOADED
from memoranda.operations.space import Space
from memoranda.recall.page import verdict_on
from memoranda.values import replace

if TYPE_CHECKING:
    from memoranda.trust.envelope import Envelope

_CONTESTED = "Contested: a newer version waits for its review; until then this one counts."


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
    envelopes: dict[str, Envelope] = {}
    for home in space.homes():
        home.refresh(context)
        items += loaded_of(context, home)
        # By all of its names: what was reviewed under another name of the Home is pointed to by the Home's id.
        envelopes |= dict.fromkeys(home.repository.marker.names(), home.envelope)
        with home.indexes.lock:
            inputs.append((home.name, home.indexes.catalog.state("commit")))
    kept = fitted(items, budget, LOADED, lambda item: f"\n\n{_enveloped(envelopes[item.home], item)}")
    loaded = tuple(replace(item, envelope=words.removeprefix("\n\n")) for item, words in kept.entries)
    text = "".join([LOADED, *(words for _, words in kept.entries)]) if loaded else ""
    return AutomaticContext(text, loaded, kept.left_out, budget, kept.used, tuple(inputs), kept.blocked)


def _enveloped(envelope: Envelope, item: Loaded) -> str:
    labels = {
        "state": "contested" if item.contested else "reviewed",
        "suspicious": ",".join(verdict_on(said_in(item)).reasons),
        "about": item.subject or "",
    }
    wrapped = envelope.wrap(item.id, item.home, item.text, labels, item.uri)
    return f"{wrapped}\n{_CONTESTED}" if item.contested else wrapped
