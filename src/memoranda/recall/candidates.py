"""The catalog as one question asks it: what may be shown of what was found, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from memoranda.errors import InvalidPointer
from memoranda.index.documents import OF
from memoranda.index.indexes import Indexes
from memoranda.index.lexical import Scores
from memoranda.index.rows import Brief, EntryRow, Said, Shown
from memoranda.index.showing import forked
from memoranda.index.testimony import Wrote
from memoranda.notes.ids import told_id
from memoranda.notes.journal import agent_of
from memoranda.notes.pointers import Pointer, parse_pointer
from memoranda.notes.times import format_instant, from_ms, to_ms
from memoranda.recall.facts import Known
from memoranda.recall.items import Found, Withheld
from memoranda.recall.likeness import Likeness
from memoranda.recall.question import Question
from memoranda.recall.ranking import Fact, Ranked, rank_notes
from memoranda.recall.visibility import Asked, Standing, Visibility
from memoranda.trust.edited import reviewed_keys
from memoranda.trust.labels import CLEAN, Taint
from memoranda.trust.reviews import reviewed_blobs
from memoranda.trust.standing import Trust, trust_of
from memoranda.values import dataclass, replace

_MOST_WITHHELD = 3
_MOST_BESIDE = 100
_MOST_TITLED = 20
_NO_TAINT = (None, "[]")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question to one Home, and the filters of `recall`."""

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
    clean: bool = False  # whether the session has met nothing from outside, and so is not handed any of it unasked
    places: frozenset[str] | None = None  # only what lies in these, see `notes.belonging`; None: everything

    def facets(self) -> list[list[str]]:
        """The filters as groups of facets: every group must be met, by any of its facets."""
        groups = [[f"in:{place}" for place in self.include]]
        if self.kinds:
            groups.append([f"kind:{kind}" for kind in self.kinds])
        if self.scopes:
            groups.append([f"scope:{scope}" for scope in self.scopes])
        if self.subject and self.subject.strip("/"):
            groups.append([f"subject:{self.subject.strip('/')}"])
        if self.places is not None:
            groups.append([f"{OF}{place}" for place in sorted(self.places)] or [OF])
        return groups


def _cited(sources: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """The lines of journals to which these sources lead: path -> (first, last)."""
    cited: dict[str, list[tuple[int, int]]] = {}
    for source in sources:
        if "/journal/" not in source or "#L" not in source:
            continue
        try:
            pointer = parse_pointer(source)
        except InvalidPointer:
            continue  # written by hand; `doctor` lists it
        cited.setdefault(pointer.path, []).append((pointer.start or 0, pointer.end or 0))
    return cited


class Candidates:
    """The catalog as ranking asks it; what was looked up is remembered for the answer."""

    def __init__(self, indexes: Indexes, wanted: Wanted) -> None:
        self._catalog = indexes.catalog
        asked = Asked(wanted.now, wanted.as_of, wanted.known_at, wanted.history)
        self._visibility = Visibility(indexes.catalog, asked)
        self.edited = bool(self._visibility.edited)
        self._now, self._known_at = wanted.now, wanted.known_at
        self._former = wanted.known_at is not None or wanted.history
        self._as_of = wanted.as_of is not None and not wanted.history
        self._until = to_ms(wanted.as_of) if self._as_of else None
        self._notes: dict[str, Standing] = {}
        self._said: dict[str, Said] = {}
        self._quarantined: set[str] = set()
        self._clean = wanted.clean
        self._withheld: list[str] = []
        self._around: dict[str, Said] = {}
        self._entries: Mapping[str, EntryRow] = {}

    def accept(self, keys: Iterable[str]) -> set[str]:
        """Which of these documents the question may be shown."""
        wanted = list(keys)
        said = {key: self._around[key] for key in wanted if key in self._around}
        unknown = [key for key in wanted if key not in said]
        notes: Mapping[str, Standing] = {}
        if unknown:
            notes = self._visibility.judge(self._catalog.briefs(unknown))
            self._notes.update(notes)
            self._quarantine(notes)
            said |= self._catalog.said([key for key in unknown if key not in notes])
        if self._known_at is not None:
            said = {key: entry for key, entry in said.items() if _recorded(entry) <= self._known_at}
        if self._until is not None:  # what was said later had not been said then
            said = {key: entry for key, entry in said.items() if entry.at_ms <= self._until}
        self._said.update(said)
        found = notes.keys() | said.keys()
        if self._clean:  # for a session that has met nothing from outside: what would taint it is only pointed to
            closed = {key for key in notes if key in self._quarantined}
            closed.update([key for key, entry in said.items() if entry.taint not in _NO_TAINT])
            if closed:
                self._withheld += sorted(closed - set(self._withheld))
                found -= closed
        return found

    def _quarantine(self, notes: Mapping[str, Standing]) -> None:
        """Remembers which of these notes are tainted and not reviewed; most have no taint, and cost nothing here."""
        tainted = {key: standing.brief.blob for key, standing in notes.items() if standing.brief.tainted}
        if tainted:
            reviewed = reviewed_blobs(self._catalog, tainted.values())
            self._quarantined.update(key for key, blob in tainted.items() if blob not in reviewed)

    def withheld(self) -> list[Withheld]:
        """What was found and not shown, in the order in which it was met: labels only, none of its words."""
        found = []
        for key in self._withheld[:_MOST_WITHHELD]:
            if key in self._notes:
                brief = self._notes[key].brief
                at = format_instant(_at(brief.known_from * 1000))
                found.append(Withheld(told_id(brief.id), brief.kind, at, self._catalog.schemes(brief.row)))
        keys = [key for key in self._withheld if key in self._said]
        for entry in self._catalog.entries_by_key(keys[: _MOST_WITHHELD - len(found)]).values():
            found.append(Withheld(told_id(entry.id), "journal", format_instant(entry.at), ("nas",)))
        return found

    def of_that_time(self, question: Question, scores: Scores, n: int) -> list[Ranked]:
        """What lies in the time that is all that is asked for."""
        from memoranda.recall.lately import of_that_time  # here: most questions ask for more

        return of_that_time(question, scores, self._catalog, self, n, self.accept, former=self._former)

    def titled(self, question: str) -> Sequence[str]:
        return self._catalog.titled(question.strip(" \t\n?!.:;\"'«»“”"), _MOST_TITLED)

    def facts(self, keys: Sequence[str]) -> Mapping[str, Known]:
        found: dict[str, Known] = {}
        for key in keys:
            if key in self._notes:
                standing = self._notes[key]
                brief = standing.brief
                at = brief.valid_from if brief.valid_from is not None else brief.known_from * 1000
                # Asked about another day, what held then is no worse for having been superseded since.
                state = "current" if self._as_of and standing.state == "superseded" else standing.state
                found[key] = Fact(key, at, title=brief.title, state=state)
            elif key in self._said:
                found[key] = self._said[key]
        return found

    def around(self, spans: Sequence[tuple[str, int, int]]) -> Iterable[Known]:
        found = self._catalog.passages(spans)
        for entry in found:
            self._around.setdefault(entry.key, entry)
        return found

    def unfolded(self, ranked: Sequence[Ranked]) -> Sequence[Ranked]:
        """Without the passages that a note among them cites: the note says it, and its source leads to the passage."""
        passages = [item.key for item in ranked if item.key not in self._notes]
        notes = [self._notes[item.key].brief for item in ranked if item.key in self._notes]
        cited = _cited(self._catalog.sources(self._vouched(notes))) if passages and notes else {}
        if not cited:
            return ranked
        self._entries = self._catalog.entries_by_key(passages)

        def folded(key: str) -> bool:
            entry = self._entries.get(key)
            return entry is not None and any(a <= entry.first + 2 <= z for a, z in cited.get(entry.path, ()))

        return [item for item in ranked if not folded(item.key)]

    def _vouched(self, notes: Sequence[Brief]) -> list[int]:
        """The rows of those that may speak for what they cite: a file that somebody wrote hides nobody's words."""
        wrote = self._catalog.ledger.wrote(brief.blob for brief in notes)
        return [b.row for b in notes if not b.tainted and ((line := wrote.get(b.blob)) is None or line.kind != "found")]

    def reviewed_beside(
        self, question: Question, scores: Scores, shown: Sequence[Ranked], alike: Sequence[Likeness]
    ) -> list[Ranked]:
        """The reviewed notes that answer the question and are not among those shown, best first.

        Those whose words fit best, and those that were edited since: an edit is never shown without them.
        """
        keys = reviewed_keys(self._catalog, self._known_at)
        there = {item.key for item in shown}
        held = scores.held([key for key in keys if key not in there])
        edited = {state.key for state in self._visibility.edited.values()}
        wanted = [key for key, has in held.items() if has.mask and has.passes]
        wanted.sort(key=lambda key: (key not in edited, -held[key].score, key))
        found: set[str] = set()
        while wanted and len(found) < _MOST_BESIDE:  # many may be superseded, and judging each costs
            found |= self.accept(wanted[:_MOST_BESIDE])
            del wanted[:_MOST_BESIDE]
        return rank_notes(question, scores, self, sorted(found), _MOST_BESIDE + len(edited), alike)

    def _believed(self, row: Shown, trust: Trust) -> Trust:
        """A row that somebody has changed says nothing that a person reviewed, whatever its blob is."""
        if trust.state != "reviewed" or self._catalog.is_true(row):
            return trust
        return replace(trust, state="unclaimed")

    def items(self, ranked: Sequence[Ranked], home: str, words: frozenset[str]) -> list[Found]:
        """The items of the answer, read in full."""
        numbers = [self._notes[item.key].brief.row for item in ranked if item.key in self._notes]
        rows = self._catalog.shown(numbers)
        trust = trust_of(self._catalog, rows.values())
        contested = self._contested(list(rows.values()))
        over = self._over(rows.values(), trust)
        proposed = self._proposed(rows, trust)
        said = [item.key for item in ranked if item.key not in self._notes]
        entries = self._entries or self._catalog.entries_by_key(said)
        wrote = self._catalog.ledger.wrote(entries[key].about for key in said)
        blobs = {path: self._catalog.blob_of(path) or "" for path in {entries[key].path for key in said}}
        found = []
        for item in ranked:
            if item.key in self._notes:
                standing = self._notes[item.key]
                row = rows[standing.brief.row]
                against = sorted({*contested.get(row.id, ()), *over.get(row.row, ())})
                doubts = tuple(against), proposed.get(row.row, ())
                found.append(_note(row, standing, self._believed(row, trust[row.blob]), item, words, *doubts))
            else:
                entry = entries[item.key]
                found.append(_passage(entry, blobs[entry.path], wrote.get(entry.about), item, home, words))
        return found

    def _proposed(self, rows: Mapping[int, Shown], trust: Mapping[str, Trust]) -> Mapping[int, tuple[str, ...]]:
        """Row of a reviewed note -> what would take its place and waits for a review, as far as is known now."""
        if self._known_at is not None:
            return {}
        linked = {standing.brief.row for standing in self._notes.values() if standing.brief.linked}
        edited = self._visibility.edited
        suspects = {
            number: row.id
            for number, row in rows.items()
            if (number in linked or row.id in edited) and trust[row.blob].state == "reviewed"
        }
        if not suspects:
            return {}
        from memoranda.trust.proposed import proposed_by  # here: in most answers nobody disputes anything

        found = proposed_by(self._catalog, suspects.values())
        return {number: found.get(note_id, ()) for number, note_id in suspects.items()}

    def _over(self, rows: Iterable[Shown], trust: Mapping[str, Trust]) -> Mapping[int, tuple[str, ...]]:
        """Row of a note that waits for a review -> what it would replace then, and what contradicts it till then."""
        paths = {state.path for state in self._visibility.edited.values()}
        claims = [r for r in rows if r.supersedes or r.path in paths or trust[r.blob].was_reviewed]
        claims = [row for row in claims if not trust[row.blob].supersedes]
        if self._known_at is not None or not claims:
            return {}
        from memoranda.trust.proposed import proposed_to  # here: few answers hold a claim

        return {row.row: proposed_to(self._catalog, row, trust[row.blob]) for row in claims}

    def _contested(self, rows: Sequence[Shown]) -> Mapping[str, tuple[str, ...]]:
        """id -> what contradicts it, as far as is known now; asked only when the catalog gives a reason to."""
        if self._known_at is not None:
            return {}
        heirs = [row.id for row in rows if row.supersedes]
        several = bool(heirs) and forked(self._catalog.db, heirs)
        suspects = [row.row for row in rows if row.disputed or (several and row.supersedes)]
        if not suspects:
            return {}
        from memoranda.trust.contested import contested_by  # here: most answers contradict nothing

        return contested_by(self._catalog, self._catalog.rows(suspects), self._now)


def _recorded(entry: Said) -> datetime:
    """When the Home learned of an entry, in whole seconds as everywhere; without the ledger, when it was said."""
    return _at(entry.at_ms if entry.recorded is None else entry.recorded).replace(microsecond=0)


def _passage(entry: EntryRow, blob: str, wrote: Wrote | None, item: Ranked, home: str, words: frozenset[str]) -> Found:
    at = format_instant(entry.at)
    source = str(Pointer(home, entry.path, blob, entry.first, entry.last))
    origin = (wrote.origin if wrote else None) or "agent"
    roots = Taint.read(wrote.taint) if wrote else CLEAN
    known = wrote is not None and wrote.vouched and wrote.kind == "entry"
    return Found(
        entry.id, entry.path, blob, "journal", None, None, entry.text, entry.first + 2, item.score,
        item, (source,), False, roots.labels, origin, "passage", at, None, at, (), (), entry.speaker,
        wrote.session if wrote else None, agent_of(entry.path), roots=roots, words=words,
        trust="unreviewed" if known else "unclaimed",
    )  # fmt: skip


def _at(ms: int) -> datetime:
    at = from_ms(ms)
    assert at is not None
    return at


@lru_cache(4096)  # many notes begin on the same day
def _time(ms: int | None) -> str | None:
    return None if ms is None else format_instant(_at(ms))


def _note(
    row: Shown,
    standing: Standing,
    trust: Trust,
    item: Ranked,
    words: frozenset[str],
    contested: tuple[str, ...],
    proposed: tuple[str, ...],
) -> Found:
    return Found(
        row.id, row.path, row.blob, row.kind, row.subject, row.scope, row.body, row.front_lines + 1, item.score,
        item, row.sources, trust.state == "reviewed", trust.taint.labels, row.origin, standing.state,
        _time(row.valid_from), _time(row.valid_to), row.recorded_at, row.supersedes, standing.superseded_by,
        trust=trust.state, roots=trust.taint, classification=row.classification, words=words,
        contested_by=contested, proposed_by=proposed,
    )  # fmt: skip
