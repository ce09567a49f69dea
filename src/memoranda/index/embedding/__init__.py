"""Texts as vectors: one interface for a bundled model and for models behind an endpoint.

A vector is kept as signed bytes, one a dimension, scaled so that the largest is 127 or -127; what is compared is the
angle between two of them, which the scale does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

Weigh = Callable[[str], float]
"""How much a word of a question counts (0: not at all), given as it stands there."""


class Passage(NamedTuple):
    """What is embedded of a document: its `title` (a journal entry's speaker) and its `text`."""

    title: str
    text: str


class Embedder(Protocol):
    """Makes vectors. Equal texts give equal vectors as long as `params` are equal."""

    @property
    def dimensions(self) -> int:
        """Numbers in a vector, a multiple of 8."""
        ...

    @property
    def params(self) -> Mapping[str, object]:
        """What determines a vector: the model and the digest of its weights, the code's version. JSON values only."""
        ...

    def embed(self, passages: Sequence[Passage]) -> list[bytes]:
        """One vector for each; all zeros where nothing can be said of a text."""
        ...

    def embed_question(self, text: str, weigh: Weigh) -> bytes:
        """The vector of a question; a model that reads whole sentences does without `weigh`."""
        ...


def scaled(numbers: Sequence[int]) -> bytes:
    """Whole numbers as a vector: divided by the largest, times 127, rounded half up. Exact on any machine."""
    most = max(max(numbers), -min(numbers))
    if not most:
        return bytes(len(numbers))
    return bytes([((254 * number + most) // (2 * most)) & 255 for number in numbers])
