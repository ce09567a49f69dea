"""How a contradiction ends: a person has accepted one of the notes, or several of them side by side.

Nothing is settled by leaving something out. When one was accepted, a new note with its words supersedes all of them
and is accepted with it, so that every reader of the files sees what was decided. When all were accepted together, each
attestation names the others, and they stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memoranda.context import Context
from memoranda.home.draft import Change, Draft
from memoranda.index.rows import NoteRow
from memoranda.notes.ids import blob_id, new_id
from memoranda.notes.model import read_note, write_note
from memoranda.notes.paths import file_name, folder_for, title_of
from memoranda.notes.pointers import Pointer
from memoranda.operations.attesting import Decision
from memoranda.operations.open_home import OpenHome
from memoranda.trust.contested import Contest, contests, contests_of
from memoranda.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Contested:
    """Notes that contradict each other and wait for a person: why, about what, and which."""

    reason: str
    about: str
    home: str
    notes: tuple[dict[str, str | None], ...]

    def json(self) -> dict[str, object]:
        return {"reason": self.reason, "about": self.about, "home": self.home, "notes": list(self.notes)}


def contested_groups(context: Context, home: OpenHome) -> list[Contested]:
    """Every unsettled contradiction of a Home, in a stable order."""
    with home.indexes.lock:
        return [_told(home, contest) for contest in contests(home.indexes.catalog, context.now())]


def _told(home: OpenHome, contest: Contest) -> Contested:
    notes = tuple({"id": row.id, "path": row.path, "subject": row.subject, "text": row.body} for row in contest.members)
    return Contested(contest.reason, contest.about, home.name, notes)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What has to be written so that one contradiction is settled: further decisions, and a note or none.

    `over` are the ids of the notes that the new note supersedes.
    """

    decisions: tuple[Decision, ...]
    change: Change | None = None
    note_id: str | None = None
    over: tuple[str, ...] = ()


def settlements(context: Context, home: OpenHome, accepted: Sequence[NoteRow]) -> Iterator[Settlement]:
    """What the acceptance of these notes comes to, where they contradict others or each other."""
    paths = {row.path for row in accepted}
    for contest in contests_of(home.indexes.catalog, accepted, context.now()):
        chosen = [row for row in contest.members if row.path in paths]
        others = [row for row in contest.members if row.path not in paths]
        if not others:
            yield Settlement(tuple(_beside(row, chosen) for row in chosen))
        elif len(chosen) == 1 and contest.reason == "same id":
            yield Settlement(tuple(Decision(row.id, row.path, row.blob, "reject") for row in others))
        elif len(chosen) == 1:
            yield _successor(context, home, chosen[0], others)
        # Several of more: what they are to the rest was not said, and the contradiction stays.


def _beside(row: NoteRow, chosen: Sequence[NoteRow]) -> Decision:
    others = sorted({other.blob for other in chosen if other.blob != row.blob})
    return Decision(row.id, row.path, row.blob, "accept", beside=tuple(others))


def _successor(context: Context, home: OpenHome, chosen: NoteRow, others: Sequence[NoteRow]) -> Settlement:
    """A note with the words, the interval and the fields of the accepted one, which supersedes all of them."""
    note = read_note(chosen.path, home.repository.at(chosen.path, chosen.blob))
    now = context.now()
    note_id = new_id("mem", context.random)
    extra = dict(note.extra)
    if chosen.title and not extra.get("title") and not note.body.lstrip().startswith("#"):
        extra["title"] = chosen.title  # it came from the file's name, which the new file does not have
    over = tuple(dict.fromkeys((chosen.id, *(row.id for row in others))))
    source = str(Pointer(home.name, chosen.path, chosen.blob))
    fresh = replace(
        note, id=note_id, supersedes=over, sources=(*note.sources, source), recorded_at=now.replace(microsecond=0),
        reviewed=False, taint=(), extra=extra,
    )  # fmt: skip
    path = f"{home.folder_with_room(folder_for(note.subject, now))}/{file_name(title_of(note.body), note_id)}"
    data = write_note(fresh)
    decision = Decision(note_id, path, blob_id(data), "accept", data=data)
    return Settlement((decision,), Change(path, data), note_id, over)


def draft_of(context: Context, settlement: Settlement, lines: Sequence[dict[str, Any]], session: str) -> Draft:
    """The write of a settlement with the ledger lines of its decisions."""
    if settlement.change is None:
        return Draft("review", "Settle a contradiction", (), lines, {}, context.user)
    wrote = {
        "kind": "write", "op": "settle", "id": settlement.note_id, "path": settlement.change.path, "session": session,
        "agent": context.agent, "user": context.user, "origin": "human", "taint": (),
    }  # fmt: skip
    reason = f"Settle a contradiction between {len(settlement.over)} notes"
    trailers = {"Id": str(settlement.note_id), "Session": session}
    return Draft("settle", reason, (settlement.change,), (wrote, *lines), trailers, context.user)
