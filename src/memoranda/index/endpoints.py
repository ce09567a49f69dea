"""Vectors of a model behind a server that the person's own settings describe.

What the server answered is kept below `.memoranda/models/`, so that making the index again asks for nothing twice.
Nothing that a Home brings along names an address: a recipe names the section of the settings, and that is all.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from memoranda.index import embedding_feed
from memoranda.index.calibration import calibrate
from memoranda.index.catalog import Catalog
from memoranda.index.content import ContentIndex, Progress
from memoranda.index.embedding.endpoint import EndpointEmbedder
from memoranda.index.recipe import Recipe
from memoranda.index.vectors import VectorIndex


class Endpoint(NamedTuple):
    """A server as the person's settings describe it; what its fields mean, `EndpointEmbedder` says."""

    url: str
    model: str
    dimensions: int
    key: str | None = None
    batch: int = 64
    characters: int = 8000
    wait: float = 30.0
    document_prefix: str = ""
    question_prefix: str = ""

    def embedder(self, cache: Path | None = None) -> EndpointEmbedder:
        return EndpointEmbedder(
            self.url, self.model, self.dimensions, cache, key=self.key, batch=self.batch, characters=self.characters,
            wait=self.wait, prefixes=(self.document_prefix, self.question_prefix),
        )  # fmt: skip


def vectors_recipe(endpoint: Endpoint) -> Recipe:
    """The recipe of its vectors: whose model, through which address, of which pieces of text."""
    return VectorIndex.recipe(endpoint.embedder())


def answers_of(endpoint: Endpoint, models: Path) -> Path:
    """The folder of what it has answered."""
    return models / f"answers-{vectors_recipe(endpoint).digest()[:12]}"


def open_vectors(endpoint: Endpoint, models: Path, directory: Path) -> ContentIndex:
    """The vector index of a directory, made with this server. No request is sent."""
    embedder = endpoint.embedder(answers_of(endpoint, models))
    return VectorIndex.open(directory, embedder, close=embedder.close, calibrated=True)


def bring_vectors(
    catalog: Catalog, vectors: VectorIndex, identity: str, progress: Progress | None, *, batch: int
) -> None:
    """As `embedding_feed.bring`; afterwards the index says from which likeness on something is shown."""
    forgotten = embedding_feed.bring(catalog, vectors, identity, progress, batch=batch)
    try:
        calibrate(catalog, vectors)
    finally:
        if forgotten and isinstance(vectors.embedder, EndpointEmbedder):
            vectors.embedder.forget()
