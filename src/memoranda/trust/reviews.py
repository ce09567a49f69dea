"""Which bytes are reviewed: what the attestations of the ledger come to.

Only attestations that count are asked here: `index.testimony` gives no others.
"""

from __future__ import annotations

from collections.abc import Iterable

from memoranda.index.catalog import Catalog
from memoranda.index.testimony import Review


def verdicts(catalog: Catalog, blobs: Iterable[str]) -> dict[str, str]:
    """blob -> the verdict of its last attestation: accept, reject or revoke."""
    return {review.blob: review.verdict for review in catalog.ledger.reviews(blobs=blobs)}


def reviewed_blobs(catalog: Catalog, blobs: Iterable[str]) -> set[str]:
    """Those of these blobs whose last attestation accepts them."""
    return {blob for blob, verdict in verdicts(catalog, blobs).items() if verdict == "accept"}


def accepted(catalog: Catalog, note_id: str | None = None) -> dict[str, dict[str, Review]]:
    """note id -> blob -> the attestation by which these bytes of it stand accepted, the newest last; all, or one's."""
    ledger = catalog.ledger
    reviews = (
        ledger.reviews(note_id=note_id) if note_id is not None else filter(ledger.counts, ledger.attested(all=True))
    )
    found: dict[str, dict[str, Review]] = {}
    for review in reviews:
        standing = found.setdefault(review.id, {})
        standing.pop(review.blob, None)
        if review.verdict == "accept":
            standing[review.blob] = review
    return {name: standing for name, standing in found.items() if standing}


def last_accepted(catalog: Catalog, note_id: str) -> str | None:
    """The newest bytes of a note that stand accepted: what goes on loading while an edit waits for its review."""
    standing: dict[str, str] = {}
    for review in catalog.ledger.reviews(note_id=note_id):
        standing.pop(review.blob, None)
        standing[review.blob] = review.verdict
    accepted = [blob for blob, verdict in standing.items() if verdict == "accept"]
    return accepted[-1] if accepted else None
