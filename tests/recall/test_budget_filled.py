"""How many items are shown when nobody says how many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from memoranda.recall.view import ENVELOPE, MANY, Piece, fit, how_many


def test_what_is_half_as_good_and_fits_is_shown(context: Context, space: Space) -> None:
    for n in range(40):
        remember(context, space, NewNote(f"The ferry leaves quay {n} at seven."))
    assert len(recall(context, space, "When does the ferry leave?", k=None).items) == MANY
    few = recall(context, space, "When does the ferry leave?", k=None, budget=600)
    assert 8 < len(few.items) < MANY and {item.view for item in few.items} == {"full"}
    assert len(recall(context, space, "When does the ferry leave?", k=12).items) == 12
    assert few.coverage.more == 0 and few.budget.used <= 600


def test_what_is_much_worse_than_the_best_is_left_out_beyond_eight(context: Context, space: Space) -> None:
    best = remember(context, space, NewNote("Ferry harbour."))
    for n in range(40):
        other = "ferry" if n % 2 else "harbour"
        remember(context, space, NewNote(f"Somebody spoke of a {other}, in message {n}, among much else."))
    view = recall(context, space, "ferry harbour", k=None)
    assert view.items[0].id == best.id and len(view.items) == 8
    assert len(recall(context, space, "ferry harbour", k=20).items) == 20


def test_long_notes_leave_room_for_excerpts(context: Context, space: Space) -> None:
    for n in range(30):
        remember(context, space, NewNote(f"The ferry {n}.\n\n" + f"It sails slowly over the wide sea {n}. " * 60))
    view = recall(context, space, "ferry over the sea", k=None)
    assert 8 <= len(view.items) < 14
    assert all(item.text for item in view.items) and view.budget.used <= 2000


@given(
    st.lists(st.tuples(st.text(max_size=400), st.floats(0, 2)), max_size=50), st.integers(1, 5000), st.integers(1, 9)
)
def test_how_many_grows_with_the_budget_and_keeps_its_bounds(
    found: list[tuple[str, float]], budget: int, least: int
) -> None:
    found.sort(key=lambda item: -item[1])
    count = how_many(found, budget, least)
    assert least <= count <= max(MANY, least)
    assert count <= how_many(found, budget + 500, least)
    assert count == least or all(score >= 0.5 * found[0][1] for _, score in found[least:count])
    assert count == least or count * ENVELOPE <= budget


def test_an_excerpt_of_a_very_long_text_is_looked_for_at_its_beginning() -> None:
    """A line of megabytes would cost seconds at each question."""
    looked = 0

    def fold(text: str) -> set[str]:
        nonlocal looked
        looked += len(text)
        return set(text.split())

    line = "The ferry leaves at seven. " * 200_000
    for text in (line, line.replace(". ", ".\n"), "x" * 5_000_000):
        (form,) = fit([Piece(text, frozenset(["ferry"]), 1, "fact")], 200, fold)
        assert form.tokens <= 200 and form.text in text
    assert looked < 3_000_000
