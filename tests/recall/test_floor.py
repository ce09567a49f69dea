"""What is too little to be shown, and what is never hidden."""

from __future__ import annotations

import pytest

from memoranda.context import Context
from memoranda.index.embedding.static import installed
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.space import Space

TITLED = "# Acme renewal terms\n\nIt was decided to wait until the spring, since nobody knew the price of it yet."


@pytest.mark.parametrize("crowd", [5, 60])
def test_an_exact_title_comes_first_though_its_note_was_superseded(context: Context, space: Space, crowd: int) -> None:
    old = remember(context, space, NewNote(TITLED, subject="acme"))
    update(context, space, old.id, "# Another matter\n\nIt was decided.")
    for n in range(crowd):
        remember(context, space, NewNote(f"acme renewal terms acme renewal terms acme renewal {n}"))
    view = recall(context, space, "Acme renewal terms", history=True)
    assert view.items[0].id == old.id and view.items[0].state == "superseded"
    assert view.items[0].why["effects"]["title"] > -view.items[0].why["effects"]["validity"] > 0  # type: ignore[index]


def test_an_exact_title_is_found_among_many_that_hold_its_words(context: Context, space: Space) -> None:
    told = remember(context, space, NewNote(TITLED))
    for n in range(60):
        remember(context, space, NewNote(f"acme renewal terms acme renewal terms acme renewal {n}"))
    assert recall(context, space, "acme Renewal Terms?").items[0].id == told.id


def test_a_word_that_is_rare_is_enough_and_a_common_one_is_not(context: Context, space: Space) -> None:
    for n in range(40):
        remember(context, space, NewNote(f"The plan of week {n} is on the wall."))
    rare = remember(context, space, NewNote("Somebody saw a zebra, and that is all there is to say."))
    question = "plan zebra quantum giraffe umbrella locomotive"
    assert [item.id for item in recall(context, space, question).items] == [rare.id]
    assert recall(context, space, question.replace("zebra", "camel")).items == ()


@pytest.mark.skipif(installed() is None, reason="the package wordllama is not installed")
def test_likeness_alone_needs_more_where_no_word_was_found(context: Context, space: Space) -> None:
    near = remember(context, space, NewNote("The physician wrote a prescription."))
    remember(context, space, NewNote("The build server stands in Lyon."))
    assert [item.id for item in recall(context, space, "doctor medicine").items] == [near.id]
    for question in ("astronomy", "locomotive", "giraffe umbrella", "quarterly revenue"):
        assert recall(context, space, question).items == (), question
