"""Lists, chains and history: what there is, what it was before, and who changed it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import ChainConflict
from memoranda.index.catalog import Catalog
from memoranda.index.journal_mode import named_errors
from memoranda.index.retention import gone_with
from memoranda.index.rows import NoteRow
from memoranda.notes.chains import Chains, unknown_note
from memoranda.notes.paths import title_of
from memoranda.notes.pointers import Pointer
from memoranda.notes.times import Interval, format_day_or_instant, format_instant
from memoranda.notes.words import KINDS, SCOPES
from memoranda.operations.meeting import hides, meet, quarantined
from memoranda.operations.open_home import OpenHome, sought, undisturbed
from memoranda.operations.pipeline import Call, known_words, pass_guards
from memoranda.operations.space import Space
from memoranda.trust.edited import as_reviewed
from memoranda.trust.kept import ended
from memoranda.trust.standing import believed, trust_of
from memoranda.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class Listed:
    """One head in a list."""

    id: str
    uri: str
    path: str
    home: str
    kind: str
    subject: str | None
    scope: str
    title: str
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: str | None
    reviewed: bool
    trust: str
    supersedes: tuple[str, ...]

    def json(self) -> dict[str, object]:
        return {
            "id": self.id, "uri": self.uri, "path": self.path, "home": self.home, "kind": self.kind,
            "subject": self.subject, "scope": self.scope, "title": self.title,
            "valid_from": time_or_none(self.valid_from), "valid_to": time_or_none(self.valid_to),
            "recorded_at": self.recorded_at, "reviewed": self.reviewed, "trust": self.trust,
            "supersedes": list(self.supersedes),
        }  # fmt: skip


def time_or_none(t: datetime | None) -> str | None:
    return None if t is None else format_instant(t)


def note_uri(home: OpenHome, row: NoteRow) -> str:
    """The pointer to the exact bytes of a note."""
    return str(Pointer(home.name, row.path, row.blob))


def list_notes(
    context: Context,
    space: Space,
    *,
    kinds: Sequence[str] = (),
    subject: str | None = None,
    scopes: Sequence[str] = (),
) -> list[Listed]:
    """The heads of all chains in all open Homes, by Home and path. InvalidInput for an unknown kind or scope."""
    pass_guards(context, Call("list"))
    known_words("kind", kinds, KINDS)
    known_words("scope", scopes, SCOPES)
    listed: list[Listed] = []
    for home in space.homes():
        home.refresh(context)
        with home.indexes.lock, named_errors("The catalog"):  # another thread may be in the middle of catching up
            rows = _heads(home, _narrow(kinds, subject, scopes), context.now())
            trust = trust_of(home.indexes.catalog, rows)
        hidden = hides(context, home)
        listed += [_listed(home, row, trust[row.blob].state, hidden) for row in rows]
    return listed


def _heads(home: OpenHome, narrowed: tuple[str, list[object]], now: datetime) -> list[NoteRow]:
    catalog = home.indexes.catalog
    superseded, gone = catalog.superseded(), ended(catalog, now)
    there = (row for row in catalog.live_notes(*narrowed) if row.id not in gone)
    return [row for row in there if row.id not in superseded or is_head(catalog, row.id)]


def _narrow(kinds: Sequence[str], subject: str | None, scopes: Sequence[str]) -> tuple[str, list[object]]:
    where, values = "", list[object]()
    for column, words in (("kind", kinds), ("scope", scopes)):
        if words:
            where += f" AND n.{column} IN ({','.join('?' * len(words))})"
            values += words
    if subject is not None and (subject := subject.strip("/")):
        where += " AND (n.subject = ? OR substr(n.subject, 1, ?) = ?)"
        values += [subject, len(subject) + 1, subject + "/"]
    return where, values


def is_head(catalog: Catalog, note_id: str) -> bool:
    """Whether a note stands at the end of its chain."""
    return Chains(believed(catalog, catalog.component(note_id))).is_head(note_id)


def told(home: OpenHome, row: NoteRow, state: str, hidden: bool) -> tuple[str, str, str | None, str]:
    """(uri, path, subject, title); without the words of what is quarantined for whom they would taint (`hides`)."""
    if hidden and quarantined(state):
        return "", "", None, ""
    title = row.title
    if state == "reviewed" and title == row.path.rpartition("/")[2].removesuffix(".md"):
        title = ""  # a person has read the words of the file: it may have been given another name, or copied to one
    return note_uri(home, row), row.path, row.subject, title or title_of(row.body)


def _listed(home: OpenHome, row: NoteRow, trust: str, hidden: bool) -> Listed:
    uri, path, subject, title = told(home, row, trust, hidden)
    return Listed(
        row.id, uri, path, home.name, row.kind, subject, row.scope, title, row.valid_from, row.valid_to,
        row.recorded_at, trust == "reviewed", trust, row.supersedes,
    )  # fmt: skip


# One chain


@dataclass(frozen=True, slots=True)
class Link:
    """One note of a chain: when it held as far as is known now, who wrote it, and whether it holds now."""

    id: str
    uri: str
    path: str
    head: bool
    effective: Interval | None
    known_from: datetime
    author: str | None
    session: str | None
    supersedes: tuple[str, ...]
    title: str

    def json(self) -> dict[str, object]:
        held = self.effective
        return {
            "id": self.id, "uri": self.uri, "path": self.path, "head": self.head,
            "held_from": time_or_none(held.start) if held else None,
            "held_to": time_or_none(held.end) if held else None,
            "held": held is not None, "known_from": format_instant(self.known_from), "author": self.author,
            "session": self.session, "supersedes": list(self.supersedes), "title": self.title,
        }  # fmt: skip


def history(context: Context, space: Space, note_id: str) -> list[Link]:
    """The chain of any of its ids, oldest first. UnknownNote."""
    pass_guards(context, Call("history"))
    home, rows = chain_of(context, space, note_id)
    return _chain(home, rows, note_id, context.now(), hides(context, home))


@undisturbed
def _chain(home: OpenHome, rows: Sequence[NoteRow], note_id: str, now: datetime, hidden: bool) -> list[Link]:
    trust = trust_of(home.indexes.catalog, rows)
    chains = Chains(believed(home.indexes.catalog, rows))
    by_id = {row.id: row for row in reversed(rows)}
    wrote = home.indexes.catalog.ledger.wrote(row.blob for row in rows)
    found = []
    for member in chains.members(note_id):
        row = by_id[member]
        who = wrote.get(row.blob)
        uri, path, _, title = told(home, row, trust[row.blob].state, hidden)
        found.append(
            Link(
                row.id, uri, path, chains.is_head(row.id), chains.effective(row.id, now),
                row.known_from, who.agent if who else None, who.session if who else None, row.supersedes, title,
            )
        )  # fmt: skip
    return found


def chain_of(context: Context, space: Space, note_id: str) -> tuple[OpenHome, list[NoteRow]]:
    """The Home that knows an id, and the rows of its chain."""

    def look(home: OpenHome) -> list[NoteRow] | None:
        with home.indexes.lock:
            return still_kept(home, home.indexes.catalog.component(note_id), context.now()) or None

    for home in space.homes():
        home.refresh(context)
    found = sought(context, space.homes(), look)
    if found is None:
        raise unknown_note(note_id)
    return found


def still_kept(home: OpenHome, rows: Sequence[NoteRow], now: datetime) -> list[NoteRow]:
    """The rows of a chain without those whose retention has ended, and without what they superseded."""
    gone = ended(home.indexes.catalog, now, (row.id for row in rows))
    if not gone:
        return list(rows)
    hidden = gone_with({row.id: row.supersedes for row in rows}, gone)
    return [row for row in rows if row.id not in hidden]


def the_head(home: OpenHome, note_id: str) -> NoteRow | None:
    """The row that holds now on this id's chain, None when the Home does not know it; ChainConflict for two heads.

    Of a note that was edited since its review that is its last reviewed state.
    """
    home.indexes.catch_up()
    return head_at_hand(home, note_id)


@undisturbed
def head_at_hand(home: OpenHome, note_id: str) -> NoteRow | None:
    """As `the_head`, by what the indexes know without looking again."""
    rows = home.indexes.catalog.component(note_id)
    if not rows:
        return None
    heads = Chains(believed(home.indexes.catalog, rows)).heads_of(note_id)
    if len(heads) != 1:
        raise ChainConflict(
            f"The chain of {note_id} has {len(heads)} heads: {', '.join(heads)}.",
            why="Two notes claim to be what holds now.",
            remedy="Write one that supersedes them: `memoranda remember … --supersedes ID --supersedes ID`.",
        )
    (head,) = as_reviewed(home.indexes.catalog, [next(row for row in rows if row.id == heads[0])])
    return head


def refuse_another(seen: NoteRow, head: NoteRow | None) -> None:
    """ChainConflict when the head of a chain is not the one, in the same bytes, that somebody has decided on."""
    if head is None or (head.id, head.blob) != (seen.id, seen.blob):
        raise ChainConflict(
            f"{seen.id} is not what holds any more.",
            why="Somebody changed it meanwhile." if head is None else f"{head.id} came after it.",
            remedy="Read it again, then decide.",
        )


def diff(context: Context, space: Space, note_id: str) -> str:
    """What changed from note to note along a chain, as unified diffs of their texts; empty for a lone note."""
    pass_guards(context, Call("diff"))
    home, rows = chain_of(context, space, note_id)
    meet(context, home, rows)
    by_id = {row.id: row for row in reversed(rows)}
    parts: list[str] = []
    for member in Chains(row.link() for row in rows).members(note_id):
        row = by_id[member]
        for old in row.supersedes:
            if old in by_id:
                before = by_id[old]
                names = (f"{old} {_since(before)}", f"{row.id} {_since(row)}")
                parts += difflib.unified_diff(before.body.splitlines(), row.body.splitlines(), *names, lineterm="")
    return "\n".join(parts)


def _since(row: NoteRow) -> str:
    return f"(from {format_day_or_instant(row.valid_from)})" if row.valid_from else "(from ever)"


# The log


@dataclass(frozen=True, slots=True)
class Logged:
    """One write: the commit is None while it stands in the intake log only. Secrets in what Git says are not in it."""

    commit: str | None
    at: datetime
    author: str
    reason: str
    paths: tuple[str, ...]
    home: str

    def json(self) -> dict[str, object]:
        return {
            "commit": self.commit, "at": format_instant(self.at), "author": self.author, "reason": self.reason,
            "paths": list(self.paths), "home": self.home,
        }  # fmt: skip


def log(context: Context, space: Space, *, limit: int = 20) -> list[Logged]:
    """The newest writes of the nearest Home, newest first."""
    pass_guards(context, Call("log"))
    home = space.one()
    home.refresh(context)
    snapshot = home.repository.snapshot()
    found = [
        Logged(None, r.at, r.author, r.reason, tuple(c.path for c in r.changes), home.name)
        for r in reversed(snapshot.tail)
        if r.changes
    ]
    if snapshot.commit is not None and len(found) < limit:
        steps = list(home.repository.history(None, snapshot.commit, newest=limit - len(found)))
        for step in reversed(steps):
            paths = tuple(change.path for change in step.changes)
            found.append(Logged(step.commit, step.at, step.author, step.subject, paths, home.name))
    found = found[:limit]
    places = dict.fromkeys(path for logged in found for path in logged.paths)
    meet(context, home, _states(home, places))
    return [_without_secrets(logged, home.rules.allows) for logged in found]


def _without_secrets(logged: Logged, allows: Callable[[str], bool]) -> Logged:
    from memoranda.trust.secrets import masked, masked_path  # here: a list needs none of it

    return replace(
        logged,
        author=masked(logged.author, allows),
        reason=masked(logged.reason, allows),
        paths=tuple(masked_path(path, allows) for path in logged.paths),
    )


@undisturbed
def _states(home: OpenHome, paths: Iterable[str]) -> list[NoteRow]:
    """Every state of the notes at these paths."""
    return [row for path in paths for row in home.indexes.catalog.at_path(path)]
