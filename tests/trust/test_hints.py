"""What is asked of words once must not lose anything that the whole text would show."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.trust import _formats, _hints
from memoranda.trust._hints import CARD, DIGIT, IBAN, OF_12, OF_20, OF_24, TOKEN, heads_of, held_by, held_in
from memoranda.trust.numbers import cards, ibans
from memoranda.trust.secrets import find_secrets
from tests.trust.secret_cases import HONEST, SECRET, cases

# Those of all rules, which asked for them when they were imported.
_BEGINNINGS = [(bit, hint) for hints in _hints._known._beginnings.values() for hint, bit in hints]
_ANYWHERE = [(bit, hint) for hint, bit in _hints._known._anywhere]
_TEXTS = [*cases(SECRET), *cases(HONEST)]
_PIECES = [hint for _, hint in _BEGINNINGS + _ANYWHERE] + [" ", "\n", "-", "4111 1111", "İ", "x" * 20, "é"]
texts = st.one_of(
    st.sampled_from(_TEXTS),
    st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=12), st.sampled_from(_TEXTS)), max_size=8).map(
        "".join
    ),
)


def check(text: str) -> None:
    for held, heads in (held_in(text.split()), held_by(text)):
        _check(text, held)
        assert heads >= heads_of(" ".join(word for word in text.split() if len(word) >= TOKEN).lower())


def _check(text: str, held: int) -> None:
    low, words = text.lower(), text.split()
    for bit, hint in _ANYWHERE:
        assert held & bit or hint not in low, hint
    for bit, hint in _BEGINNINGS:  # where no letter or digit is before it
        places = [at for at in range(len(low)) if low.startswith(hint, at)]
        if len(hint) < 3:  # the first of two words: nothing comes after it
            places = [at for at in places if not low[at + len(hint) : at + len(hint) + 1].isalnum()]
        assert held & bit or not any(at == 0 or not low[at - 1].isalnum() for at in places), hint
    assert held & CARD or not list(cards(text))
    assert held & IBAN or not list(ibans(text))
    assert held & DIGIT or not any(char in "0123456789" for char in text)
    for bit, size in ((OF_12, 12), (OF_20, 20), (OF_24, 24)):
        assert bool(held & bit) == any(len(word) >= size for word in words)


def test_no_case_loses_a_hint() -> None:
    for text in _TEXTS:
        check(text)
        check(text.replace(" ", "\n"))
        check(text.upper())


@given(texts)
@settings(deadline=None)
def test_a_text_holds_every_hint_that_it_shows(text: str) -> None:
    check(text)


@given(texts)
@settings(deadline=None)
def test_a_text_that_comes_alone_is_judged_like_one_of_many(text: str) -> None:
    assert find_secrets(text, alone=True) == find_secrets(text)


def test_no_case_is_judged_otherwise_when_it_comes_alone() -> None:
    for text in _TEXTS:
        assert find_secrets(text, alone=True) == find_secrets(text)


def test_cards_and_accounts_are_seen_however_they_are_grouped() -> None:
    for text in (
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "(3782 822463 10005)", "x:3782-822463-10005.",
        "GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432", "iban:DE89-3704-0044-0532-0130-00",
    ):  # fmt: skip
        assert list(cards(text)) or list(ibans(text)), text
        check(text)


@pytest.mark.parametrize("rule", _formats._TOKENS, ids=lambda rule: f"{rule[0]}-{rule[1][:8]}")
def test_every_rule_is_asked_of_what_it_finds(rule: tuple[str, str, Any]) -> None:
    """A rule whose tokens begin otherwise than it says would never be asked."""
    kind, _, pattern = rule
    written = pattern._made_from[0].removeprefix(_formats._BEGIN).removesuffix(_formats._END)

    @given(st.from_regex(re.compile(written, re.ASCII), fullmatch=True))
    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
    def found(token: str) -> None:
        for text in (token, f"It is {token}, they say.", f'x="{token}"'):
            if pattern.search(text):
                assert kind in {hit[0] for hit in _formats._all(text, heads_of(text.lower()))}

    found()
