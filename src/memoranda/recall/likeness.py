"""What the vector index says of a question: which documents are near it, and how near those are that words found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.index.analysis import fold, language_of
from memoranda.index.lexical import Accept, Scores
from memoranda.index.vectors import Near, VectorIndex
from memoranda.recall.question import Question

# Below the first, nothing is shown for its likeness alone: 99 of 100 unrelated pairs of question and passage are less
# alike (LoCoMo conversations 1 to 5, each asked the questions of the others; the French FAQ). Where no word found
# anything, it takes the second, so that what is nowhere is answered as nothing found. The table of the bundled
# embedder was made for English, so French texts are more alike to it; of other alphabets it knows the letters only, and
# nothing is shown for these.
_FLOORS = {"en": (0.15, 0.45), "fr": (0.4, 0.65)}
_NO_FLOORS = (1.1, 1.1)
_NEAREST = 30


class Likeness:
    """The vectors' view of one question."""

    def __init__(self, near: Near, floors: tuple[float, float], usual: float = 0.0, *, model: bool = False) -> None:
        """`floors` as above; `usual` is the cosine of what has nothing to do with each other; `model` says that whole
        sentences are read, which knows more than a table of words."""
        self.model = model
        self._near = near
        self.floor, self.alone = (self._beyond(floor, usual) for floor in floors)
        self._usual = usual

    @staticmethod
    def _beyond(cosine: float, usual: float) -> float:
        """How far it lies above what is usual, from 0 to 1."""
        return max((cosine - usual) / (1 - usual), 0.0)

    def further(self, known: Iterable[str], accept: Accept | None, *, passages: bool) -> list[str]:
        """The nearest documents that may be shown and that words did not find, in the order of their keys."""
        held = set(known)
        near = self._near.nearest(_NEAREST, passages=passages)
        keys = sorted(
            key for key, cosine in near if self._beyond(cosine, self._usual) >= self.floor and key not in held
        )
        return sorted(accept(keys)) if keys and accept is not None else keys

    def of(self, keys: Sequence[str]) -> dict[str, float]:
        """The cosine of each document with the question; opposites count as unrelated."""
        return {key: self._beyond(cosine, self._usual) for key, cosine in self._near.of(keys).items()}


def likeness(
    vectors: VectorIndex, question: Question, scores: Scores, facets: Sequence[Sequence[str]], *, former: bool
) -> Likeness:
    """Asks the vectors, each word of the question counting as much as it is rare."""
    idf = {group.word: weight for group, weight in zip(scores.query.groups, scores.idf, strict=True)}
    usual = sum(idf.values()) / len(idf)
    near = vectors.search(question.text, lambda word: idf.get(fold(word), usual), facets, include_retired=former)
    if vectors.calibrated:
        from memoranda.index.calibration import calibration

        return Likeness(near, *calibration(vectors), model=True)
    latin = any("a" <= letter <= "z" for letter in fold(question.text))
    return Likeness(near, _FLOORS[language_of(question.text)] if latin else _NO_FLOORS)
