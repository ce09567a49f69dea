"""The review of a note that an agent has just written, or of what it may not do: what the page shows, and what its
answer does."""

from __future__ import annotations

from collections.abc import Callable

from memoranda.faces import local
from memoranda.faces.mcp.desk import Desk, Offer
from memoranda.faces.mcp.page import operation_page, review_page
from memoranda.operations.automatic import write_memory
from memoranda.operations.once import allow_once, find_asked, refuse_asked
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


_SAID = {"accept": "It is allowed once.", "reject": "It is not allowed."}


def offer_operation(desk: Desk, space: Callable[[], Space], mark: str) -> Offer:
    """A page for one operation that the Rule of Two refused. What stands in the server's environment is no session of
    the person's."""
    person = local.make_context(person=True).in_session(None)

    def shown(nonce: str, form: str) -> str:
        return operation_page(find_asked(person, space(), mark)[1], nonce, form)

    def decided(verdict: str, comment: str) -> None:
        if verdict == "accept":
            allow_once(person, space(), mark, comment.strip() or "allowed on a page")
        else:
            refuse_asked(person, space(), mark)

    return desk.offer(shown, decided, _SAID)
