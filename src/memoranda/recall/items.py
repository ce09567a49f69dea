"""What recall found, before and after it is fitted to a budget."""

from __future__ import annotations

from memoranda.recall.facts import Ranked
from memoranda.trust.labels import CLEAN, Taint
from memoranda.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Withheld:
    """Something quarantined or external that was found and is only pointed to: no word of it, no path, no subject."""

    id: str
    kind: str
    at: str
    schemes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """One ranked item: a note or a journal passage, whole.

    `score` has six decimals, `ranked` says what made it; `first` is the line of the file at which `text` begins, `blob`
    the exact bytes; `state` is current, ended, future, superseded or passage. `trust` is the
    state that the ledger gives, `roots` where its taint began; `words` are those of the question,
    `contested_by` are the notes that contradict it, `proposed_by` those that would take the place of this reviewed one
    and wait for their review.
    """

    id: str
    path: str
    blob: str
    kind: str
    subject: str | None
    scope: str | None
    text: str
    first: int
    score: float
    ranked: Ranked
    sources: tuple[str, ...]
    reviewed: bool
    taint: tuple[str, ...]
    origin: str
    state: str
    valid_from: str | None
    valid_to: str | None
    recorded_at: str | None
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    speaker: str | None = None
    session: str | None = None
    agent: str | None = None
    trust: str = "unreviewed"
    roots: Taint = CLEAN
    classification: str = "internal"
    words: frozenset[str] = field(default_factory=frozenset)
    contested_by: tuple[str, ...] = ()
    proposed_by: tuple[str, ...] = ()
