"""Days, weeks, months and years that a question names as such, in English and French: "5 March 2026", "en mars"."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from memoranda.recall import _calendar as calendar
from memoranda.recall._calendar import BEFORE, LAST, LAST_FR, MONTHS, NEXT, NEXT_FR

_LONG = 16  # days; what is longer is a span, and counts less than a day that is named


class Stretch(NamedTuple):
    """Days, both included, and the words `first` to before `end` that name them."""

    start: date
    stop: date
    first: int
    end: int
    absolute: bool = False

    @property
    def long(self) -> bool:
        return (self.stop - self.start).days >= _LONG


class Named:
    """The words of a question, and what is a date among them. Each way gets the number of a word to begin with.

    ValueError and OverflowError mean that there is no such day.
    """

    def __init__(self, words: list[str], capitals: set[int], today: date) -> None:
        self._words = words
        self._capitals = capitals
        self._today = today
        self.bare: set[int] = set()  # months without a year
        self._years = [int(word) for n, word in enumerate(words) if self._is_year(n)]

    def _at(self, n: int) -> str:
        return self._words[n] if 0 <= n < len(self._words) else ""

    def _is(self, n: int, words: frozenset[str]) -> bool:
        return self._at(n) in words

    def _is_year(self, at: int) -> bool:
        word = self._at(at)
        return len(word) == 4 and word.isdigit() and word[:2] in ("19", "20")

    def _year_behind(self, at: int) -> tuple[int, int] | None:
        """(a year that follows, the word behind it)."""
        at += self._at(at) in ("of", "in", "de", "d", "en")
        return (int(self._at(at)), at + 1) if self._is_year(at) else None

    def _year(self, at: int) -> Stretch | None:
        if not self._is_year(at) or self._at(at + 1) in ("euros", "dollars", "meters", "km", "people"):
            return None
        year = int(self._at(at))
        return Stretch(date(year, 1, 1), date(year, 12, 31), at, at + 1, absolute=True)

    def _iso(self, at: int) -> Stretch | None:
        """2026-05-10, 2026-05, and 2020-2022."""
        parts = self._at(at).split("-")
        if [len(part) for part in parts] not in ([4, 2, 2], [4, 2], [4, 4]) or parts[0][:2] not in ("19", "20"):
            return None
        year, other, *rest = [int(part) for part in parts]
        if rest:
            first = last = date(year, other, rest[0])
        elif len(parts[1]) == 2:
            first, last = calendar.month(year, date(year, other, 1).month)
        elif year < other < 2100:
            first, last = date(year, 1, 1), date(other, 12, 31)
        else:
            return None
        return Stretch(first, last, at, at + 1, absolute=True)

    def _numeric(self, at: int) -> Stretch | None:
        """05/03/2026: the day first, as most of the world writes, unless only the other way is a day."""
        parts = self._words[at : at + 3]
        if len(parts) < 3 or not self._is_year(at + 2) or not all(p.isdigit() and len(p) < 3 for p in parts[:2]):
            return None
        one, two, year = map(int, parts)
        day = date(year, one, two) if two > 12 else date(year, two, one)
        return Stretch(day, day, at, at + 3, absolute=True)

    def _named_day(self, at: int) -> Stretch | None:
        """ "5 March 2026", "the 3rd of May", "March 5th, 2026", "le 1er mars"."""
        number = calendar.day_number(self._at(at))
        if number is not None:
            behind = at + 1 + (self._at(at + 1) == "of")
            month = MONTHS.get(self._at(behind))
        else:
            behind, month = at + 1, MONTHS.get(self._at(at))
            number = calendar.day_number(self._at(behind))
        if month is None or number is None:
            return None
        end = behind + 1
        year = self._year_behind(end) if not self._is_year(end) else (int(self._at(end)), end + 1)
        if year is not None:
            day, end = date(year[0], month, number), year[1]
        elif self._years:
            day = date(self._years[0], month, number)
        else:
            day = calendar.latest_day(month, number, self._today)
        return Stretch(day, day, at, end, absolute=True)

    def _anchor(self, at: int) -> Stretch | None:
        """The day that is named behind "before" or "after"."""
        if self._at(at) not in ("before", "after", "avant", "apres"):
            return None
        at += 1 + (self._at(at + 1) in ("the", "le"))
        return self._iso(at) or self._numeric(at) or self._named_day(at)

    def _week_of(self, at: int) -> Stretch | None:
        """ "the week of 5 March", "the last week of August 2023", "the week before 3 August", "la semaine du 5"."""
        word = self._at(at)
        if word not in ("week", "weekend", "semaine"):
            return None
        anchor = self._anchor(at + 1)
        if anchor is not None:
            step = -1 if self._at(at + 1) in ("before", "avant") else 1
            near, far = anchor.start + timedelta(step), anchor.start + timedelta(7 * step)
            return Stretch(min(near, far), max(near, far), at, anchor.end, absolute=True)
        if self._at(at + 1) not in ("of", "du", "de"):
            return None
        behind = at + 2 + (self._at(at + 2) == "the")
        day = self._iso(behind) or self._numeric(behind) or self._named_day(behind)
        if day is not None:
            return Stretch(*calendar.around(day.start, "week", 0), at, day.end, absolute=True)
        month = self._month(behind)
        if month is None or not month.absolute:
            return None
        if self._is(at - 1, LAST):
            return Stretch(month.stop - timedelta(6), month.stop, at - 1, month.end, absolute=True)
        if self._at(at - 1) in ("first", "premiere"):
            return Stretch(month.start, month.start + timedelta(6), at - 1, month.end, absolute=True)
        return None

    def _month(self, at: int) -> Stretch | None:
        """ "in March" (the latest, and in a lesser way any), "March 2026", "last March", "mars prochain"."""
        word = self._at(at)
        month = MONTHS.get(word)
        if month is None or not self._meant(at):
            return None
        end = at + 1
        year = self._year_behind(end)
        if year is not None:
            return Stretch(*calendar.month(year[0], month), at, year[1], absolute=True)
        if self._years:
            return Stretch(*calendar.month(self._years[0], month), at, end, absolute=True)
        if self._at(at - 1) in NEXT or self._is(end, NEXT_FR):
            return Stretch(*calendar.nearest_month(month, self._today, 1), at, end + self._is(end, NEXT_FR))
        if self._at(at - 1) in LAST or self._is(end, LAST_FR):
            return Stretch(*calendar.nearest_month(month, self._today, -1), at, end + self._is(end, LAST_FR))
        self.bare.add(month)
        return Stretch(*calendar.nearest_month(month, self._today, 0), at, end)

    def _meant(self, at: int) -> bool:
        """Whether a word that is also something else ("may", "march", "mars", "sept") is a month here."""
        word = self._at(at)
        if word not in calendar.DOUBTFUL:
            return True
        if self._at(at - 1) in BEFORE or self._at(at + 1)[:1].isdigit():
            return True
        if word == "mars" and (self._at(at - 1) in ("a", "et", "ou") or self._is(at + 1, LAST_FR | NEXT_FR)):
            return True
        return at in self._capitals and word in ("may", "march", "oct", "dec")
