"""From which likeness on something is shown that no word found, for a model of which nothing is known beforehand.

Keys are hashes of contents, so the documents with the least keys are a sample that chance has drawn, and the same one
however the index came to be. The first words of some of them are asked as questions, since many models make a question
into another kind of vector than a text, and two texts of one author are more alike than a question and its answer. Such
a question seldom has to do with the other documents: 99 of 100 pairs are less alike than the floor.
"""

from __future__ import annotations

from math import sqrt
from operator import mul

from memoranda.index.catalog import Catalog
from memoranda.index.embedding import Embedder
from memoranda.index.embedding.endpoint import EndpointEmbedder
from memoranda.index.feeding import documents
from memoranda.index.vectors import VectorIndex

_SAMPLE = 64
_ASKED = 16  # of these, whose first words are asked
_WORDS = 10
_LEAST = 24  # documents below which nothing can be said, and nothing is shown for its likeness alone
_SHARE = 0.35  # of the way from the floor to sameness: what is shown where no word found anything


def calibrate(catalog: Catalog, vectors: VectorIndex) -> None:
    """Notes in the index how alike a question and a document that it is not about are, usually and nearly at most.

    Raises:
        Unavailable: the server of the model does not answer.
    """
    keys = sorted(vectors.keys())[:_SAMPLE]
    sample = " ".join(key[:8] for key in keys)
    state = vectors.state()
    if "alike" in state and state.get("alike of") == sample:
        return
    told = ""
    if len(keys) >= _LEAST:
        cosines = sorted(_unrelated(catalog, vectors, keys))
        usual = min(max(cosines[len(cosines) // 2], 0.0), 0.99)
        told = f"{usual:.6f} {min(cosines[len(cosines) * 99 // 100], 1.0):.6f}"
    vectors.apply(state={"alike": told, "alike of": sample})


def _unrelated(catalog: Catalog, vectors: VectorIndex, keys: list[str]) -> list[float]:
    """The cosines of what is asked with all documents of the sample but the one that it was taken from."""
    held = {key: _numbers(vector) for key, vector in vectors.vectors_of(keys).items()}
    some = list(documents(catalog, keys[:_ASKED]))
    questions = [" ".join(document.text.split()[:_WORDS]) for document in some]
    found = []
    for document, asked in zip(some, map(_numbers, _embedded(vectors.embedder, questions)), strict=True):
        found += [_cosine(asked, other) for key, other in held.items() if key != document.key]
    return found or [0.0]


def _embedded(embedder: Embedder, questions: list[str]) -> list[bytes]:
    """A server that is slow is waited for here, as for the documents: a build has time, and whoever asks has not."""
    if isinstance(embedder, EndpointEmbedder):
        return embedder.embed_questions(questions)
    return [embedder.embed_question(question, lambda _: 1.0) for question in questions]


def _numbers(vector: bytes) -> list[int]:
    return memoryview(vector).cast("b").tolist()


def _cosine(one: list[int], other: list[int]) -> float:
    lengths = sqrt(sum(map(mul, one, one)) * sum(map(mul, other, other)))
    return sum(map(mul, one, other)) / lengths if lengths else 0.0


def calibration(vectors: VectorIndex) -> tuple[tuple[float, float], float]:
    """(floor, floor where no word found anything), and the usual cosine of a question and a document."""
    told = vectors.state().get("alike")
    if not told:
        return (1.1, 1.1), 0.0
    usual, floor = map(float, told.split())
    return (floor, floor + (1 - floor) * _SHARE), usual
