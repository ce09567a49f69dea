"""The journal: what goes in comes out, and no text can pass for an entry."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidPath
from memoranda.notes.journal import (
    Entry,
    agent_of,
    day_of,
    entry_key,
    is_journal_path,
    journal_path,
    key_of,
    parse_journal,
    render_entry,
)

AT = datetime(2026, 10, 2, 9, 12, 33, tzinfo=UTC)
entry_ids = st.from_regex(r"j_[0-9a-z]{1,20}", fullmatch=True)
pieces = st.sampled_from(
    [
        "#",
        "##",
        "\\",
        "\n",
        "\r\n",
        "\r",
        " ",
        "a",
        "## 2026-10-02T09:12:33Z dana ^j_x",
        "^j_1",
        "```",
        "---",
        "\x00",
        "é",
    ]
)
texts = st.text() | st.lists(pieces, max_size=12).map("".join)


def test_the_form_of_an_entry() -> None:
    data = render_entry("j_abc1", AT, "dana", "First line\n# not a heading\n\\# nor this")
    assert data == (b"## 2026-10-02T09:12:33Z dana ^j_abc1\n\nFirst line\n\\# not a heading\n\\\\# nor this\n\n")
    assert parse_journal(data) == (Entry("j_abc1", AT, "dana", "First line\n# not a heading\n\\# nor this", 1, 5),)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(entry_ids, st.datetimes(timezones=st.just(UTC)), st.text(), texts), max_size=5))
def test_every_text_comes_back_and_every_entry_knows_its_lines(items: list[tuple[str, datetime, str, str]]) -> None:
    data = b"".join(render_entry(*item) for item in items)
    entries = parse_journal(data)
    assert [(e.id, e.at, e.text) for e in entries] == [(i, at, text) for i, at, _, text in items]
    assert [entry_key(e) for e in entries] == [key_of(*item) for item in items]
    file_lines = data.decode().split("\n")
    for entry in entries:
        assert entry.speaker == " ".join(entry.speaker.split())
        assert entry.speaker.isprintable() and entry.speaker
        assert file_lines[entry.start - 1].endswith(f"^{entry.id}")
        quoted = "\n".join(file_lines[entry.start + 1 : entry.end])
        assert quoted.replace("\\#", "#").replace("\\", "") == entry.text.replace("\\", "") or not entry.text


@settings(deadline=None)
@given(st.text())
def test_a_speaker_is_brought_to_one_line(speaker: str) -> None:
    (entry,) = parse_journal(render_entry("j_1", AT, speaker, "x"))
    (again,) = parse_journal(render_entry("j_1", AT, entry.speaker, "x"))
    assert again == entry
    assert entry.id == "j_1"


@settings(deadline=None)
@given(texts)
def test_appending_leaves_the_entries_before_as_they_were(text: str) -> None:
    first = render_entry("j_1", AT, "dana", "hello") + render_entry("j_2", AT, "luis", text)
    assert parse_journal(first + render_entry("j_3", AT, "x", "y"))[:2] == parse_journal(first)


@settings(deadline=None, max_examples=300)
@given(st.binary() | st.lists(pieces).map(lambda x: "\n".join(x).encode()))
def test_any_bytes_are_a_journal(data: bytes) -> None:
    for day in (None, date(2026, 10, 2)):
        entries = parse_journal(data, day)
        total = data.count(b"\n") + 1
        assert all(1 <= e.start <= e.end <= total for e in entries)
        assert [e.start for e in entries] == sorted(e.start for e in entries)


def test_a_journal_that_an_editor_touched() -> None:
    data = b"\xef\xbb\xbf# My day\r\n\r\n"
    data += b"## 2026-10-02T09:12Z Dana Smith\r\nno empty line above\r\n\r\n## 2026-10-02\r\n\r\nmore"
    entries = parse_journal(data)
    assert [(e.speaker, e.text, e.start, e.end) for e in entries] == [
        ("Dana Smith", "no empty line above", 3, 4),
        ("unknown", "more", 6, 8),
    ]
    assert entries[0].at == datetime(2026, 10, 2, 9, 12, tzinfo=UTC)
    assert entries[0].id != entries[1].id and entries[0].id.startswith("j_")
    assert [e.id for e in parse_journal(data)] == [e.id for e in entries]
    with_stray = parse_journal(data, date(2026, 10, 2))
    assert (with_stray[0].text, with_stray[0].start, with_stray[0].end) == ("# My day", 1, 1)
    assert with_stray[1:] == entries


def test_a_heading_with_an_impossible_time_is_text() -> None:
    data = render_entry("j_1", AT, "dana", "a") + b"## 2026-13-99T00:00:00Z x ^j_2\n\nb\n\n"
    (entry,) = parse_journal(data)
    assert "2026-13-99" in entry.text


def test_a_hostile_journal_takes_no_time() -> None:
    started = time.process_time()
    parse_journal(b"## 2026-10-02 " + b" ^j_" * 200_000)
    parse_journal(b"## 2026-10-02 x ^j_1\n" * 20_000)
    parse_journal(b"\\" * 500_000 + b"#")
    assert time.process_time() - started < 3


def test_paths_of_journals() -> None:
    day = date(2026, 10, 2)
    assert journal_path("cleo", day, None, 1) == "agents/cleo/journal/2026-10-02.md"
    assert journal_path("cleo", day, None, 2) == "agents/cleo/journal/2026-10-02.2.md"
    assert journal_path("cleo", day, "b7", 1) == "agents/cleo/journal/2026-10-02~b7.md"
    assert journal_path("cleo", day, "b7", 12) == "agents/cleo/journal/2026-10-02~b7.12.md"
    assert journal_path("../x", day, "../y", 1) == "agents/x/journal/2026-10-02~y.md"


@settings(deadline=None)
@given(st.text(), st.dates(), st.none() | st.text(min_size=1), st.integers(1, 10**6))
def test_a_journal_path_says_whose_and_which_day(agent: str, day: date, installation: str | None, part: int) -> None:
    path = journal_path(agent, day, installation, part)
    assert is_journal_path(path)
    assert day_of(path) == day
    assert journal_path(agent_of(path), day_of(path), installation, part) == path


@pytest.mark.parametrize(
    "path",
    [
        *("", "memory/notes/a.md", "agents/cleo/journal/2026-13-02.md", "agents/cleo/journal/2026-10-02.txt"),
        *(
            "agents/a/b/journal/2026-10-02.md",
            "agents/cleo/journal/x/2026-10-02.md",
            "agents/cleo/journal/2026-10-02.0.md",
        ),
        *(
            "agents//journal/2026-10-02.md",
            "x/agents/cleo/journal/2026-10-02.md",
            "agents/cleo/journal/2026-10-02.md\n",
        ),
    ],
)
def test_other_paths_are_no_journals(path: str) -> None:
    assert not is_journal_path(path)
    for ask in (agent_of, day_of):
        with pytest.raises(InvalidPath):
            ask(path)


def test_entries_keep_the_microsecond() -> None:
    at = AT + timedelta(microseconds=7)
    assert parse_journal(render_entry("j_1", at, "a", "b"))[0].at == at
