"""Notes of one subject that say from when or until when they hold, and hold at the same time.

Of those who say nothing of it every two would overlap, and a record of what happened does not end: neither is asked
about. Nor is what a person has accepted, all of it: who stands by both has seen both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from memoranda.errors import InvalidTime
from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.notes.chains import Chains
from memoranda.notes.times import Interval, parse_instant
from memoranda.trust.edited import as_reviewed
from memoranda.trust.standing import Trust, believed, trust_of

_EVER, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_AT_ONCE = timedelta(seconds=5)
_Spot = tuple[datetime, datetime, NoteRow]


def overlapping(catalog: Catalog, now: datetime) -> Iterator[tuple[str, tuple[NoteRow, ...]]]:
    """(subject, heads) of each group that overlaps, by subject: sorted once, not compared pair by pair."""
    rows = [row for row in as_reviewed(catalog, catalog.dated_together()) if _declares(row)]
    trust = trust_of(catalog, rows)
    linked = catalog.linked({row.id for row in rows})
    groups: dict[tuple[str, str, str, str], list[_Spot]] = {}
    chains: dict[int, frozenset[str]] = {}
    for row in rows:
        if trust[row.blob].state == "quarantined" or trust[row.blob].rejected:
            continue
        held = Interval(row.valid_from, row.valid_to)
        chains[row.row] = frozenset((row.id,))
        if row.supersedes or row.id in linked:
            found = _end_of_chain(catalog, row, now)
            if found is None:
                continue
            held, chains[row.row] = found
        key = (row.subject or "", row.kind, row.scope, json.dumps(row.owner, sort_keys=True))
        groups.setdefault(key, []).append((held.start or _EVER, held.end or _NEVER, row))
    for key, spots in sorted(groups.items(), key=lambda item: item[0]):
        for together in _runs(sorted(spots, key=lambda spot: (spot[0], spot[2].path))):
            if _waits(together, trust, chains):
                yield key[0], tuple(sorted(together, key=lambda row: row.path))


def _declares(row: NoteRow) -> bool:
    """Whether somebody has said from when or until when a note holds: `update` by itself only says from now on."""
    if row.valid_to is not None or row.valid_from is None or not row.supersedes or row.recorded_at is None:
        return row.valid_to is not None or row.valid_from is not None
    try:
        return abs(parse_instant(row.recorded_at) - row.valid_from) > _AT_ONCE
    except InvalidTime:
        return True


def _end_of_chain(catalog: Catalog, row: NoteRow, now: datetime) -> tuple[Interval, frozenset[str]] | None:
    links = believed(catalog, catalog.component(row.id))
    chains = Chains(links)
    held = chains.effective(row.id, max(now, *(link.known_from for link in links)))
    return (held, frozenset(link.id for link in links)) if held is not None and chains.is_head(row.id) else None


def _runs(spots: Sequence[_Spot]) -> Iterator[list[NoteRow]]:
    """The notes that hold without a gap between them, as far as several do; given by their starts."""
    run: list[NoteRow] = []
    until = _EVER
    for start, end, row in spots:
        if run and start >= until:
            yield run
            run = []
        until = max(until, end) if run else end
        run.append(row)
    yield run


def _waits(rows: Sequence[NoteRow], trust: dict[str, Trust], chains: dict[int, frozenset[str]]) -> bool:
    several = len({chains[row.row] for row in rows}) > 1
    return several and any(trust[row.blob].state != "reviewed" for row in rows)
