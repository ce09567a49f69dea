"""The time of which a question speaks: what phrases mean, on any day on which they are asked."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.recall import _calendar as calendar
from memoranda.recall.moments import read_moments
from memoranda.recall.question import read_question

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)  # a Monday


def meant(text: str, now: datetime = NOW) -> list[tuple[date, date]]:
    return [(found.start, found.stop) for found in read_moments(text, now).stretches]


def span(text: str) -> tuple[date, date]:
    first, _, last = text.partition("/")
    return date.fromisoformat(first), date.fromisoformat(last or first)


PHRASES = [
    # Days
    ("What did we decide today?", "2026-11-30"), ("Qu'avons-nous décidé aujourd'hui ?", "2026-11-30"),
    ("Qu’est-ce qui s’est passé aujourd’hui ?", "2026-11-30"), ("Who called this morning?", "2026-11-30"),
    ("Qui a appelé ce matin ?", "2026-11-30"), ("What is on tonight?", "2026-11-30"),
    ("What did Luis say yesterday?", "2026-11-29"), ("Qu'a dit Luis hier soir ?", "2026-11-29"),
    ("what happened last night", "2026-11-29"), ("the day before yesterday", "2026-11-28"),
    ("réunion d'avant-hier", "2026-11-28"), ("what is due tomorrow", "2026-12-01"),
    ("la réunion de demain", "2026-12-01"), ("the day after tomorrow", "2026-12-02"), ("après-demain", "2026-12-02"),
    # Counted
    ("three days ago", "2026-11-27"), ("3 days ago", "2026-11-27"), ("il y a trois jours", "2026-11-27"),
    ("Qu'a-t-on décidé il y a 3 jours ?", "2026-11-27"), ("a week ago", "2026-11-22/2026-11-24"),
    ("two weeks ago", "2026-11-15/2026-11-17"), ("il y a deux semaines", "2026-11-15/2026-11-17"),
    ("a couple of days ago", "2026-11-27/2026-11-29"), ("a few days ago", "2026-11-26/2026-11-28"),
    ("il y a quelques jours", "2026-11-26/2026-11-28"), ("a month ago", "2026-10-23/2026-11-06"),
    ("il y a un mois", "2026-10-23/2026-11-06"), ("two years ago", "2024-05-31/2025-06-01"),
    ("il y a une quinzaine de jours", "2026-11-15"), ("a fortnight ago", "2026-11-16"),
    ("dans deux jours", "2026-12-02"),
    # Rolling
    ("in the last three days", "2026-11-27/2026-11-30"), ("over the past two weeks", "2026-11-16/2026-11-30"),
    ("ces trois derniers jours", "2026-11-27/2026-11-30"), ("ces derniers jours", "2026-11-23/2026-11-30"),
    ("les deux dernières semaines", "2026-11-16/2026-11-30"), ("during the last few months", "2026-08-30/2026-11-30"),
    ("au cours des six derniers mois", "2026-05-30/2026-11-30"),
    # Weeks, months, years
    ("last week", "2026-11-23/2026-11-29"), ("la semaine dernière", "2026-11-23/2026-11-29"),
    ("la semaine passée", "2026-11-23/2026-11-29"), ("this week", "2026-11-30/2026-12-06"),
    ("cette semaine", "2026-11-30/2026-12-06"), ("next week", "2026-12-07/2026-12-13"),
    ("la semaine prochaine", "2026-12-07/2026-12-13"), ("the week before last", "2026-11-16/2026-11-22"),
    ("last weekend", "2026-11-28/2026-11-29"), ("le week-end dernier", "2026-11-28/2026-11-29"),
    ("last month", "2026-10-01/2026-10-31"), ("le mois dernier", "2026-10-01/2026-10-31"),
    ("this month", "2026-11-01/2026-11-30"), ("ce mois-ci", "2026-11-01/2026-11-30"),
    ("next month", "2026-12-01/2026-12-31"), ("last year", "2025-01-01/2025-12-31"),
    ("l'année dernière", "2025-01-01/2025-12-31"), ("l'an passé", "2025-01-01/2025-12-31"),
    ("this year", "2026-01-01/2026-12-31"), ("cette année", "2026-01-01/2026-12-31"),
    ("last quarter", "2026-07-01/2026-09-30"), ("le trimestre dernier", "2026-07-01/2026-09-30"),
    # Weekdays
    ("on Friday", "2026-11-27"), ("last Friday", "2026-11-27"), ("vendredi dernier", "2026-11-27"),
    ("last Monday", "2026-11-23"), ("lundi dernier", "2026-11-23"), ("on Monday", "2026-11-30"),
    ("next Tuesday", "2026-12-01"), ("mardi prochain", "2026-12-01"), ("lundi prochain", "2026-12-07"),
    ("the Sunday before October 25, 2022", "2022-10-23"), ("the Tuesday after 25 October 2022", "2022-11-01"),
    # Months
    ("in March", "2026-03-01/2026-03-31"), ("en mars", "2026-03-01/2026-03-31"),
    ("au mois de mars", "2026-03-01/2026-03-31"), ("in December", "2025-12-01/2025-12-31"),
    ("en décembre", "2025-12-01/2025-12-31"), ("in November", "2026-11-01/2026-11-30"),
    ("last March", "2026-03-01/2026-03-31"), ("last November", "2025-11-01/2025-11-30"),
    ("en novembre dernier", "2025-11-01/2025-11-30"), ("next March", "2027-03-01/2027-03-31"),
    ("mars prochain", "2027-03-01/2027-03-31"), ("in March 2023", "2023-03-01/2023-03-31"),
    ("en mars 2023", "2023-03-01/2023-03-31"), ("the March meeting", "2026-03-01/2026-03-31"),
    ("In 2023, what was said in March?", "2023-01-01/2023-12-31 2023-03-01/2023-03-31"),
    ("2026-05", "2026-05-01/2026-05-31"), ("2020-2022", "2020-01-01/2022-12-31"),
    ("between March and May 2023", "2023-03-01/2023-05-31"),
    ("de janvier à mars", "2026-01-01/2026-03-31"), ("entre mars et mai 2023", "2023-03-01/2023-05-31"),
    # Dates
    ("on 5 March 2026", "2026-03-05"), ("on March 5th, 2026", "2026-03-05"), ("the 3rd of May", "2026-05-03"),
    ("le 1er mars 2025", "2025-03-01"), ("le 24 décembre", "2025-12-24"), ("on 2024-02-29", "2024-02-29"),
    ("on 29 February", "2024-02-29"), ("05/03/2026", "2026-03-05"), ("le 05.03.2026", "2026-03-05"),
    ("12/25/2025", "2025-12-25"), ("the week of 5 March 2026", "2026-03-02/2026-03-08"),
    ("la semaine du 5 mars 2026", "2026-03-02/2026-03-08"), ("the last week of August 2023", "2023-08-25/2023-08-31"),
    ("the week before August 3, 2023", "2023-07-27/2023-08-02"),
    ("last week, as mentioned on November 6, 2023", "2023-11-06"), ("from 3 to 5 March 2026", "2026-03-05"),
    # Years, seasons
    ("in 2023", "2023-01-01/2023-12-31"), ("en 2023", "2023-01-01/2023-12-31"),
    ("between 2020 and 2022", "2020-01-01/2022-12-31"), ("last summer", "2026-06-01/2026-08-31"),
    ("l'été dernier", "2026-06-01/2026-08-31"), ("in the winter of 2022", "2022-12-01/2023-02-28"),
    ("cet hiver", "2025-12-01/2026-02-28"), ("last fall", "2025-09-01/2025-11-30"),
    ("au printemps", "2026-03-01/2026-05-31"), ("summer 2022", "2022-06-01/2022-08-31"),
    # Since
    ("since Friday", "2026-11-27/2026-11-30"), ("depuis vendredi", "2026-11-27/2026-11-30"),
    ("since last week", "2026-11-23/2026-11-30"), ("depuis la semaine dernière", "2026-11-23/2026-11-30"),
    ("since March", "2026-03-01/2026-11-30"), ("since 2024", "2024-01-01/2026-11-30"),
]  # fmt: skip


@pytest.mark.parametrize(("phrase", "expected"), PHRASES)
def test_what_a_phrase_means(phrase: str, expected: str) -> None:
    asked = meant(phrase)
    assert asked == [span(text) for text in expected.split()]
    assert meant(f"What about the harbour {phrase}?" if phrase[0].islower() else phrase) == asked
    assert read_question(f"harbour {phrase}", NOW).has_time


@pytest.mark.parametrize(
    "text",
    [
        "ticket 2023-4411", "report 2023-2021",
        "May I march to the harbour?", "Mars is a planet", "I love Mars", "sept bureaux", "room 1234",
        "2026-13-45", "long ago", "the last days of the empire", "she can fall on ice", "spring cleaning",
        "il a été élu",
        "how many days does it take", "combien de jours", "le dernier rapport", "the last invoice", "the next step",
        "ce contrat", "this contract", "two weeks of leave", "trois jours de congé", "an apple a day", "a second",
        "the week is long", "10 people", "ि", "", "9999999 days ago", "day",
    ],
)  # fmt: skip
def test_what_names_no_time(text: str) -> None:
    assert meant(text) == []


def test_the_latest_of_a_month_counts_most_and_others_less() -> None:
    read = read_question("the harbour in March", NOW)

    def fits(year: int, month: int) -> float:
        return read.span_fits(int(datetime(year, month, 9, tzinfo=UTC).timestamp() * 1000))

    assert fits(2026, 3) == 1 and 0 < fits(2025, 3) < 1 and fits(2026, 4) == 0


def test_days_are_those_of_the_asker() -> None:
    evening = datetime(2026, 11, 30, 20, tzinfo=ZoneInfo("America/New_York"))  # 1 December, 01:00 in UTC
    (days,) = read_question("harbour today", evening).days
    assert days.start == int(datetime(2026, 11, 30, 5, tzinfo=UTC).timestamp() * 1000)
    assert days.end == int(datetime(2026, 12, 1, 5, tzinfo=UTC).timestamp() * 1000)


def test_words_that_say_when_are_told_apart() -> None:
    read = read_question("Qu'a décidé le conseil il y a trois jours ?", NOW)
    timely = {group.word for i, group in enumerate(read.query.groups) if read.dated >> i & 1}
    assert timely == {"trois", "jours"}


WORDS = sorted(
    {*calendar.MONTHS, *calendar.WEEKDAYS, *calendar.SEASONS, *calendar.UNITS, *calendar.NUMBERS, *calendar.TIMELY}
    | set(
        "il y a ago last next the of in on since depuis between and et de la le before after 2023 29 31 1er 5th".split()
    )
    | set("dernier derniers prochaine ces cette this past dans avant apres hui 00 99 2026-02-30 harbour".split())
)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=12), MOMENTS)
def test_no_order_of_words_is_an_error_and_no_stretch_is_empty(words: list[str], now: datetime) -> None:
    for start, stop in meant(" ".join(words), now):
        assert start <= stop


@given(st.text(max_size=60))
def test_no_text_is_an_error(text: str) -> None:
    read_moments(text, NOW)
    read_question(text, NOW)


DAYS = st.dates(date(1900, 1, 1), date(2099, 12, 31))
ENGLISH = "January February March April May June July August September October November December".split()
FRENCH = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split()


@given(DAYS)
def test_a_day_is_understood_however_it_is_written(day: date) -> None:
    month, mois = ENGLISH[day.month - 1], FRENCH[day.month - 1]
    for text in (
        day.isoformat(), f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}",
        f"le {day.day} {mois} {day.year}", f"the {day.day}th of {month}, {day.year}", f"{day:%d/%m/%Y}",
        f"{day.day} {month.upper()} {day.year}",
    ):  # fmt: skip
        assert meant(f"the harbour on {text}") == [(day, day)], text


@given(DAYS, st.integers(1, 400))
def test_so_many_days_ago_is_that_day_in_both_languages(today: date, count: int) -> None:
    now = datetime(today.year, today.month, today.day, 23, 59, tzinfo=UTC)
    then = today - timedelta(count)
    assert meant(f"what happened {count} days ago", now) == meant(f"ce qui s'est passé il y a {count} jours", now)
    if count > 1:
        assert meant(f"{count} days ago", now) == [(then, then)]
    (weeks,) = meant(f"{count} weeks ago", now)
    assert weeks[0] <= today - timedelta(7 * count) <= weeks[1]


@given(DAYS)
def test_what_lies_beside_each_other_touches_and_what_is_last_has_been(today: date) -> None:
    now = datetime(today.year, today.month, today.day, tzinfo=UTC)
    for english, french in (("week", "semaine"), ("month", "mois"), ("year", "année"), ("weekend", "week-end")):
        last, this, following = (meant(f"{which} {english}", now)[0] for which in ("last", "this", "next"))
        assert last[1] < today <= this[1] < following[0]
        assert this[0] <= today or english == "weekend"
        if english != "weekend":
            assert last[1] + timedelta(1) == this[0] and this[1] + timedelta(1) == following[0]
        assert meant(f"{french} dernière", now) == [last] and meant(f"{french} prochain", now) == [following]
    for weekday in ("Monday", "Friday", "Sunday"):
        assert meant(f"last {weekday}", now)[0][0] < today < meant(f"next {weekday}", now)[0][0]
