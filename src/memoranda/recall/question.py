"""What can be read out of a question besides its words: what kind of answer it wants, and of which days it speaks.

English and French. Everything is a pure function of the question and of the time at which it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from memoranda.index.analysis import Query, analyze_query, fold
from memoranda.notes.lazyre import lazy

_DAY_MS = 86_400_000
_SLACK_DAYS = 8  # this far from a day that was named, closeness is zero

_MONTHS: dict[str, int] = {}
for _number, _names in enumerate(
    (
        "january jan janvier", "february feb fevrier", "march mars", "april apr avril", "may mai", "june juin",
        "july juillet", "august aug aout", "september sept septembre", "october oct octobre",
        "november nov novembre", "december dec decembre",
    ),
    1,
):  # fmt: skip
    _MONTHS |= dict.fromkeys(_names.split(), _number)
_DOUBTFUL = frozenset(("may", "march", "jan", "mars", "sept", "dec", "oct"))  # words or names of their own
_WEEKDAYS: dict[str, int] = {}
for _number, _names in enumerate(
    ("monday lundi", "tuesday mardi", "wednesday mercredi", "thursday jeudi", "friday vendredi", "saturday samedi",
     "sunday dimanche")
):  # fmt: skip
    _WEEKDAYS |= dict.fromkeys(_names.split(), _number)

# What a question asks for, told by its words and by pairs of neighbours: a fresh process compiles no pattern for it.
_WHEN = frozenset(("when", "quand"))
_WHEN_PAIRS = frozenset(
    [(which, unit) for which in ("what", "which", "whose") for unit in
     ("date", "day", "month", "year", "time", "weekend", "week")]
    + [(which, unit) for which in ("quel", "quelle") for unit in ("jour", "mois", "annee", "date", "heure")]
    + [("long", "ago")]
)  # fmt: skip
_AMOUNT = frozenset(("combien",))
_AMOUNT_PAIRS = frozenset(
    [("how", how) for how in ("many", "often", "much", "old", "long", "far", "tall", "big")] + [("quel", "age")]
)
_NAME = frozenset(
    (
        "who", "whom", "whose", "where", "which", "name", "named", "called", "title", "qui", "ou", "lequel", "laquelle",
        "nom", "titre",
    )
)  # fmt: skip
_AGO = lazy(
    r"\b(\d+|an?|one|two|three|four|five|six|a couple of|a few) (day|week|month)s? ago\b"
    r"|\bil y a (\d+|une?|deux|trois|quatre|cinq|six|quelques) (jour|semaine|mois)s?\b"
)
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "un": 1, "une": 1, "two": 2, "deux": 2, "a couple of": 2, "three": 3, "trois": 3,
    "a few": 3, "quelques": 3, "four": 4, "quatre": 4, "five": 5, "cinq": 5, "six": 6,
}  # fmt: skip
_UNITS = {"day": 1, "jour": 1, "week": 7, "semaine": 7, "month": 30, "mois": 30}
_DAY_WORDS = frozenset(
    (
        "yesterday", "today", "tonight", "tomorrow", "last", "next", "week", "weekend", "month", "ago",
        "hier", "demain", "semaine", "mois", "derniere", "dernier", "prochaine", "prochain", "passee", "passe",
    )
)  # fmt: skip
# Without one of these, or a digit, a question speaks of no time.
_TIMELY = frozenset(
    (
        *_MONTHS, *_WEEKDAYS, *_DAY_WORDS, "year", "years", "days", "weeks", "months", "annee", "an", "ans", "jours",
        "semaines", "this", "aujourd", "matin", "soir", "morning", "night", "avant", "cette", "ce",
    )
)  # fmt: skip
_DAY_NUMBER = lazy(r"\d{1,2}(?:st|nd|rd|th|er)?")
_ISO = lazy(r"(?<!\d)((?:19|20)\d\d)-(\d\d)-(\d\d)(?!\d)")
_YEAR = lazy(r"(?<![\d-])(?:19|20)\d\d(?![\d-])")
_BEFORE = lazy(
    r"(?:\b(?:in|of|on|since|until|till|by|before|after|during|early|late|mid|last|next|this|en|de|du|depuis|debut|fin|"
    r"le|avant|apres|jusqu en)|\b\d{1,2}(?:st|nd|rd|th|er)?(?: of)?)[ ,-]+$"
)


class Days(NamedTuple):
    """A stretch of time that a question names: from `start` to before `end`, milliseconds since 1970 in UTC."""

    start: int
    end: int


class Question(NamedTuple):
    """A question as it is understood.

    `when`, `amount` and `name` say that a time, a number, or a person, place or title is asked for. `days` are the
    days it names, absolute or from the asker's clock; `months` are (year or None, month), `years` those named without
    a month. `dated` has bit i where group i of the query is a word of such a day, month or year.
    """

    text: str
    query: Query
    when: bool = False
    amount: bool = False
    name: bool = False
    days: tuple[Days, ...] = ()
    months: frozenset[tuple[int | None, int]] = frozenset()
    years: frozenset[int] = frozenset()
    dated: int = 0

    @property
    def has_time(self) -> bool:
        """It names a day, a month or a year."""
        return bool(self.days or self.months or self.years)

    def month_fits(self, at_ms: int) -> bool:
        """The time lies in a month that the question names, or in a year that it names without a month."""
        if not (self.months or self.years):
            return False
        at = datetime.fromtimestamp(at_ms / 1000, UTC)
        return (at.year, at.month) in self.months or (None, at.month) in self.months or at.year in self.years

    def closeness(self, at_ms: int) -> float:
        """1 within the days that the question names, less with every day away from them, 0 from eight days on."""
        best = 0.0
        for days in self.days:
            away = max(days.start - at_ms, at_ms - days.end, 0) / _DAY_MS
            best = max(best, 1 - away / _SLACK_DAYS)
        return best


def read_question(text: str, now: datetime) -> Question:
    """Understands a question that is asked at `now` (aware)."""
    query = analyze_query(text)
    if not query:
        return Question(text, query)
    plain = fold(text).replace("'", " ").replace("’", " ")
    words = "".join([c if c.isalnum() else " " for c in plain]).split()
    known = set(words)
    pairs = set(pairwise(words))
    asked = Question(
        text,
        query,
        when=bool(_WHEN & set(words[:2]) or pairs & _WHEN_PAIRS),
        amount=bool(known & _AMOUNT or pairs & _AMOUNT_PAIRS),
        name=bool(known & _NAME),
    )
    if not (known & _TIMELY or any(c.isdigit() for c in plain)):
        return asked
    found = list(_months(text, plain))
    years = frozenset([*(int(year) for year in _YEAR.findall(plain)), *_relative_years(plain, now)])
    months = frozenset((year, month) for month, _, _ in found for year in (years or {None}))
    days = (*_named_days(found, plain, years, now), *_relative_days(plain, now))
    dated = _dated(query, bool(found), bool(days), years)
    return asked._replace(days=days, months=months, years=frozenset() if found else years, dated=dated)


def _dated(query: Query, month: bool, day: bool, years: frozenset[int]) -> int:
    """The groups of the query that say when, as a bit set."""
    mask = 0
    for i, group in enumerate(query.groups):
        word = group.word
        if (
            (month and word in _MONTHS)
            or (day and (word in _WEEKDAYS or word in _DAY_WORDS or _DAY_NUMBER.fullmatch(word)))
            or (word.isdigit() and int(word) in years)
        ):
            mask |= 1 << i
    return mask


def _months(text: str, plain: str) -> Iterator[tuple[int, int, int]]:
    """(month, start, end) of each month that a folded text names; a word that is also something else needs a sign."""
    for word in re.finditer(r"[a-z]+", plain):
        month = _MONTHS.get(word[0])
        if month is None:
            continue
        dated = re.match(r",? ?\d", plain[word.end() :]) or _BEFORE.search(plain[: word.start()])
        capital = word.start() > 0 and len(text) == len(plain) and text[word.start()].isupper()
        if word[0] not in _DOUBTFUL or dated or capital:
            yield month, word.start(), word.end()


def _named_days(months: list[tuple[int, int, int]], plain: str, years: frozenset[int], now: datetime) -> Iterator[Days]:
    for year, month, day in _ISO.findall(plain):
        yield from _day(int(year), int(month), int(day))
    for month, start, end in months:
        before = re.search(r"\b(\d{1,2})(?:st|nd|rd|th|er)?(?: of)?[ -]*$", plain[:start])
        after = re.match(r"[ -]*(\d{1,2})(?:st|nd|rd|th)?\b(?!\d)", plain[end:])
        number = before or after
        if number:
            # Without a year it is the latest such day that has been.
            past = now.year if (month, int(number[1])) <= (now.month, now.day) else now.year - 1
            for year_named in sorted(years) or [past]:
                yield from _day(year_named, month, int(number[1]))


def _relative_years(plain: str, now: datetime) -> Iterator[int]:
    if re.search(r"\b(?:this year|cette annee)\b", plain):
        yield now.year
    if re.search(r"\b(?:last year|(?:annee|an) (?:derniere?|passee?))\b", plain):
        yield now.year - 1


def _relative_days(plain: str, now: datetime) -> Iterator[Days]:
    today = now.astimezone(UTC).date()
    monday = today - timedelta(today.weekday())
    first = today.replace(day=1)
    last_month = (first - timedelta(1)).replace(day=1)
    spans: list[tuple[str, date, date]] = [
        (r"today|tonight|this morning|aujourd hui|ce matin|ce soir", today, today),
        (r"(?<!avant-)\bhier|yesterday|last night", today - timedelta(1), today - timedelta(1)),
        (r"avant-hier", today - timedelta(2), today - timedelta(2)),
        (r"tomorrow|demain", today + timedelta(1), today + timedelta(1)),
        (r"this week|cette semaine", monday, monday + timedelta(6)),
        (r"last week|past week|(?:la )?semaine (?:derniere|passee)", monday - timedelta(7), monday - timedelta(1)),
        (r"next week|semaine prochaine", monday + timedelta(7), monday + timedelta(13)),
        (r"last weekend|week-end dernier", monday - timedelta(2), monday - timedelta(1)),
        (r"this month|ce mois", first, today),
        (r"last month|mois (?:dernier|passe)", last_month, first - timedelta(1)),
    ]
    for pattern, start, end in spans:
        if re.search(rf"\b(?:{pattern})\b", plain):
            yield _days(start, end)
    for english, unit, french, unite in _AGO.findall(plain):
        count, length = english or french, _UNITS[unit or unite]
        distance = (
            timedelta((_COUNTS.get(count) or int(count)) * length) if count.isdigit() or count in _COUNTS else None
        )
        if distance is not None and distance < timedelta(365 * 200):
            slack = timedelta(length // 4)
            yield _days(today - distance - slack, today - distance + slack)
    for name, weekday in _WEEKDAYS.items():
        if re.search(rf"\b{name}s?\b", plain):
            back = (today.weekday() - weekday) % 7
            last = re.search(rf"\blast {name}\b|\b{name} (?:dernier|passe)\b", plain)
            day = today - timedelta(back or (7 if last else 0))
            yield _days(day, day)


def _day(year: int, month: int, day: int) -> Iterator[Days]:
    try:
        named = date(year, month, day)
    except ValueError:
        return  # no such day: the words still count as words
    yield _days(named, named)


def _days(first: date, last: date) -> Days:
    """From the first day to the end of the last."""
    start = int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp() * 1000)
    end = int(datetime(last.year, last.month, last.day, tzinfo=UTC).timestamp() * 1000) + _DAY_MS
    return Days(start, end)
