"""Changing one field: that field and nothing else."""

from __future__ import annotations

import difflib
from datetime import UTC, date, datetime

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidNote
from memoranda.notes import yamlread
from memoranda.notes.fieldedit import set_field
from memoranda.notes.frontmatter import head_text, read_fields, split, without_surrogates
from memoranda.notes.scalars import plain_data

from .samples import SKETCH, files, heads, in_file, keys, tame_heads, vault_files
from .test_frontmatter import values

HAND = b"""\
---
id: mem_abcd   # the id
# a comment
scope:   user # who
empty:
later: # nothing yet
quoted: "x" # q
text: |
  a
  b

list:
  - a # one
  # between
  - "b: c"

flow: [a, b] # f
map:
  x: 1 # deep
folded: a
  b c
last:
- q
---
body
"""


def changes(before: bytes, after: bytes) -> list[str]:
    lines = difflib.ndiff(before.decode().splitlines(keepends=True), after.decode().splitlines(keepends=True))
    return [line.rstrip("\r\n") for line in lines if line[0] in "+-"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("id", "mem_xx12", ["- id: mem_abcd   # the id", "+ id: mem_xx12   # the id"]),
        ("scope", "team", ["- scope:   user # who", "+ scope:   team # who"]),
        ("empty", "x", ["- empty:", "+ empty: x"]),
        ("empty", ["a", "b: c"], ["- empty:", '+ empty: [a, "b: c"]']),
        ("later", True, ["- later: # nothing yet", "+ later: true # nothing yet"]),
        ("quoted", "a: b", ['- quoted: "x" # q', '+ quoted: "a: b" # q']),
        ("text", "one", ["- text: |", "-   a", "-   b", "- ", "+ text: one"]),
        ("list", ["a", "b: c", "d"], ["+   - d"]),
        ("list", ["m", "a", "b: c"], ["+   - m"]),
        ("list", ["a", "b: d"], ['-   - "b: c"', '+   - "b: d"']),
        ("list", ["b: c"], ["-   - a # one", "-   # between"]),
        ("list", [], ["- list:", "-   - a # one", "-   # between", '-   - "b: c"', "+ list: []"]),
        ("flow", ["a", "c d"], ["- flow: [a, b] # f", '+ flow: [a, "c d"] # f']),
        ("map", "t", ["- map:", "-   x: 1 # deep", "+ map: t"]),
        ("folded", None, ["- folded: a", "-   b c", "+ folded: null"]),
        ("last", ["q", "r"], ["+ - r"]),
        ("last", 1, ["- last:", "- - q", "+ last: 1"]),
        ("new", "a # b", ['+ new: "a # b"']),
        ("valid_to", datetime(2026, 10, 2, 9, tzinfo=UTC), ["+ valid_to: 2026-10-02T09:00:00Z"]),
        ("valid_to", date(2026, 10, 2), ["+ valid_to: 2026-10-02"]),
    ],
)
def test_one_field_in_a_file_written_by_hand(key: str, value: object, expected: list[str]) -> None:
    for data in (HAND, HAND.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + HAND):
        after = set_field(data, key, value)
        got = changes(data, after)
        if key == "text":  # which of two equal empty lines went is for nobody to say
            got, expected = [x for x in got if x.strip("- ")], [x for x in expected if x.strip("- ")]
        assert sorted(got) == sorted(expected)
        assert after.count(b"\r\n") in (0, after.count(b"\n"))
        assert read_fields(split(after))[0] == {**read_fields(split(data))[0], key: plain_data(value)}


@pytest.mark.requirement("A-039")
def test_a_field_of_the_sketch_changes_in_its_line() -> None:
    after = set_field(SKETCH, "valid_to", "2027-01-01")
    assert changes(SKETCH, after) == ["- valid_to: null", "+ valid_to: 2027-01-01"]
    after = set_field(SKETCH, "sources", ["nas://home-box/a.md", *_sources(SKETCH)])
    assert changes(SKETCH, after) == ["+   - nas://home-box/a.md"]
    after = set_field(SKETCH, "supersedes", ["mem_1xa9", "mem_2bbb"])
    assert changes(SKETCH, after) == ["- supersedes: [mem_1xa9]", "+ supersedes: [mem_1xa9, mem_2bbb]"]


def _sources(data: bytes) -> list[object]:
    sources = read_fields(split(data))[0]["sources"]
    assert isinstance(sources, list)
    return sources


@pytest.mark.parametrize(
    ("data", "key", "value", "expected"),
    [
        (b"", "a", "x", b"---\na: x\n---\n"),
        (b"hello", "a", "x", b"---\na: x\n---\nhello"),
        (b"\xef\xbb\xbfa\r\nb", "a", "x", b"\xef\xbb\xbf---\r\na: x\r\n---\r\na\r\nb"),
        (b"---\n---\n", "a", "x", b"---\na: x\n---\n"),
        (b"---\n---", "a", "x", b"---\na: x\n---"),
        (b"---\n# c\n---\n", "a", "x", b"---\n# c\na: x\n---\n"),
        (b"---\n{a: b} # c\n---\n", "c", "d", b"---\n{a: b, c: d} # c\n---\n"),
        (b"---\n{}\n---\n", "c", "d", b"---\n{c: d}\n---\n"),
        (b"---\n{a: b, c: d}\n---\n", "a", "x, y", b'---\n{a: "x, y", c: d}\n---\n'),
        (b"---\na: b: c\nd: e\n---\n", "a", "x", b"---\na: x\nd: e\n---\n"),
        (b"---\na: b: c\nd: e\n---\n", "d", "x", b"---\na: b: c\nd: x\n---\n"),
        (b"---\na: b: c\n---\n", "d", "x", b"---\na: b: c\nd: x\n---\n"),
        (b"---\na: caf\xe9 # \xff\n---\n\xff", "b", "x", b"---\na: caf\xe9 # \xff\nb: x\n---\n\xff"),
        (b"---\na: caf\xe9 # \xff\n---\n\xff", "a", "x", b"---\na: x # \xff\n---\n\xff"),
        (b"---\ntext between rules\n---\n", "a", "x", b"---\na: x\n---\n---\ntext between rules\n---\n"),
        (b"---\nnever: closed\n", "a", "x", b"---\na: x\n---\n---\nnever: closed\n"),
        (b"---\na: 1\na: 2\n---\n", "a", 3, b"---\na: 3\na: 2\n---\n"),
        (b"---\n'a': 1\n\"b\" : 2\n---\n", "b", 3, b"---\n'a': 1\n\"b\" : 3\n---\n"),
        (b"---\na:\n  one line below\nb: 1\n---\n", "a", 3, b"---\na: 3\nb: 1\n---\n"),
        (b"---\na: [x,\n  y] # c\nb: 1\n---\n", "a", ["z"], b"---\na: [z] # c\nb: 1\n---\n"),
        (b"---\na:\t1\n---\n", "a", 2, b"---\na:\t2\n---\n"),
        (b"---\na: 1\n\n# about b\nb: 2\n---\n", "a", ["x"], b"---\na: [x]\n\n# about b\nb: 2\n---\n"),
        (b"---\na: !\n- z\nb: 1\n---\n", "a", "x", b"---\na: x\nb: 1\n---\n"),
        (b"---\na: !t # c\n  - z # d\n---\n", "a", ["z", "w"], b"---\na: !t # c\n  - z # d\n  - w\n---\n"),
        (b"---\na: !t # c\n  k: 1\nb: 2\n---\n", "a", None, b"---\na: null # c\nb: 2\n---\n"),
        (b"---\na:\n  - x\n\n# about b\nb: 2\n---\n", "a", ["z"], b"---\na:\n  - z\n\n# about b\nb: 2\n---\n"),
    ],
)
def test_odd_files(data: bytes, key: str, value: object, expected: bytes) -> None:
    assert set_field(data, key, value) == expected


@pytest.mark.parametrize("head", ["~\n", "null\n", "{{date}}\n", "'\n", ":\n", "\t\n"])
def test_front_matter_that_allows_no_change_by_lines_is_refused(head: str) -> None:
    with pytest.raises(InvalidNote) as caught:
        set_field(in_file(head), "a", ["b: c\x01"])
    assert caught.value.remedy


def test_a_list_that_others_refer_to_is_not_changed() -> None:
    """With its anchor gone the alias would lead nowhere; with other entries the other field would change too."""
    for value in ("x", ["z", "y"]):
        with pytest.raises(InvalidNote):
            set_field(in_file("a: &q\n- z\nb: *q\n"), "a", value)


new_values = (
    st.none() | st.booleans() | st.integers(0, 99) | st.text(max_size=8) | st.lists(st.text(max_size=5), max_size=3)
)


@settings(deadline=None, max_examples=250)
@given(st.builds(in_file, heads, st.text(), st.sampled_from(["\n", "\r\n"])) | files, keys, new_values)
def test_the_field_changes_and_no_other(data: bytes, key: str, value: object) -> None:
    before, _ = read_fields(split(data))
    try:
        after = set_field(data, key, value)
    except InvalidNote:
        return
    fields, _ = read_fields(split(after))
    assert fields[key] == value
    assert {k: v for k, v in fields.items() if k != key} == {k: v for k, v in before.items() if k != key}
    assert split(after).body.endswith(split(data).body)


@settings(deadline=None, max_examples=300)
@given(tame_heads, keys, new_values, st.sampled_from(["\n", "\r\n"]))
@example("a: x # c\n", "a", ["y"], "\n")
@example("a: !\n- z\n", "a", "x", "\n")
@example("a: !\n- z\n", "a", ["z", "y"], "\r\n")
def test_changing_one_field_changes_one_line(head: str, key: str, value: object, newline: str) -> None:
    data = in_file(head, newline=newline)
    head = head_text(split(data).head or b"")
    reading = yamlread.parse(without_surrogates(head))
    assume(reading.root in ("block", "empty"))
    span = next((span for span in reading.spans if span.key == key), None)
    after = set_field(data, key, value)
    old, new = data.decode().split(newline), after.decode().split(newline)
    if span is None:
        added = [i for i, line in enumerate(new) if new[:i] + new[i + 1 :] == old and line.startswith(key)]
        assert added, (old, new)
    elif "\n" not in head[span.key_end : span.value_end]:
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) <= 1
    elif span.block and isinstance(span.value, list) and isinstance(value, list) and value:
        kept = difflib.SequenceMatcher(None, old, new, autojunk=False)
        outside = head[: span.value_start].count("\n") + 1
        assert old[:outside] == new[:outside]
        assert kept.get_matching_blocks()[-2].b + kept.get_matching_blocks()[-2].size == len(new)


def test_changing_one_field_changes_one_line_of_a_real_vault() -> None:
    changed = 0
    for file in vault_files():
        data = file.read_bytes()
        before, odd = read_fields(split(data))
        after = set_field(data, "reviewed", True)
        lines = changes(data, after)
        if split(data).head is None:
            assert lines == ["+ ---", "+ reviewed: true", "+ ---"]
        else:
            assert lines == ["+ reviewed: true"]
        assert set_field(after, "reviewed", False) == after.replace(b"reviewed: true", b"reviewed: false", 1)
        for key, value in before.items():
            if odd or isinstance(value, dict):
                continue
            new: object = [*value, "one more"] if isinstance(value, list) else "something: else"
            lines = changes(data, set_field(data, key, new))
            assert len([line for line in lines if line[0] == "+"]) == 1
            assert len([line for line in lines if line[0] == "-"]) <= 1
            changed += 1
    assert changed > 200


@settings(deadline=None)
@given(values)
def test_any_value_that_front_matter_holds_can_be_set(value: object) -> None:
    after = set_field(SKETCH, "subject", value)
    assert read_fields(split(after))[0]["subject"] == value
    assert set_field(after, "subject", "customer/acme") == SKETCH
