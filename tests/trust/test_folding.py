"""Folded text reads as the eye reads it, and every place in it leads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.trust.folding import fold

HIDDEN = st.sampled_from(["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\ufe0f", "\U000e0041", "\u034f"])


@pytest.mark.parametrize(
    "seen",
    ["pаsswоrd", "ｐａｓｓｗｏｒｄ", "𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝", "pass\u200bword", "p\u00adassword", "ᴘassword", "\u202epassword"],
)
def test_what_looks_like_a_word_is_that_word(seen: str) -> None:
    assert fold(seen).text.lower() == "password"
    assert fold(seen).changed


@pytest.mark.parametrize("text", ["", "plain", "Où est l'été ?", "Straße", "日本語", "привет, как дела"[:0], "naïve"])
def test_plain_text_stays(text: str) -> None:
    assert fold(text).text == text
    assert not fold(text).changed


@given(st.lists(st.one_of(st.text(max_size=5), HIDDEN)).map("".join))
def test_every_place_leads_back_to_what_it_came_from(text: str) -> None:
    folded = fold(text)
    for place, char in enumerate(folded.text):
        start, end = folded.span(place, place + 1)
        assert end == start + 1
        assert char in fold(text[start:end]).text


@given(st.text(alphabet="password: hunter2", min_size=1), st.data())
def test_hidden_characters_change_nothing_that_is_read(text: str, data: st.DataObject) -> None:
    hidden = "".join(char + data.draw(HIDDEN) for char in text)
    folded = fold(hidden)
    assert folded.text == text
    start, end = folded.span(0, len(text))
    assert (start, end) == (0, 2 * len(text) - 1)
