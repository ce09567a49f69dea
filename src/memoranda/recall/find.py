"""From a question to ranked items of one Home: what is asked, in which order, and by what else when an index fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memoranda.errors import IndexDamaged, Unavailable
from memoranda.index.indexes import Indexes
from memoranda.index.lexical import Scores
from memoranda.recall.candidates import Candidates, Wanted
from memoranda.recall.items import Found, Withheld
from memoranda.recall.likeness import Likeness, likeness
from memoranda.recall.question import Question, read_question
from memoranda.recall.ranking import Ranked, rank
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.recall.structure import Structure

_SPARE = 8  # items ranked beyond those asked for, to take the place of passages that a note folds in


@dataclass(frozen=True, slots=True)
class Answer:
    """The k best items, best first, what was only pointed to, and the reviewed notes that ranked behind them."""

    items: tuple[Found, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    beside: tuple[Found, ...] = ()


def find(indexes: Indexes, home: str, wanted: Wanted) -> Answer:
    """The answer of one Home; empty when nothing is looked for or nothing is found."""
    question = read_question(wanted.text, wanted.now)
    if not question.query:
        return Answer()
    candidates = Candidates(indexes, wanted)
    # The last reviewed bytes of what was edited are kept as a former state.
    former = wanted.known_at is not None or wanted.history or candidates.edited
    scores = indexes.lexical.search(question.query, wanted.facets(), include_retired=former)
    structure = _structure(indexes, wanted, former=former)
    alike = _alike(indexes, wanted, question, scores, former=former)
    while True:
        try:
            return _answer(candidates, home, wanted, question, scores, alike, structure)
        except IndexDamaged as error:
            damaged = [one for one in alike if one.damaged]
            if not damaged:
                raise
            alike = [one for one in alike if not one.damaged]
            for one in damaged:
                indexes.discard_vectors(one.vectors, error, _rest(alike))
            candidates = Candidates(indexes, wanted)


def _alike(indexes: Indexes, wanted: Wanted, question: Question, scores: Scores, *, former: bool) -> list[Likeness]:
    """What the vectors of the recipe say, those of the table first; who cannot say anything now is left out."""
    found: list[Likeness] = []
    for vectors, server in ((indexes.table, ""), (indexes.model, indexes.server)):
        if vectors is None:
            continue
        try:
            found.append(likeness(vectors, question, scores, wanted.facets(), former=former, server=server))
        except IndexDamaged as error:
            indexes.discard_vectors(vectors, error, _rest(found))
        except Unavailable as error:  # a server that does not answer
            indexes.notices.append(f"{error.what} This answer goes by {_rest(found)}.")
    return found


def _rest(alike: Sequence[Likeness]) -> str:
    return "the words and the other vectors" if alike else "the words alone"


def _structure(indexes: Indexes, wanted: Wanted, *, former: bool) -> Structure | None:
    graph, outline = indexes.further("graph"), indexes.further("outline")
    if graph is None and outline is None:
        return None
    from memoranda.recall.structure import Structure  # here: the default recipes have neither

    return Structure(indexes.catalog, graph, outline, wanted.facets(), former=former)


def _answer(
    candidates: Candidates, home: str, wanted: Wanted, question: Question, scores: Scores, alike: Sequence[Likeness],
    structure: Structure | None,
) -> Answer:  # fmt: skip
    words = frozenset(term for group in question.query.groups for term in group.alternatives)
    n = wanted.k + _SPARE
    ranked = candidates.of_that_time(question, scores, n) if question.alone else []
    if question.named or not ranked:  # a text may have the words of a date, and lie in another time
        found = rank(question, scores, candidates, n, candidates.accept, alike, structure)
        ranked = _merged(found, ranked)[:n] if ranked else found
    shown = candidates.unfolded(ranked)[: wanted.k]
    beside = candidates.reviewed_beside(question, scores, shown, alike)
    items = candidates.items([*shown, *beside], home, words)
    return Answer(tuple(items[: len(shown)]), tuple(candidates.withheld()), tuple(items[len(shown) :]))


def _merged(found: Sequence[Ranked], further: Sequence[Ranked]) -> list[Ranked]:
    """Best first, ties by key; what is in both as it was found."""
    each = {item.key: item for item in (*further, *found)}
    return sorted(each.values(), key=lambda item: (-item.score, item.key))
