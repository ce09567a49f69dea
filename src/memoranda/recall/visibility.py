"""Which notes an asker may be shown: those that held at one time as it was known at another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memoranda.index.catalog import Catalog, NoteRow
from memoranda.notes.chains import Chains
from memoranda.notes.times import Interval


@dataclass(frozen=True, slots=True)
class Asked:
    """The two times of a question. None means now, and is looser: what has ended without a successor still shows.

    `history` shows superseded notes too.
    """

    now: datetime
    as_of: datetime | None = None
    known_at: datetime | None = None
    history: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """How a note stands: `state` is current, ended, future or superseded; `held` is when it did, if ever."""

    row: NoteRow
    state: str
    held: Interval | None
    superseded_by: tuple[str, ...] = ()


def standings(catalog: Catalog, rows_by_key: dict[str, list[NoteRow]], asked: Asked) -> dict[str, Standing]:
    """key -> the standing of the note that the question may be shown; keys whose notes it may not see are left out."""
    candidates = {key: _known(rows, asked) for key, rows in rows_by_key.items()}
    linked = catalog.linked(row.id for row in candidates.values() if row is not None)
    found: dict[str, Standing] = {}
    for key, row in candidates.items():
        if row is None:
            continue
        standing = _chained(catalog, row, asked) if row.id in linked else _alone(row, asked)
        if standing is not None:
            found[key] = standing
    return found


def _known(rows: Sequence[NoteRow], asked: Asked) -> NoteRow | None:
    """The row that was known then; the one with the lowest path when files share their text."""
    if asked.known_at is None and not asked.history:
        known: Iterable[NoteRow] = (row for row in rows if row.live)
    elif asked.known_at is None:
        known = sorted(rows, key=lambda row: (not row.live, row.path))
    else:
        at = asked.known_at
        known = (row for row in rows if (row.known_from <= at if asked.history else row.known_at(at)))
    return next(iter(known), None)


def _alone(row: NoteRow, asked: Asked) -> Standing | None:
    start, end = row.valid_from, row.valid_to
    held = None if start is not None and end is not None and end <= start else Interval(start, end)
    state = "current" if row.live or asked.known_at is not None else "superseded"
    return _judged(row, held, (), asked, state)


def _chained(catalog: Catalog, row: NoteRow, asked: Asked) -> Standing | None:
    rows = catalog.component(row.id, asked.known_at)
    if not any(other.row == row.row for other in rows):
        rows = [row, *rows]  # a former state of a file, shown with --history
    chains = Chains(other.link() for other in rows)
    known_at = asked.known_at or asked.now
    heads = chains.heads_of(row.id, None if asked.known_at is None else known_at)
    after = tuple(other for other in chains.successors(row.id) if other != row.id)
    held = chains.effective(row.id, max(known_at, row.known_from) if asked.known_at is None else known_at)
    return _judged(row, held, after, asked, "current" if row.id in heads else "superseded")


def _judged(row: NoteRow, held: Interval | None, after: tuple[str, ...], asked: Asked, state: str) -> Standing | None:
    at = asked.as_of or asked.now
    if asked.as_of is not None:
        shown = _holds(row, held, at)
        if not shown and not asked.history:
            return None
        return Standing(row, state if shown else _when(held, at), held, after)
    if state == "superseded":
        # A successor that begins later than the moment asked about has not taken over yet.
        holds_still = bool(after) and held is not None and held.end is not None and _holds(row, held, at)
        if not holds_still and not asked.history:
            return None
        return Standing(row, "current" if holds_still else "superseded", held, after)
    return Standing(row, _when(held, at) if row.kind != "episodic" else state, held, after)


def _holds(row: NoteRow, held: Interval | None, at: datetime) -> bool:
    if held is None:
        return False
    if row.kind == "episodic":  # an episode is a record: it begins and does not end
        return held.start is None or held.start <= at
    return held.contains(at)


def _when(held: Interval | None, at: datetime) -> str:
    if held is None:
        return "ended"
    if held.contains(at):
        return "current"
    return "future" if held.start is not None and at < held.start else "ended"
