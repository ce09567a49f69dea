"""What a session is spared, and what it meets, when words of a note are shown that a recall would only point to."""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.context import Context
from memoranda.index.rows import NoteRow
from memoranda.operations.open_home import OpenHome
from memoranda.trust.labels import is_private
from memoranda.trust.standing import trust_of


def hides(context: Context, home: OpenHome) -> bool:
    """Whether words from outside are to be kept from this caller: a session that has met none. A person sees all."""
    return not context.person and not home.sessions.met(context).taint


def quarantined(state: str) -> bool:
    """Whether the words of a note in this state are the outside's, and its path and subject with them."""
    return state == "quarantined"


def meet(context: Context, home: OpenHome, rows: Iterable[NoteRow]) -> None:
    """The caller's session is about to be given words of these notes: what that does to it is durable from here on.

    Titles, subjects and paths are words too.
    """
    shown = list(rows)
    if context.person or not shown:
        return
    with home.indexes.lock:
        trust = trust_of(home.indexes.catalog, shown)
    roots = {root for known in trust.values() if quarantined(known.state) for root in known.taint.roots}
    if roots:
        home.sessions.raise_taint(context, sorted(roots))
    if any(is_private(row.classification) for row in shown):
        home.sessions.raise_private(context)
