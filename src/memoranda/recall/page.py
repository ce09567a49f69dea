"""The page of an answer: which items are shown, in which form, and past the injection filter.

The filter sees what would be returned and nothing else: the text in the form that fits the budget, and the words
beside it. What it blocks is left out before the next one's place is filled, so that a flood of such texts empties no
page; what it doubts stays, with the reasons beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memoranda.recall.items import Found
from memoranda.recall.standing import keep_reviewed
from memoranda.recall.view import Fitted, Piece, fit
from memoranda.trust.injection import Verdict, judge_all
from memoranda.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Placed:
    """One item that is shown: its place among the candidates, the form that fits, and what the filter says of that."""

    at: int
    form: Fitted
    verdict: Verdict


_MOST_JUDGED = 4096
_judged: dict[str, Verdict] = {}  # the same notes answer again and again


def verdict_on(text: str) -> Verdict:
    """What the injection filter says of a text."""
    return verdicts_on([text])[0]


def verdicts_on(texts: Sequence[str]) -> list[Verdict]:
    """What the injection filter says of each of these texts."""
    held = {text: known for text in texts if (known := _judged.get(text)) is not None}
    unknown = [text for text in dict.fromkeys(texts) if text not in held]
    if unknown:
        found = dict(zip(unknown, judge_all(unknown), strict=True))
        if len(_judged) + len(found) > _MOST_JUDGED:
            _judged.clear()
        _judged.update(found)
        held |= found
    return [held[text] for text in texts]


def fill(
    ranked: Sequence[T],
    beside: Sequence[T],
    k: int,
    budget: int,
    *,
    of: Callable[[T], Found],
    fold: Callable[[str], set[str]],
    blocks: bool = True,
) -> tuple[list[Placed], int]:
    """The page of at most `k` items and `budget` tokens, and how many candidates were blocked on the way.

    Candidates are `ranked` and then `beside`, as in `keep_reviewed`; `Placed.at` counts through both. Without `blocks`
    (a person reads it) everything keeps its place.
    """
    candidates = [*ranked, *beside]
    numbers = range(len(candidates))
    out: set[int] = set()
    while True:
        first = [n for n in numbers[: len(ranked)] if n not in out]
        last = [n for n in numbers[len(ranked) :] if n not in out]
        chosen = keep_reviewed(first, last, k, lambda n: of(candidates[n]))
        items = [of(candidates[n]) for n in chosen]
        fitted = fit([Piece(item.text, item.words, item.first, item.kind) for item in items], budget, fold)
        verdicts = verdicts_on([_words_of(item, form) for item, form in zip(items, fitted, strict=False)])
        shown = [Placed(*given) for given in zip(chosen, fitted, verdicts, strict=False)]
        fresh = {placed.at for placed in shown if placed.verdict.level == "blocked"} if blocks else set()
        if not fresh:
            return shown, len(out)
        out |= fresh


def _words_of(item: Found, form: Fitted) -> str:
    """Everything of an item that is somebody's own words. Pointers of ours are none."""
    beside = (item.subject, item.speaker, *(source for source in item.sources if not source.startswith("nas://")))
    return "\n".join(filter(None, (form.text, *beside)))
