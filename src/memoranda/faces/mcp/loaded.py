"""The automatic context as a client gets it: in the server's instructions, and in full as a resource."""

from __future__ import annotations

from memoranda.context import Context
from memoranda.faces.mcp.tools import CONTEXT_URI, INSTRUCTIONS
from memoranda.operations.loading import automatic_context
from memoranda.operations.presenting import LOADED
from memoranda.operations.space import Space
from memoranda.trust.injection import left_out

_INSTRUCTIONS = 1990  # characters: hosts cut instructions at 2 KB


def context_resource(context: Context, space: Space) -> str:
    """Everything that is loaded automatically, each note in its envelope."""
    found = automatic_context(context, space)
    lines = [found.said()]
    if found.left_out:
        lines.append(f"{found.left_out} more reviewed had no room: ask nas_recall.")
    if found.blocked:
        lines.append(left_out(found.blocked))
    return "\n\n".join(filter(None, lines))


def instructions_with_context(context: Context, space: Space) -> str:
    """The server's instructions, with as much of the automatic context as they have room for."""
    found = automatic_context(context, space)
    room = _INSTRUCTIONS - len(INSTRUCTIONS.encode()) - len(LOADED) - len(_more(len(found.items))) - 8
    kept: list[str] = []
    for item in found.items:
        size = len(item.envelope.encode()) + 2
        if size <= room:
            kept.append(item.envelope)
            room -= size
    if not found.items and not found.left_out:
        return INSTRUCTIONS
    left = len(found.items) + found.left_out - len(kept)
    return "\n\n".join([INSTRUCTIONS, *([LOADED] if kept else []), *kept, *([_more(left)] if left else [])])


def _more(number: int) -> str:
    return f"{number} more reviewed: read the resource {CONTEXT_URI}, or ask nas_recall."
