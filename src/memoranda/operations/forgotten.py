"""What is forgotten does not come back: refused on every way in, until a person remembers it again, on record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.context import Context
from memoranda.errors import Erased, Forgotten, NotFound
from memoranda.home.erasing.blanking import erased_on
from memoranda.home.tombstones import Mark, Mirror, Mirrored
from memoranda.index.keepout import Tombs
from memoranda.notes.ids import note_id_for_path
from memoranda.notes.journal import day_of, is_journal_path, parse_journal
from memoranda.notes.sameness import same_text, says_something
from memoranda.operations.open_home import OpenHome
from memoranda.operations.tomb_book import REMEDY, forgotten_on

_PER_LINE = 200  # marks in one line of the ledger


def lifted(home: OpenHome, lines: Sequence[Mapping[str, Any]], at: datetime) -> None:
    """Told when the ledger has lines that lift something: from now on it is allowed whatever the mirror says."""
    marks = [mark for line in lines for mark in line.get("hashes", ())]
    if marks:
        Mirror(home.repository.keys, home.repository.marker.id).add(marks, Mirrored(True, at.isoformat()))
        home.tombs.renew()


def refuse_forgotten(context: Context, home: OpenHome, text: str, *, turn: bool = False) -> list[dict[str, Any]]:
    """Forgotten when this content may not come back; for a person, the lines of the ledger that lift that instead.

    `turn`: it is an entry of a journal, of which only one that says something is known again.
    """
    tombs = home.tombs.now()
    if not tombs:
        return []
    found = [] if turn and not says_something(same_text(text)) else tombs.of_text(text)
    if not found:
        return []
    if not context.person:
        raise Forgotten(
            f"The same content was forgotten{forgotten_on(found[0])}.",
            why="What was forgotten does not come back by an agent, an import or a job.",
            remedy=REMEDY,
        )
    return list(lift_lines(context, [tomb.mark for tomb in found]))


def without_forgotten(context: Context, home: OpenHome, path: str, text: str) -> str:
    """The text of a file, at whatever revision, as somebody may read it who is not the person at a terminal.

    Forgotten entries of a journal are left out, line for line. NotFound for a forgotten note.
    """
    tombs = home.tombs.now()
    if context.person or not tombs:
        return text
    if not is_journal_path(path):
        from memoranda.notes.model import read_note

        note = read_note(path, text.encode("utf-8", "replace"))
        if (tomb := tombs.of(note.id, note.body)) is not None:
            raise NotFound(f"This was forgotten{forgotten_on(tomb)}.", why="Git's history has it still.", remedy=REMEDY)
        return text
    lines = text.split("\n")
    for entry in parse_journal(text.encode("utf-8", "replace"), day_of(path)):
        if erased_on(entry.text) is None and (tomb := tombs.of(entry.id, entry.text, turn=True)) is not None:
            count = entry.end - entry.start  # without its heading
            lines[entry.start : entry.end] = [f"forgotten{forgotten_on(tomb)}", *[""] * (count - 1)][:count]
    return "\n".join(lines)


def refuse_gone(home: OpenHome, name: str) -> None:
    """Erased for the id of a note or an entry that was erased, NotFound for one that was forgotten; else nothing."""
    tomb = home.tombs.now().of_id(name)
    if tomb is None:
        return
    with home.indexes.lock:
        query = "SELECT blob FROM kept_out WHERE about = ? AND blob != ''"
        blobs = [row[0] for row in home.indexes.catalog.db.execute(query, (name,))]
    if tomb.at is not None and not any(home.repository.blob(blob) is not None for blob in blobs):
        raise Erased(f"{tomb.at:%Y-%m-%d}")
    raise NotFound(f"{name} was forgotten{forgotten_on(tomb)}.", why="Git's history has it still.", remedy=REMEDY)


def forgotten_turn(tombs: Tombs, entry: str | None, text: str) -> bool:
    """Whether an entry with this id or this text is forgotten."""
    return bool(tombs) and tombs.of(entry or "", text, turn=True) is not None


def tombstone_lines(
    context: Context, marks: Iterable[Mark], ids: Sequence[str], stays: Sequence[str], reason: str
) -> Iterator[dict[str, Any]]:
    """The lines by which the ledger keeps content (by keyed hashes) and ids out."""
    common = {"kind": "tombstone", "event": "set", "user": context.user, "agent": context.agent, "reason": reason}
    by_key: dict[tuple[str, str], list[str]] = {}
    for mark in marks:
        by_key.setdefault((mark.owner, mark.key), []).append(mark.hash)
    for (owner, key), hashes in sorted(by_key.items()):
        for part in _parts(sorted(set(hashes))):
            yield {**common, "owner": owner, "key": key, "hashes": part, "stays": list(stays)}
    for part in _parts(list(dict.fromkeys(ids))):
        yield {**common, "ids": part}


def lift_lines(context: Context, marks: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The lines by which a person allows forgotten content again."""
    for part in _parts(list(marks)):
        yield {"kind": "tombstone", "event": "lift", "user": context.user, "agent": context.agent, "hashes": part}


def _parts(values: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(values), _PER_LINE):
        yield values[at : at + _PER_LINE]


def owns_id(note_id: str, path: str) -> bool:
    """Whether a note's id stands in its file, and not only follows from its place."""
    return note_id != note_id_for_path(path)
