"""The state of notes as the ledger tells it, and the chains that may be believed.

A quarantined note supersedes nothing: it is a proposal to, until a person has reviewed it. Nor does one that a person
has rejected, nor does what was found in a file supersede a reviewed note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.index.testimony import Wrote
from memoranda.notes.chains import Link
from memoranda.trust.labels import CLEAN, Root, State, Taint, note_state
from memoranda.trust.reviews import last_accepted, verdicts
from memoranda.values import dataclass, replace


class Told(Protocol):
    """What is needed of a note: its id, its bytes by blob id, and the taint that its file displays."""

    @property
    def id(self) -> str: ...
    @property
    def blob(self) -> str: ...
    @property
    def taint(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Trust:
    """How far a note may be trusted: its state, its taint with its roots, and who wrote it in which session.

    `rejected` when the last decision on these bytes was that nobody stands by them, `was_reviewed` when other bytes of
    this note stand accepted.
    """

    state: State
    taint: Taint
    wrote: Wrote | None
    rejected: bool = False
    was_reviewed: bool = False

    @property
    def supersedes(self) -> bool:
        """Whether a note supersedes what it names, whatever that is."""
        return self.state == "reviewed" or (self.state == "unreviewed" and not self.rejected)


def trust_of(catalog: Catalog, notes: Iterable[Told]) -> dict[str, Trust]:
    """blob -> the trust of each of these notes."""
    wanted = list(notes)
    wrote = catalog.ledger.wrote(note.blob for note in wanted)
    any_review = catalog.ledger.has_reviews()
    decided = verdicts(catalog, (note.blob for note in wanted)) if any_review else {}
    found: dict[str, Trust] = {}
    for note in wanted:
        line = wrote.get(note.blob)
        taint = stamped(line, note.taint, note.id)
        verdict = decided.get(note.blob)
        accepted = verdict == "accept"
        before = any_review and not accepted and last_accepted(catalog, note.id) is not None
        written = line is not None and line.vouched and line.kind in ("write", "writes")
        state = note_state(reviewed=accepted, was_reviewed=before, taint=taint, written=written)
        found[note.blob] = Trust(state, taint, line, verdict == "reject", before)
    return found


def stamped(line: Wrote | None, displayed: Sequence[str], note_id: str) -> Taint:
    """The taint of a note: as the ledger has it, and more when the file itself admits to some; never less."""
    taint = Taint.read(line.taint) if line is not None and line.taint else CLEAN
    if displayed and not taint:
        taint = Taint.of(Root("note", note_id, "its file says so"))
    return taint


def believed(catalog: Catalog, rows: Sequence[NoteRow], *, files: bool = False) -> list[Link]:
    """The links of a chain as far as they may be believed.

    Not those of quarantined and of rejected notes; of notes that nobody has written through an operation, not those to
    reviewed notes, but with `files`: those supersede nothing, and contradict what does. A reviewed note that was edited
    since stands in its chain as its reviewed bytes say.
    """
    trust = trust_of(catalog, rows)
    return [_link(catalog, row, rows, trust, files) for row in rows]


def _link(catalog: Catalog, row: NoteRow, rows: Sequence[NoteRow], trust: Mapping[str, Trust], files: bool) -> Link:
    link, how = row.link(), trust[row.blob]
    if how.supersedes:
        return link
    if how.was_reviewed:
        former = last_accepted(catalog, row.id)
        return next((state.link() for state in catalog.all_states(row.id) if state.blob == former), _bare(link))
    if how.state == "unclaimed" and not how.rejected:
        if files:
            return link
        firm = {other.id for other in rows if trust[other.blob].was_reviewed or trust[other.blob].state == "reviewed"}
        return replace(link, supersedes=tuple(dict.fromkeys(old for old in link.supersedes if old not in firm)))
    return _bare(link)


def _bare(link: Link) -> Link:
    return replace(link, supersedes=())
