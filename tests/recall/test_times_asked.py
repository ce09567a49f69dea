"""Time in questions, end to end: the note or the passage of the time that is meant, by the asker's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memoranda.context import Context
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space
from tests.conftest import Clock

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday
AT = {
    "today": "2026-11-30", "yesterday": "2026-11-29", "three days": "2026-11-27", "last week": "2026-11-24",
    "last month": "2026-10-12", "summer": "2026-07-20", "march": "2026-03-10", "last year": "2025-05-05",
    "2023": "2023-02-02",
}  # fmt: skip
ASKED = {
    "today": ("today", "this morning", "aujourd'hui", "ce soir"),
    "yesterday": ("yesterday", "last night", "hier", "hier soir", "on Sunday", "dimanche dernier"),
    "three days": ("three days ago", "il y a trois jours", "on Friday", "vendredi dernier", "on 27 November"),
    "last week": ("last Tuesday", "mardi dernier", "il y a six jours", "on November 24", "le 24 novembre 2026"),
    "last month": ("last month", "le mois dernier", "in October", "en octobre", "seven weeks ago"),
    "summer": ("last summer", "l'été dernier", "in July", "en juillet 2026", "between June and August"),
    "march": ("in March", "en mars", "between February and April", "au mois de mars", "March 2026"),
    "last year": ("last year", "l'année dernière", "in 2025", "en mai 2025", "in May 2025"),
    "2023": ("in 2023", "en 2023", "in February 2023", "on 2 February 2023", "le 2 février 2023"),
}


@pytest.fixture
def told(context: Context, space: Space, clock: Clock) -> dict[str, tuple[str, str]]:
    """A note and a passage about the ferry of each time, all in the same words."""
    clock.set(NOW - timedelta(hours=1))
    turns = [
        Turn("The ferry was late.", "Dana", datetime.fromisoformat(f"{day}T08:00:00Z"), session=f"s{n}")
        for n, day in enumerate(AT.values())
    ]
    said = append_many(context, space.writable(), turns)
    found = {}
    for (name, day), entry in zip(AT.items(), said, strict=True):
        note = remember(context, space, NewNote(f"The ferry was late, {len(name)}.", kind="episodic", valid_from=day))
        found[name] = (note.id, entry.id)
    for n in range(20):
        remember(context, space, NewNote(f"Filler {n + 100} about something else altogether.", valid_from="2026-11-24"))
    clock.set(NOW)
    return found


@pytest.mark.parametrize(("name", "phrase"), [(name, phrase) for name, said in ASKED.items() for phrase in said])
def test_what_is_of_the_time_that_is_meant_comes_first(
    context: Context, space: Space, told: dict[str, tuple[str, str]], name: str, phrase: str
) -> None:
    for question in (f"Why was the ferry late {phrase}?", f"ferry {phrase}"):
        for place, expected in (("notes", told[name][0]), ("journal", told[name][1])):
            first = recall(context, space, question, include=(place,)).items[0]
            assert first.id == expected, (question, place, first.text)
            assert first.why["effects"]["date"] > 0  # type: ignore[index]


def test_the_same_words_mean_another_time_a_month_later(
    context: Context, space: Space, clock: Clock, told: dict[str, tuple[str, str]]
) -> None:
    clock.set(datetime(2026, 11, 11, 12, tzinfo=UTC))
    assert recall(context, space, "ferry last month", include=("journal",)).items[0].id == told["last month"][1]
    clock.set(datetime(2026, 12, 30, 12, tzinfo=UTC))
    later = recall(context, space, "ferry last month", include=("journal",)).items[0].id
    assert later in {told[name][1] for name in ("today", "yesterday", "three days", "last week")}
    assert recall(context, space, "le ferry le mois dernier", include=("journal",)).items[0].id == later
