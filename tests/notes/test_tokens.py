"""The count of tokens."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.notes.tokens import count_tokens


@pytest.mark.parametrize(
    ("text", "n"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("日本語", 3), ("abé", 2)]
)
def test_examples(text: str, n: int) -> None:
    assert count_tokens(text) == n


@settings(deadline=None)
@given(st.text(st.characters()))
def test_ascii_by_four_and_each_other_one(text: str) -> None:
    ascii_count = sum(ord(ch) < 128 for ch in text)
    assert count_tokens(text) == math.ceil(ascii_count / 4) + len(text) - ascii_count
