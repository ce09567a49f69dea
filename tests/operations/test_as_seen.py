"""Who decides on a memory by what it was: nothing that came meanwhile is superseded or taken away."""

from __future__ import annotations

import pytest

from memoranda.context import Context
from memoranda.errors import ChainConflict
from memoranda.operations.listing import history
from memoranda.operations.remembering import NewNote, head_of, remember, update
from memoranda.operations.removing import forget_chain
from memoranda.operations.space import Space


def test_what_came_meanwhile_is_neither_superseded_nor_taken_away(context: Context, space: Space) -> None:
    old = remember(context, space, NewNote("The office closes at six.")).id
    home, seen = head_of(context, space, old)
    newer = update(context, space, old, "The office closes at five.").id  # another caller's, at this very moment
    with pytest.raises(ChainConflict, match="came after it"):
        update(context, space, old, "The office closes at four.", seen=seen)
    with pytest.raises(ChainConflict, match="came after it"):
        forget_chain(context, space, home, old, seen=seen)
    assert history(context, space, old)[-1].id == newer
    _, head = head_of(context, space, old)
    assert update(context, space, old, "The office closes at four.", seen=head).id == head_of(context, space, old)[1].id
    forget_chain(context, space, home, old, seen=head_of(context, space, old)[1])
    assert head_of_is_gone(space, old)


def head_of_is_gone(space: Space, note_id: str) -> bool:
    return not any(home.indexes.catalog.by_id(note_id) for home in space.homes())
