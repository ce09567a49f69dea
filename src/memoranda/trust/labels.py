"""Labels, taint, the state of a note and the Rule of Two: values and pure rules.

Content carries two small labels, integrity and sensitivity. A session and a note carry a taint: the set of roots that
brought outside content in. Taint only grows; there is no function here that takes a root away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from memoranda.values import dataclass

Integrity = Literal["internal", "external"]
Sensitivity = Literal["public", "internal", "confidential", "restricted"]
State = Literal["reviewed", "quarantined", "contested", "unclaimed", "unreviewed"]

SENSITIVITIES: tuple[Sensitivity, ...] = ("public", "internal", "confidential", "restricted")
STATES: tuple[State, ...] = ("reviewed", "quarantined", "contested", "unclaimed", "unreviewed")
ROOT_KINDS = ("journal", "note", "tool", "person", "import", "unresolved")

# Scopes that others read too; a write to `session`, `user` or `agent` stays with the session's own person and agent.
SHARED_SCOPES = frozenset({"shared_agents", "project", "team", "organization", "global"})
_ALWAYS_BEYOND = frozenset({"export", "purge", "accept_review"})
_WRITES = frozenset({"remember", "update", "forget", "import", "rollback", "expire", "revoke_review", "reject_review"})


@dataclass(frozen=True, slots=True, order=True)
class Root:
    """Where a taint began.

    Args:
        kind: what brought it: one of ROOT_KINDS.
        source: the entry, note, tool or pointer by its id or address. It may be the attacker's word: show it as data.
        reason: why it counts as external, in our words.
    """

    kind: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Taint:
    """What a session or a note has been in contact with: a set of roots, empty when it met nothing from outside."""

    roots: frozenset[Root] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.roots)

    def __or__(self, other: Taint) -> Taint:
        if other.roots <= self.roots:
            return self
        return Taint(self.roots | other.roots)

    def __le__(self, other: Taint) -> bool:
        """Whether all of this is also in the other."""
        return self.roots <= other.roots

    @property
    def integrity(self) -> Integrity:
        return "external" if self.roots else "internal"

    @property
    def labels(self) -> tuple[str, ...]:
        """As the field `taint` of a note shows it: `()` or `("external",)`."""
        return ("external",) if self.roots else ()

    def records(self) -> tuple[dict[str, str], ...]:
        """As the ledger keeps it, in a fixed order."""
        if not self.roots:
            return ()
        return tuple({"kind": root.kind, "source": root.source, "reason": root.reason} for root in sorted(self.roots))

    @staticmethod
    def of(*roots: Root) -> Taint:
        return Taint(frozenset(roots))

    @staticmethod
    def read(records: Iterable[Mapping[str, object]]) -> Taint:
        """The taint from its records; one that has lost a part still counts, since a taint is never dropped."""
        return Taint(
            frozenset(
                Root(str(r.get("kind") or "unresolved"), str(r.get("source") or ""), str(r.get("reason") or ""))
                for r in records
            )
        )


CLEAN = Taint()


def unresolved(source: str) -> Taint:
    """The taint of a source that cannot be resolved: it counts as external."""
    return Taint.of(Root("unresolved", source, "the source cannot be resolved"))


def inherit(session: Taint, sources: Iterable[Taint]) -> Taint:
    """The taint that a note is stamped with: its session's at that moment, and every source's."""
    roots = set(session.roots)  # a file may cite a hundred thousand
    for source in sources:
        roots |= source.roots
    return session if len(roots) == len(session.roots) else Taint(frozenset(roots))


def is_private(classification: str) -> bool:
    """Whether returned text of this classification means that the session has met private data.

    Private begins at `confidential`. A word that is not one of the four counts as private: a slip of the pen in a file
    must not open it.
    """
    return classification not in ("public", "internal")


def note_state(*, reviewed: bool, was_reviewed: bool, taint: Taint, written: bool) -> State:
    """The state of a note, from what the ledger says about it.

    Args:
        reviewed: a review stands that counts for these exact bytes.
        was_reviewed: one stands for other bytes of this note.
        taint: as stamped at the write, or of the sessions that were open when the file was found.
        written: it came through an operation (else it was found in a file).

    A tainted edit of a reviewed note is quarantined and not merely contested, so that its text is handled as what it
    is; that the last reviewed bytes keep loading depends on `was_reviewed` and not on the state (`loads`).
    """
    if reviewed:
        return "reviewed"
    if taint:
        return "quarantined"
    if was_reviewed:
        return "contested"
    return "unreviewed" if written else "unclaimed"


def loads(*, reviewed: bool, was_reviewed: bool) -> Literal["these", "last reviewed", ""]:
    """Which bytes of a note load automatically: these, the last ones that were reviewed, or none."""
    if reviewed:
        return "these"
    return "last reviewed" if was_reviewed else ""


def reaches_beyond(operation: str, scope: str | None = None) -> bool:
    """Whether this operation changes state beyond the session: what others read, send or lose.

    Export, purge and the acceptance of a review always do; a write does when its scope is shared. `operation` is the
    name of an operation (`remember`, `export`, `accept_review`, …); one that is not known here counts as reaching
    beyond, so that a new operation is not let through because somebody forgot this list.
    """
    if operation in _READS:
        return False
    if operation in _ALWAYS_BEYOND:
        return True
    if operation in _WRITES:
        return scope in SHARED_SCOPES
    return operation not in _OWN


_READS = frozenset(
    {"recall", "search", "read", "list", "get", "history", "diff", "log", "timeline", "trace", "context", "scan"}
    | {"doctor", "session_show", "list_reviews", "show_review"}
)
# What an agent does to itself: its journal and its own taint; and caches, which are made again from the notes.
_OWN = frozenset({"journal", "taint", "open_session", "close_session", "index drop", "index rebuild"})


def two_met(met_external: bool, met_private: bool, reaches: bool) -> tuple[str, ...]:
    """The Rule of Two: `()` when the operation may go on, or the two things that the session has met.

    Args:
        met_external: the session has met untrusted content.
        met_private: it has met private data.
        reaches: it wants to change state beyond itself (`reaches_beyond`).
    """
    return ("untrusted content", "private data") if met_external and met_private and reaches else ()
