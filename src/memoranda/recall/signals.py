"""What notes and passages share in ranking: the floor, the signals of time and kind, the scale."""

from __future__ import annotations

from memoranda.index.analysis import fold
from memoranda.index.lexical import Scores
from memoranda.index.traits import NAMES, NUMBER, TIME, names_of
from memoranda.recall.question import Question

Signals = dict[str, float]

FLOOR_SHARE = 0.25
FLOOR_RARE = 10


class Floor:
    """What must be met to be shown: the words carry a quarter of the question's idf, or one of them is in at most
    ten documents. What was said on a day that the question names has the words of that day, written or not."""

    def __init__(self, question: Question, scores: Scores) -> None:
        self._question = question
        self._scores = scores
        self._known = {0: False}
        groups = scores.query.groups
        self._rare = sum(1 << i for i, df in enumerate(scores.df) if df <= FLOOR_RARE and not spelt(groups[i].word))

    def passes(self, mask: int, at_ms: int | None) -> bool:
        found = self._known.get(mask)
        if found is None:
            found = self._known[mask] = bool(mask & self._rare) or self._scores.share(mask) >= FLOOR_SHARE
        question = self._question
        if found or not (question.dated and mask and at_ms is not None):
            return found
        if not (question.span_fits(at_ms) or question.closeness(at_ms)):
            return False
        return self._scores.share(mask | question.dated) >= FLOOR_SHARE


def spelt(word: str) -> bool:
    """Whether it is a pair of letters out of a run without spaces (Thai, Lao, Burmese, Khmer), which is no word."""
    return len(word) <= 2 and any("\u0e00" <= c <= "\u0eff" or "\u1000" <= c <= "\u17ff" for c in word)


def timely(signals: Signals, question: Question, at_ms: int | None, traits: int) -> None:
    """Adds the signals that time and the kind of answer asked for give."""
    if at_ms is not None and question.has_time:
        signals["month"] = question.span_fits(at_ms)
        signals["day"] = question.closeness(at_ms)
    if question.when and traits & TIME:
        signals["when"] = 1.0
    if question.amount and traits & NUMBER:
        signals["amount"] = 1.0
    if question.name and traits & NAMES:
        signals["names"] = float(names_of(traits))


def plain(text: str) -> str:
    """The words of a text, folded, with single spaces."""
    return " ".join("".join([c if c.isalnum() else " " for c in fold(text)]).split())
