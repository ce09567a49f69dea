"""Notes: read from any bytes, written in one form, refused with a reason."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput, InvalidNote, InvalidPointer, InvalidTime
from memoranda.notes.ids import note_id_for_path
from memoranda.notes.model import (
    CLASSIFICATIONS,
    KINDS,
    ORIGINS,
    OWNERS,
    RETENTION_CLASSES,
    SCOPES,
    SIZE_LIMIT,
    Note,
    check_draft,
    read_note,
    write_note,
)

from .samples import SKETCH, files, heads, in_file, plain_words, vault_files
from .test_frontmatter import values

PATH = "memory/notes/customer-acme.md"
DRAFT = Note(
    id="mem_4kq2",
    kind="semantic",
    subject="customer/acme",
    owner={"user": "dana"},
    valid_from=datetime(2026, 10, 2, tzinfo=UTC),
    recorded_at=datetime(2026, 10, 2, 9, 12, 33, tzinfo=UTC),
    confidence=0.8,
    origin="agent",
    sources=("nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18",),
    supersedes=("mem_1xa9",),
    body="Acme renewed for 24 months; the champion moved from Dana to Luis.",
)
WRITTEN = """\
---
id: mem_4kq2
kind: semantic
subject: customer/acme
scope: user
user: dana
valid_from: 2026-10-02
valid_to: null
recorded_at: 2026-10-02T09:12:33Z
confidence: 0.8
origin: agent
taint: []
reviewed: false
classification: internal
generated: false
sources:
  - nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18
supersedes: [mem_1xa9]
---
Acme renewed for 24 months; the champion moved from Dana to Luis.
"""


@pytest.mark.requirement("A-039")
def test_the_sketch_is_understood_as_it_stands() -> None:
    assert read_note(PATH, SKETCH) == Note(
        id="mem_4kq2",
        kind="semantic",
        subject="customer/acme",
        scope="user",
        valid_from=datetime(2026, 10, 2, tzinfo=UTC),
        valid_to=None,
        confidence=0.8,
        origin="agent",
        reviewed=True,
        sources=("nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18",),
        supersedes=("mem_1xa9",),
        title="customer-acme",
        body="Acme renewed for 24 months; the champion moved from Dana to Luis.",
        front_lines=13,
    )


@pytest.mark.requirement("A-004")
def test_a_written_note_is_markdown_with_yaml_front_matter() -> None:
    import yaml

    data = write_note(DRAFT)
    assert data.decode() == WRITTEN
    _, head, body = data.decode().split("---\n")
    loaded = yaml.safe_load(head)
    assert list(loaded) == [line.partition(":")[0] for line in head.splitlines() if line[0] not in " -"]
    assert loaded["sources"] == list(DRAFT.sources)
    assert loaded["confidence"] == 0.8
    assert body == DRAFT.body + "\n"


@pytest.mark.requirement("A-005")
@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind: str) -> None:
    assert {"episodic", "semantic", "procedural", "preference"} <= set(KINDS)
    note = replace(DRAFT, kind=kind)
    check_draft(note)
    assert f"\nkind: {kind}\n".encode() in write_note(note)
    assert read_note(PATH, write_note(note)).kind == kind


def test_the_text_of_a_note_begins_below_its_front_matter() -> None:
    for data in (
        SKETCH,
        WRITTEN.encode(),
        b"\xef\xbb\xbfone\r\n\r\ntwo",
        b"---\nrules\n---\ntext",
        b"",
        b"---\na: 1\n---\n\n\nx\n",
    ):
        note = read_note(PATH, data)
        lines = data.decode().removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        assert note.body.split("\n")[0] == lines[note.front_lines]
        assert "\n".join(lines[note.front_lines :]).removesuffix("\n") == note.body


words = (
    st.text(max_size=12)
    | plain_words
    | st.sampled_from(["no", "12:30", "a: b", "# x", "- x", '"', "'", "a\nb", "🎉", "[x]", "null", "1"])
)
some = words.filter(bool)
instants = st.none() | st.datetimes(timezones=st.just(UTC))
note_ids = st.from_regex(r"mem_[0-9a-z]{4,64}", fullmatch=True)
foreign = st.dictionaries(
    some.filter(lambda key: key not in {f.name for f in fields(Note)} and key not in (*OWNERS, "tags", "tag")),
    values,
    max_size=3,
)
notes = st.builds(
    Note,
    id=note_ids,
    kind=st.sampled_from(KINDS),
    subject=st.none() | some,
    scope=st.sampled_from(SCOPES),
    owner=st.dictionaries(st.sampled_from(OWNERS), some, max_size=2),
    valid_from=instants,
    recorded_at=instants,
    confidence=st.none() | st.floats(0, 1),
    origin=st.sampled_from(ORIGINS),
    taint=st.lists(some, max_size=2).map(tuple),
    reviewed=st.booleans(),
    classification=st.sampled_from(CLASSIFICATIONS),
    generated=st.booleans(),
    retention_days=st.none() | st.integers(0, 10**6),
    legal_hold=st.booleans(),
    retention_class=st.none() | st.sampled_from(RETENTION_CLASSES),
    sources=st.lists(some, max_size=3).map(tuple),
    supersedes=st.lists(note_ids, max_size=3).map(tuple),
    body=st.text().filter(lambda text: "\r" not in text and "\x00" not in text),
    extra=foreign,
)
READ_FROM_TEXT = ("title", "tags", "links", "front_lines")


def essence(note: Note) -> dict[str, object]:
    return {f.name: getattr(note, f.name) for f in fields(Note) if f.name not in READ_FROM_TEXT}


@settings(deadline=None, max_examples=150)
@given(notes)
def test_a_written_note_reads_back(note: Note) -> None:
    again = read_note("a/b.md", write_note(note))
    assert essence(again) == essence(note)
    assert write_note(again) == write_note(note)


def test_line_ends_become_one_kind() -> None:
    assert read_note(PATH, write_note(replace(DRAFT, body="a\r\nb\rc\n"))).body == "a\nb\nc\n"


def test_tags_of_a_draft_are_written_unless_the_text_says_them() -> None:
    data = write_note(replace(DRAFT, tags=("one", "two"), body="About #two."))
    assert b"\ntags: [one]\n" in data
    assert read_note(PATH, data).tags == ("one", "two")
    assert write_note(read_note(PATH, data)) == data
    assert b"\ntags:" not in write_note(replace(DRAFT, tags=("two",), body="About #two."))


@settings(deadline=None, max_examples=250)
@given(st.text() | st.sampled_from(["a/b.md", "", "é.md", "\ud800.md"]), files | st.builds(in_file, heads))
@example("", b"\xff\xfe")
@example("a", b"---\nid: [mem_4kq2]\nkind: {}\nconfidence: 7\nowner: x\nsources: {a: b}\nvalid_from: [1]\n---\n")
@example("a", b"---\nconfidence: .nan\nretention_days: -1\nreviewed: yes\nvalid_to: 2026-02-30\nscope: 3\n---\n")
def test_reading_takes_any_bytes_and_raises_nothing(path: str, data: bytes) -> None:
    note = read_note(path, data)
    assert note == read_note(path, data)
    assert note.kind in KINDS and note.scope in SCOPES and note.origin in ORIGINS
    assert note.valid_to is None or note.valid_from is None or note.valid_from < note.valid_to
    assert all(0 < len(problem) < 120 and "\n" not in problem for problem in note.problems)


def test_a_real_vault_is_read() -> None:
    named = {file.name: read_note(file.name, file.read_bytes()) for file in vault_files()}
    read = list(named.values())
    odd = [name for name, note in named.items() if note.problems]
    assert all(name.endswith("Template.md") for name in odd)  # where `created: {{date}}` is no value yet
    assert sum(bool(note.links) for note in read) > 30
    assert sum(bool(note.tags) for note in read) > 30


def test_a_file_without_anything_of_ours() -> None:
    note = read_note("Notes/Réunion.md", b"# The *meeting*\n\nWith [[Dana]] about #acme/renewal.\n")
    assert (note.id, note.kind, note.scope, note.origin) == (
        note_id_for_path("Notes/Réunion.md"),
        "semantic",
        "user",
        "human",
    )
    assert (note.confidence, note.sources, note.recorded_at, note.reviewed) == (None, (), None, False)
    assert (note.title, note.tags, note.links) == ("The *meeting*", ("acme/renewal",), ("Dana",))
    assert (note.problems, note.front_lines) == ((), 0)
    assert read_note("Notes/Réunion.md", b"text").title == "Réunion"


def test_the_fields_of_other_programs() -> None:
    data = b"""---
title: My title
type: note
permalink: notes/my-title
tags: [one, "#two", 3]
aliases:
  - Another name
up: "[[Index]]"
project: ["[[Big plan]]"]
---
# Heading
See [[Other|that]] and #three.
"""
    note = read_note("a.md", data)
    assert note.problems == ()
    assert note.title == "My title"
    assert note.tags == ("one", "two", "three")
    assert note.links == ("Index", "Big plan", "Other")
    assert note.owner == {}
    assert list(note.extra) == ["title", "type", "permalink", "tags", "aliases", "up", "project"]
    assert read_note("a.md", b"---\ntags: one, two three\n---\n").tags == ("one", "two", "three")


@pytest.mark.parametrize(
    ("head", "problem", "name", "value"),
    [
        ("id: 12", "id: not the id", "id", note_id_for_path("a.md")),
        ("id: MEM_4KQ2", "id: not the id", "id", note_id_for_path("a.md")),
        ("kind: rumour", "kind: not one of", "kind", "semantic"),
        ("kind: [fact]", "kind: not one of", "kind", "semantic"),
        ("scope: everyone", "scope: not one of", "scope", "user"),
        ("origin: alien", "origin: not one of", "origin", "external"),
        ("classification: secret", "classification: not one of", "classification", "restricted"),
        ("reviewed: yes", "reviewed: neither", "reviewed", False),
        ("legal_hold: 1", "legal_hold: neither", "legal_hold", False),
        ("confidence: high", "confidence: not a number", "confidence", None),
        ("confidence: 1.5", "confidence: not a number", "confidence", None),
        ("confidence: true", "confidence: not a number", "confidence", None),
        ("retention_days: -3", "retention_days: not a number", "retention_days", None),
        ("retention_class: maybe", "retention_class: not one of", "retention_class", None),
        ("subject: [a]", "subject: not text", "subject", None),
        ("valid_from: 2026-02-30", "valid_from: not a possible", "valid_from", None),
        ("valid_from: someday", "valid_from: not a possible", "valid_from", None),
        ("valid_from: 12", "valid_from: not a possible", "valid_from", None),
        ("valid_to: 12:30", "valid_to: not a possible", "valid_to", None),
        ("recorded_at: x", "recorded_at: not a possible", "recorded_at", None),
        ("valid_from: 2026-10-02\nvalid_to: 2026-10-02", "valid_to: not after", "valid_to", None),
        ("supersedes: [mem_1xa9, no]", "supersedes: an entry", "supersedes", ("mem_1xa9",)),
        ("sources: [a, [b], 3]", "sources: an entry", "sources", ("a",)),
    ],
)
def test_an_impossible_value_is_a_problem_and_no_value(head: str, problem: str, name: str, value: object) -> None:
    note = read_note("a.md", in_file(head + "\n"))
    assert getattr(note, name) == value
    (said,) = note.problems
    assert said.startswith(problem)


def test_single_values_and_numbers_are_taken_where_texts_are_meant() -> None:
    note = read_note("a.md", b"---\nsubject: 42\nsources: https://a.b\nsupersedes: mem_1xa9\ntaint: external\n---\n")
    assert (note.subject, note.sources, note.supersedes) == ("42", ("https://a.b",), ("mem_1xa9",))
    assert (note.taint, note.problems) == (("external",), ())


@pytest.mark.parametrize(
    ("data", "problem", "body"),
    [
        (b"", "empty file", ""),
        (b"a\x00b", "text: holds a NUL", "a\x00b"),
        (b"caf\xe9\n", "text: not UTF-8", "caf\ufffd"),
        (b"\xff\xfeh\x00i\x00", "text: not UTF-8", None),
        (b"x" * (SIZE_LIMIT + 1), "larger than 1 MiB", None),
        (b"---\nid: mem_4kq2\nx\n", "front matter: never closed", "---\nid: mem_4kq2\nx"),
        (b"---\nid: [\n---\nx\n", "front matter: not YAML at line 3", "x"),
        (b"---\nOnce upon a time\n---\nx\n", "front matter: not a list of fields", "---\nOnce upon a time\n---\nx"),
        (b"---\nid: mem_4kq2\nid: mem_1xa9\n---\nx\n", "front matter: a key that was there before at line 3", "x"),
    ],
)
def test_odd_files_are_notes_with_a_problem(data: bytes, problem: str, body: str | None) -> None:
    note = read_note("a.md", data)
    assert problem in note.problems
    assert body is None or note.body == body


def test_bad_yaml_keeps_the_id_and_what_else_can_be_understood() -> None:
    note = read_note("a.md", SKETCH.replace(b"customer/acme", b"customer: acme"))
    assert note.problems == ("front matter: not YAML at line 4",)
    assert (note.id, note.subject) == ("mem_4kq2", "customer: acme")
    assert replace(note, subject="customer/acme", problems=(), title="customer-acme") == read_note(PATH, SKETCH)


def test_a_megabyte_of_text_with_rules_in_it() -> None:
    text = "---\nid: mem_0000\n---\n" * 50_000
    note = read_note("a.md", b"---\nid: mem_4kq2\n---\n" + text.encode())
    assert (note.id, note.body) == ("mem_4kq2", text.removesuffix("\n"))


def test_a_good_draft_passes() -> None:
    check_draft(DRAFT)
    check_draft(
        replace(DRAFT, sources=("https://a.b/c#d", "file:///x", "mailto:a@b", "urn:isbn:1"), subject="a: b # 'c'\n🎉")
    )
    check_draft(Note(id="mem_0000", body="x" * (SIZE_LIMIT)))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"body": ""}, InvalidNote),
        ({"body": " \n\t\u2003"}, InvalidNote),
        ({"body": "a\x00b"}, InvalidNote),
        ({"body": "a\ud800"}, InvalidNote),
        ({"body": "x" * (SIZE_LIMIT + 1)}, InvalidNote),
        ({"body": "é" * (SIZE_LIMIT // 2 + 1)}, InvalidNote),
        ({"subject": "a\x00"}, InvalidNote),
        ({"owner": {"user": "\udfff"}}, InvalidNote),
        ({"kind": "rumour"}, InvalidNote),
        ({"kind": ""}, InvalidNote),
        ({"scope": "everyone"}, InvalidNote),
        ({"origin": "alien"}, InvalidNote),
        ({"classification": "secret"}, InvalidNote),
        ({"retention_class": "maybe"}, InvalidNote),
        ({"retention_days": -1}, InvalidNote),
        ({"confidence": 1.01}, InvalidNote),
        ({"confidence": -0.1}, InvalidNote),
        ({"confidence": float("nan")}, InvalidNote),
        ({"valid_to": datetime(2026, 10, 2, tzinfo=UTC)}, InvalidTime),
        ({"valid_to": datetime(2026, 10, 1, tzinfo=UTC)}, InvalidTime),
        ({"id": "4kq2"}, InvalidNote),
        ({"supersedes": ("mem_1xa9", "../x")}, InvalidNote),
        ({"sources": ("notes/a.md",)}, InvalidNote),
        ({"sources": ("",)}, InvalidNote),
        ({"sources": ("https://a b",)}, InvalidNote),
        ({"sources": ("https://a\nkind: fact",)}, InvalidNote),
        ({"sources": ("nas://h/../x",)}, InvalidPointer),
    ],
)
def test_a_bad_draft_is_refused_with_what_why_and_remedy(change: dict[str, object], error: type[InvalidInput]) -> None:
    with pytest.raises(error) as caught:
        check_draft(replace(DRAFT, **change))  # type: ignore[arg-type]
    assert caught.value.what
    assert caught.value.remedy
    assert caught.value.why or error is InvalidNote


def test_ordinary_notes_cost_no_import_of_yaml(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_bytes(SKETCH)
    code = (
        "import sys; from memoranda.notes.model import read_note, write_note, check_draft\n"
        f"note = read_note('a.md', open({str(note)!r}, 'rb').read()); check_draft(note); write_note(note)\n"
        "print([name for name in ('yaml', 'urllib', 'http', 'numpy', 'asyncio') if name in sys.modules], note.id)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert out.stdout == "[] mem_4kq2\n"
