"""Budgeted reads: a note, a journal, or the exact lines that a pointer names, at their commit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import Erased, InvalidInput, NotFound
from memoranda.home.erasing.blanking import erased_on
from memoranda.index.retention import Ended
from memoranda.index.rows import NoteRow
from memoranda.notes import markdown
from memoranda.notes.chains import Chains
from memoranda.notes.ids import blob_id, is_note_id
from memoranda.notes.journal import is_journal_path
from memoranda.notes.pointers import Pointer, parse_pointer
from memoranda.notes.tokens import count_tokens
from memoranda.operations.forgotten import refuse_gone, without_forgotten
from memoranda.operations.meeting import meet
from memoranda.operations.open_home import OpenHome, sought, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.presenting import Reading
from memoranda.operations.space import Space
from memoranda.operations.stamping import stood, taint_of_sources
from memoranda.recall.page import verdict_on
from memoranda.trust.kept import ended
from memoranda.trust.standing import Trust, believed, trust_of
from memoranda.values import dataclass, replace

VIEWS = ("full", "section", "lines", "outline", "pointer")


def read(
    context: Context,
    space: Space,
    uri: str,
    *,
    view: str | None = None,
    section: str | None = None,
    lines: tuple[int, int] | None = None,
    budget: int | None = None,
) -> Reading:
    """Reads `uri`: a pointer, a note's id, a journal entry's id, or a path in the Home.

    `view` is full (the default), section (with `section`, a heading or its number in the outline), lines (with `lines`
    or the pointer's own), or outline. With a `budget` (tokens) a form that does not fit falls back: the whole to the
    outline, a section or lines to their beginning, anything to the pointer alone.

    Raises:
        Erased: the words that stood there were erased.
        NotFound, UnknownNote, InvalidPointer, InvalidPath: nothing is there, or the words name no place.
        InvalidInput: a view that does not exist or lacks its section or lines, a budget below 1.
    """
    pass_guards(context, Call("read"))
    if budget is not None and budget < 1:
        raise InvalidInput("The budget is below one token.", remedy="Give a positive number, or none.")
    place = _place(context, space, uri)
    _refuse_ended(context, place)
    place = replace(place, text=without_forgotten(context, place.home, place.pointer.path, place.text))
    place = _without_secrets(place)
    labels = _record_what_is_met(context, place)
    return _screened(context, place.home, _viewed(place, view, section, lines, budget), labels)


def _screened(context: Context, home: OpenHome, done: Reading, labels: Mapping[str, str]) -> Reading:
    """The reading with what the injection filter says of it, and its envelope."""
    verdict = verdict_on(done.text)
    if verdict.level == "blocked" and not context.person:
        return replace(done, text="", tokens=0, blocked=verdict.reasons)
    envelope = ""
    if done.text:
        labels = {**labels, "view": done.view, "suspicious": ",".join(verdict.reasons)}
        envelope = home.envelope.wrap(done.id or done.path, done.home, done.text, labels, done.uri)
    return replace(done, suspicious=verdict.reasons, envelope=envelope)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a uri leads: the text of the file, the lines that it names (None: all), and the note's row if it is one."""

    home: OpenHome
    pointer: Pointer
    text: str
    row: NoteRow | None = None
    superseded_by: tuple[str, ...] = ()
    stood: bool = True


def _place(context: Context, space: Space, uri: str) -> _Place:
    homes = space.homes()
    for home in homes:
        home.refresh(context)
    if uri.startswith("nas://"):
        pointer = parse_pointer(uri)
        home = space.of(pointer)
        return _at(home, pointer)
    if is_note_id(uri):
        found = sought(context, homes, lambda home: _note(home, uri))
        if found is not None:
            home, row = found
            return _at(home, Pointer(home.name, row.path, row.blob))
    if uri.startswith("j_"):
        entry = sought(context, homes, lambda home: _entry(home, uri))
        if entry is not None:
            return _at(*entry)
    if is_note_id(uri) or uri.startswith("j_"):
        for home in homes:
            refuse_gone(home, uri)
        raise NotFound(f"There is no note or entry {uri}.", remedy="`memoranda list` and `memoranda recall` show ids.")
    for home in homes:
        pointer = Pointer(home.name, uri)
        try:
            return _at(home, pointer)
        except NotFound:
            continue
    raise NotFound(f"There is no file {uri} in the open Homes.", remedy="`memoranda list --json` shows the paths.")


@undisturbed
def _note(home: OpenHome, note_id: str) -> NoteRow | None:
    return next(iter(home.indexes.catalog.by_id(note_id)), None)


@undisturbed
def _entry(home: OpenHome, entry_id: str) -> Pointer | None:
    """Where an entry stands now."""
    entry = home.indexes.catalog.entry(entry_id)
    if entry is None:
        return None
    return Pointer(home.name, entry.path, home.indexes.catalog.blob_of(entry.path), entry.first, entry.last)


@undisturbed
def _ended(home: OpenHome, note_id: str, now: datetime) -> Ended | None:
    return ended(home.indexes.catalog, now, [note_id]).get(note_id)


def _refuse_ended(context: Context, place: _Place) -> None:
    """NotFound for a note, at any revision, whose retention has ended."""
    if place.row is None:
        return
    if (note := _ended(place.home, place.row.id, context.now())) is not None:
        raise NotFound(
            f"The retention of {note.id} ended on {note.at:%Y-%m-%d}.",
            why="A note that is kept for a number of days is gone once they have passed.",
            remedy="`memoranda expire` removes it for good.",
        )


def _record_what_is_met(context: Context, place: _Place) -> dict[str, str]:
    """Reading something quarantined or external taints the session; durable before a word of it is given.

    Returns the labels of what is read: how far it may be trusted, and whether it comes from outside.
    """
    home, pointer = place.home, place.pointer
    if place.row is not None:
        meet(context, home, [place.row])
        trust = _trust(home, place.row)
        return {"state": trust.state, "taint": ",".join(trust.taint.labels)}
    if is_journal_path(pointer.path) or home.repository.ours.is_note(pointer.path):
        taint = taint_of_sources([home], [str(pointer)])
        if taint.roots:
            home.sessions.raise_taint(context, sorted(taint.roots))
        return {"state": "unreviewed", "taint": ",".join(taint.labels), "stood": "" if place.stood else "no"}
    return {"state": "unclaimed"}


@undisturbed
def _trust(home: OpenHome, row: NoteRow) -> Trust:
    return trust_of(home.indexes.catalog, [row])[row.blob]


def _without_secrets(place: _Place) -> _Place:
    """A note that recall shows was looked through when it came in, and stays so; not what plain Git brought."""
    if place.row is not None:
        return place
    from memoranda.trust.secrets import masked, masked_path

    allows = place.home.rules.allows
    pointer = replace(place.pointer, path=masked_path(place.pointer.path, allows))
    return replace(place, pointer=pointer, text=masked(place.text, allows))


@undisturbed
def _at(home: OpenHome, pointer: Pointer) -> _Place:
    data = home.repository.at(pointer.path, pointer.rev)
    blob = blob_id(data)  # the revision may be a commit
    row = next((r for r in reversed(home.indexes.catalog.at_path(pointer.path)) if r.blob == blob), None)
    after: tuple[str, ...] = ()
    if row is not None:
        rows = home.indexes.catalog.component(row.id)
        if all(other.id != row.id for other in rows):
            rows = [*rows, row]  # its file bears another id by now, and what it superseded is still there
        heads = Chains(believed(home.indexes.catalog, rows)).heads_of(row.id)
        after = () if row.id in heads else heads
    there = row is not None or stood(home, pointer, data)
    return _Place(home, pointer, data.decode("utf-8", "replace"), row, after, there)


def _viewed(
    place: _Place, view: str | None, section: str | None, lines: tuple[int, int] | None, budget: int | None
) -> Reading:
    count = max(1, len(place.text.splitlines()))
    if view is None:
        view = "section" if section else "lines" if lines or place.pointer.start else "full"
    if view not in VIEWS:
        raise InvalidInput(f"There is no view {view!r}.", remedy=f"The views are {', '.join(VIEWS[:4])}.")
    first, last = 1, count
    if view == "section":
        if not section:
            raise InvalidInput("A section view names no section.", remedy="Give --section with a heading or a number.")
        which = int(section) if section.isdigit() else section
        heading = markdown.section(_without_front(place), which)
        if heading is None:
            raise NotFound(f"There is no section {section!r}.", remedy="`--view outline` shows the sections.")
        first, last = heading.start, heading.end
    elif view == "lines":
        named = (place.pointer.start, place.pointer.end) if place.pointer.start and place.pointer.end else None
        first, last = lines or named or (1, count)
        if first < 1 or last < first or first > count:
            raise InvalidInput(f"The lines {first} to {last} are not in the file.", remedy=f"It has {count} lines.")
        last = min(last, count)
    elif view == "outline":
        return _outline(place, budget, False, count)
    return _fitted(place, view, first, last, budget, count)


def _fitted(place: _Place, view: str, first: int, last: int, budget: int | None, count: int) -> Reading:
    text = markdown.lines(place.text, first, last)
    if view == "lines" and (day := erased_on(text)) is not None:
        raise Erased(day)
    tokens = count_tokens(text)
    if view == "pointer" or (budget is not None and tokens > budget):
        if view == "full":
            return _outline(place, budget, True, count)
        if view != "pointer":
            kept = _beginning(text, budget or 0)
            if kept:
                return _reading(place, view, kept, first, first + kept.count("\n"), True)
        return _reading(place, "pointer", "", first, last, view != "pointer")
    return _reading(place, view, text, first, last, False)


def _outline(place: _Place, budget: int | None, truncated: bool, count: int) -> Reading:
    rows = [f"{'  ' * (h.level - 1)}{h.title} (L{h.start}-L{h.end})" for h in markdown.outline(_without_front(place))]
    text = "\n".join(rows)
    if budget is not None and count_tokens(text) > budget:
        text, truncated = _beginning(text, budget), True
    if truncated and not rows:
        kept = _beginning(markdown.lines(place.text, 1, count), budget or 0)
        if kept:
            return _reading(place, "lines", kept, 1, 1 + kept.count("\n"), True)
    if not text and rows:
        return _reading(place, "pointer", "", 1, count, True)
    return _reading(place, "outline", text, 1, count, truncated)


def _without_front(place: _Place) -> str:
    """The text with empty lines for its front matter, whose last rule would make a heading of the line before it."""
    if not place.text.lstrip("\ufeff").startswith("---"):
        return place.text
    from memoranda.notes.model import read_note

    front = read_note(place.pointer.path, place.text.encode("utf-8", "replace")).front_lines
    return "\n" * front + "\n".join(place.text.split("\n")[front:])


def _beginning(text: str, budget: int) -> str:
    """As many whole lines from the beginning as fit the budget."""
    kept: list[str] = []
    used = 0
    for line in text.splitlines():
        used += count_tokens(line + "\n")
        if used > budget:
            break
        kept.append(line)
    return "\n".join(kept)


@undisturbed
def _blob(home: OpenHome, path: str) -> str | None:
    return home.indexes.catalog.blob_of(path)


def _reading(place: _Place, view: str, text: str, first: int, last: int, truncated: bool) -> Reading:
    p = place.pointer
    rev = p.rev or (place.row.blob if place.row else None) or _blob(place.home, p.path)
    whole = view in ("full", "outline", "pointer") and p.start is None
    uri = str(Pointer(p.home, p.path, rev) if whole else Pointer(p.home, p.path, rev, first, last))
    return Reading(
        uri, view, text, first, last, count_tokens(text), truncated, p.path, place.home.name,
        place.row.id if place.row else None, place.superseded_by, stood=place.stood,
    )  # fmt: skip
