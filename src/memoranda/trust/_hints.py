"""Which of the letters that rules cannot do without stand in a text: worked out once a word, and remembered.

Some two hundred hints are asked of every text. None reaches over white space (of one that does, its longest part is
asked), so what a word holds is known after the first time, and a text is its words. A hint that is said to be there may
be missing after all, never the other way round: whoever asks looks for it himself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.trust.numbers import may_be_account, may_be_card
from memoranda.values import dataclass

_MOST_WORDS = 50_000  # kept in memory, some 10 MB; then all are forgotten
TOKEN = 20  # characters; no token of a known form is shorter
_LONGEST = 40  # characters of a word that is kept
# Bits that are no hints: what may lie in or begin in a word, and how long one is at least.
CARD, IBAN, DIGIT, OF_12, OF_20, OF_24 = 1, 2, 4, 8, 16, 32
_FIRST = 6


@dataclass(frozen=True, slots=True)
class Group:
    """Hints that are asked together: `mask` has the bits of all, `each` the bit and the letters of each."""

    mask: int
    each: tuple[tuple[int, str], ...]


class _Known(dict[str, int]):
    """word -> the bits of the hints in it."""

    def __init__(self) -> None:
        self._count = _FIRST
        self._lower: dict[str, list[tuple[str, int]]] = {}  # by their first two letters
        self._exact: dict[str, list[tuple[str, int]]] = {}
        self._letters: list[tuple[str, int]] = []

    def group(self, hints: Sequence[str], *, exact: bool = False) -> Group:
        each = []
        for hint in hints:
            bit = 1 << self._count
            self._count += 1
            part = max(hint.split(), key=len)
            if len(part) == 1 and exact:
                self._letters.append((part, bit))
            else:
                (self._exact if exact else self._lower).setdefault(part[:2], []).append((part, bit))
            each.append((bit, hint))
        self.clear()
        return Group(sum(bit for bit, _ in each), tuple(each))

    def __missing__(self, word: str) -> int:
        bits = self._of(word.lower(), self._lower)
        if not word.isalpha():
            bits |= (CARD if may_be_card(word) else 0) | (IBAN if may_be_account(word) else 0)
            bits |= DIGIT if any(map(str.isdigit, word)) else 0
        if len(word) >= 12:
            bits |= OF_12 | (OF_20 if len(word) >= TOKEN else 0) | (OF_24 if len(word) >= 24 else 0)
        if len(word) >= TOKEN:
            bits |= self._of(word, self._exact)
            for letter, bit in self._letters:
                bits |= bit if letter in word else 0
        if len(word) <= _LONGEST:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = bits
        return bits

    def _of(self, word: str, hints: dict[str, list[tuple[str, int]]]) -> int:
        bits = 0
        for at in range(len(word) - 1):
            found = hints.get(word[at : at + 2])
            if found is not None:
                for hint, bit in found:
                    if word.startswith(hint, at):
                        bits |= bit
        return bits


_known = _Known()


def lower_case(*hints: str) -> Group:
    """Hints that are looked for in the text in lower case."""
    return _known.group(hints)


def in_tokens(*hints: str) -> Group:
    """Hints that are looked for in words of at least 20 characters, as they stand."""
    return _known.group(hints, exact=True)


def held_in(words: Iterable[str]) -> int:
    """The bits of what stands in these words, which are all of a text."""
    held = 0
    for bits in set(map(_known.__getitem__, words)):
        held |= bits
    return held


def starts(low: str, held: int, group: Group) -> Iterable[int]:
    """Where one of these hints begins, not inside another word. Much faster than a pattern of alternatives."""
    if not held & group.mask:
        return
    for bit, word in group.each:
        if not held & bit:
            continue
        at = low.find(word)
        while at >= 0:
            if at == 0 or not low[at - 1].isalnum():
                yield at
            at = low.find(word, at + len(word))
