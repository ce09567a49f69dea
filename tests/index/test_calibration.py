"""The floor of a model of which nothing is known: measured with questions, and once for the same documents."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from memoranda.context import Context
from memoranda.index import embedding_feed
from memoranda.index.calibration import calibrate, calibration
from memoranda.index.embedding import Passage, Weigh, scaled
from memoranda.index.vectors import VectorIndex
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space


class Leaning:
    """Documents lean one way and are nearly the same; questions lean another way."""

    dimensions = 64
    params: Mapping[str, object] = {"model": "leaning"}

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, passages: Sequence[Passage]) -> list[bytes]:
        return [self._vector(passage.text, 0) for passage in passages]

    def embed_question(self, text: str, weigh: Weigh) -> bytes:
        self.asked.append(text)
        return self._vector(text, 32)

    def _vector(self, text: str, lean: int) -> bytes:
        numbers = [byte - 128 for byte in hashlib.sha512(text.encode()).digest()]
        return scaled([number + (600 if lean <= n < lean + 32 else 0) for n, number in enumerate(numbers)])


def test_the_floor_is_that_of_questions_and_is_measured_once(context: Context, space: Space, tmp_path: Path) -> None:
    for n in range(40):
        remember(context, space, NewNote(f"Note {n} says this and that in {n} words, and then it goes on for a while."))
    home = space.one()
    home.indexes.catch_up()
    catalog, model = home.indexes.catalog, Leaning()
    vectors = VectorIndex.open(tmp_path / "vectors", model, calibrated=True)
    embedding_feed.bring(catalog, vectors, "one")
    calibrate(catalog, vectors)
    (floor, alone), usual = calibration(vectors)
    assert 0 <= usual < floor < 0.3 and floor < alone < 0.6  # two documents are alike to more than 0.9
    assert len(model.asked) == 16 and all(len(text.split()) == 10 for text in model.asked)
    calibrate(catalog, vectors)
    assert len(model.asked) == 16
    vectors.apply(drop=sorted(vectors.keys())[:1])
    calibrate(catalog, vectors)
    assert len(model.asked) == 32
    vectors.apply(drop=sorted(vectors.keys())[:20])
    calibrate(catalog, vectors)
    assert calibration(vectors)[0][0] > 1  # too few to say anything: nothing is shown for its likeness alone
    vectors.close()
