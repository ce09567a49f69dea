"""The order of what was found: every item's own words, and what stands around them.

A journal passage is short and half of what it says was said before it, so each word of the question counts where it
stands nearest: in the passage, one entry away, two entries away; and further for what answers a question, for the
session that speaks of it, for the speaker, the days and the kind of answer asked for. A note stands for itself: its
BM25, how much of the question it covers, its title. Every signal is kept by name in `why`, and they add up to `score`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memoranda.index.analysis import fold
from memoranda.index.lexical import Accept, Held, Scores
from memoranda.index.traits import NAMES, NUMBER, QUESTION, TIME, names_of
from memoranda.recall.question import Question

# Fitted on LoCoMo conversations 1 to 5 by the listwise likelihood of the evidence (bench/locomo.py --fit), rounded.
# Left one conversation out, doing without `answer` costs 5 points of MRR, without `near`, `session`, `speaker`,
# `month`, `when` one or two each. BM25 in the place of covered words, phrases, the length of an entry, its place in the
# session, co-occurring words and synonyms earned nothing.
PASSAGE_WEIGHTS = {
    "near": 8.8,  # the share of the question's idf, each word counted where it stands nearest, see NEAR
    "answer": 3.6,  # the share in the entry before, when that asks
    "session": 4.2,  # the share in the passages of its session that were found, more when more hold a word
    "speaker": 1.8,  # its own share, when the question names its speaker and no other
    "asks": -0.9,  # its own share, when it asks itself
    "month": 4.4,  # said in a month, or a year, that the question names
    "day": 9.4,  # said on a day that the question names; less with every day away from it
    "when": 2.5,  # names a day or a month, and the question asks when
    "amount": 2.6,  # holds a number, and the question asks how many
    "names": 1.0,  # for each name it holds, up to three, when the question asks who, where or which
}
# What a word counts in the passage, and so many entries before or after it. Two entries before is the same speaker.
NEAR = {0: 1.0, -1: 0.6, 1: 0.5, -2: 0.7, 2: 0.4}
_SATURATION = 1.2  # so many further passages of a session with a word are worth as much as the first

# What was remembered on purpose comes before what was merely said: a note with all words of the question stands half
# above a passage with all of them whose session speaks of nothing else. The other signals are a passage's, less, since
# a note's day is when it was written or begins to hold. Held by the golden questions of examples/.
NOTE_WEIGHTS = {
    "words": 13.0,  # BM25 by its highest value
    "cover": 13.0,  # the share of the question's idf
    "title": 6.5,  # its title is the question
    "month": 3.5,
    "day": 7.0,
    "when": 2.0,
    "amount": 2.0,
    "names": 0.4,
    "superseded": -5.0,  # less than a title is worth: an exact title is not hidden by a successor
    "ended": -2.5,
}
_SCALE = 12.0  # a passage with every word of the question scores about 1, a note somewhat more

_PASSAGES = 60  # by their own BM25; with their neighbours some 200 are ranked
_NOTES = 60
_AROUND = 2  # entries on each side
FLOOR_SHARE = 0.25
FLOOR_RARE = 10


@dataclass(frozen=True, slots=True)
class Fact:
    """What ranking has to know of a document besides the words.

    `at_ms` is when it was said, or from when a note holds (milliseconds since 1970 in UTC). A passage has a `thread`
    (its journal file) and a `place` in it, consecutive numbers, a `session` and a `speaker`. A note has a `title` and
    a `state`: current, ended, future or superseded.
    """

    key: str
    at_ms: int | None = None
    thread: str = ""
    place: int = 0
    session: str = ""
    speaker: str = ""
    title: str = ""
    state: str = "current"


class Facts(Protocol):
    """Where ranking asks; each method is called once or twice a recall, with everything at once."""

    def facts(self, keys: Sequence[str]) -> Mapping[str, Fact]:
        """What is known of these documents."""

    def around(self, spans: Sequence[tuple[str, int, int]]) -> Iterable[Fact]:
        """The passages of each (thread, first place, last place), both included, those that exist."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item in its place: `score` has six decimals, `why` what each signal gave to it."""

    key: str
    score: float
    why: dict[str, float]


def rank(question: Question, scores: Scores, facts: Facts, n: int, accept: Accept | None = None) -> list[Ranked]:
    """The best n of what the search found and `accept` lets through, best first, ties by key.

    `accept` gets keys and returns the acceptable ones; neighbours of what was found are asked about too.
    """
    notes = scores.top(max(_NOTES, n), accept, passages=False)
    ranked = _notes(question, scores, facts, [key for key, _ in notes])
    passages = scores.top(max(_PASSAGES, n), accept, passages=True)
    if passages:
        ranked += _Passages(question, scores, facts, [key for key, _ in passages], accept).ranked()
    return sorted(ranked, key=lambda item: (-item.score, item.key))[:n]


def passes_floor(scores: Scores, mask: int) -> bool:
    """What a document matches is enough to show it: a quarter of the question's idf, or a word in few documents."""
    return mask != 0 and (
        scores.share(mask) >= FLOOR_SHARE or any(df <= FLOOR_RARE for i, df in enumerate(scores.df) if mask >> i & 1)
    )


def _shown(question: Question, scores: Scores, fact: Fact, mask: int) -> bool:
    """What was said on the day that the question names has the words of that day, written or not."""
    if passes_floor(scores, mask):
        return True
    at = fact.at_ms
    if question.dated and mask and at is not None and (question.month_fits(at) or question.closeness(at)):
        return scores.share(mask | question.dated) >= FLOOR_SHARE
    return False


def _ranked(key: str, signals: Mapping[str, float], weights: Mapping[str, float]) -> Ranked:
    why = {name: round(weights[name] * value / _SCALE, 6) for name, value in signals.items() if value}
    return Ranked(key, round(sum(why.values()), 6), why)


def _timely(question: Question, fact: Fact, traits: int) -> dict[str, float]:
    """The signals that a note and a passage share."""
    signals: dict[str, float] = {}
    if fact.at_ms is not None and (question.months or question.years or question.days):
        signals["month"] = float(question.month_fits(fact.at_ms))
        signals["day"] = question.closeness(fact.at_ms)
    if question.when and traits & TIME:
        signals["when"] = 1.0
    if question.amount and traits & NUMBER:
        signals["amount"] = 1.0
    if question.name and traits & NAMES:
        signals["names"] = float(names_of(traits))
    return signals


# Notes


def _notes(question: Question, scores: Scores, facts: Facts, keys: Sequence[str]) -> list[Ranked]:
    known = facts.facts(keys) if keys else {}
    most = sum(scores.idf) * 2.2  # BM25 with k1 = 1.2 stays below idf times 2.2
    asked = _plain(question.text)
    ranked = []
    for key, held in scores.held(keys).items():
        fact = known.get(key)
        if fact is None or not _shown(question, scores, fact, held.mask):
            continue
        signals = {"words": held.score / most, "cover": scores.share(held.mask)}
        if fact.title and _plain(fact.title) == asked:
            signals["title"] = 1.0
        signals |= _timely(question, fact, held.traits)
        if fact.state in ("superseded", "ended"):
            signals[fact.state] = 1.0
        ranked.append(_ranked(key, signals, NOTE_WEIGHTS))
    return ranked


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in fold(text)).split())


# Passages


class _Passages:
    """The passages that were found and what stands around them."""

    def __init__(
        self, question: Question, scores: Scores, facts: Facts, found: Sequence[str], accept: Accept | None
    ) -> None:
        self._question = question
        self._scores = scores
        known = facts.facts(found)
        self._found = [key for key in found if key in known]
        around = {fact.key: fact for fact in facts.around(_spans(known.values()))} | dict(known)
        self._facts = around
        self._held = scores.held(list(around))
        further = [key for key in around if key not in known and key in self._held and self._held[key].passes]
        self._shown = [*self._found, *(further if accept is None or not further else sorted(accept(further)))]
        self._at = {(fact.thread, fact.place): fact for fact in around.values()}
        self._named, self._content = self._speakers()
        self._share = self._sharing()
        self._sessions = self._session_shares()

    def ranked(self) -> list[Ranked]:
        ranked = []
        for key in self._shown:
            fact, held = self._facts[key], self._held[key]
            near = self._neighbours(fact)
            together = held.mask
            for _, other in near:
                together |= other.mask
            if _shown(self._question, self._scores, fact, together):
                ranked.append(_ranked(key, self._signals(fact, held, near), PASSAGE_WEIGHTS))
        return ranked

    def _signals(self, fact: Fact, held: Held, near: Sequence[tuple[int, Held]]) -> dict[str, float]:
        share, content = self._share, self._content
        own = share(held.mask & content)
        signals = {"near": 0.0}
        seen = 0
        # In the order of what a word counts there: a word counts once, where it counts most.
        for place, other in sorted([(0, held), *near], key=lambda item: -NEAR[item[0]]):
            mask = other.mask & content
            signals["near"] += NEAR[place] * share(mask & ~seen)
            seen |= mask
            if place == -1 and other.traits & QUESTION:
                signals["answer"] = share(mask)
        signals["session"] = self._sessions.get(fact.session, 0.0)
        if self._named == {fact.speaker}:
            signals["speaker"] = own
        if held.traits & QUESTION:
            signals["asks"] = own
        return signals | _timely(self._question, fact, held.traits)

    def _neighbours(self, fact: Fact) -> list[tuple[int, Held]]:
        """(how many entries away, what it holds) of the entries of the same session around this one."""
        near = []
        for away in range(-_AROUND, _AROUND + 1):
            other = self._at.get((fact.thread, fact.place + away)) if away else None
            if other is not None and other.session == fact.session and other.key in self._held:
                near.append((away, self._held[other.key]))
        return near

    def _speakers(self) -> tuple[set[str], int]:
        """The speakers that the question names, and the groups of the question that name none.

        A speaker's name says who said it, and stands in what the others say to them: as a word it would mislead.
        """
        groups = self._scores.query.groups
        named: set[str] = set()
        content = 0
        names: dict[str, set[str]] = {}
        for speaker in {fact.speaker for fact in self._facts.values() if fact.speaker}:
            for part in _plain(speaker).split():
                names.setdefault(part, set()).add(speaker)
        capitals = {fold(w) for w in self._question.text.replace("'", " ").replace("’", " ").split() if w[:1].isupper()}
        for i, group in enumerate(groups):
            speakers = names.get(group.word) or _nicknamed(group.word, names, capitals)
            named |= speakers
            if group.word not in names:
                content |= 1 << i
        return named, content or (1 << len(groups)) - 1

    def _sharing(self) -> Callable[[int], float]:
        """The share of the idf of what the question asks, its speakers' names left out."""
        idf = self._scores.idf
        whole = sum(value for i, value in enumerate(idf) if self._content >> i & 1)
        known: dict[int, float] = {}

        def share(mask: int) -> float:
            found = known.get(mask)
            if found is None:
                found = known[mask] = sum(value for i, value in enumerate(idf) if mask >> i & 1) / whole
            return found

        return share

    def _session_shares(self) -> dict[str, float]:
        """For each session, the share that its found passages carry together."""
        counts: dict[str, dict[int, int]] = {}
        for key in self._found:
            of_session = counts.setdefault(self._facts[key].session, {})
            mask = self._held[key].mask & self._content
            for i in range(mask.bit_length()):
                if mask >> i & 1:
                    of_session[i] = of_session.get(i, 0) + 1
        return {
            session: sum(self._share(1 << i) * n / (n + _SATURATION) for i, n in sorted(of_session.items()))
            for session, of_session in counts.items()
        }


def _nicknamed(word: str, names: Mapping[str, set[str]], capitals: set[str]) -> set[str]:
    """The speaker whose name begins with this capitalised word (`Mel` for Melanie), when there is only one."""
    if len(word) < 3 or word not in capitals:
        return set()
    begun = [speakers for name, speakers in names.items() if name.startswith(word)]
    return begun[0] if len(begun) == 1 else set()


def _spans(facts: Iterable[Fact]) -> list[tuple[str, int, int]]:
    """The stretches of threads around these passages, those that touch made one."""
    spans: list[tuple[str, int, int]] = []
    for thread, place in sorted((fact.thread, fact.place) for fact in facts):
        first, last = max(place - _AROUND, 0), place + _AROUND
        if spans and spans[-1][0] == thread and first <= spans[-1][2] + 1:
            spans[-1] = (thread, spans[-1][1], last)
        else:
            spans.append((thread, first, last))
    return spans
