"""Which of the letters that rules cannot do without stand in a text: worked out once a word, and remembered.

A hundred hints are asked of every text. None reaches over white space (of one that does, its longest part is
asked), so what a word holds is known after the first time, and a text is its words. A hint that is said to be there may
be missing after all, never the other way round: whoever asks looks for it himself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Any

from memoranda.notes.lazyre import lazy
from memoranda.trust.numbers import may_be_account, may_be_card, shape
from memoranda.values import dataclass

_MOST_WORDS = 50_000  # kept in memory, some 10 MB; then all are forgotten
TOKEN = 20  # characters; no token of a known form is shorter
# Bits that are no hints: what may lie in or begin in a word, and how long one is at least.
CARD, IBAN, DIGIT, OF_12, OF_20, OF_24, MIXED = 1, 2, 4, 8, 16, 32, 64
_FIRST = 7
_HEAD = 3
_DIGIT = lazy(r"\d")
_LONG = lazy(r"\S{12,}")
_AS_RUNS = bytes(ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256))
Hit = tuple[str, int, int]  # kind, start, end
Heads = Set[bytes]  # how runs of letters and digits begin: three of each, in lower case, or all of a shorter one
_NO_HEADS: Heads = frozenset()


def heads_of(low: str) -> Heads:
    """The heads of all runs in a text in lower case."""
    return {run[:_HEAD] for run in low.encode("utf-8", "replace").translate(_AS_RUNS).split()}


def head(hint: str, *, ends: bool = False) -> bytes:
    """The head of a run that begins as the hint does; `ends`: nothing comes after it."""
    run = hint.lower().encode().translate(_AS_RUNS).partition(b" ")[0][:_HEAD]
    if not run or (len(run) == len(hint) < _HEAD and not ends):
        raise ValueError(f"a hint must have {_HEAD} letters or say how the run ends: {hint!r}")
    return run


@dataclass(frozen=True, slots=True)
class Group:
    """Hints that are asked together: `mask` has the bits of all, `each` the bit and the letters of each, in order."""

    mask: int
    each: tuple[tuple[int, str], ...]

    def held(self, held: int) -> Iterator[int]:
        """The numbers of those hints whose bits are held: of thirty few are."""
        first = self.each[0][0]
        bits = (held & self.mask) // first
        while bits:
            bit = bits & -bits
            yield bit.bit_length() - 1
            bits ^= bit


class _Known(dict[str, int]):
    """word -> the bits of the hints in it."""

    def __init__(self) -> None:
        self._count = _FIRST
        self._hints: dict[str, list[tuple[str, int]]] = {}  # by their first two letters
        self._beginnings: dict[bytes, list[tuple[str, int]]] = {}  # by their heads, those that begin a word
        self._anywhere: list[tuple[str, int]] = []
        self._whole: tuple[re.Pattern[str], dict[str, list[tuple[str, int]]]] | None = None  # see `of_text`

    def group(self, hints: Sequence[str], begin: bool | Collection[str]) -> Group:
        each = []
        for hint in hints:
            bit = 1 << self._count
            self._count += 1
            part = max(hint.split(), key=len)
            self._hints.setdefault(part[:2], []).append((part, bit))
            if begin is True or (begin and hint in begin):
                self._beginnings.setdefault(head(part, ends=f"{part} " in hint), []).append((part, bit))
            else:
                self._anywhere.append((part, bit))
            each.append((bit, hint))
        self._whole = None
        self.clear()
        return Group(sum(bit for bit, _ in each), tuple(each))

    def __missing__(self, word: str) -> int:
        low, bits = word.lower(), 0
        for at in range(len(low) - 1):
            found = self._hints.get(low[at : at + 2])
            if found is not None:
                for hint, bit in found:
                    if low.startswith(hint, at):
                        bits |= bit
        if not word.isalpha():
            bits |= _numbers(word)
        if len(word) >= 12:
            bits |= OF_12 | (MIXED if bits & DIGIT else 0)
        if len(self) >= _MOST_WORDS:
            self.clear()
        self[word] = bits
        return bits

    def of_long(self, low: str, heads: Heads) -> int:
        """The bits of the hints in long words, in lower case: they hardly ever come again, so all are asked at once."""
        bits = 0
        for hint, bit in self._anywhere:
            if hint in low:
                bits |= bit
        for begun in self._beginnings.keys() & heads:
            for hint, bit in self._beginnings[begun]:
                if hint in low:
                    bits |= bit
        return bits

    def of_text(self, low: str) -> int:
        """The bits of the hints in a whole text in lower case, by one pattern of all."""
        if self._whole is None:
            hints = [item for items in self._hints.values() for item in items]
            pattern = _pattern([hint for hint, _ in hints])
            # Of hints that lie in each other or overlap only one is matched: it leads to all that may be there.
            near = {
                hint: [(other, bit) for other, bit in hints if _may_overlap(hint, other)]
                for hint in pattern.findall(" ".join(hint for hint, _ in hints))
            }
            self._whole = pattern, near
        pattern, near = self._whole
        bits = 0
        for found in set(pattern.findall(low)):
            for hint, bit in near[found]:
                if hint in low:
                    bits |= bit
        return bits


def _pattern(hints: Iterable[str]) -> re.Pattern[str]:
    """One that finds where a hint begins (of several the shortest), letter by letter: no alternative is tried twice."""
    tree: dict[str, Any] = {}
    for hint in hints:
        at = tree
        for char in hint:
            at = at.setdefault(char, {})
        at[""] = {}

    def written(tree: dict[str, Any]) -> str:
        if "" in tree:
            return ""
        parts = [re.escape(char) + written(after) for char, after in sorted(tree.items())]
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"

    return re.compile(written(tree))


def _may_overlap(hint: str, other: str) -> bool:
    """Whether `other` can begin where `hint` does or inside it."""
    return any(hint.startswith(other, at) or other.startswith(hint[at:]) for at in range(len(hint)))


def _numbers(text: str) -> int:
    shaped = shape(text)
    if b"0" not in shaped:
        return DIGIT if not text.isascii() and _DIGIT.search(text) else 0
    return DIGIT | (CARD if may_be_card(shaped) else 0) | (IBAN if may_be_account(shaped) else 0)


_known = _Known()


def anywhere(*hints: str, beginning: Collection[str] = ()) -> Group:
    """Hints that are looked for in the text in lower case; some of them only as `beginning` does."""
    return _known.group(hints, begin=beginning)


def beginning(*hints: str) -> Group:
    """Hints that are looked for in the text in lower case where no letter or digit is before them (see `starts`)."""
    return _known.group(hints, begin=True)


def held_in(words: Sequence[str]) -> tuple[int, Heads]:
    """The bits of what stands in these words, which are all of a text; and the heads of its long words."""
    held, heads = 0, _NO_HEADS
    long = [word for word in words if len(word) >= TOKEN]
    if long:
        held, heads = _of_long(" ".join(long), long)
        words = [word for word in words if len(word) < TOKEN]
    for bits in set(map(_known.__getitem__, words)):
        held |= bits
    return held, heads


def _of_long(text: str, words: list[str]) -> tuple[int, Heads]:
    low = text.lower()
    heads = heads_of(low)
    held = _known.of_long(low, heads) | OF_12 | OF_20 | _numbers(text)
    return held | (OF_24 if max(map(len, words)) >= 24 else 0), heads


def _has_digit(text: str) -> bool:
    if text.isascii():
        data = text.encode()
        return len(data.translate(None, b"0123456789")) < len(data)  # a fifth of what the pattern takes
    return _DIGIT.search(text) is not None


def held_by(text: str) -> tuple[int, Heads]:
    """What a text holds that comes alone, hints and heads as in `held_in`, numbers for the whole.

    Takes as long as its words that are known already, and touches a tenth of the memory: between two calls of a server
    all of that has left the processor's caches, and the words of eighty others cost 60 µs to fetch.
    """
    numbers = DIGIT | CARD | IBAN if _has_digit(text) else 0
    long, low = _LONG.findall(text), text.lower()
    tokens = [word for word in long if len(word) >= TOKEN]
    if not tokens:
        held, heads = _known.of_text(low), _NO_HEADS
    elif sum(map(len, tokens)) * 2 < len(text):
        held, heads = _known.of_text(low) | OF_20, heads_of(" ".join(tokens).lower())
    else:
        heads = heads_of(low)
        held = _known.of_long(low, heads) | OF_20
    if long:
        held |= OF_12
        if tokens and max(map(len, tokens)) >= 24:
            held |= OF_24
        if numbers and any(map(_DIGIT.search, long)):
            held |= MIXED
    return held | numbers, heads


def is_within(start: int, end: int, hits: Sequence[Hit]) -> bool:
    """Whether these characters lie in one of the hits."""
    for _, first, last in hits:  # noqa: SIM110 - a generator takes twice as long
        if first <= start and end <= last:
            return True
    return False


def starts(low: str, held: int, group: Group) -> Iterable[int]:
    """Where one of these hints begins, not inside another word. Much faster than a pattern of alternatives."""
    return _starts(low, held, group) if held & group.mask else ()


def _starts(low: str, held: int, group: Group) -> Iterator[int]:
    for number in group.held(held):
        word = group.each[number][1]
        at = low.find(word)
        while at >= 0:
            if at == 0 or not low[at - 1].isalnum():
                yield at
            at = low.find(word, at + len(word))
