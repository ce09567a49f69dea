"""The order of what was found: every item's own words, and what stands around them.

A note stands for itself: its BM25, how much of the question it covers, its title. A journal passage counts with what
was said around it (see `passages`). What each index and each signal gave is kept in `why` (see `explaining`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from memoranda.index.lexical import Accept, Scores
from memoranda.recall import passages
from memoranda.recall.explaining import places, why
from memoranda.recall.facts import Fact, Facts, Ranked
from memoranda.recall.likeness import LIKE, MODEL, Likeness, enough, filled
from memoranda.recall.question import Question
from memoranda.recall.signals import Floor, Signals, plain, timely

if TYPE_CHECKING:
    from memoranda.recall.structure import Structure

__all__ = ["NOTE_WEIGHTS", "PASSAGE_WEIGHTS", "SCALE", "Fact", "Facts", "Ranked", "account", "rank"]

PASSAGE_WEIGHTS = passages.WEIGHTS

# What was remembered on purpose comes before what was merely said: a note with all words of the question stands half
# above a passage with all of them whose session speaks of nothing else. The other signals are a passage's, less, since
# a note's day is when it was written or begins to hold. Held by the golden questions of examples/.
NOTE_WEIGHTS = {
    "words": 35.0,  # BM25 by its highest value, of which a text of middle length with each word once has half
    "cover": 5.0,  # the share of the question's idf; more of it cost two points in the first five of French questions
    "title": 16.0,  # its title is the question: more than any likeness, and than having been superseded
    "month": 3.5,
    "day": 7.0,
    "when": 2.0,
    "amount": 2.0,
    "names": 0.4,
    "linked": 2.0,  # with the graph: how strongly it hangs together with the best that were found, see `structure`
    "heading": 3.0,  # with the outline: the share of the question in its headings
    "superseded": -5.0,
    "ended": -2.5,
}
# By the vectors that there are. Fitted on every other French question, a model that reads sentences with
# multilingual-e5-small; for English notes there are none to fit on.
_WEIGHTS = {
    (): NOTE_WEIGHTS,
    (LIKE,): {**NOTE_WEIGHTS, "like": 9.0},
    (MODEL,): {**NOTE_WEIGHTS, "model": 30.0},
    (LIKE, MODEL): {**NOTE_WEIGHTS, "like": 3.0, "model": 40.0},
}
SCALE = 12.0  # a passage with every word of the question scores about 1, a note somewhat more

Judged = tuple[float, str, Signals, Mapping[str, float]]
"""The score of a document, its key, its signals and what they weigh."""
Places = Mapping[str, int]

_HIGHEST = 2.2  # BM25 with k1 = 1.2 stays below 2.2 times the idf
# By their own BM25. For passages 20 did as well as 200 on LoCoMo; with their neighbours some 130 are ranked.
_PASSAGES = 40
_NOTES = 24


def rank(
    question: Question,
    scores: Scores,
    facts: Facts,
    n: int,
    accept: Accept | None = None,
    alike: Sequence[Likeness] = (),
    structure: Structure | None = None,
) -> list[Ranked]:
    """The best n of what the search found and `accept` lets through, best first, ties by key.

    `accept` gets keys and returns the acceptable ones; neighbours of what was found are asked about too. `alike` is
    what the vectors of each model say, `structure` what graph and outline say, where there are any.
    """
    notes = [key for key, _ in scores.top(max(_NOTES, n), accept, passages=False)]
    said = [key for key, _ in scores.top(max(_PASSAGES, n), accept, passages=True)]
    # Among many notes with its words, the one of that title may be none of the best by them.
    titled = [key for key, held in scores.held(facts.titled(question.text)).items() if held.mask and held.passes]
    titled = [key for key in titled if key not in notes]
    notes += titled if accept is None or not titled else sorted(accept(titled))
    by_words = places(notes) | places(said)
    if alike and not _answered(scores, [*notes, *said]):
        for one in alike:
            notes += one.further(notes, accept, passages=False)
            said += one.further(said, accept, passages=True)
    of_notes = _note_signals(question, scores, facts, notes, alike) if notes else []
    of_said = passages.passage_signals(question, scores, facts, said, accept, alike) if said else []
    by_structure: dict[str, Places] = {}
    if structure is not None:
        so_far = sorted(_judged(of_notes, _note_weights(alike)), key=lambda item: (-item[0], item[1]))
        best = [key for _, key, *_ in so_far]
        of_notes, by_structure = _with_structure(structure, question, of_notes, best, facts, accept)
    judged = [
        *_judged(of_notes, _note_weights(alike)),
        *_judged(of_said, passages.weights(alike)),
    ]
    judged.sort(key=lambda item: (-item[0], item[1]))
    by_likeness = {one.name: _by_likeness(of_notes, one) | _by_likeness(of_said, one) for one in alike}
    return _told(judged[:n], by_words, by_likeness, by_structure)


def _with_structure(
    structure: Structure, question: Question, found: list[tuple[str, Signals]], best: Sequence[str], facts: Facts,
    accept: Accept | None,
) -> tuple[list[tuple[str, Signals]], dict[str, Places]]:  # fmt: skip
    """Notes with what graph and outline say of them, and the neighbours of the best that no word found."""
    bonds = structure.bonds(best)
    headings = structure.headings(question, best)
    further = structure.further(bonds, best, accept)
    known = facts.facts(further)
    every = [*found, *((key, {}) for key in further if key in known and known[key].thread == "")]
    for key, signals in every:
        for name, gave in (("linked", bonds), ("heading", headings)):
            if key in gave:
                signals[name] = gave[key]
    places_of: dict[str, Places] = {}
    for index, gave in (("graph", bonds), ("outline", headings)):
        if index in structure.names:
            places_of[index] = places(sorted(gave, key=lambda key: (-gave[key], key)))
    return every, places_of


def rank_notes(
    question: Question, scores: Scores, facts: Facts, keys: Sequence[str], n: int, alike: Sequence[Likeness] = ()
) -> list[Ranked]:
    """The best n of these notes by the same signals, best first, ties by key."""
    if not keys:
        return []
    of_notes = _note_signals(question, scores, facts, keys, alike)
    judged = list(_judged(of_notes, _note_weights(alike)))
    judged.sort(key=lambda item: (-item[0], item[1]))
    held = scores.held(keys)
    by_words = places(sorted((key for key in keys if key in held), key=lambda key: (-held[key].score, key)))
    return _told(judged[:n], by_words, {one.name: _by_likeness(of_notes, one) for one in alike})


def _note_weights(alike: Sequence[Likeness]) -> Mapping[str, float]:
    return _WEIGHTS[tuple([one.signal for one in alike])]


def _judged(found: Iterable[tuple[str, Signals]], weights: Mapping[str, float]) -> Iterator[Judged]:
    return ((_total(signals, weights), key, signals, weights) for key, signals in found)


def _by_likeness(found: Iterable[tuple[str, Signals]], alike: Likeness) -> dict[str, int]:
    """key -> its place among these by the vectors alone; what is not alike at all has none."""
    signal = alike.signal
    return places(key for _, key in sorted((-s[signal], key) for key, s in found if s.get(signal)))


def _told(
    judged: Iterable[Judged], by_words: Places, by_likeness: Mapping[str, Places],
    by_structure: Mapping[str, Places] = MappingProxyType({}),
) -> list[Ranked]:  # fmt: skip
    """The items, with the place of each by every index that was asked."""
    asked = {"lexical": by_words, **by_likeness, **by_structure}
    return [
        Ranked(key, total, signals, weights, {index: places.get(key) for index, places in asked.items()})
        for total, key, signals, weights in judged
    ]


def account(item: Ranked) -> dict[str, object]:
    """What made the item's score, for a reader; worked out for what is shown only."""
    return why(item.signals, item.weights, SCALE, item.ranks)


def _answered(scores: Scores, found: Sequence[str]) -> bool:
    """Whether something found holds every word of the question: whoever names a thing exactly wants that thing."""
    every = (1 << len(scores.idf)) - 1
    return any([held.mask == every for held in scores.held(found).values()])


def _total(signals: Signals, weights: Mapping[str, float]) -> float:
    total = 0.0
    for name, value in signals.items():
        total += weights[name] * value
    return round(total / SCALE, 6)


def _note_signals(
    question: Question, scores: Scores, facts: Facts, keys: Sequence[str], alike: Sequence[Likeness]
) -> list[tuple[str, Signals]]:
    known = facts.facts(keys)
    most = sum(scores.idf) * _HIGHEST
    asked = plain(question.text)
    floor = Floor(question, scores)
    likes = [(one, filled(one.of(keys), keys)) for one in alike]
    result: list[tuple[str, Signals]] = []
    doubtful: list[tuple[str, Signals]] = []
    for key, (mask, score, traits, _) in scores.held(keys).items():
        fact = known.get(key)
        if fact is None:
            continue
        passes = floor.passes(mask, fact.at_ms)
        if not passes and not any(like.get(key, 0.0) >= one.floor for one, like in likes):
            continue
        # "last week" is met by a note of last week, in whatever words.
        met = mask | question.dated if mask and question.is_of(fact.at_ms) else mask
        signals = {"words": score / most, "cover": scores.share(met)}
        # Comparing what folding leaves costs more than seeing that it cannot be the same.
        if fact.title and abs(len(fact.title) - len(question.text)) < 16 and plain(fact.title) == asked:
            signals["title"] = 1.0
        timely(signals, question, fact.at_ms, traits)
        if fact.state in ("superseded", "ended"):
            signals[fact.state] = 1.0
        for one, like in likes:
            signals[one.signal] = like.get(key, 0.0)
        (result if passes else doubtful).append((key, signals))
    return result + enough(doubtful, alike, alone=not result)
