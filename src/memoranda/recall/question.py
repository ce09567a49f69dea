"""What can be read out of a question besides its words: what kind of answer it wants, and of which days it speaks.

English and French. Everything is a pure function of the question and of the time at which it is asked.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import NamedTuple

from memoranda.index.analysis import Query, analyze_query, fold
from memoranda.recall._calendar import ASKING, TIMELY

_DAY_MS = 86_400_000
_SLACK_DAYS = 8  # this far from a day that was named, closeness is zero
_ANOTHER_YEAR = 0.5  # "in March": what a March before the latest one counts

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


class Days(NamedTuple):
    """A stretch of time that a question names: from `start` to before `end`, milliseconds since 1970 in UTC."""

    start: int
    end: int


class Question(NamedTuple):
    """A question as it is understood.

    `when`, `amount` and `name` say that a time, a number, or a person, place or title is asked for. `days` are the
    days it names, absolute or from the asker's clock, `spans` what is longer than a fortnight (a month, a season, a
    year), `months` those named without a year, of which the latest is a span. `dated` has bit i where group i of the
    query is a word of such a time. `alone` says that nothing but that time is asked for, `named` that
    the time is named as such (5 March, 2026) and not by its distance from now.
    """

    text: str
    query: Query
    when: bool = False
    amount: bool = False
    name: bool = False
    days: tuple[Days, ...] = ()
    spans: tuple[Days, ...] = ()
    months: frozenset[int] = frozenset()
    dated: int = 0
    alone: bool = False
    named: bool = False

    @property
    def has_time(self) -> bool:
        """It names a day, a month or a year."""
        return bool(self.days or self.spans or self.months)

    def is_of(self, at_ms: int | None) -> bool:
        """It names a time, and this lies in it."""
        return at_ms is not None and self.has_time and (self.span_fits(at_ms) == 1 or self.closeness(at_ms) == 1)

    def span_fits(self, at_ms: int) -> float:
        """1 within a longer time that the question names; less in such a month of another year."""
        if any(span.start <= at_ms < span.end for span in self.spans):
            return 1.0
        if self.months and datetime.fromtimestamp(at_ms / 1000, UTC).month in self.months:
            return _ANOTHER_YEAR
        return 0.0

    def closeness(self, at_ms: int) -> float:
        """1 within the days that the question names, less with every whole day away from them, 0 from eight on."""
        best = 0.0
        for days in self.days:
            away = -(-max(days.start - at_ms, at_ms - days.end + 1, 0) // _DAY_MS)
            best = max(best, 1 - away / _SLACK_DAYS)
        return best


def read_question(text: str, now: datetime) -> Question:
    """Understands a question that is asked at `now` (aware); days are those of its zone."""
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
    if known.isdisjoint(TIMELY) and not any(c.isdigit() for c in plain):
        return asked
    from memoranda.recall.moments import read_moments  # here: most questions of a fresh process speak of no time

    found = read_moments(text, now)
    if not found.stretches:
        return asked
    zone = now.tzinfo
    days = tuple(_days(it.start, it.stop, zone) for it in found.stretches if not it.long)
    spans = tuple(_days(it.start, it.stop, zone) for it in found.stretches if it.long)
    dated = sum(1 << i for i, group in enumerate(query.groups) if group.word in found.words)
    others = [group.word for i, group in enumerate(query.groups) if not dated >> i & 1]
    named = any(stretch.absolute for stretch in found.stretches)
    alone = bool(dated) and not asked.when and ASKING.issuperset(others)
    return asked._replace(days=days, spans=spans, months=found.months, dated=dated, alone=alone, named=named)


def _days(first: date, last: date, zone: tzinfo | None) -> Days:
    """From the first day to the end of the last."""
    start = datetime(first.year, first.month, first.day, tzinfo=zone)
    end = datetime(last.year, last.month, last.day, tzinfo=zone) + timedelta(1)
    return Days(int(start.timestamp() * 1000), int(end.timestamp() * 1000))
