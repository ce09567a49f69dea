"""From a question to ranked items of one Home: candidates, what may be shown, rank, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memoranda.index.analysis import Query
from memoranda.index.catalog import EntryRow, Wrote
from memoranda.index.indexes import Indexes
from memoranda.notes.journal import agent_of
from memoranda.notes.pointers import Pointer
from memoranda.notes.times import format_instant
from memoranda.recall.items import Found
from memoranda.recall.visibility import Asked, Standing, standings


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question to one Home. `query` is what was understood of `text`; the rest are the filters of `recall`."""

    query: Query
    text: str
    k: int
    kinds: tuple[str, ...]
    subject: str | None
    scopes: tuple[str, ...]
    include: tuple[str, ...]
    now: datetime
    as_of: datetime | None
    known_at: datetime | None
    history: bool

    def facets(self) -> list[list[str]]:
        """The filters as groups of facets: every group must be met, by any of its facets."""
        groups = [[f"in:{place}" for place in self.include]]
        if self.kinds:
            groups.append([f"kind:{kind}" for kind in self.kinds])
        if self.scopes:
            groups.append([f"scope:{scope}" for scope in self.scopes])
        if self.subject and self.subject.strip("/"):
            groups.append([f"subject:{self.subject.strip('/')}"])
        return groups


def find(indexes: Indexes, home: str, wanted: Wanted) -> list[Found]:
    """The k best items, best first; an empty list when nothing is looked for or nothing is found."""
    if not wanted.query:
        return []
    shown = _Shown(indexes, wanted)
    former = wanted.known_at is not None or wanted.history
    scores = indexes.lexical.search(wanted.query, wanted.facets(), include_retired=former)
    best = scores.top(wanted.k * 2, shown.accept)
    found: list[Found] = []
    for key, score in best:
        item = shown.item(key, home, round(score, 6), {"lexical": round(score, 6)})
        if item is not None and len(found) < wanted.k:
            found.append(item)
    return found


class _Shown:
    """What of the candidates may be shown, looked up a batch at a time and remembered for the answer."""

    def __init__(self, indexes: Indexes, wanted: Wanted) -> None:
        self._catalog = indexes.catalog
        self._wanted = wanted
        self._asked = Asked(wanted.now, wanted.as_of, wanted.known_at, wanted.history)
        self.notes: dict[str, Standing] = {}
        self.entries: dict[str, EntryRow] = {}
        self.wrote: dict[str, Wrote] = {}

    def accept(self, keys: Iterable[str]) -> set[str]:
        wanted = list(keys)
        notes = standings(self._catalog, self._catalog.by_key(wanted), self._asked)
        rest = [key for key in wanted if key not in notes]
        entries = self._catalog.entries_by_key(rest)
        self.wrote.update(self._catalog.wrote(entry.id for entry in entries.values()))
        known_at = self._asked.known_at
        if known_at is not None:
            entries = {k: e for k, e in entries.items() if self._recorded(e) <= known_at}
        self.notes.update(notes)
        self.entries.update(entries)
        return notes.keys() | entries.keys()

    def _recorded(self, entry: EntryRow) -> datetime:
        wrote = self.wrote.get(entry.id)
        return (wrote.at if wrote and wrote.at else entry.at).replace(microsecond=0)

    def item(self, key: str, home: str, score: float, why: dict[str, object]) -> Found | None:
        if key in self.notes:
            return self._note(self.notes[key], score, why)
        if key in self.entries:
            return self._entry(self.entries[key], home, score, why)
        return None

    def _note(self, standing: Standing, score: float, why: dict[str, object]) -> Found:
        row = standing.row

        def time(t: datetime | None) -> str | None:
            return None if t is None else format_instant(t)

        return Found(
            row.id, row.path, row.blob, row.kind, row.subject, row.scope, row.body, row.front_lines + 1, row.title,
            score, why, row.sources, False, row.taint, row.origin, standing.state, standing.held,
            time(row.valid_from), time(row.valid_to), row.recorded_at, row.supersedes, standing.superseded_by,
            words=self._words(),
        )  # fmt: skip

    def _entry(self, entry: EntryRow, home: str, score: float, why: dict[str, object]) -> Found:
        wrote = self.wrote.get(entry.id)
        blob = self._catalog.blob_of(entry.path) or ""
        at = format_instant(entry.at)
        origin = (wrote.origin if wrote else None) or "agent"
        source = str(Pointer(home, entry.path, blob, entry.first, entry.last))
        return Found(
            entry.id, entry.path, blob, "journal", None, None, entry.text, entry.first + 2, "", score, why, (source,),
            False, wrote.taint if wrote else (), origin, "passage", None, at, None,
            at, (), (), entry.speaker, wrote.session if wrote else None, agent_of(entry.path), self._words(),
        )  # fmt: skip

    def _words(self) -> frozenset[str]:
        return frozenset(term for group in self._wanted.query.groups for term in group.alternatives)
