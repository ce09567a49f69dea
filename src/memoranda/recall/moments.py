"""The time of which a question speaks: "last week", "in March", "la semaine dernière", "il y a trois jours".

English and French, words only: no pattern is compiled, since a fresh process asks one question. What is meant are days
of the asker's clock, in its zone. Whoever names a day means that day, so "last week, as mentioned on 6 November" is
the 6th: what is relative counts only where nothing absolute is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from memoranda.index.analysis import fold
from memoranda.recall import _calendar as calendar
from memoranda.recall._calendar import (
    JOINTS,
    LAST,
    LAST_FR,
    NEXT,
    NEXT_FR,
    NUMBERS,
    PARTS,
    RANGES,
    SEASONS,
    SINCE,
    THE,
    THIS,
    UNITS,
    WEEKDAYS,
)  # fmt: skip
from memoranda.recall._dates import Named, Stretch


class Moments(NamedTuple):
    """What a question says of time: stretches of days, months without a year (the latest of each is a stretch, too),
    and the words that say it."""

    stretches: tuple[Stretch, ...] = ()
    months: frozenset[int] = frozenset()
    words: frozenset[str] = frozenset()


def read_moments(text: str, now: datetime) -> Moments:
    """What a question that is asked at `now` (aware) says of time. Never an error."""
    plain = fold(text)
    spaced = "".join([c if c.isalnum() or (c == "-" and _between(plain, n)) else " " for n, c in enumerate(plain)])
    words = spaced.replace("week end", "weekend ").split()
    if not any(word in calendar.TIMELY or word[0].isdigit() for word in words):
        return Moments()
    reader = _Reader(words, _capitals(text, spaced, words), now.date())
    found = list(reader.read())
    if any(stretch.absolute for stretch in found):
        found = [stretch for stretch in found if stretch.absolute]
    said = {word for stretch in found for word in words[stretch.first : stretch.end]}
    said |= {part for word in said if "-" in word for part in (*word.split("-"), word.replace("-", ""))}
    said |= {"".join(words[stretch.first : stretch.end]) for stretch in found}
    said |= {part for word in said if "-" in word for part in (*word.split("-"), word.replace("-", ""))}
    said |= {"".join(words[at : at + 2]) for stretch in found for at in range(stretch.first, stretch.end - 1)}
    return Moments(tuple(found), frozenset(reader.bare), frozenset(said))


def _between(text: str, at: int) -> bool:
    """Whether the characters on both sides are figures: 2026-05-10 is one word."""
    return text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit()


def _capitals(text: str, spaced: str, words: list[str]) -> set[int]:
    """The words, by their numbers, that are written with a capital inside the sentence."""
    if len(text) != len(spaced):
        return set()
    found, at = set(), 0
    for n, word in enumerate(words):
        at = spaced.find(word, at)
        if at < 0:
            break
        if n and text[at].isupper():
            found.add(n)
        at += len(word)
    return found


class _Reader(Named):
    """Goes through the words of a question once, at each trying what a time can begin with."""

    def read(self) -> Iterator[Stretch]:
        ways: tuple[Callable[[int], Stretch | None], ...] = (
            self._iso, self._numeric, self._ago, self._rolling, self._week_of, self._named_day, self._month,
            self._relative, self._season, self._word, self._weekday, self._year,
        )  # fmt: skip
        at, former = 0, None
        while at < len(self._words):
            found = None
            for way in ways:
                try:
                    found = way(at)
                except (ValueError, OverflowError):  # no such day: the words still count as words
                    continue
                if found is not None:
                    break
            if found is None:
                at += 1
                continue
            at = found.end
            found = self._since(found)
            joined = self._joined(former, found)
            if joined is None and former is not None:
                yield former
            former = joined or found
        if former is not None:
            yield former

    def _since(self, found: Stretch) -> Stretch:
        """ "since Monday", "depuis hier": until now."""
        before = found.first - 1
        while self._is(before, THE):
            before -= 1
        if not self._is(before, SINCE) or found.start > self._today:
            return found
        return found._replace(stop=max(self._today, found.start), first=before)

    def _joined(self, former: Stretch | None, found: Stretch) -> Stretch | None:
        """ "between March and May", "de mars à mai": everything between them."""
        if former is None or former.stop > found.stop:
            return None
        between = self._words[former.end : found.first]
        before = former.first - 1
        while self._is(before, THE - RANGES):
            before -= 1
        joint = bool(between) and between[0] in JOINTS and all(word in JOINTS | THE for word in between)
        if not (joint and self._is(before, RANGES)):
            return None
        return Stretch(former.start, found.stop, before, found.end, former.absolute and found.absolute)

    # Counted from today

    def _count(self, at: int) -> tuple[int, int, bool] | None:
        """(how many, the word behind it, whether it is only about so many)."""
        word = self._at(at)
        if word in ("a", "an", "une", "un") and self._at(at + 1) in (
            "couple",
            "few",
            "dizaine",
            "quinzaine",
            "fortnight",
        ):
            at, word = at + 1, self._at(at + 1)
        about = word in calendar.ABOUT
        count = NUMBERS.get(word) or (int(word) if word.isdigit() and len(word) < 5 else None)
        if count is None:
            return None
        at += 1
        if self._at(at) in ("of", "de", "d"):
            at += 1
        return count, at, about

    def _ago(self, at: int) -> Stretch | None:
        """ "three days ago", "a few years back", "il y a trois jours", "dans deux semaines"."""
        french = self._words[at : at + 3] == ["il", "y", "a"]
        ahead = self._at(at) == "dans"
        counted = self._count(at + 3 if french else at + 1 if ahead else at)
        if counted is None:
            return None
        count, behind, about = counted
        unit = UNITS.get(self._at(behind))
        if self._at(behind - 1) in ("quinzaine", "fortnight"):
            unit, behind = "day", behind - (unit is None)
        if unit is None:
            return None
        if not (french or ahead):
            if self._at(behind + 1) not in ("ago", "back", "earlier"):
                return None
            behind += 1
        day = calendar.moved(self._today, unit, count if ahead else -count)
        slack = timedelta(calendar.SLACK[unit] * (2 if about else 1) + (1 if about else 0))
        return Stretch(day - slack, day + slack, at, behind + 1)

    def _rolling(self, at: int) -> Stretch | None:
        """ "in the last three days", "the past few weeks", "ces trois derniers mois", "ces derniers jours"."""
        behind = at
        if self._is(at, LAST):
            counted = self._count(at + 1)
            if counted is None or UNITS.get(self._at(counted[1])) is None:
                return None
            count, behind, _ = counted
        else:
            counted = self._count(at)
            if counted is not None and self._is(counted[1], LAST_FR):
                count, behind = counted[0], counted[1] + 1
            elif self._at(at) in ("derniers", "dernieres") and self._at(at - 1) == "ces":
                count, behind = 0, at + 1
            else:
                return None
        unit = UNITS.get(self._at(behind))
        if unit is None:
            return None
        return Stretch(calendar.moved(self._today, unit, -(count or calendar.SOME[unit])), self._today, at, behind + 1)

    def _relative(self, at: int) -> Stretch | None:
        """ "last week", "this month", "next year", "la semaine dernière", "cette année"."""
        word, after = self._at(at), self._at(at + 1)
        if word in ("week", "semaine") and self._words[at + 1 : at + 3] == ["before", "last"]:
            return Stretch(*calendar.around(self._today, "week", -2), at, at + 3)
        if word == "l" and after in ("an", "annee", "ete", "hiver", "automne"):
            return None
        if word in UNITS and (after in LAST_FR or after in NEXT_FR):
            return Stretch(*calendar.around(self._today, UNITS[word], -1 if after in LAST_FR else 1), at, at + 2)
        step = -1 if word in LAST else 1 if word in NEXT else 0 if word in THIS else None
        if step is None or after not in UNITS:
            return None
        if after in ("days", "weeks", "months", "years", "jours", "semaines", "ans", "annees"):
            return None  # "these days", "the last days of summer"
        if (of := self._week_of(at + 1)) is not None:
            return of
        end = at + 2
        if self._at(end) in LAST_FR | NEXT_FR:  # "cette semaine passée"
            step, end = (-1 if self._at(end) in LAST_FR else 1), end + 1
        return Stretch(*calendar.around(self._today, UNITS[after], step), at, end)

    def _season(self, at: int) -> Stretch | None:
        """ "last summer", "in the winter of 2022", "l'été dernier", "cet hiver"; the words alone mean other things."""
        season = SEASONS.get(self._at(at))
        if season is None:
            return None
        end = at + 1
        year = self._year_behind(end)
        if year is not None:
            return Stretch(*calendar.season(season, year[0]), at, year[1], absolute=True)
        before, first = self._at(at - 1), at - 1
        if before in LAST or self._is(end, LAST_FR):
            step, end = -1, end + self._is(end, LAST_FR)
        elif before in NEXT or self._is(end, NEXT_FR):
            step, end = 1, end + self._is(end, NEXT_FR)
        elif before in THIS or before in ("in", "en", "au") or self._words[max(at - 2, 0) : at] == ["in", "the"]:
            step = 0
        else:
            return None
        return Stretch(*calendar.nearest_season(season, self._today, step), max(first, 0), end)

    def _word(self, at: int) -> Stretch | None:
        """ "yesterday", "last night", "avant-hier", "aujourd'hui", "ce matin", "the day after tomorrow"."""
        word, after = self._at(at), self._at(at + 1)
        away, end = calendar.DAY_WORDS.get(word), at + 1
        if word == "day" and after in ("before", "after") and self._at(at + 2) in ("yesterday", "tomorrow"):
            away, end = (-2 if after == "before" else 2), at + 3
        elif word in ("avant", "apres") and after in ("hier", "demain"):
            away, end = (-2 if word == "avant" else 2), at + 2
        elif word == "aujourd" and after == "hui":
            away, end = 0, at + 2
        elif word in LAST and after in ("night", "evening"):
            away, end = -1, at + 2
        elif word in THIS and after in PARTS:
            away, end = 0, at + 2
        elif away is not None and after in PARTS:
            end = at + 2
        if away is None:
            return None
        day = self._today + timedelta(away)
        return Stretch(day, day, at, end)

    def _weekday(self, at: int) -> Stretch | None:
        """ "on Friday" and "last Friday" are the latest, "next Friday" is the one to come; "lundi prochain"."""
        weekday = WEEKDAYS.get(self._at(at))
        if weekday is None:
            return None
        back = (self._today.weekday() - weekday) % 7
        before, after, end = self._at(at - 1), self._at(at + 1), at + 1
        if before in NEXT or after in NEXT_FR:
            day, end = self._today + timedelta(7 - back), end + (after in NEXT_FR)
        else:
            last = before in LAST or after in LAST_FR
            day, end = self._today - timedelta(back or (7 if last else 0)), end + (after in LAST_FR)
        anchor = self._anchor(end)
        if anchor is not None:  # "the Sunday before 25 October"
            back = (anchor.start.weekday() - weekday - 1) % 7 + 1
            ahead = (weekday - anchor.start.weekday() - 1) % 7 + 1
            day = anchor.start + timedelta(-back if self._at(end) in ("before", "avant") else ahead)
            return Stretch(day, day, at, anchor.end, absolute=True)
        return Stretch(day, day, at, end)
