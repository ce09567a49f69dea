"""Dates, times and intervals."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidTime
from memoranda.notes.times import (
    Interval,
    format_day_or_instant,
    format_instant,
    from_ms,
    parse_instant,
    to_ms,
)

instants = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-10-02", datetime(2026, 10, 2, tzinfo=UTC)),
        (" 2026-10-02 ", datetime(2026, 10, 2, tzinfo=UTC)),
        ("2026-10-02T09:12:33Z", datetime(2026, 10, 2, 9, 12, 33, tzinfo=UTC)),
        ("2026-10-02t09:12:33z", datetime(2026, 10, 2, 9, 12, 33, tzinfo=UTC)),
        ("2026-10-02 09:12", datetime(2026, 10, 2, 9, 12, tzinfo=UTC)),
        ("2026-10-02T09:12:33", datetime(2026, 10, 2, 9, 12, 33, tzinfo=UTC)),
        ("2026-10-02T09:12:33.5Z", datetime(2026, 10, 2, 9, 12, 33, 500000, tzinfo=UTC)),
        ("2026-10-02T09:12:33.123456789Z", datetime(2026, 10, 2, 9, 12, 33, 123456, tzinfo=UTC)),
        ("2026-10-02T01:00:00+02:00", datetime(2026, 10, 1, 23, tzinfo=UTC)),
        ("2026-10-02 01:00:00 -0230", datetime(2026, 10, 2, 3, 30, tzinfo=UTC)),
        ("2026-10-02T01:00+02", datetime(2026, 10, 1, 23, tzinfo=UTC)),
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
    ],
)
def test_forms_of_a_time(text: str, expected: datetime) -> None:
    got = parse_instant(text)
    assert got == expected
    assert got.tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026", "2026-10", "2026-13-01", "2026-02-30", "2025-02-29", "0000-01-01", "2026-10-2"),
        *("20261002", "2026-W40-5", "2026-10-02T24:00:00Z", "2026-10-02T09", "2026-10-02T09:60", "2026-10-02T09:12:60"),
        *("2026-10-02T09:12:33+25:00", "2026-10-02T09:12:33+01:75", "0001-01-01T00:00+01:00", "9999-12-31T23:59-01:00"),
        *("2026-10-02Z", "२०२६-१०-०२", "2026-10-02\x00", "2026-10-02; rm", "12:30", "2026-10-02T09:12:33ZZ"),
    ],
)
def test_an_impossible_time_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidTime) as caught:
        parse_instant(text, what="valid_from")
    assert "valid_from" in caught.value.what
    assert caught.value.why
    assert "2026-10-02" in caught.value.remedy


def test_a_date_is_its_first_instant_or_its_last() -> None:
    last = datetime(2026, 10, 2, 23, 59, 59, 999999, tzinfo=UTC)
    for day in ("2026-10-02", date(2026, 10, 2)):
        assert parse_instant(day) == datetime(2026, 10, 2, tzinfo=UTC)
        assert parse_instant(day, end_of_day=True) == last
    assert parse_instant("2026-10-02T09:00Z", end_of_day=True) == datetime(2026, 10, 2, 9, tzinfo=UTC)
    assert parse_instant("9999-12-31", end_of_day=True).year == 9999


def test_a_naive_time_is_utc_and_another_zone_is_brought_to_it() -> None:
    assert parse_instant(datetime(2026, 10, 2, 9)) == datetime(2026, 10, 2, 9, tzinfo=UTC)
    paris = timezone(timedelta(hours=2))
    assert parse_instant(datetime(2026, 10, 2, 9, tzinfo=paris)) == datetime(2026, 10, 2, 7, tzinfo=UTC)
    with pytest.raises(InvalidTime):
        parse_instant(datetime(1, 1, 1, tzinfo=paris))
    assert format_instant(datetime(2026, 10, 2, 9)) == "2026-10-02T09:00:00Z"
    assert format_instant(datetime(2026, 10, 2, 9, tzinfo=paris)) == "2026-10-02T07:00:00Z"


@settings(deadline=None)
@given(instants)
def test_a_written_time_reads_back_to_itself(t: datetime) -> None:
    assert parse_instant(format_instant(t)) == t
    assert parse_instant(format_day_or_instant(t)) == t
    assert format_instant(t).endswith("Z")


def test_microseconds_are_written_only_when_there_are_some() -> None:
    t = datetime(2026, 10, 2, 9, 12, 33, tzinfo=UTC)
    assert format_instant(t) == "2026-10-02T09:12:33Z"
    assert format_instant(t.replace(microsecond=40)) == "2026-10-02T09:12:33.000040Z"
    assert format_day_or_instant(t) == "2026-10-02T09:12:33Z"
    assert format_day_or_instant(datetime(2026, 10, 2, tzinfo=UTC)) == "2026-10-02"


@settings(deadline=None)
@given(st.text(max_size=30) | st.from_regex(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d)?)?", fullmatch=True))
def test_any_text_is_a_time_or_refused_by_name(text: str) -> None:
    try:
        assert parse_instant(text).tzinfo is UTC
    except InvalidTime:
        pass


@settings(deadline=None)
@given(st.none() | instants, st.none() | instants, st.none() | instants, st.none() | instants, instants)
def test_intervals_are_half_open(
    a: datetime | None, b: datetime | None, c: datetime | None, d: datetime | None, t: datetime
) -> None:
    if a is not None and b is not None and b <= a:
        with pytest.raises(InvalidTime):
            Interval(a, b)
        return
    one = Interval(a, b)
    assert one.contains(t) == ((a is None or t >= a) and (b is None or t < b))
    if a is not None:
        assert one.contains(a)
    if b is not None:
        assert not one.contains(b)
    if c is not None and d is not None and d <= c:
        return
    other = Interval(c, d)
    latest_start = max((x for x in (a, c) if x is not None), default=None)
    if latest_start is None:  # both are open before: they share what lies before the earlier end
        assert one.overlaps(other)
    else:
        assert one.overlaps(other) == (one.contains(latest_start) and other.contains(latest_start))
    assert one.overlaps(other) == other.overlaps(one)


@settings(deadline=None)
@given(instants)
def test_milliseconds_are_rounded_down_and_keep_the_order(t: datetime) -> None:
    ms = to_ms(t)
    back = from_ms(ms)
    assert ms is not None and back is not None
    assert timedelta(0) <= t - back < timedelta(milliseconds=1)
    assert to_ms(back) == ms


def test_milliseconds_at_the_edges() -> None:
    assert to_ms(None) is None
    assert from_ms(None) is None
    assert to_ms(datetime(1970, 1, 1)) == 0
    assert to_ms(datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == -1
    with pytest.raises(InvalidTime):
        from_ms(10**18)
