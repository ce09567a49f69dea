"""The budgeted view: notes in full while there is room, then excerpts, then outlines, then pointers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from memoranda.notes.tokens import count_tokens
from memoranda.values import dataclass

MANY = 30  # items at most, when nobody says how many
_WORTH = 0.5  # of the best score: LoCoMo has 92.5 % of the evidence in view, without it 93.6 % and twice the items
_EXCERPT = 160  # tokens of a long text that an excerpt takes, about
EXCERPT_LINES = 2  # lines on each side of the best one
_LONG = 400  # tokens; a longer text is shown in full only when everything else has its place
_LOOKED_AT = 400_000  # characters of a text in which an excerpt is looked for
ENVELOPE = 24  # tokens that the markers and labels of one item cost


def how_many(found: Sequence[tuple[str, float]], budget: int, least: int) -> int:
    """How many of these (text, score), best first, are worth showing in `budget` tokens: at least `least`.

    Further ones as long as they score half of the best and there is room for their words, long ones as excerpts.
    """
    left, count = budget, 0
    for text, score in found[:MANY]:
        left -= min(count_tokens(text), _EXCERPT) + ENVELOPE
        if count >= least and (left < 0 or score < _WORTH * found[0][1]):
            break
        count += 1
    return max(count, least)


@dataclass(frozen=True, slots=True)
class Piece:
    """One item before it is fitted: its text and the words of the question, for excerpts. Lines count from `first`."""

    text: str
    words: frozenset[str]
    first: int
    kind: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """How an item is shown: `view` full, excerpt, outline or pointer; its text; its lines in the file; its tokens."""

    view: str
    text: str
    first: int
    last: int
    tokens: int


def fit(pieces: Sequence[Piece], budget: int, fold: Callable[[str], set[str]]) -> list[Fitted]:
    """Fits items, best first, into `budget` tokens; the sum never exceeds it. Items that fit nowhere are left out.

    A first pass gives every item the shortest useful form, a second one lengthens them in the order of their rank, so
    that the best are full and the last still point to where they are.
    """
    shown: list[Fitted] = []
    left = budget
    for piece in pieces:
        smallest = _pointer(piece)
        if smallest.tokens > left:
            break
        shown.append(smallest)
        left -= smallest.tokens
    for at, piece in enumerate(pieces[: len(shown)]):
        for form in _forms(piece, fold):
            more = form.tokens - shown[at].tokens
            if more <= left:
                shown[at] = form
                left -= more
                break
    return shown


def _forms(piece: Piece, fold: Callable[[str], set[str]]) -> Iterator[Fitted]:
    """The forms of a piece, the longest first; one that is not asked for is not made."""
    lines = piece.text.splitlines() or [""]
    full = _form("full", piece.text, piece.first, piece.first + len(lines) - 1)
    yield full
    if len(lines) > 1 or full.tokens >= _LONG:
        yield _excerpt(piece, lines, fold)
    yield _cut(piece, fold)
    yield from _outline(piece)


def _form(view: str, text: str, first: int, last: int) -> Fitted:
    return Fitted(view, text, first, last, count_tokens(text) + ENVELOPE)


def _pointer(piece: Piece) -> Fitted:
    return _form("pointer", "", piece.first, piece.first + max(1, len(piece.text.splitlines())) - 1)


def _excerpt(piece: Piece, lines: list[str], fold: Callable[[str], set[str]]) -> Fitted:
    """The lines around the one that shares most words with the question."""
    shared = [len(fold(line) & piece.words) for line in _looked_at(lines)]
    best = max(range(len(shared)), key=lambda n: (shared[n], -n))
    start, end = max(0, best - EXCERPT_LINES), min(len(lines), best + EXCERPT_LINES + 1)
    return _form("excerpt", "\n".join(lines[start:end]), piece.first + start, piece.first + end - 1)


def _looked_at(lines: Sequence[str]) -> Iterator[str]:
    """The lines of a text, of one that is very long those at its beginning: a word costs half a microsecond."""
    left = _LOOKED_AT
    for line in lines:
        yield line if len(line) <= left else line[:left]
        left -= len(line)
        if left <= 0:
            return


def _cut(piece: Piece, fold: Callable[[str], set[str]]) -> Fitted:
    """The sentence of the text that shares most words with the question."""
    best, score = ("", 0), -1
    for line, text in enumerate(_looked_at(piece.text.splitlines())):
        for sentence in re.split(r"(?<=[.!?…])\s+", text):
            shared = len(fold(sentence) & piece.words)
            if shared > score and sentence.strip():
                best, score = (sentence.strip(), line), shared
    return _form("excerpt", best[0], piece.first + best[1], piece.first + best[1])


def _outline(piece: Piece) -> list[Fitted]:
    from memoranda.notes import markdown  # here: most views need no outline

    headings = markdown.outline(piece.text)
    if not headings:
        return []
    text = "\n".join(f"{'  ' * (h.level - 1)}{h.title}" for h in headings)
    return [_form("outline", text, piece.first, piece.first + len(piece.text.splitlines()) - 1)]
