"""What an id, a page and an etag mean in the Homes as a reader has them."""

from __future__ import annotations

from datetime import datetime

from memoranda.context import Context
from memoranda.engines.items import etag_of
from memoranda.errors import InvalidInput, NotFound, PreconditionFailed
from memoranda.index.newest import newest
from memoranda.index.rows import NoteRow
from memoranda.notes.belonging import belongs_to
from memoranda.notes.ids import is_note_id
from memoranda.operations.listing import head_at_hand, is_head, still_kept
from memoranda.operations.open_home import OpenHome, first_found
from memoranda.operations.space import Space
from memoranda.trust.kept import ended

_BATCH = 64


def found(own: Context, space: Space, item_id: str, *, exact: bool = False) -> tuple[OpenHome, NoteRow]:
    """The Home and the note that an id means: the head of its chain, or with `exact` that very one.

    NotFound, in the same words and after the same work, for what is nowhere and for what is another's.
    """

    def look(home: OpenHome) -> NoteRow | None:
        home.refresh(own)
        with home.indexes.lock:
            kept = {row.id for row in still_kept(home, home.indexes.catalog.component(item_id), own.now())}
            if exact:
                return next((row for row in home.indexes.catalog.by_id(item_id) if row.id in kept), None)
            # By the same state of the chain: what somebody writes meanwhile belongs to the next question.
            head = head_at_hand(home, item_id) if kept else None
        return head if head is not None and head.id in kept else None

    pair = first_found(space.homes(), look) if is_note_id(item_id) else None
    if pair is None:
        raise missing()
    return pair


def in_place(home: OpenHome, item_id: str, place: str) -> None:
    """NotFound when no note with this id lies in this place."""
    with home.indexes.lock:
        rows = home.indexes.catalog.by_id(item_id) if is_note_id(item_id) else []
    if not any(belongs_to(row.scope, row.owner) == place for row in rows):
        raise missing()


def missing() -> NotFound:
    """The refusal of an id that no memory of the caller has."""
    return NotFound("There is no such memory here.", remedy="A list or a recall shows the ids of what there is.")


def refuse_other_state(home: OpenHome, head: NoteRow, if_match: str | None) -> None:
    """PreconditionFailed when the head is not in the state that the caller has seen."""
    with home.indexes.lock:
        same = if_match is None or if_match == etag_of(home.indexes.catalog, head)
    if not same:
        raise changed(None)


def changed(cause: Exception | None) -> PreconditionFailed:
    """The refusal of a change to what is not as the caller has seen it."""
    error = PreconditionFailed(
        "The memory is not as you have seen it.", why="It was changed since.", remedy="Read it again, then decide."
    )
    error.__cause__ = cause
    return error


def heads(home: OpenHome, before: tuple[int, str] | None, limit: int, now: datetime) -> list[NoteRow]:
    """The newest heads of what this reader's Home shows, without those whose retention has ended."""
    page: list[NoteRow] = []
    with home.indexes.lock:
        catalog = home.indexes.catalog
        superseded = catalog.superseded()
        while len(page) < limit:
            rows = newest(catalog, (), before, max(limit, _BATCH))
            gone = ended(catalog, now, [row.id for row in rows])
            ends = (r for r in rows if r.id not in superseded or is_head(catalog, r.id))
            page += [row for row in ends if row.id not in gone]
            if len(rows) < max(limit, _BATCH):
                break
            before = int(rows[-1].known_from.timestamp()), rows[-1].id
    return page[:limit]


def keyset(after: tuple[str, str] | None) -> tuple[int, str] | None:
    """The place behind which a page begins. InvalidInput for one that no page gave."""
    if after is None:
        return None
    at, item_id = after
    if not at.isascii() or not at.isdigit() or len(at) > 15:
        raise InvalidInput("This is no place in a list.", remedy="Give the cursor as the page before gave it.")
    return int(at), item_id
