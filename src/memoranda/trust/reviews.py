"""Which bytes are reviewed: what the attestations of the ledger come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from memoranda.index.catalog import Catalog
from memoranda.index.testimony import Review

Counts = Callable[[Review], bool]


def always(_review: Review) -> bool:
    """Without signing, a line whose MAC is right counts (only such lines reach the catalog)."""
    return True


def reviewed_blobs(catalog: Catalog, blobs: Iterable[str], counts: Counts = always) -> set[str]:
    """Those of these blobs whose last attestation that counts accepts them."""
    last: dict[str, str] = {}
    for review in catalog.ledger.reviews(blobs=blobs):
        if counts(review):
            last[review.blob] = review.verdict
    return {blob for blob, verdict in last.items() if verdict == "accept"}


def last_accepted(catalog: Catalog, note_id: str, counts: Counts = always) -> str | None:
    """The newest bytes of a note that stand accepted: what goes on loading while an edit waits for its review."""
    standing: dict[str, str] = {}
    for review in catalog.ledger.reviews(note_id=note_id):
        if counts(review):
            standing.pop(review.blob, None)
            standing[review.blob] = review.verdict
    accepted = [blob for blob, verdict in standing.items() if verdict == "accept"]
    return accepted[-1] if accepted else None
