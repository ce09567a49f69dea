"""What is asked of words once must not lose anything that the whole text would show."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.trust import _assignments, _formats, _places, _resources, _told
from memoranda.trust._hints import CARD, DIGIT, IBAN, OF_12, OF_20, OF_24, held_in
from memoranda.trust.numbers import cards, ibans
from tests.trust.secret_cases import HONEST, SECRET, cases

_BEGINNINGS = [
    pair
    for group in (_told._ACCOUNTS, _told._ROOTS, _told._PINS, _told._BACKUPS, _told._PHRASES, _places._HEADERS)
    for pair in group.each
]
_ANYWHERE = [
    pair for group in (_places._TOOLS, _assignments._NAMES_OF_SECRETS, _resources._HINTS) for pair in group.each
]
_TEXTS = [*cases(SECRET), *cases(HONEST)]
_PIECES = [hint for _, hint in _BEGINNINGS + _ANYWHERE] + [" ", "\n", "-", "4111 1111", "İ", "x" * 20, "é"]
texts = st.one_of(
    st.sampled_from(_TEXTS),
    st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=12), st.sampled_from(_TEXTS)), max_size=8).map(
        "".join
    ),
)


def check(text: str) -> None:
    low, held, words = text.lower(), held_in(text.split()), text.split()
    for bit, hint in _ANYWHERE:
        assert held & bit or hint not in low, hint
    for bit, hint in _BEGINNINGS:  # where no letter or digit is before it
        places = [at for at in range(len(low)) if low.startswith(hint, at)]
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


def test_cards_and_accounts_are_seen_however_they_are_grouped() -> None:
    for text in (
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "(3782 822463 10005)", "x:3782-822463-10005.",
        "GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432", "iban:DE89-3704-0044-0532-0130-00",
    ):  # fmt: skip
        assert list(cards(text)) or list(ibans(text)), text
        check(text)


def test_every_token_begins_with_the_letters_by_which_it_is_looked_for() -> None:
    """A rule whose tokens begin otherwise would never be asked."""
    rules = [rule for rules in _formats._BY_THREE.values() for rule in rules] + _formats._BY_TWO
    assert len(rules) + len(_formats._WITHIN) + len(_formats._NUMBERED) == len(_formats._TOKENS)
    for kind, letters, pattern in rules:
        assert letters[0].isalnum(), kind
        written = pattern._made_from[0].removeprefix(_formats._BEGIN + "(?:").replace("\\", "")
        assert written.startswith(letters), kind
