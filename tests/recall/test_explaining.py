"""Why an item stands where it does: every index and every effect is named, and the numbers add up to the score."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.presenting import Item
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.reviewing import decide
from memoranda.operations.space import Space
from memoranda.recall.explaining import EFFECTS, placed_by_score, why
from memoranda.values import replace

SAID = [
    Turn("Did you find a name for the puppy?", "Caroline", datetime(2026, 3, 2, 9, tzinfo=UTC), session="s1"),
    Turn("Yes, we settled on Biscuit after all that", "Melanie", datetime(2026, 3, 2, 9, 1, tzinfo=UTC), session="s1"),
    Turn("That is lovely", "Caroline", datetime(2026, 3, 2, 9, 2, tzinfo=UTC), session="s1"),
    Turn("I met Pedro Alvarez at the pottery class", "Melanie", datetime(2026, 6, 9, tzinfo=UTC), session="s2"),
    Turn("The pottery class was on Tuesday", "Caroline", datetime(2026, 6, 9, 0, 1, tzinfo=UTC), session="s2"),
]
QUESTIONS = (
    "What name did the puppy get?", "Who was at the pottery class?", "What did Melanie say about the pottery class?",
    "When was the pottery class in June 2026?", "When does the ferry leave?", "ferry to the island",
)  # fmt: skip


@pytest.fixture
def told(context: Context, space: Space) -> Space:
    append_many(context, space.writable(), SAID)
    first = remember(context, space, NewNote("The ferry leaves at six.", subject="harbour"))
    update(context, space, first.id, "The ferry to the island leaves at seven.")
    remember(context, space, NewNote("The ferry was repaired.", valid_from="2025-01-01", valid_to="2025-02-01"))
    for n in range(20):
        remember(context, space, NewNote(f"Filler {n} of another kind."))
    return space


def account(item: Item) -> dict[str, Any]:
    found: dict[str, Any] = dict(item.why)
    return found


def by_text(context: Context, space: Space, question: str, words: str, **how: Any) -> dict[str, Any]:
    return next(account(item) for item in recall(context, space, question, **how).items if words in item.text)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("history", [False, True])
def test_both_accounts_add_up_to_the_score(context: Context, told: Space, question: str, history: bool) -> None:
    view = recall(context, told, question, history=history)
    assert view.items
    for item in view.items:
        given = account(item)
        assert set(given["indexes"]) == {name.split("-")[0] for name in view.coverage.indexes}
        assert set(EFFECTS) <= set(given["effects"]) <= {*EFFECTS, "title", "asks", "amount"}
        coarse = sum(index["gives"] for index in given["indexes"].values()) + sum(given["effects"].values())
        assert coarse == pytest.approx(item.score, abs=2e-5)
        assert sum(given["signals"].values()) == pytest.approx(item.score, abs=2e-5)


def test_each_effect_is_told_where_it_counts(context: Context, told: Space) -> None:
    answer = by_text(context, told, "What name did the puppy get?", "Biscuit")
    assert answer["effects"]["neighbours"] > 0 and answer["effects"]["session"] > 0
    assert answer["indexes"]["lexical"] == {"rank": None, "gives": 0.0}  # none of its own words was asked for
    effects = by_text(context, told, "What did Melanie say about the pottery class?", "Pedro")["effects"]
    assert effects["speaker"] > 0
    effects = by_text(context, told, "Who was at the pottery class?", "Pedro")["effects"]
    assert effects["entities"] > 0 and effects["date"] == 0 and effects["speaker"] == 0
    effects = by_text(context, told, "What about the pottery class on 9 June 2026?", "Pedro")["effects"]
    assert effects["date"] > 0
    assert by_text(context, told, "ferry repaired", "repaired")["effects"]["validity"] < 0
    assert by_text(context, told, "ferry", "at six", history=True)["effects"]["validity"] < 0
    assert by_text(context, told, "ferry island", "island")["effects"]["validity"] == 0


def test_the_rank_is_the_place_by_that_index_alone(context: Context, told: Space) -> None:
    remember(context, told, NewNote("harbour harbour harbour"))
    remember(context, told, NewNote("The harbour is closed, and this note says so in many words more than that."))
    view = recall(context, told, "harbour", include=("notes",))
    ranks = [account(item)["indexes"]["lexical"]["rank"] for item in view.items]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    assert by_text(context, told, "harbour", "harbour harbour")["indexes"]["lexical"]["rank"] == 1


def test_a_review_gives_a_place_and_no_number(context: Context, told: Space) -> None:
    plain = remember(context, told, NewNote("The budget of the harbour is with Luis."))
    for n in range(4):
        remember(context, told, NewNote(f"budget harbour budget harbour {n}"))
    before = recall(context, told, "harbour budget")
    assert [account(item)["by_score"] for item in before.items] == list(range(1, len(before.items) + 1))
    decide(replace(context, person=True), told, [plain.id], "accept")
    after = recall(context, told, "harbour budget")
    place = [item.id for item in after.items].index(plain.id)
    assert account(after.items[place])["by_score"] > place + 1
    assert account(after.items[place])["effects"]["review"] == 0
    assert after.items[place].score == next(item.score for item in before.items if item.id == plain.id)


@given(st.lists(st.integers(0, 5)))
def test_places_by_score_are_an_order(scores: list[int]) -> None:
    places = placed_by_score(scores)
    assert sorted(places) == list(range(1, len(scores) + 1))
    in_order = [score for _, score in sorted(zip(places, scores, strict=True))]
    assert in_order == sorted(scores, reverse=True)


def test_a_signal_that_no_table_knows_is_an_effect_of_its_own_name() -> None:
    given = why({"words": 0.5, "moon": 0.25}, {"words": 2.0, "moon": 4.0}, 1.0, {"lexical": 3})
    assert given["indexes"] == {"lexical": {"rank": 3, "gives": 1.0}}
    assert given["effects"] == dict.fromkeys(EFFECTS, 0.0) | {"moon": 1.0}
