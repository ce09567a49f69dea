"""The review of a note that an agent has just written: what its page shows, and what its answer does."""

from __future__ import annotations

from collections.abc import Callable

from memoranda.faces import local
from memoranda.faces.mcp.desk import Desk, Offer
from memoranda.faces.mcp.page import review_page
from memoranda.operations.automatic import write_memory
from memoranda.operations.reviewing import contradictions, decide, show
from memoranda.operations.space import Space


def offer(desk: Desk, space: Callable[[], Space], uri: str, asks: str) -> Offer:
    """A page for the exact bytes that `uri` names. The person is whoever's browser opens it, on this machine."""
    person = local.make_context(person=True)

    def shown(nonce: str, form: str) -> str:
        item = show(person, space(), uri)
        groups = [g for g in contradictions(person, space()) if item.path in {note["path"] for note in g.notes}]
        return review_page(item, asks, groups, nonce, form)

    def decided(verdict: str, comment: str) -> None:
        opened = space()
        decide(person, opened, [uri], verdict, comment=comment.strip() or None)
        for home in opened.homes():
            write_memory(person, home)

    return desk.offer(shown, decided)
