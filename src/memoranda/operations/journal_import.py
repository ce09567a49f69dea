"""Takes a file of conversation into the journal; a second time it adds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import InvalidInput, NotFound, Refused
from memoranda.index.catchup import Progress
from memoranda.operations.forgotten import forgotten_turn
from memoranda.operations.journaling import check_kept, check_turn, write_turns
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.operations.transcripts import Transcript, read_lines
from memoranda.trust.labels import Taint
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class ImportedJournal:
    """How many entries were written, were there already, and were passed over and why.

    `damaged` are the lines that were not taken, by number, and why; `refused` the reasons for those among them that
    could be read and may not be kept.
    """

    written: int
    present: int
    skipped: dict[str, int]
    damaged: tuple[tuple[int, str], ...]
    sessions: tuple[str, ...]
    refused: tuple[str, ...] = ()

    def json(self) -> dict[str, object]:
        damaged = [{"line": number, "reason": reason} for number, reason in self.damaged]
        return {
            "written": self.written, "present": self.present, "skipped": self.skipped, "damaged": damaged,
            "sessions": list(self.sessions),
        }  # fmt: skip


def import_journal(context: Context, space: Space, file: Path, progress: Progress | None = None) -> ImportedJournal:
    """Imports `file`, one JSON object a line. Every good line is taken, every bad one named. NotFound, ReadOnlyHome,
    RuleOfTwo."""
    pass_guards(context, Call("journal import", writes=True))
    try:
        with file.open("rb") as lines:
            found = read_lines(lines)
    except OSError as error:
        raise NotFound(
            f"{file} cannot be read.", why=error.strerror or "", remedy="Name a file of JSON lines."
        ) from None
    home = space.writable()
    home.refresh(context)
    met = space.met(context, home)
    pass_guards(context, Call("journal import", met=met))  # its lines name other agents and sessions
    return take_in(context, home, found, progress, met.taint)


def take_in(
    context: Context,
    home: OpenHome,
    found: Transcript,
    progress: Progress | None = None,
    taint: Taint | None = None,
) -> ImportedJournal:
    """Writes the turns of a transcript that are not in the journals yet, with what the caller has met (None: here).

    ReadOnlyHome.
    """
    home.refresh(context)
    turns = []
    refused: list[tuple[int, str]] = []
    for number, turn in zip(found.numbers, found.turns, strict=True):
        try:
            check_turn(turn)
            check_kept(context, home, turn)
        except (InvalidInput, Refused) as error:
            refused.append((number, str(error)))
            continue
        turns.append(turn)
    known = _known(home, [turn.id for turn in turns if turn.id])
    tombs = home.tombs.now()
    fresh = [turn for turn in turns if turn.id not in known]
    kept = [turn for turn in fresh if not forgotten_turn(tombs, turn.id, turn.text)]
    present, out = len(turns) - len(fresh), len(fresh) - len(kept)
    fresh, skipped = kept, dict(found.skipped) | ({"forgotten": out} if out else {})
    if progress:
        progress("importing entries", 0, len(fresh))
    written = write_turns(context, home, fresh, taint)
    if progress:
        progress("importing entries", len(written), len(fresh))
    sessions = tuple(sorted({entry.session for entry in written}))
    damaged = tuple(sorted([*found.damaged, *refused]))
    return ImportedJournal(len(written), present, skipped, damaged, sessions, tuple(reason for _, reason in refused))


@undisturbed
def _known(home: OpenHome, ids: Sequence[str]) -> set[str]:
    return home.indexes.catalog.known_entries(ids)
