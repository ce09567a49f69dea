"""The timeline of a subject: what held when, and what was believed when.

Two times are kept apart. In the world a version holds from `valid_from` to `valid_to`, as its file says; in this Home
it is known from the first commit that holds it (an import counts from the import) until its file was changed or taken
away. What a later note does to an earlier one shows in the beliefs: for each stretch of known time, when the version
was taken to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.notes.chains import Chains, Link
from memoranda.notes.times import Interval, format_instant
from memoranda.operations.listing import still_kept, time_or_none, told
from memoranda.operations.meeting import hides
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.trust.contested import contested_by
from memoranda.trust.edited import State, edited
from memoranda.trust.standing import believed, trust_of
from memoranda.values import dataclass

_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Belief:
    """In a stretch of known time: when a version was taken to hold (None: never), and whether it was a head.

    `known_to` is None while it is still believed.
    """

    known_from: datetime
    known_to: datetime | None
    held: Interval | None
    head: bool

    def json(self) -> dict[str, object]:
        held = self.held
        return {
            "known_from": format_instant(self.known_from), "known_to": time_or_none(self.known_to),
            "held": held is not None, "held_from": time_or_none(held.start) if held else None,
            "held_to": time_or_none(held.end) if held else None, "head": self.head,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Version:
    """One state of one note: what its file says, since when it is known here, and what was believed of it.

    `state` is head, proposed (it would supersede another, or is an edit of reviewed words, and waits for its review),
    superseded, corrected (it never held, as is known now), edited (the file says something else by now), moved (to
    another path), or removed. `recorded_at` is the file's own word. `proposed_by` names the notes that would supersede
    it, `contested_by` those that contradict it.
    """

    id: str
    uri: str
    path: str
    home: str
    subject: str | None
    kind: str
    title: str
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: datetime
    known_to: datetime | None
    recorded_at: str | None
    state: str
    trust: str
    supersedes: tuple[str, ...]
    superseded_by: tuple[str, ...]
    proposed_by: tuple[str, ...]
    contested_by: tuple[str, ...]
    beliefs: tuple[Belief, ...]

    def json(self) -> dict[str, object]:
        return {
            "id": self.id, "uri": self.uri, "path": self.path, "home": self.home, "subject": self.subject,
            "kind": self.kind, "title": self.title, "valid_from": time_or_none(self.valid_from),
            "valid_to": time_or_none(self.valid_to), "known_from": format_instant(self.known_from),
            "known_to": time_or_none(self.known_to), "recorded_at": self.recorded_at, "state": self.state,
            "trust": self.trust, "supersedes": list(self.supersedes), "superseded_by": list(self.superseded_by),
            "proposed_by": list(self.proposed_by),
            "contested_by": list(self.contested_by), "beliefs": [belief.json() for belief in self.beliefs],
        }  # fmt: skip


def timeline(context: Context, space: Space, subject: str) -> list[Version]:
    """Every version of every note on this subject and those below it, in all open Homes, by the time it holds from.

    The notes of their chains are among them, whatever subject they have. InvalidInput for an empty subject.
    """
    pass_guards(context, Call("timeline"))
    subject = subject.strip("/ ")
    if not subject:
        raise InvalidInput("No subject was given.", remedy="Give one, such as customer/acme.")
    found: list[Version] = []
    for home in space.homes():
        home.refresh(context)
        with home.indexes.lock:
            found += _versions(context, home, subject)
    return sorted(found, key=lambda v: (v.home, v.valid_from or _EVER, v.known_from, v.id, v.path))


def _versions(context: Context, home: OpenHome, subject: str) -> list[Version]:
    catalog = home.indexes.catalog
    chains: dict[str, list[NoteRow]] = {}
    for note_id in catalog.ids_about(subject):
        if note_id not in chains:
            chain = still_kept(home, catalog.versions_of_chain(note_id), context.now())
            chains.update({note_id: chain} | {row.id: chain for row in chain})
    rows = list({row.row: row for chain in chains.values() for row in chain}.values())
    contested = contested_by(catalog, [row for row in rows if row.live], context.now())
    trust = trust_of(catalog, rows)
    hidden, stands = hides(context, home), edited(catalog)
    found: list[Version] = []
    for chain in {id(chain): chain for chain in chains.values() if chain}.values():
        beliefs = _beliefs(catalog, chain)
        firm = believed(catalog, chain)
        loose = [other.link() for other, link in zip(chain, firm, strict=True) if other.link() != link]
        for row in chain:
            after = _successors(row, firm)
            proposed = tuple(note_id for note_id in _successors(row, loose) if note_id not in after)
            of_row = beliefs.get(row.row, ())
            state = trust[row.blob].state
            uri, path, about, title = told(home, row, state, hidden)
            found.append(
                Version(
                    row.id, uri, path, home.name, about, row.kind, title, row.valid_from, row.valid_to,
                    row.known_from, row.known_to, row.recorded_at,
                    _state(row, of_row, chain, firm, stands.get(row.id)), state, row.supersedes, after, proposed,
                    contested.get(row.id, ()) if row.live else (), of_row,
                )
            )  # fmt: skip
    return found


def _successors(row: NoteRow, links: Sequence[Link]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(link.id for link in links if row.id in link.supersedes and link.id != row.id))


def _state(
    row: NoteRow, beliefs: Sequence[Belief], chain: Sequence[NoteRow], firm: Sequence[Link], stands: State | None
) -> str:
    """`stands` is the last reviewed state of this note, if its file was edited since."""
    if row.live and stands is not None:
        return "proposed"
    if not row.live and (stands is None or row.row != stands.row):
        then = {other.blob for other in chain if other.id == row.id and other.known_from == row.known_to}
        return "moved" if row.blob in then else "edited" if then else "removed"
    if not beliefs or beliefs[-1].head:
        proposes = any(link.id == row.id and set(row.supersedes) - set(link.supersedes) for link in firm)
        return "proposed" if proposes else "head"
    return "superseded" if beliefs[-1].held is not None else "corrected"


def _beliefs(catalog: Catalog, chain: Sequence[NoteRow]) -> dict[int, tuple[Belief, ...]]:
    """row -> what was believed of it, a stretch of known time after the other."""
    moments = sorted({t for row in chain for t in (row.known_from, row.known_to) if t is not None})
    found: dict[int, list[Belief]] = {}
    by_row = {row.row: row for row in chain}
    for moment, until in zip(moments, [*moments[1:], None], strict=True):
        known = [row for row in chain if row.known_at(moment)]
        chains = Chains(_once(believed(catalog, known)))
        stands = {note_id: state.row for note_id, state in edited(catalog, moment).items()}
        for row in {r.row: r for r in (by_row.get(stands.get(r.id, r.row), r) for r in known)}.values():
            heads = chains.heads_of(row.id)
            now = Belief(moment, until, chains.effective(row.id, moment), row.id in heads)
            before = found.setdefault(row.row, [])
            if before and before[-1].known_to == moment and (before[-1].held, before[-1].head) == (now.held, now.head):
                now = Belief(before.pop().known_from, until, now.held, now.head)
            before.append(now)
    return {row: tuple(beliefs) for row, beliefs in found.items()}


def _once(links: Iterable[Link]) -> list[Link]:
    return list({link.id: link for link in reversed(list(links))}.values())
