"""What claims to be reviewed and is not: in files, in the ledger, in other refs. None of it counts; doctor lists it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from memoranda.home.store import FROM, LEDGER_REF
from memoranda.index.testimony import Review
from memoranda.operations.findings import Finding
from memoranda.operations.open_home import OpenHome
from memoranda.trust.contested import contests
from memoranda.trust.standing import Trust, trust_of

_ALWAYS = datetime.max.replace(tzinfo=UTC)


def review_findings(home: OpenHome) -> Iterator[Finding]:
    """Claims of a review that do not count, a setting under which none can, and contradictions that wait."""
    yield from _setting(home)
    yield from _claims(home)
    yield from _lines(home)
    yield from _refs(home)
    yield from _contested(home)


def _setting(home: OpenHome) -> Iterator[Finding]:
    trouble = home.signing.trouble(home.repository.root) if home.signing is not None else None
    if trouble is not None:
        yield Finding(
            "signers_unusable", "error", "config.toml", f"No review counts here, because {trouble}.",
            "Name a file under [reviews] that lies outside every Home and that only you can write.",
        )  # fmt: skip


def _claims(home: OpenHome) -> Iterator[Finding]:
    catalog = home.indexes.catalog
    rows = list(catalog.live_notes("AND n.reviewed = 1"))
    trust = trust_of(catalog, rows)
    for row in rows:
        if trust[row.blob].state != "reviewed":
            yield Finding(
                "review_claimed", "warning", row.path,
                f"The file says `reviewed: true`, and {_why(home, trust[row.blob], row.id)}. It does not count.",
                f"Read it and accept it (`memoranda review accept {row.id}`), or take the word out.",
            )  # fmt: skip


def _why(home: OpenHome, trust: Trust, note_id: str) -> str:
    if trust.was_reviewed:
        return "it was edited after its review"
    if trust.rejected:
        return "a person has rejected these bytes"
    reviews = home.indexes.catalog.ledger.attested(note_id=note_id)
    if reviews:
        return "what the ledger says of it does not count here"
    return "no person of this installation has accepted these bytes"


def _lines(home: OpenHome) -> Iterator[Finding]:
    """Reviews in the ledger that do not count: made up, of another installation, or not signed as they have to be."""
    ledger = home.indexes.catalog.ledger
    seen: set[tuple[str, str]] = set()
    for path, replica, data in home.repository.ledger_segments():
        for line in data.decode("utf-8", "replace").splitlines():
            review = ledger.read_review(replica, line)
            if review is None or ledger.counts(review) or (review.id, review.verdict) in seen:
                continue
            if _taken_back(home, review):
                continue
            seen.add((review.id, review.verdict))
            what, remedy = _uncounted(home, review)
            yield Finding("review_uncounted", "warning", path, what, remedy)


def _taken_back(home: OpenHome, review: Review) -> bool:
    """Whether an acceptance that was good counts no more since a later line, which counts, took it back."""
    if review.verdict != "accept" or not (review.vouched or (home.signing and review.signature)):
        return False
    decided = home.indexes.catalog.ledger.reviews(note_id=review.id)
    return any(later.blob == review.blob and later.verdict != "accept" for later in decided)


def _uncounted(home: OpenHome, review: Review) -> tuple[str, str]:
    said = f"A line of the ledger says {review.verdict} of {review.id} and does not count"
    again = f"Read the note, and decide yourself: `memoranda review accept {review.id}`."
    if home.signing is None and review.vouched:
        return f"{said}: a person took it back, and the ledger holds no line of that any more.", again
    if home.signing is None:
        return f"{said}: this installation did not write it.", f"{again} Signed reviews count in every clone."
    if review.signature is None:
        return f"{said}: it is not signed, and signed reviews are asked for.", again
    return (
        f"{said}: no allowed signer signed it.",
        f"{again} If you trust its signer, add the key to the allowed signers.",
    )


def _refs(home: OpenHome) -> Iterator[Finding]:
    if home.in_folder is None:
        return  # nobody else writes refs there
    refs = home.in_folder.store.refs
    for name in (*refs.names("refs/memoranda"), *refs.names("refs/notes")):
        if name != LEDGER_REF and not name.startswith(f"{FROM}/"):
            yield Finding(
                "ref_foreign", "notice", name, "Nothing in this ref says anything about reviews, whoever wrote it.",
                "If nobody knows it, delete it: `git update-ref -d`.",
            )  # fmt: skip


def _contested(home: OpenHome) -> Iterator[Finding]:
    for contest in contests(home.indexes.catalog, _ALWAYS):
        if contest.reason == "two heads":
            heads = ", ".join(row.id for row in contest.members)
            yield Finding(
                "two_heads", "warning", contest.members[0].id,
                f"One chain has {len(contest.members)} heads: {heads}.",
                "Decide: `memoranda review list` shows them; or write one note that supersedes them all.",
            )  # fmt: skip
        elif contest.reason == "other value":  # files that share an id have a finding of their own
            names = ", ".join(row.id for row in contest.members)
            yield Finding(
                "contested", "warning", contest.members[0].path,
                f"These facts give `{contest.about}` different values while both hold: {names}.",
                "Decide: `memoranda review list` shows them.",
            )  # fmt: skip
