"""Our bundled table of vectors inside a peer's own environment: the same embedder for everybody.

The worker puts `src` of this checkout at the end of its path; the package with the table is installed beside the peer.
A text's vector has length 1; in a question no word counts more than another, which only a whole Home could say.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

DIMENSIONS = 256
NAME = "wordllama-256"


class Table:
    """Texts and questions as vectors: lists of 256 floats."""

    def __init__(self, directory: str) -> None:
        sys.path.append(str(Path(__file__).resolve().parent.parent / "src"))
        from memoranda.index.embedding import Passage
        from memoranda.index.embedding.static import StaticEmbedder, installed

        folder = installed()
        if folder is None:
            raise RuntimeError("wordllama is not installed beside the peer")
        self._passage = Passage
        self._embedder = StaticEmbedder(folder, Path(directory))

    def texts(self, texts: Sequence[str]) -> list[list[float]]:
        return [_unit(vector) for vector in self._embedder.embed([self._passage("", text) for text in texts])]

    def question(self, text: str) -> list[float]:
        return _unit(self._embedder.embed_question(text, lambda _: 1.0))


def _unit(vector: bytes) -> list[float]:
    numbers = [byte - 256 if byte > 127 else byte for byte in vector]
    length = sum(number * number for number in numbers) ** 0.5 or 1.0
    return [number / length for number in numbers]
