"""A question of time alone is answered with what lies in that time, and nothing else is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoranda.context import Context
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from memoranda.recall.question import read_question
from tests.conftest import Clock

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday
ALONE = (
    "what happened last week?", "la semaine dernière", "Que s'est-il passé la semaine dernière ?", "last week",
    "What did we talk about last week?", "quoi de neuf depuis hier ?", "anything new today?", "what happened in 2023?",
    "Qu'est-ce qu'on a fait en mars ?", "show me everything from 2026-11-03", "de quoi a-t-on parlé hier ?",
)  # fmt: skip
MORE = (
    "why was the ferry late last week?", "la réunion de la semaine dernière", "when was last week?", "what happened?",
    "what happened to the ferry?", "who was ill yesterday?",
)  # fmt: skip


@pytest.fixture
def week(context: Context, space: Space, clock: Clock) -> dict[str, str]:
    """Notes and passages of last week and of other times; none has a word of the questions."""
    clock.set(NOW - timedelta(hours=1))
    found = {}
    for name, day in (
        ("monday", "2026-11-23"),
        ("sunday", "2026-11-29"),
        ("before", "2026-11-20"),
        ("march", "2026-03-10"),
    ):
        found[name] = remember(context, space, NewNote(f"The ferry left at {len(name)}.", valid_from=day)).id
    turns = [
        Turn("Tea is out.", "Dana", datetime(2026, 11, 24, 8, tzinfo=UTC), session="a"),
        Turn("Sugar too.", "Alma", datetime(2026, 11, 26, 8, tzinfo=UTC), session="b"),
        Turn("Bread as well.", "Alma", datetime(2026, 11, 19, 8, tzinfo=UTC), session="c"),
    ]
    said = append_many(context, space.writable(), turns)
    clock.set(NOW)
    return found | {name: entry.id for name, entry in zip(("tea", "sugar", "bread"), said, strict=True)}


@pytest.mark.parametrize("text", ALONE)
def test_a_question_of_time_alone_is_seen(text: str) -> None:
    assert read_question(text, NOW).alone


@pytest.mark.parametrize("text", MORE)
def test_what_asks_for_more_is_none(text: str) -> None:
    assert not read_question(text, NOW).alone


@pytest.mark.parametrize("text", ["what happened last week?", "la semaine dernière", "last week"])
def test_what_lies_in_that_time_notes_first_the_latest_first(
    context: Context, space: Space, week: dict[str, str], text: str
) -> None:
    names = {key: name for name, key in week.items()}
    items = recall(context, space, text).items
    assert [names[item.id] for item in items] == ["sunday", "monday", "sugar", "tea"]
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)
    assert all(item.why["effects"]["date"] == item.score for item in items)  # type: ignore[index]
    again = recall(context, space, text).items
    assert [item.id for item in again] == [item.id for item in items]


def test_filters_and_places_hold(context: Context, space: Space, week: dict[str, str]) -> None:
    question = "what happened last week?"
    assert [item.id for item in recall(context, space, question, include=("journal",)).items] == [
        week["sugar"], week["tea"]
    ]  # fmt: skip
    assert [item.id for item in recall(context, space, question, k=1).items] == [week["sunday"]]
    assert not recall(context, space, question, subject="somewhere/else").items
    assert not recall(context, space, question, kinds=("preference",)).items


def test_a_time_in_which_nothing_lies_has_no_answer(context: Context, space: Space, week: dict[str, str]) -> None:
    assert not recall(context, space, "what happened in 2019?").items
    assert not recall(context, space, "was hat sich gestern ereignet?").items


def test_words_of_a_date_are_still_found(context: Context, space: Space, week: dict[str, str]) -> None:
    plan = remember(context, space, NewNote("The plan for March 2026 is ready.", valid_from="2026-11-10")).id
    assert [item.id for item in recall(context, space, "March 2026").items] == [plan, week["march"]]


def test_what_was_said_later_had_not_been_said_then(context: Context, space: Space, week: dict[str, str]) -> None:
    then = datetime(2026, 11, 25, tzinfo=UTC)
    found = {item.id for item in recall(context, space, "what happened last week?", as_of=then).items}
    assert week["tea"] in found
    assert not found & {week["sugar"], week["sunday"]}


def test_of_much_the_latest_is_shown(context: Context, space: Space, clock: Clock) -> None:
    clock.set(NOW)
    hours = [
        remember(context, space, NewNote(f"Reading {n}.", valid_from=f"2026-11-28T{n:02}:00:00Z")) for n in range(24)
    ]
    shown = [item.id for item in recall(context, space, "what happened last week?", k=3).items]
    assert shown == [note.id for note in hours[:-4:-1]]
