"""What says the same is known again, and what says something else is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.notes.sameness import same_text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Acme renewed.", "acme   RENEWED"), ("Café – 24", "cafe\u0301 24"), ("full width", "ｆｕｌｌ　ｗｉｄｔｈ"),
        ("hid\u200bden", "hidden"), ("- *one*\n- two!", "one two"), ("Straße", "STRASSE"), (" ?! ", "?!"),
        ("hid\u034fd\ufe0fe\u3164n", "hidden"), ("_one_ and __two__", "one and two"),
        ("\u0440\u0430ssw\u043erd", "password"), ("\u041d\u0415L\u0420", "help"), ("Зима и лето", "ЗИМА И ЛЕТО"),
    ],
)  # fmt: skip
def test_the_same(one: str, other: str) -> None:
    assert same_text(one) == same_text(other)


@pytest.mark.parametrize(
    ("one", "other"), [("24 months", "36 months"), ("not now", "now"), ("a b", "b a"), ("", "a"), ("?", "!")]
)
def test_something_else(one: str, other: str) -> None:
    assert same_text(one) != same_text(other)


@given(st.text())
def test_comparing_twice_changes_nothing(text: str) -> None:
    assert same_text(same_text(text)) == same_text(text)
