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
from memoranda.recall.likeness import Likeness
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
# Where there are vectors. Fitted on every other French question; for English notes there are none to fit on.
NOTE_WEIGHTS_NEAR = {**NOTE_WEIGHTS, "like": 9.0}
# Where they come from a model that reads sentences. Fitted on every other French question with multilingual-e5-small.
NOTE_WEIGHTS_MODEL = {**NOTE_WEIGHTS, "like": 30.0}
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
    alike: Likeness | None = None,
    structure: Structure | None = None,
) -> list[Ranked]:
    """The best n of what the search found and `accept` lets through, best first, ties by key.

    `accept` gets keys and returns the acceptable ones; neighbours of what was found are asked about too. `alike` is
    what the vectors say, `structure` what graph and outline say, where there are any.
    """
    notes = [key for key, _ in scores.top(max(_NOTES, n), accept, passages=False)]
    said = [key for key, _ in scores.top(max(_PASSAGES, n), accept, passages=True)]
    # Among many notes with its words, the one of that title may be none of the best by them.
    titled = [key for key, held in scores.held(facts.titled(question.text)).items() if held.mask and held.passes]
    titled = [key for key in titled if key not in notes]
    notes += titled if accept is None or not titled else sorted(accept(titled))
    by_words = places(notes) | places(said)
    if alike and not _answered(scores, [*notes, *said]):
        notes += alike.further(notes, accept, passages=False)
        said += alike.further(said, accept, passages=True)
    of_notes = _note_signals(question, scores, facts, notes, alike) if notes else []
    of_said = passages.passage_signals(question, scores, facts, said, accept, alike) if said else []
    by_structure: dict[str, Places] = {}
    if structure is not None:
        so_far = sorted(_judged(of_notes, _note_weights(alike)), key=lambda item: (-item[0], item[1]))
        best = [key for _, key, *_ in so_far]
        of_notes, by_structure = _with_structure(structure, question, of_notes, best, facts, accept)
    judged = [
        *_judged(of_notes, _note_weights(alike)),
        *_judged(of_said, passages.WEIGHTS_NEAR if alike else PASSAGE_WEIGHTS),
    ]
    judged.sort(key=lambda item: (-item[0], item[1]))
    by_likeness = _by_likeness(of_notes) | _by_likeness(of_said) if alike else None
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
    question: Question, scores: Scores, facts: Facts, keys: Sequence[str], n: int, alike: Likeness | None = None
) -> list[Ranked]:
    """The best n of these notes by the same signals, best first, ties by key."""
    if not keys:
        return []
    of_notes = _note_signals(question, scores, facts, keys, alike)
    judged = list(_judged(of_notes, _note_weights(alike)))
    judged.sort(key=lambda item: (-item[0], item[1]))
    held = scores.held(keys)
    by_words = places(sorted((key for key in keys if key in held), key=lambda key: (-held[key].score, key)))
    return _told(judged[:n], by_words, _by_likeness(of_notes) if alike else None)


def _note_weights(alike: Likeness | None) -> Mapping[str, float]:
    if alike is None:
        return NOTE_WEIGHTS
    return NOTE_WEIGHTS_MODEL if alike.model else NOTE_WEIGHTS_NEAR


def _judged(found: Iterable[tuple[str, Signals]], weights: Mapping[str, float]) -> Iterator[Judged]:
    return ((_total(signals, weights), key, signals, weights) for key, signals in found)


def _by_likeness(found: Iterable[tuple[str, Signals]]) -> dict[str, int]:
    """key -> its place among these by the vectors alone; what is not alike at all has none."""
    return places(key for _, key in sorted((-s["like"], key) for key, s in found if s.get("like")))


def _told(
    judged: Iterable[Judged],
    by_words: Places,
    by_likeness: Places | None,
    by_structure: Mapping[str, Places] = MappingProxyType({}),
) -> list[Ranked]:
    """The items, with the place of each by every index that was asked."""
    found = []
    for total, key, signals, weights in judged:
        ranks = {"lexical": by_words.get(key)}
        if by_likeness is not None:
            ranks["vectors"] = by_likeness.get(key)
        ranks |= {index: places.get(key) for index, places in by_structure.items()}
        found.append(Ranked(key, total, signals, weights, ranks))
    return found


def account(item: Ranked) -> dict[str, object]:
    """What made the item's score, for a reader; worked out for what is shown only."""
    return why(item.signals, item.weights, SCALE, item.ranks)


def _answered(scores: Scores, found: Sequence[str]) -> bool:
    """Whether something found holds every word of the question: whoever names a thing exactly wants that thing."""
    every = (1 << len(scores.idf)) - 1
    return any(held.mask == every for held in scores.held(found).values())


def _total(signals: Signals, weights: Mapping[str, float]) -> float:
    total = 0.0
    for name, value in signals.items():
        total += weights[name] * value
    return round(total / SCALE, 6)


def _note_signals(
    question: Question, scores: Scores, facts: Facts, keys: Sequence[str], alike: Likeness | None
) -> list[tuple[str, Signals]]:
    known = facts.facts(keys)
    most = sum(scores.idf) * _HIGHEST
    asked = plain(question.text)
    floor = Floor(question, scores)
    like = alike.of(keys) if alike else {}
    result: list[tuple[str, Signals]] = []
    doubtful: list[tuple[str, Signals]] = []
    for key, (mask, score, traits, _) in scores.held(keys).items():
        fact = known.get(key)
        if fact is None:
            continue
        passes = floor.passes(mask, fact.at_ms)
        if not passes and (alike is None or like.get(key, 0.0) < alike.floor):
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
        if alike:
            signals["like"] = like.get(key, 0.0)
        (result if passes else doubtful).append((key, signals))
    if alike is not None:
        least = alike.floor if result else alike.alone
        result += [(key, signals) for key, signals in doubtful if signals["like"] >= least]
    return result
