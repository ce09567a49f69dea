"""A question of time alone: "what happened last week?", "la semaine dernière". Its answer is what lies in that time.

No word of it tells one thing from another, so what was remembered on purpose comes before what was said, and the later
before the earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from memoranda.index.catalog import Catalog
from memoranda.index.lexical import Accept, Scores
from memoranda.index.within import entries_within, notes_within
from memoranda.recall.facts import Facts, Known, Ranked
from memoranda.recall.question import Days, Question
from memoranda.recall.ranking import SCALE

# Below what words give, so that a text with the words of a date comes before what merely lies in it.
NOTES = {"day": 7.0, "late": 1.0, "superseded": -5.0, "ended": -2.5}
PASSAGES = {"day": 4.8, "late": 1.0}
_PART = 200  # documents that are looked at at once
_MOST = 20_000  # of which this many, when filters let few of them through


def of_that_time(
    question: Question, scores: Scores, catalog: Catalog, facts: Facts, n: int, accept: Accept, *, former: bool
) -> list[Ranked]:
    """The best n of what lies in the time that the question names and passes the facets of `scores`; ties by key."""
    stretches = sorted({*question.days, *question.spans}, reverse=True)

    def notes(days: Days) -> Iterator[str]:
        return notes_within(catalog.db, days.start, days.end, former=former)

    def entries(days: Days) -> Iterator[str]:
        return entries_within(catalog.db, days.start, days.end)

    judged: list[Ranked] = []
    ways: tuple[tuple[Callable[[Days], Iterator[str]], dict[str, float]], ...] = ((notes, NOTES), (entries, PASSAGES))
    for way, weights in ways:
        keys = (key for days in stretches for key in way(days))
        for fact in facts.facts(_first(keys, scores, accept, n)).values():
            signals = _signals(fact, stretches)
            total = sum(weights[name] * value for name, value in signals.items())
            judged.append(Ranked(fact.key, round(total / SCALE, 6), signals, weights, {"lexical": None}))
    return sorted(judged, key=lambda item: (-item.score, item.key))[:n]


def _first(keys: Iterable[str], scores: Scores, accept: Accept, n: int) -> Sequence[str]:
    """The first n that pass the facets and are accepted."""
    found: dict[str, None] = {}
    some = islice(keys, _MOST)
    while len(found) < n and (part := list(dict.fromkeys(islice(some, _PART)))):
        passing = [key for key, held in scores.held(part).items() if held.passes]
        accepted = accept(passing) if passing else set()
        found.update((key, None) for key in passing if key in accepted)
    return list(found)[:n]


def _signals(fact: Known, stretches: Sequence[Days]) -> dict[str, float]:
    at = fact.at_ms or 0
    first, last = min(days.start for days in stretches), max(days.end for days in stretches)
    signals = {"day": 1.0, "late": min(max((at - first) / (last - first), 0.0), 1.0)}
    if fact.state in ("superseded", "ended"):
        signals[fact.state] = 1.0
    return signals
