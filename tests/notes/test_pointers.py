"""Pointers: their written form and back."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidPath, InvalidPointer
from memoranda.notes.paths import check_path
from memoranda.notes.pointers import Pointer, parse_pointer

SKETCH = "nas://home-box/agents/cleo/journal/2026-10-02.md@9f2c1de#L12-L18"


def test_the_pointer_of_the_sketch() -> None:
    pointer = parse_pointer(SKETCH)
    assert pointer == Pointer("home-box", "agents/cleo/journal/2026-10-02.md", "9f2c1de", 12, 18)
    assert str(pointer) == SKETCH


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("nas://h/a.md", Pointer("h", "a.md")),
        ("nas://h/a.md#L3", Pointer("h", "a.md", None, 3, 3)),
        ("nas://h/a.md#L3-9", Pointer("h", "a.md", None, 3, 9)),
        ("nas://h/a.md@ABCDEF", Pointer("h", "a.md", "abcdef")),
        ("nas://h/a%20b%40c%23d%25.md", Pointer("h", "a b@c#d%.md")),
        ("nas://h/a b?.md", Pointer("h", "a b?.md")),
        ("nas://h/r%C3%A9union.md", Pointer("h", "réunion.md")),
        ("nas://h/réunion.md", Pointer("h", "réunion.md")),
        ("nas://h/2026-10-02~b2.2.md", Pointer("h", "2026-10-02~b2.2.md")),
    ],
)
def test_forms(text: str, pointer: Pointer) -> None:
    assert parse_pointer(text) == pointer


@pytest.mark.parametrize(
    "text",
    [
        *("", "nas:", "nas://", "nas:///a.md", "nas://h", "nas://h/", "NAS://h/a", "https://h/a", "file:///etc/passwd"),
        *("nas://h/../a", "nas://h/a/../../b", "nas://h/%2e%2e/b", "nas://h//etc", "nas://h/%2Fetc", "nas://h/a%00b"),
        *("nas://h/.git/config", "nas://h/.GIT/config", "nas://../a", "nas://./a", "nas://h%2Fx/a", "nas://h/a%5Cb"),
        *("nas://h/a@", "nas://h/a@main", "nas://h/a@abc", "nas://h/a@" + "a" * 65, "nas://h/a#", "nas://h/a#x"),
        *("nas://h/a#L0", "nas://h/a#L0-L4", "nas://h/a#L5-L4", "nas://h/a#L1-", "nas://h/a#L1-L2-L3", "nas://h/a#L"),
        *(
            "nas://h/a#L9999999999",
            "nas://h/a#l1",
            "nas://h/a%zz",
            "nas://h/a%",
            "nas://h/a#L१",
            "nas://h/a@12345#L1@2",
        ),
    ],
)
def test_other_texts_are_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(InvalidPointer) as caught:
        parse_pointer(text)
    assert caught.value.why
    assert "nas://" in caught.value.remedy


def test_an_impossible_pointer_cannot_be_made() -> None:
    for args in (("", "a"), ("h", "../a"), ("h", "a", "main"), ("h", "a", None, 1), ("h", "a", None, None, 1)):
        with pytest.raises(InvalidPointer):
            Pointer(*args)  # type: ignore[arg-type]


def test_a_file_name_that_is_not_utf8_can_be_pointed_at() -> None:
    pointer = Pointer("h", os.fsdecode(b"a/\xff.md"))
    assert str(pointer) == "nas://h/a/%FF.md"
    assert parse_pointer(str(pointer)) == pointer


@settings(deadline=None, max_examples=300)
@given(
    st.text(min_size=1, max_size=8),
    st.text(min_size=1, max_size=30),
    st.none() | st.from_regex(r"[0-9a-f]{4,64}", fullmatch=True),
    st.none() | st.tuples(st.integers(1, 10**6), st.integers(0, 10**3)),
)
def test_every_pointer_is_a_uri_that_reads_back(
    home: str, path: str, rev: str | None, at: tuple[int, int] | None
) -> None:
    try:
        check_path(path)
        pointer = Pointer(home, path, rev, *((at[0], at[0] + at[1]) if at else (None, None)))
    except (InvalidPath, InvalidPointer):
        return
    text = str(pointer)
    assert parse_pointer(text) == pointer
    assert text.isascii() and text.isprintable() and " " not in text


@settings(deadline=None, max_examples=300)
@given(st.text().map(lambda x: "nas://" + x) | st.text() | st.text().map(lambda x: "nas://h/" + x))
def test_any_text_is_a_pointer_or_refused_by_name(text: str) -> None:
    try:
        pointer = parse_pointer(text)
    except InvalidPointer:
        return
    assert parse_pointer(str(pointer)) == pointer
