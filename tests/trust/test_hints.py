"""What is asked of words once must not lose anything that the whole text would show."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.trust import _assignments, _formats, _places, _told
from memoranda.trust._hints import CARD, DIGIT, IBAN, OF_12, OF_20, OF_24, TOKEN, held_in
from memoranda.trust.numbers import cards, ibans
from tests.trust.secret_cases import HONEST, SECRET, cases

_LOW = [
    pair
    for group in (
        _told._ACCOUNTS, _told._ROOTS, _told._PINS, _told._BACKUPS, _told._PHRASES, _places._HEADERS, _places._TOOLS,
        _assignments._NAMES_OF_SECRETS,
    )
    for pair in group.each
]  # fmt: skip
_TEXTS = [*cases(SECRET), *cases(HONEST)]
_PIECES = [hint for _, hint in _LOW] + [hint for _, hint in _formats._HINTS.each] + [" ", "\n", "-", "4111 1111", "İ"]
texts = st.one_of(
    st.sampled_from(_TEXTS),
    st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=12), st.sampled_from(_TEXTS)), max_size=8).map(
        "".join
    ),
)


def check(text: str) -> None:
    low, held, words = text.lower(), held_in(text.split()), text.split()
    for bit, hint in _LOW:
        assert held & bit or hint not in low, hint
    for bit, hint in _formats._HINTS.each:
        assert held & bit or not any(hint in word for word in words if len(word) >= TOKEN), hint
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


def test_cards_and_accounts_are_seen_however_they_are_grouped() -> None:
    for text in (
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "(3782 822463 10005)", "x:3782-822463-10005.",
        "GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432", "iban:DE89-3704-0044-0532-0130-00",
    ):  # fmt: skip
        assert list(cards(text)) or list(ibans(text)), text
        check(text)
