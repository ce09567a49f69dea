"""Somebody reads in the moment when a group's branch has moved and its ledger has not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from home.tools import note, rows, texts
from memoranda.context import Context
from memoranda.home import background
from memoranda.home.disk import DiskStore
from memoranda.home.store import RefMove
from memoranda.operations import listing
from memoranda.operations.space import Space


class Killed(Exception):
    """Ends the committing where `kill -9` might."""


@pytest.mark.disk
@pytest.mark.parametrize("killed", [False, True], ids=["goes on", "is killed there"])
def test_what_is_read_between_the_moves_of_branch_and_ledger_stays(
    context: Context, space: Space, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """What the log told is in the commit by then and in the tail as well; it must be known once, before and after."""
    monkeypatch.setattr(background, "_SOON", 60.0)  # nobody else commits in between
    repository = space.one().repository
    first = note(context, space, "the first")
    assert repository.flush() is None
    listing.list_notes(context, space)
    move = DiskStore.move
    seen: list[dict[str, str]] = []

    def one_by_one(store: DiskStore, moves: Sequence[RefMove]) -> None:
        move(store, moves[:1])
        seen.append(texts(context, space))
        if killed:
            raise Killed
        move(store, moves[1:])

    second = note(context, space, "the second")
    listing.list_notes(context, space)  # the log has told the catalog of this one, and not of the next
    third = note(context, space, "the third")
    with monkeypatch.context() as patched:
        patched.setattr(DiskStore, "move", one_by_one)
        with pytest.raises(Killed) if killed else nullcontext():
            repository.flush()
    assert seen
    for known in (seen[0], texts(context, space)):
        assert {first.path, second.path, third.path} == set(known)
    assert repository.flush() is None
    assert {first.path, second.path, third.path} == set(texts(context, space))
    caught_up = rows(space)
    space.one().indexes.drop()
    listing.list_notes(context, space)
    assert rows(space) == caught_up
