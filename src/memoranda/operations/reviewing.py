"""The review desk of a Home: what waits for a person, with the evidence, and what the person decided.

A review is a line of the ledger about a note's exact bytes, signed with a key outside every Home. Only a person at a
terminal gives one; nothing that comes over an agent's connection does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, MemorandaError
from memoranda.home.draft import Draft
from memoranda.index.rows import NoteRow
from memoranda.notes.chains import unknown_note
from memoranda.notes.pointers import parse_pointer
from memoranda.notes.times import format_instant
from memoranda.operations.listing import note_uri
from memoranda.operations.pipeline import Call, known_words, pass_guards
from memoranda.operations.space import OpenHome, Space, first_found
from memoranda.trust.kept import ended
from memoranda.trust.labels import STATES
from memoranda.trust.standing import Trust, trust_of

VERDICTS = ("accept", "reject", "revoke")
_WAITING = ("quarantined", "contested", "unreviewed", "unclaimed")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One source of a note, read back at its commit; `text` is None when it leads nowhere that is open."""

    uri: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A note that waits for a review, or is shown for one.

    `state` as in `trust.labels`; `taint` says where its taint began; `verdict` is the last decision on these bytes.
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

    def json(self) -> dict[str, object]:
        return {
            "id": self.id, "uri": self.uri, "path": self.path, "home": self.home, "state": self.state,
            "kind": self.kind, "subject": self.subject, "text": self.text, "supersedes": list(self.supersedes),
            "taint": list(self.taint), "agent": self.agent, "session": self.session,
            "written_at": None if self.written_at is None else format_instant(self.written_at),
            "verdict": self.verdict, "evidence": [{"uri": e.uri, "text": e.text} for e in self.evidence],
        }  # fmt: skip


def queue(context: Context, space: Space, *, states: Sequence[str] = ()) -> list[Waiting]:
    """What waits for a review in the nearest Home: everything that is not reviewed, or only these states.

    What was rejected waits no more. Sources are not read back here; `show` does. HomeNotFound, InvalidInput.
    """
    pass_guards(context, Call("list_reviews"))
    known_words("state", states, STATES)
    home = space.one()
    home.refresh(context)
    catalog = home.indexes.catalog
    gone = ended(catalog, context.now())
    rows = [row for row in catalog.live_notes() if row.id not in gone]
    trust = trust_of(catalog, rows)
    wanted = states or _WAITING
    found = [_waiting(home, row, trust[row.blob]) for row in rows if trust[row.blob].state in wanted]
    order = {state: n for n, state in enumerate(_WAITING)}
    waiting = [item for item in found if item.verdict != "reject" or states]
    return sorted(waiting, key=lambda item: (order.get(item.state, len(order)), item.path))


def show(context: Context, space: Space, note_id: str) -> Waiting:
    """One note with its sources read back at their commits. UnknownNote."""
    pass_guards(context, Call("show_review"))
    home, row = _find(context, space, note_id)
    catalog = home.indexes.catalog
    evidence = tuple(Evidence(source, _read_back(space, source)) for source in row.sources)
    return _waiting(home, row, trust_of(catalog, [row])[row.blob], evidence)


def decide(
    context: Context, space: Space, note_ids: Sequence[str], verdict: str, *, comment: str | None = None
) -> list[Waiting]:
    """Attests that a person accepts, rejects or takes back the acceptance of these notes, as they stand now.

    Raises:
        ConfirmationRequired: nobody is at a terminal.
        UnknownNote: one of them does not exist; nothing was decided then.
    """
    operation = {"accept": "accept_review", "reject": "reject_review", "revoke": "revoke_review"}[verdict]
    home = space.one()
    pass_guards(context, Call(operation, writes=True, text=comment or "", met=space.met(context, home)))
    if not context.person:
        raise ConfirmationRequired(
            "A review is given by a person at a terminal.",
            why="Standard input or output is not a terminal, so nobody can be taken to have read the note.",
            remedy="Run the command in a terminal of your own; `memoranda review list` shows what waits.",
        )
    found = [_find(context, space, note_id) for note_id in dict.fromkeys(note_ids)]
    for home in {id(home): home for home, _ in found}.values():
        rows = [row for other, row in found if other is home]
        _attest(context, home, rows, verdict, comment)
        home.refresh(context)
    return [show(context, space, row.id) for _, row in found]


def _attest(context: Context, home: OpenHome, rows: Sequence[NoteRow], verdict: str, comment: str | None) -> None:
    lines = [
        {
            "kind": "review", "id": row.id, "blob": row.blob, "verdict": verdict, "reviewer": context.user,
            "path": row.path, "home": home.name,
            "sha256": hashlib.sha256(home.repository.at(row.path, row.blob)).hexdigest(), "comment": comment,
        }
        for row in rows
    ]  # fmt: skip

    def build(_at: datetime) -> Draft:
        what = rows[0].id if len(rows) == 1 else f"{len(rows)} notes"
        return Draft("review", f"{verdict.capitalize()} {what}", (), lines, {}, context.user)

    home.repository.write(context, build)


def _find(context: Context, space: Space, note_id: str) -> tuple[OpenHome, NoteRow]:
    def look(home: OpenHome) -> NoteRow | None:
        home.refresh(context)
        return next(iter(home.indexes.catalog.by_id(note_id)), None)

    found = first_found(space.homes(), look)
    if found is None:
        raise unknown_note(note_id)
    return found


def _waiting(home: OpenHome, row: NoteRow, trust: Trust, evidence: tuple[Evidence, ...] = ()) -> Waiting:
    ledger = home.indexes.catalog.ledger
    decided = ledger.reviews(blobs=[row.blob]) if ledger.has_reviews() else []
    wrote = trust.wrote
    return Waiting(
        row.id, note_uri(home, row), row.path, home.name, trust.state, row.kind, row.subject, row.body, row.supersedes,
        trust.taint.records(), wrote.agent if wrote else None, wrote.session if wrote else None,
        wrote.at if wrote else None, decided[-1].verdict if decided else None, evidence,
    )  # fmt: skip


def _read_back(space: Space, source: str) -> str | None:
    if not source.startswith("nas://"):
        return None
    try:
        pointer = parse_pointer(source)
        data = space.of(pointer).repository.at(pointer.path, pointer.rev)
    except MemorandaError:
        return None  # it leads nowhere: the reviewer sees a source without words
    lines = data.decode("utf-8", "replace").splitlines()
    return "\n".join(lines[(pointer.start or 1) - 1 : pointer.end])
