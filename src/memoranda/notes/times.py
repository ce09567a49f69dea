"""Dates, times and half-open intervals. Everything that leaves here is aware and in UTC."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

from memoranda.errors import InvalidTime
from memoranda.notes.lazyre import lazy
from memoranda.values import dataclass

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_LAST_INSTANT = timedelta(days=1) - timedelta(microseconds=1)
_FORM = lazy(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(?:([Zz])|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
_REMEDY = "Write a date such as 2026-10-02, or a date and time such as 2026-10-02T09:12:33Z."


def parse_instant(text: str | date | datetime, *, what: str = "time", end_of_day: bool = False) -> datetime:
    """The instant that this means: aware, UTC, to the microsecond.

    A date is its first instant (00:00Z), or its last microsecond when `end_of_day`; a naive time is UTC. `what` names
    the thing in the error.

    Raises:
        InvalidTime: not a date or time of this form, or one that does not exist.
    """
    if isinstance(text, str):
        return _parse_text(text, what, end_of_day)
    if isinstance(text, datetime):
        try:
            return text.replace(tzinfo=UTC) if text.tzinfo is None else text.astimezone(UTC)
        except OverflowError:
            raise _impossible(what, "Its offset from UTC leads out of the calendar.") from None
    start = datetime(text.year, text.month, text.day, tzinfo=UTC)
    return start + _LAST_INSTANT if end_of_day else start


def _parse_text(text: str, what: str, end_of_day: bool) -> datetime:
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidTime(
            f"The {what} is not a date or a time.", why="It does not have the form of one.", remedy=_REMEDY
        )
    year, month, day, hour, minute, second, fraction, _, sign, off_hours, off_minutes = match.groups()
    try:
        start = datetime(int(year), int(month), int(day), tzinfo=UTC)
        if hour is None:
            return start + _LAST_INSTANT if end_of_day else start
        micro = int(fraction[:6].ljust(6, "0")) if fraction else 0
        moment = start.replace(hour=int(hour), minute=int(minute), second=int(second or 0), microsecond=micro)
        if sign is None:
            return moment
        if int(off_minutes or 0) > 59:
            raise ValueError("an offset has at most 59 minutes")
        offset = timedelta(hours=int(off_hours), minutes=int(off_minutes or 0))
        return moment.replace(tzinfo=timezone(-offset if sign == "-" else offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _impossible(what, "There is no such day or hour in the calendar.") from None


def _impossible(what: str, why: str) -> InvalidTime:
    return InvalidTime(f"The {what} does not exist.", why=why, remedy=_REMEDY)


def format_instant(t: datetime) -> str:
    """`2026-10-02T09:12:33Z`; with microseconds only when there are some. A naive time is UTC."""
    if t.tzinfo is not UTC and t.tzinfo is not None:
        t = t.astimezone(UTC)
    return t.replace(tzinfo=None).isoformat() + "Z"


def format_day_or_instant(t: datetime) -> str:
    """`2026-10-02` for the first instant of a UTC day, else the instant: what a person would have written."""
    text = format_instant(t)
    return text[:10] if text.endswith("T00:00:00Z") else text


@dataclass(frozen=True, slots=True)
class Interval:
    """From `start` on, before `end` (half-open); None is open. Both aware, in UTC.

    Raises:
        InvalidTime: it would end before or when it begins.
    """

    start: datetime | None
    end: datetime | None

    def __post_init__(self) -> None:
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise InvalidTime(
                "The interval ends before it begins.",
                why=f"It would begin {format_day_or_instant(self.start)} and end {format_day_or_instant(self.end)}.",
                remedy="Give a valid_to that is later than valid_from, or leave it open.",
            )

    def contains(self, t: datetime) -> bool:
        """Whether this instant lies in it."""
        return (self.start is None or self.start <= t) and (self.end is None or t < self.end)

    def overlaps(self, other: Interval) -> bool:
        """Whether some instant lies in both."""
        return (self.start is None or other.end is None or self.start < other.end) and (
            other.start is None or self.end is None or other.start < self.end
        )


def to_ms(t: datetime | None) -> int | None:
    """Milliseconds since 1970-01-01T00:00Z, rounded down; None stays None. A naive time is UTC."""
    if t is None:
        return None
    return ((t.replace(tzinfo=UTC) if t.tzinfo is None else t) - _EPOCH) // _MILLISECOND


def from_ms(ms: int | None) -> datetime | None:
    """The instant, aware and in UTC, of these milliseconds since 1970-01-01T00:00Z; None stays None.

    Raises:
        InvalidTime: outside the years 1 to 9999.
    """
    if ms is None:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise _impossible("time", "It lies outside the years 1 to 9999.") from None
