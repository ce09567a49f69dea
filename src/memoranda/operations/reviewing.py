"""The review desk of a Home: what waits for a person, with the evidence, and what the person decided.

A review is a line of the ledger about a note's exact bytes, signed with a key outside every Home. Only a person at a
terminal gives one; nothing that comes over an agent's connection does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Conflict, InvalidInput, MemorandaError
from memoranda.home.draft import Draft
from memoranda.index.rows import NoteRow
from memoranda.index.testimony import SessionEvent
from memoranda.notes.chains import unknown_note
from memoranda.notes.ids import is_note_id
from memoranda.notes.model import Note, read_note
from memoranda.notes.pointers import parse_pointer
from memoranda.notes.times import format_instant
from memoranda.operations.attesting import Decision, attested
from memoranda.operations.listing import note_uri
from memoranda.operations.meeting import hides, meet, quarantined
from memoranda.operations.open_home import OpenHome, sought, undisturbed
from memoranda.operations.pipeline import Call, known_words, pass_guards
from memoranda.operations.session_desk import event_json, story_of
from memoranda.operations.settling import Contested, contested_groups, draft_of, settlements
from memoranda.operations.space import Space
from memoranda.operations.stamping import stood, taint_of_sources
from memoranda.operations.tracing import trace
from memoranda.trust.kept import ended
from memoranda.trust.labels import STATES, Root
from memoranda.trust.reviews import accepted
from memoranda.trust.standing import Trust, believed, trust_of
from memoranda.values import dataclass, field, replace

VERDICTS = ("accept", "reject", "revoke")
_WAITING = ("quarantined", "contested", "unreviewed", "unclaimed")
_EDITS = ("contested", "unclaimed")  # found in a file, in a note that was reviewed or in any other


@dataclass(frozen=True, slots=True)
class Evidence:
    """One source of a note, read back at its commit; `text` is None when it leads nowhere that is open.

    `stood` is false where nothing here shows that these words ever stood at that place.
    """

    uri: str
    text: str | None
    stood: bool = True

    def json(self) -> dict[str, object]:
        return {"uri": self.uri, "text": self.text, "stood": self.stood}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A note that waits for a review, or is shown for one.

    `state` as in `trust.labels`; `taint` says where its taint began; `verdict` is the last decision on these bytes;
    `story` is what befell the session that wrote it, up to now, and what it inherits from others (`inherit`).
    """

    id: str
    uri: str
    path: str
    home: str
    state: str
    kind: str
    subject: str | None
    text: str
    supersedes: tuple[str, ...]
    taint: tuple[dict[str, str], ...]
    agent: str | None
    session: str | None
    written_at: datetime | None
    verdict: str | None
    evidence: tuple[Evidence, ...] = ()
    story: tuple[SessionEvent, ...] = ()

    def json(self) -> dict[str, object]:
        return {
            "id": self.id, "uri": self.uri, "path": self.path, "home": self.home, "state": self.state,
            "kind": self.kind, "subject": self.subject, "text": self.text, "supersedes": list(self.supersedes),
            "taint": list(self.taint), "agent": self.agent, "session": self.session,
            "written_at": None if self.written_at is None else format_instant(self.written_at),
            "verdict": self.verdict, "evidence": [e.json() for e in self.evidence],
            "story": [event_json(e) for e in self.story],
        }  # fmt: skip


def queue(context: Context, space: Space, *, states: Sequence[str] = ()) -> list[Waiting]:
    """What waits for a review in the nearest Home: everything that is not reviewed, or only these states.

    What was rejected waits no more, nor does what is superseded: its head does. Sources are not read back here; `show`
    does. An agent whose session has met nothing from outside is told of what is quarantined only that it is there.
    HomeNotFound, InvalidInput.
    """
    pass_guards(context, Call("list_reviews"))
    known_words("state", states, STATES)
    home = space.one()
    home.refresh(context)
    found = _in_states(home, states or _WAITING, context.now(), hides(context, home))
    order = {state: n for n, state in enumerate(_WAITING)}
    settled = _superseded(home)
    waiting = [item for item in found if states or (item.verdict != "reject" and item.id not in settled)]
    return sorted(waiting, key=lambda item: (order.get(item.state, len(order)), item.path))


@undisturbed
def _superseded(home: OpenHome) -> set[str]:
    """The ids that a note supersedes, as far as it may be believed: a quarantined one only proposes to."""
    catalog = home.indexes.catalog
    return {old for link in believed(catalog, catalog.linked_notes()) for old in link.supersedes}


@undisturbed
def _in_states(home: OpenHome, states: Sequence[str], now: datetime, hidden: bool) -> list[Waiting]:
    catalog = home.indexes.catalog
    gone = ended(catalog, now)
    rows = [row for row in catalog.live_notes() if row.id not in gone]
    trust = trust_of(catalog, rows)
    return [_waiting(home, row, trust[row.blob], hidden=hidden) for row in rows if trust[row.blob].state in states]


def edits(context: Context, space: Space) -> list[Waiting]:
    """One's own edits that wait: what was found in a file and nothing from outside has touched. HomeNotFound."""
    return [item for item in queue(context, space, states=_EDITS) if item.verdict != "reject"]


def unclaimed(context: Context, space: Space) -> list[str]:
    """Pointers to the exact bytes of one's own edits that wait, without those that contradict something."""
    contested = {note["path"] for group in contradictions(context, space) for note in group.notes}
    return [item.uri for item in edits(context, space) if item.path not in contested]


def contradictions(context: Context, space: Space) -> list[Contested]:
    """What contradicts what in the nearest Home, as far as no person has settled it. HomeNotFound."""
    pass_guards(context, Call("list_reviews"))
    home = space.one()
    home.refresh(context)
    return contested_groups(context, home)


def show(context: Context, space: Space, note_id: str) -> Waiting:
    """One note, named as in `decide`, with its sources read back at their commits.

    An agent's session has met what it is shown. UnknownNote.
    """
    pass_guards(context, Call("show_review"))
    _refreshed(context, space)
    home, row = _find(context, space, note_id, one=False)
    meet(context, home, [row])
    sources = _read(home, row).sources
    if roots := taint_of_sources(space.homes(), (s for s in sources if s.startswith("nas://"))).roots:
        home.sessions.raise_taint(context, sorted(roots))  # what it cites is read back
    evidence = tuple(_read_back(space, source) for source in sources)
    item, roots = _standing(home, row, evidence)
    return replace(item, story=story_of(context, home, item.session, roots)) if item.session else item


@undisturbed
def _standing(home: OpenHome, row: NoteRow, evidence: tuple[Evidence, ...] = ()) -> tuple[Waiting, frozenset[Root]]:
    """A note with how far it may be trusted now, and where its taint began."""
    trust = trust_of(home.indexes.catalog, [row])[row.blob]
    return _waiting(home, row, trust, evidence), trust.taint.roots


@dataclass(frozen=True, slots=True)
class Decided:
    """What came of a decision.

    `items` are the notes as they stand now, `settled` the notes that were written to settle a contradiction (id -> the
    ids that it supersedes), `contested` the contradictions that these notes still are a part of, `descendants` the
    notes that were made from those whose acceptance was taken back.
    """

    items: tuple[Waiting, ...]
    settled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    contested: tuple[Contested, ...] = ()
    descendants: tuple[str, ...] = ()

    def json(self) -> dict[str, object]:
        return {
            "decided": [item.json() for item in self.items],
            "settled": [{"id": note, "supersedes": list(over)} for note, over in self.settled.items()],
            "contested": [group.json() for group in self.contested], "descendants": list(self.descendants),
        }  # fmt: skip


def decide(
    context: Context, space: Space, note_ids: Sequence[str], verdict: str, *, comment: str | None = None
) -> Decided:
    """Attests that a person accepts, rejects or takes back the acceptance of these notes, as they stand now.

    A note is named by its id, its path, or a pointer to its exact bytes. Accepting one of several notes that contradict
    each other settles it: a new note with its words, accepted too, supersedes them. Accepting all of them in one call
    says that they stand side by side.

    Raises:
        ConfirmationRequired: nobody is at a terminal.
        UnknownNote: one of them does not exist; nothing was decided then.
        InvalidInput: an id that several different files have.
        Conflict: a note no longer has the bytes that a pointer names.
        ReviewUnsigned: signed reviews are configured, and one could not be signed.
    """
    operation = {"accept": "accept_review", "reject": "reject_review", "revoke": "revoke_review"}[verdict]
    home = space.one()
    met = space.met(context, home)
    pass_guards(context, Call(operation, writes=True, text=comment or "", met=met, rules=home.rules))
    if not context.person:
        raise ConfirmationRequired(
            "A review is given by a person at a terminal.",
            why="Standard input or output is not a terminal, so nobody can be taken to have read the note.",
            remedy="Run the command in a terminal of your own; `memoranda review list` shows what waits.",
        )
    _refreshed(context, space)
    found = [_find(context, space, note_id) for note_id in dict.fromkeys(note_ids)]
    settled: dict[str, tuple[str, ...]] = {}
    for home in {id(home): home for home, _ in found}.values():
        rows = [row for other, row in found if other is home]
        _attest(context, home, [d for row in rows for d in _decisions(home, row, verdict)], comment)
        home.refresh(context)
        if verdict == "accept":
            settled |= _settle(context, space, home, rows, comment)
            home.refresh(context)
    return _decided(context, space, found, settled, verdict)


def _decided(
    context: Context, space: Space, found: Sequence[tuple[OpenHome, NoteRow]], settled: dict[str, tuple[str, ...]],
    verdict: str,
) -> Decided:  # fmt: skip
    items = [_standing(home, row)[0] for home, row in found]
    paths = {row.path for _, row in found}
    contested = [group for home in {id(h): h for h, _ in found}.values() for group in contested_groups(context, home)]
    left = [group for group in contested if any(note["path"] in paths for note in group.notes)]
    made: dict[str, None] = {}
    if verdict == "revoke":
        for _, row in found:
            steps = trace(context, space, row.id).downstream
            made.update(dict.fromkeys(s.name for s in steps if s.kind == "note" and s.link != "superseded by"))
    return Decided(tuple(items), settled, tuple(left), tuple(made))


@undisturbed
def _decisions(home: OpenHome, row: NoteRow, verdict: str) -> list[Decision]:
    """The decision about a note's bytes; what is taken back is taken back of all its bytes that stand accepted."""
    blobs = [row.blob]
    if verdict == "revoke":
        blobs += [blob for blob in accepted(home.indexes.catalog, row.id).get(row.id, {}) if blob != row.blob]
    return [Decision(row.id, row.path, blob, verdict) for blob in blobs]


def _attest(context: Context, home: OpenHome, decisions: Sequence[Decision], comment: str | None) -> None:
    lines = attested(context, home, decisions, comment)

    def build(_at: datetime) -> Draft:
        context.still_allowed()
        what = decisions[0].id if len(decisions) == 1 else f"{len(decisions)} notes"
        return Draft("review", f"{decisions[0].verdict.capitalize()} {what}", (), lines, {}, context.user)

    _write(context, home, decisions, build)


def _write(context: Context, home: OpenHome, decisions: Sequence[Decision], build: Callable[[datetime], Draft]) -> None:
    """Writes decisions: what is withdrawn is kept outside first, so that a crash in between leaves it withdrawn."""
    taken = [decision.blob for decision in decisions if decision.verdict == "accept"]
    for decision in decisions:
        if decision.verdict != "accept":
            home.withdrawn.settle([decision.blob], decision.verdict, context.user, context.now())
    home.repository.write(context, build)
    home.withdrawn.settle(taken, "accept", context.user, context.now())


def _settle(
    context: Context, space: Space, home: OpenHome, rows: Sequence[NoteRow], comment: str | None
) -> dict[str, tuple[str, ...]]:
    settled: dict[str, tuple[str, ...]] = {}
    for settlement in list(settlements(context, home, rows)):
        lines = attested(context, home, settlement.decisions, comment)
        draft = draft_of(context, settlement, lines, space.met(context, home).session)
        _write(context, home, settlement.decisions, lambda _at, draft=draft: draft)  # type: ignore[misc]
        if settlement.note_id is not None:
            settled[settlement.note_id] = settlement.over
    return settled


def _refreshed(context: Context, space: Space) -> None:
    for home in space.homes():
        home.refresh(context)


def _find(context: Context, space: Space, named: str, *, one: bool = True) -> tuple[OpenHome, NoteRow]:
    """The note that is named by its id, its path, or a pointer to its exact bytes; `one`: an id that means one file."""
    if named.startswith("nas://"):
        pointer = parse_pointer(named)
        home = space.of(pointer)
        row = next(iter(_named(home, pointer.path)), None)
        if row is not None and pointer.rev not in (None, row.blob):
            raise Conflict(
                f"{pointer.path} has changed since.",
                why="Its bytes are not those that the pointer names.",
                remedy="Read it again: `memoranda review show`.",
            )
        if row is None:
            raise unknown_note(named)
        return home, row

    def look(home: OpenHome) -> NoteRow | None:
        rows = _named(home, named)
        if one and len({row.blob for row in rows}) > 1:
            raise InvalidInput(
                f"{len(rows)} files have the id {named}: {', '.join(row.path for row in rows)}.",
                why="They differ, and only one of them can be meant.",
                remedy="Name it by its path.",
            )
        return rows[0] if rows else None

    found = sought(context, space.homes(), look)
    if found is None:
        raise unknown_note(named)
    return found


@undisturbed
def _named(home: OpenHome, named: str) -> list[NoteRow]:
    """The notes with this id, or the one at this path."""
    catalog = home.indexes.catalog
    if is_note_id(named):
        return catalog.by_id(named)
    row = catalog.by_path(named)
    return [] if row is None else [row]


def _read(home: OpenHome, row: NoteRow) -> Note:
    """The note from its bytes, which are what is attested: the catalog is a file that others may write."""
    return read_note(row.path, home.repository.blob(row.blob) or b"")


def _waiting(
    home: OpenHome, row: NoteRow, trust: Trust, evidence: tuple[Evidence, ...] = (), *, hidden: bool = False
) -> Waiting:
    ledger = home.indexes.catalog.ledger
    decided = ledger.reviews(blobs=[row.blob]) if ledger.has_reviews() else []
    wrote = trust.wrote
    if hidden and quarantined(trust.state):  # of the words, the path and the roots, a clean session is given none
        kinds = tuple({"kind": root.kind} for root in sorted(trust.taint.roots))
        at = wrote.at if wrote else None
        return Waiting(row.id, "", "", home.name, trust.state, row.kind, None, "", (), kinds, None, None, at, None)
    note = _read(home, row)
    return Waiting(
        row.id, note_uri(home, row), row.path, home.name, trust.state, note.kind, note.subject, note.body,
        note.supersedes,
        trust.taint.records(), wrote.agent if wrote else None, wrote.session if wrote else None,
        wrote.at if wrote else None, decided[-1].verdict if decided else None, evidence,
    )  # fmt: skip


def _read_back(space: Space, source: str) -> Evidence:
    if not source.startswith("nas://"):
        return Evidence(source, None)
    from memoranda.trust.secrets import masked

    try:
        pointer = parse_pointer(source)
        home = space.of(pointer)
        data = home.repository.at(pointer.path, pointer.rev)
        there = stood(home, pointer, data)
    except MemorandaError:
        return Evidence(source, None)  # it leads nowhere: the reviewer sees a source without words
    lines = masked(data.decode("utf-8", "replace"), home.rules.allows).splitlines()
    return Evidence(source, "\n".join(lines[(pointer.start or 1) - 1 : pointer.end]), there)
