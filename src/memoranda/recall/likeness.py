"""What the vectors of one model say of a question: which documents are near it, and how near those are that words
found. A recipe may ask for two, the bundled table and a model behind a server; each has its own say in the ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.errors import IndexDamaged
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


LIKE, MODEL = "like", "model"  # the signals of the table's vectors, and of a server's
SERVED = "endpoint:"  # what `why` calls the vectors of a server begins so


class Likeness:
    """One model's view of one question.

    Attributes:
        name: what `why` calls the index, `vectors` or `endpoint:NAME`.
        signal: what its signals are called, see `passages` and `ranking`.
        vectors: the index that is asked; `damaged` once it turned out to be so.
        floor, alone: from which likeness on something is shown that no word found, when words found something else, and
            when they did not.
    """

    def __init__(
        self, vectors: VectorIndex, near: Near, floors: tuple[float, float], usual: float = 0.0, server: str = ""
    ) -> None:
        """`usual` is the cosine of what has nothing to do with each other; `server` is that of the model."""
        self.name = f"{SERVED}{server}" if server else "vectors"
        self.signal = MODEL if server else LIKE
        self.vectors = vectors
        self.damaged = False
        self._near = near
        self._usual = usual
        self.floor, self.alone = (self._beyond(floor) for floor in floors)

    def _beyond(self, cosine: float) -> float:
        """How far it lies above what is usual, from 0 to 1."""
        return max((cosine - self._usual) / (1 - self._usual), 0.0)

    def further(self, known: Iterable[str], accept: Accept | None, *, passages: bool) -> list[str]:
        """The nearest documents that may be shown and that words did not find, in the order of their keys."""
        held = set(known)
        try:
            near = self._near.nearest(_NEAREST, passages=passages)
        except IndexDamaged:
            self.damaged = True
            raise
        keys = sorted(key for key, cosine in near if self._beyond(cosine) >= self.floor and key not in held)
        return sorted(accept(keys)) if keys and accept is not None else keys

    def of(self, keys: Sequence[str]) -> dict[str, float]:
        """The cosine of each document with the question; opposites count as unrelated, and what has no vector is left
        out."""
        try:
            found = self._near.of(keys)
        except IndexDamaged:
            self.damaged = True
            raise
        if not self._usual:  # the same, for two hundred at once
            return {key: cosine if cosine > 0.0 else 0.0 for key, cosine in found.items()}
        return {key: self._beyond(cosine) for key, cosine in found.items()}


def enough(
    doubtful: Iterable[tuple[str, dict[str, float]]], alike: Sequence[Likeness], *, alone: bool
) -> list[tuple[str, dict[str, float]]]:
    """Of (key, signals) that no word would show, those that are alike enough to any of the models; `alone` says that
    words found nothing at all."""
    least = [(one.signal, one.alone if alone else one.floor) for one in alike]
    return [found for found in doubtful if any(found[1][signal] >= floor for signal, floor in least)]


def filled(known: dict[str, float], keys: Sequence[str]) -> dict[str, float]:
    """With the mean of these for each key that has none: a server has not seen everything yet, and what it has not seen
    shall neither gain nor lose by that."""
    if not known or len(known) == len(keys):
        return known
    mean = sum(sorted(known.values())) / len(known)
    return {key: known.get(key, mean) for key in keys}


def likeness(
    vectors: VectorIndex, question: Question, scores: Scores, facets: Sequence[Sequence[str]], *, former: bool,
    server: str = "",
) -> Likeness:  # fmt: skip
    """Asks the vectors, each word of the question counting as much as it is rare. Unavailable: no server answers."""
    idf = {group.word: weight for group, weight in zip(scores.query.groups, scores.idf, strict=True)}
    usual = sum(idf.values()) / len(idf)
    near = vectors.search(question.text, lambda word: idf.get(fold(word), usual), facets, include_retired=former)
    if vectors.calibrated:
        from memoranda.index.calibration import calibration

        return Likeness(vectors, near, *calibration(vectors), server)
    latin = any("a" <= letter <= "z" for letter in fold(question.text))
    return Likeness(vectors, near, _FLOORS[language_of(question.text)] if latin else _NO_FLOORS)
