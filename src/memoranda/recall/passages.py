"""The order of journal passages: each word of the question counts where it stands nearest.

A passage is short, and half of what it says was said before it. What is ranked are the passages that were found and
the two entries on each side of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memoranda.index.lexical import Accept, Scores
from memoranda.index.traits import QUESTION
from memoranda.recall.facts import Facts, Known
from memoranda.recall.likeness import LIKE, MODEL, Likeness, enough, filled
from memoranda.recall.question import Question
from memoranda.recall.signals import Floor, Signals, plain, timely

# Fitted on LoCoMo conversations 1 to 5 by the listwise likelihood of the evidence (bench/locomo.py --fit), rounded.
# Left one conversation out, doing without `answer` costs 5 points of MRR, without `near`, `session`, `speaker`,
# `month`, `when` one or two each. BM25 in the place of covered words, phrases, the length of an entry, its place in the
# session, co-occurring words and synonyms earned nothing.
WEIGHTS = {
    "words": 8.8,  # the share of the question's idf that its own words carry
    "near": 8.8,  # what the entries around it add to that, each word counted where it stands nearest, see NEAR
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
# Where there are vectors, fitted in the same way; what is alike takes over half of what its session says.
WEIGHTS_NEAR = {
    **WEIGHTS,
    "words": 7.8, "near": 7.8, "answer": 3.2, "session": 1.6, "speaker": 1.6, "asks": -1.2, "month": 3.3, "day": 4.8,
    "when": 2.6, "names": 1.1,
    "like": 1.6,  # the cosine of its vector with that of the question
    "like_near": 1.6,  # those of the entries around it, each counted as in NEAR
    "like_session": 5.8,  # of the three that are most alike in its session, their mean
}  # fmt: skip
# A model behind a server in its place, fitted in the same way with multilingual-e5-small.
WEIGHTS_MODEL = {
    **WEIGHTS,
    "words": 7.8, "near": 7.6, "answer": 3.2, "session": 2.3, "speaker": 1.5, "asks": -1.1, "month": 2.9, "day": 6.6,
    "model": 3.2, "model_near": 5.1, "model_session": 7.2,
}  # fmt: skip
# Both beside each other: the table's as they are, the model's three from a grid over conversations 1 to 5 by the share
# found in the first ten and the mean reciprocal rank together.
WEIGHTS_BOTH = {**WEIGHTS_NEAR, "model": 4.0, "model_near": 5.0, "model_session": 2.0}
_WEIGHTS = {(): WEIGHTS, (LIKE,): WEIGHTS_NEAR, (MODEL,): WEIGHTS_MODEL, (LIKE, MODEL): WEIGHTS_BOTH}
# What a word counts that stands so many entries before or after the passage; in the passage itself it counts 1. Two
# entries before is the same speaker. In falling order, since a word counts once.
NEAR = ((-2, 0.7), (-1, 0.6), (1, 0.5), (2, 0.4))
AROUND = 2  # entries on each side
_SATURATION = 1.2  # so many further passages of a session with a word are worth as much as the first


def weights(alike: Sequence[Likeness]) -> dict[str, float]:
    """What the signals weigh where these models were asked."""
    return _WEIGHTS[tuple([one.signal for one in alike])]


def passage_signals(
    question: Question,
    scores: Scores,
    facts: Facts,
    found: Sequence[str],
    accept: Accept | None,
    alike: Sequence[Likeness] = (),
) -> list[tuple[str, Signals]]:
    """The signals of the passages that were found and of those around them, those that pass the floor."""
    known = facts.facts(found)
    around = list(facts.around(_spans(known.values())))
    every = {fact.key: fact for fact in around}
    every.update(known)
    held = scores.held(list(every))
    further = [key for key in every if key not in known and key in held and held[key].passes]
    # What another process has just written may be in the vectors and the catalog, and was not there for the words.
    shown = [key for key in found if key in known and key in held]
    sessions_of = shown
    if further:
        shown = shown + (further if accept is None else sorted(accept(further)))

    named, content = _speakers(question, scores, every.values())
    alone = next(iter(named)) if len(named) == 1 else None
    shares = _Shares(scores, content)
    sessions = _sessions(shares, [(every[key].session, held[key].mask & content) for key in sessions_of])
    lines: dict[tuple[str, str], dict[int, int]] = {}
    for of, facts_of in _runs((*around, *known.values())):
        line = lines.setdefault(of, {})
        for fact in facts_of:
            if (has := held.get(fact.key)) is not None:
                line[fact.place] = has.mask << 1 | (has.traits & QUESTION != 0)
    floor = Floor(question, scores)
    standing = _Standing(shares, content, floor)
    views = [_Alike(one, every, shown) for one in alike]
    timed = question.has_time or question.when or question.amount or question.name
    result: list[tuple[str, Signals]] = []
    doubtful: list[tuple[str, Signals]] = []
    for key in shown:
        fact, (mask, _, traits, _) = every[key], held[key]
        session, place = fact.session, fact.place
        at = lines[fact.thread, session].get
        own, near, answer, seen, passes = standing[  # in the order of NEAR
            mask, at(place - 2, 0), at(place - 1, 0), at(place + 1, 0), at(place + 2, 0)
        ]
        if not passes and question.dated:
            passes = floor.passes(seen, fact.at_ms)
        if not passes and (not views or not any([view.like.get(key, 0.0) >= view.floor for view in views])):
            continue
        signals = {"words": own, "near": near, "answer": answer, "session": sessions.get(session, 0.0)}
        if fact.speaker == alone:
            signals["speaker"] = own
        if traits & QUESTION:
            signals["asks"] = own
        if timed:
            timely(signals, question, fact.at_ms, traits)
        for view in views:
            view.add(signals, fact)
        (result if passes else doubtful).append((key, signals))
    return result + enough(doubtful, alike, alone=not result) if doubtful else result


class _Standing(dict[tuple[int, int, int, int, int], tuple[float, float, float, int, bool]]):
    """What words give to a passage that stands so; many stand alike.

    By its own groups of words, and for each entry of NEAR, 0 where there is none of its session, its groups times two,
    and one more when it asks: `words`, `near`, `answer`, all groups that count, and whether they pass the floor.
    """

    def __init__(self, shares: _Shares, content: int, floor: Floor) -> None:
        super().__init__()
        self._shares = shares
        self._content = content
        self._floor = floor

    def __missing__(self, stands: tuple[int, int, int, int, int]) -> tuple[float, float, float, int, bool]:
        shares, content = self._shares, self._content
        seen = stands[0]
        own = near = shares[seen & content]
        answer = 0.0
        for at, (away, worth) in enumerate(NEAR, 1):
            if not (other := stands[at]):
                continue
            words = other >> 1
            if new := words & ~seen & content:
                near += worth * shares[new]
            seen |= words
            if away == -1 and other & 1:
                answer = shares[words & content]
        found = self[stands] = own, near - own, answer, seen, self._floor.passes(seen, None)
        return found


class _Alike:
    """What one model says of the passages that were found and of those around them."""

    def __init__(self, alike: Likeness, every: Mapping[str, Known], shown: Sequence[str]) -> None:
        self.floor = alike.floor
        keys = list(every)
        self.like = like = filled(alike.of(keys), keys)
        self._names = alike.signal, f"{alike.signal}_near", f"{alike.signal}_session"
        self._lines: dict[tuple[str, str], dict[int, float]] = {}
        for of, facts_of in _runs(every.values()):
            self._lines.setdefault(of, {}).update([(fact.place, like.get(fact.key, 0.0)) for fact in facts_of])
        self._sessions = _most_alike([(every[key].session, like.get(key, 0.0)) for key in shown])

    def add(self, signals: Signals, fact: Known) -> None:
        """Adds its three signals of a passage."""
        own, near, session = self._names
        place, at = fact.place, self._lines[fact.thread, fact.session].get
        signals[own] = self.like.get(fact.key, 0.0)
        close = 0.0
        for away, worth in NEAR:
            close += worth * at(place + away, 0.0)
        signals[near] = close
        signals[session] = self._sessions[fact.session]


def _runs(facts: Iterable[Known]) -> Iterator[tuple[tuple[str, str], list[Known]]]:
    """What follows one another in one thread and session, with both."""
    run: list[Known] = []
    thread = session = ""
    for fact in facts:
        if run and (fact.thread != thread or fact.session != session):
            yield (thread, session), run
            run = []
        thread, session = fact.thread, fact.session
        run.append(fact)
    if run:
        yield (thread, session), run


def _most_alike(shown: Iterable[tuple[str, float]]) -> dict[str, float]:
    """For each session the sum of its three highest cosines, divided by three."""
    of: dict[str, list[float]] = {}
    for session, cosine in shown:
        of.setdefault(session, []).append(cosine)
    return {session: sum(sorted(cosines)[-3:]) / 3 for session, cosines in of.items()}


def _speakers(question: Question, scores: Scores, facts: Iterable[Known]) -> tuple[set[str], int]:
    """The speakers that the question names, and the groups of the question that name none.

    A speaker's name says who said it, and stands in what the others say to them: as a word it would mislead.
    """
    groups = scores.query.groups
    names: dict[str, set[str]] = {}
    for speaker in {fact.speaker for fact in facts if fact.speaker}:
        for part in plain(speaker).split():
            names.setdefault(part, set()).add(speaker)
    capitals = {plain(word) for word in question.text.replace("'", " ").replace("’", " ").split() if word[:1].isupper()}
    named: set[str] = set()
    content = 0
    for i, group in enumerate(groups):
        named |= names.get(group.word) or _nicknamed(group.word, names, capitals)
        if group.word not in names:
            content |= 1 << i
    return named, content or (1 << len(groups)) - 1


def _nicknamed(word: str, names: Mapping[str, set[str]], capitals: set[str]) -> set[str]:
    """The speaker whose name begins with this capitalised word (`Mel` for Melanie), when there is only one."""
    if len(word) < 3 or word not in capitals:
        return set()
    begun = [speakers for name, speakers in names.items() if name.startswith(word)]
    return begun[0] if len(begun) == 1 else set()


class _Shares(dict[int, float]):
    """The share of the idf of what the question asks, its speakers' names left out, by set of groups."""

    def __init__(self, scores: Scores, content: int) -> None:
        super().__init__()
        self[0] = 0.0
        self._idf = scores.idf
        self._whole = sum(value for i, value in enumerate(scores.idf) if content >> i & 1)

    def __missing__(self, mask: int) -> float:
        found = self[mask] = sum([value for i, value in enumerate(self._idf) if mask >> i & 1]) / self._whole
        return found


def _sessions(shares: _Shares, found: Iterable[tuple[str, int]]) -> dict[str, float]:
    """For each session, the share that its found passages carry together; `found` are (session, groups)."""
    counts: dict[str, dict[int, int]] = {}
    for (session, mask), times in Counter(found).items():
        of_session = counts.setdefault(session, {})
        while mask:
            lowest = mask & -mask
            of_session[lowest] = of_session.get(lowest, 0) + times
            mask ^= lowest
    return {
        session: sum([shares[group] * n / (n + _SATURATION) for group, n in sorted(of_session.items())])
        for session, of_session in counts.items()
    }


def _spans(facts: Iterable[Known]) -> list[tuple[str, int, int]]:
    """The stretches of threads around these passages, those that touch made one."""
    spans: list[tuple[str, int, int]] = []
    for thread, place in sorted((fact.thread, fact.place) for fact in facts):
        first, last = max(place - AROUND, 0), place + AROUND
        if spans and spans[-1][0] == thread and first <= spans[-1][2] + 1:
            spans[-1] = (thread, spans[-1][1], last)
        else:
            spans.append((thread, first, last))
    return spans
