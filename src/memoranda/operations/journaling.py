"""The journal: what an agent saw and said, as it was, entry after entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from memoranda.context import Context
from memoranda.errors import InvalidNote
from memoranda.home.draft import Appending, Change, Draft
from memoranda.notes.ids import new_id
from memoranda.notes.journal import journal_path, key_of, render_entry
from memoranda.notes.pointers import Pointer
from memoranda.notes.words import ORIGINS
from memoranda.operations.forgotten import lifted, refuse_forgotten
from memoranda.operations.open_home import OpenHome
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.sessions import Met, event
from memoranda.operations.space import Space
from memoranda.trust.labels import CLEAN, Root, Taint
from memoranda.values import dataclass, replace

CLOSED_AT = 16 << 10  # bytes; a fuller file goes on in the next part of its day
_BULK = 1 << 20  # bytes of entries in one record of the log


@dataclass(frozen=True, slots=True)
class Appended:
    """An entry that was written: its id, where it can be read back, and the file that holds it."""

    id: str
    uri: str
    path: str
    session: str

    def json(self) -> dict[str, object]:
        return {"id": self.id, "uri": self.uri, "path": self.path, "session": self.session}


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said: by whom, when (None: now), where it came from, and its session and agent if they differ.

    `id` is given by an import, so that importing the same line again adds nothing.
    """

    text: str
    speaker: str | None = None
    at: datetime | None = None
    origin: str | None = None
    session: str | None = None
    agent: str | None = None
    id: str | None = None


def append(context: Context, space: Space, turn: Turn) -> Appended:
    """Adds one entry to the journal of the context's agent; durable when it returns. InvalidNote, ReadOnlyHome."""
    home = space.writable()
    return append_many(context, home, [turn], space.met(_for(context, turn), home).taint)[0]


def append_many(context: Context, home: OpenHome, turns: Sequence[Turn], taint: Taint | None = None) -> list[Appended]:
    """Adds entries in their order, a megabyte of them to a record of the log; all are checked before the first.

    `taint` is what the caller has met (None: in this Home): whatever agents and sessions the turns name, it stays with
    their words.
    """
    for turn in turns:
        check_kept(context, home, turn)
        check_turn(turn)
        refuse_forgotten(context, home, turn.text, turn=True)
    return write_turns(context, home, turns, taint)


def write_turns(context: Context, home: OpenHome, turns: Sequence[Turn], taint: Taint | None) -> list[Appended]:
    """As `append_many`, for turns that were checked one by one already."""
    done: list[Appended] = []
    for part in _parts(turns):
        stamp = home.sessions.met(context).taint if taint is None else taint
        done += _append_part(context, home, part, stamp)
    return done


def check_kept(context: Context, home: OpenHome, turn: Turn) -> None:
    """Asks the guards whether what this entry says may be kept; Refused, InvalidInput."""
    speaker = (("speaker", turn.speaker or ""),)
    call = Call("journal", writes=True, text=turn.text, fields=speaker, rules=home.rules)
    pass_guards(_for(context, turn), call)


def check_turn(turn: Turn) -> None:
    """InvalidNote for an entry that cannot be written."""
    if not turn.text.strip():
        raise InvalidNote("The text of the entry is empty.", remedy="Say what is to be written down.")
    if "\x00" in turn.text:
        raise InvalidNote("The text holds a NUL character.", remedy="Remove it; journals are text.")
    if turn.origin is not None and turn.origin not in ORIGINS:
        raise InvalidNote(f"The origin is not one of {', '.join(ORIGINS)}.", remedy="Name one of these.")


def _for(context: Context, turn: Turn) -> Context:
    return replace(context, agent=turn.agent or context.agent, session=turn.session or context.session)


def _parts(turns: Sequence[Turn]) -> Iterable[list[Turn]]:
    part: list[Turn] = []
    size = 0
    for turn in turns:
        if part and size + len(turn.text) > _BULK:
            yield part
            part, size = [], 0
        part.append(turn)
        size += len(turn.text)
    if part:
        yield part


def _append_part(context: Context, home: OpenHome, turns: Sequence[Turn], taint: Taint) -> list[Appended]:
    repository = home.repository
    done: list[Appended] = []
    lifts: list[dict[str, Any]] = []

    def build(now: datetime) -> Draft:
        # Once more, where everybody's records are known.
        lifts[:] = [line for turn in turns for line in refuse_forgotten(context, home, turn.text, turn=True)]
        sheets = Sheets(home)
        lines: list[dict[str, Any]] = []
        told: dict[str, Taint] = {}
        for turn in turns:
            who = _for(context, turn)
            at = turn.at or now
            entry = turn.id or new_id("j", context.random)
            met = home.sessions.met(who)
            said = (entry, at, turn.speaker or who.agent, turn.text)
            sheets.add(who.agent, at.astimezone(UTC).date(), render_entry(*said), entry)
            lines += _lines_of(who, met, entry, key_of(*said), turn.origin, told, taint)
        changes, places = sheets.finish()
        for line in lines:
            if line["kind"] != "entry":
                continue
            path, blob, first, last = places[line["id"]]
            uri = str(Pointer(repository.name, path, blob, first, last))
            done.append(Appended(line["id"], uri, path, line["session"]))
        agents = sorted({line["agent"] for line in lines})
        what = "an entry" if len(turns) == 1 else f"{len(turns)} entries"
        trailers = {
            "Agent": ", ".join(agents),
            "Session": ", ".join(sorted({x["session"] for x in lines})[:3]),
        }
        reason = f"Write {what} in the journal of {', '.join(agents)}"
        return Draft("journal", reason, changes, [*lifts, *lines], trailers, agents[0])

    record = repository.write(context, build)
    lifted(home, lifts, record.at)
    return done


def _lines_of(
    who: Context, met: Met, entry: str, key: str, origin: str | None, told: dict[str, Taint], taint: Taint
) -> list[dict[str, Any]]:
    """The lines that an entry brings along; `told`: what those before it did to sessions."""
    lines = [] if met.session in told else list(met.lines)
    taint = taint | met.taint | told.setdefault(met.session, CLEAN)
    line = ledger_line(entry, key, met.session, who, origin, taint)
    if origin == "external":
        root = Root("journal", entry, "an external journal entry")
        told[met.session] = told[met.session] | Taint.of(root)
        lines.append(event(met.session, who, "taint", reason=root.reason, source=entry, what=root.kind))
    return [*lines, line]


def ledger_line(
    entry: str, key: str, session: str, context: Context, origin: str | None, taint: Taint
) -> dict[str, Any]:
    """What the ledger says of an entry; what came from outside is a root of its own.

    `key` binds the line to the words: whoever puts others under the id does not speak in its author's name.
    """
    if origin == "external":
        taint = taint | Taint.of(Root("journal", entry, "an external journal entry"))
    return {
        "kind": "entry", "id": entry, "session": session, "agent": context.agent, "user": context.user,
        "origin": origin or "agent", "taint": taint.records(), "key": key,
    }  # fmt: skip


class Sheets:
    """Lays entries out on the files of their days, inside the `build` of one write."""

    def __init__(self, home: OpenHome) -> None:
        self._home = home
        self._open: dict[tuple[str, date], str] = {}
        self._bytes: dict[str, list[bytes]] = {}
        self._entries: dict[str, list[tuple[str, int, int]]] = {}  # path -> (id, line within what is added, lines)

    def add(self, agent: str, day: date, data: bytes, entry: str) -> None:
        path = self._open.get((agent, day))
        if path is None or self._size(path) >= CLOSED_AT:
            path = self._open[agent, day] = self._sheet(agent, day)
        pieces = self._bytes.setdefault(path, [])
        line = sum([piece.count(b"\n") for piece in pieces]) if pieces else 0
        pieces.append(data)
        self._entries.setdefault(path, []).append((entry, line, data.rstrip(b"\n").count(b"\n")))

    def _size(self, path: str) -> int:
        pieces = self._bytes.get(path)
        return self._home.repository.worktree.size(path) + (sum(map(len, pieces)) if pieces else 0)

    def _sheet(self, agent: str, day: date) -> str:
        """The part that this process is at, else the last one of the day, or a new one.

        Processes that write at the same time have parts of their own: who appends where others have appended since has
        to read that back first.
        """
        repository = self._home.repository
        held = self._home.sheets.get((agent, day))
        part = held or 1
        while True:
            path = journal_path(agent, day, repository.replica.suffix, part)
            room = self._size(path) < CLOSED_AT and repository.may_append(path)
            if room and (part == held or self._is_free(agent, day, part)):
                self._home.sheets[agent, day] = part
                return path
            part += 1

    def _is_free(self, agent: str, day: date, part: int) -> bool:
        """Whether no later part has been begun, and nobody has just written to this one."""
        repository = self._home.repository
        path, after = (journal_path(agent, day, repository.replica.suffix, n) for n in (part, part + 1))
        return not repository.worktree.exists(after) and not repository.is_being_written(path)

    def finish(self) -> tuple[list[Change], dict[str, tuple[str, str, int, int]]]:
        """The changes, and for each entry (path, blob that will hold it, first line, last line)."""
        changes: list[Change] = []
        places: dict[str, tuple[str, str, int, int]] = {}
        for path, pieces in self._bytes.items():
            coming: Appending = self._home.repository.appending(path, b"".join(pieces))
            changes.append(coming.change)
            for entry, line, lines in self._entries[path]:
                first = coming.line + line
                places[entry] = (path, coming.blob, first, first + lines)
        return changes, places
