"""From which likeness on something is shown that no word found, for a model of which nothing is known beforehand.

Keys are hashes of contents, so the documents with the least keys are a sample that chance has drawn, and the same one
however the index came to be. Two of them seldom have to do with each other: 99 of 100 such pairs are less alike than
the floor.
"""

from __future__ import annotations

from itertools import combinations
from math import sqrt
from operator import mul

from memoranda.index.vectors import VectorIndex

_SAMPLE = 64
_LEAST = 24  # documents below which nothing can be said, and nothing is shown for its likeness alone
_SHARE = 0.35  # of the way from the floor to sameness: what is shown where no word found anything


def calibrate(vectors: VectorIndex) -> None:
    """Notes in the index how alike two of its documents usually are, and nearly always are at most."""
    keys = sorted(vectors.keys())[:_SAMPLE]
    if len(keys) < _LEAST:
        told = ""
    else:
        numbers = [memoryview(vector).cast("b").tolist() for vector in vectors.vectors_of(keys).values()]
        lengths = [sqrt(sum(map(mul, row, row))) or 1.0 for row in numbers]
        pairs = combinations(zip(numbers, lengths, strict=True), 2)
        cosines = sorted(sum(map(mul, one, other)) / (a * b) for (one, a), (other, b) in pairs)
        usual = min(max(cosines[len(cosines) // 2], 0.0), 0.99)
        told = f"{usual:.6f} {min(cosines[len(cosines) * 99 // 100], 1.0):.6f}"
    if vectors.state().get("alike") != told:
        vectors.apply(state={"alike": told})


def calibration(vectors: VectorIndex) -> tuple[tuple[float, float], float]:
    """(floor, floor where no word found anything), and the usual cosine of two documents."""
    told = vectors.state().get("alike")
    if not told:
        return (1.1, 1.1), 0.0
    usual, floor = map(float, told.split())
    return (floor, floor + (1 - floor) * _SHARE), usual
