"""The second column of a forgetting: what still holds the text, or may hold it, and why it could not be removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput
from memoranda.home.erasing.rerefs import all_refs, linked_worktrees
from memoranda.notes.sameness import same_text, says_something
from memoranda.operations.open_home import undisturbed
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.context import Context
    from memoranda.operations.cascade import Cascade, Lineage
    from memoranda.operations.open_home import OpenHome
    from memoranda.operations.space import Space

_MANY = 50  # texts that are looked for inside others; more are only compared as wholes


@dataclass(frozen=True, slots=True)
class Remains:
    """Something that could not be removed, and why; `note` is the id of the note that it is, if it is one."""

    what: str
    why: str
    note: str | None = None

    def json(self) -> dict[str, object]:
        return {"what": self.what, "why": self.why}


@undisturbed
def quoting(home: OpenHome, lineage: Lineage, cascade: Cascade) -> tuple[tuple[str, ...], tuple[Remains, ...]]:
    """Who else says the same: the ids of notes and entries with just this content, and what is to be told of quotes."""
    wanted = set(_texts(home, lineage, cascade))
    looked_for = [text for text in wanted if says_something(text)] if len(wanted) <= _MANY else []
    stays: list[str] = []
    found: list[Remains] = []
    for kind, name, path, text in _others(home, cascade):
        same = same_text(text)
        if same in wanted:
            stays.append(name)
            found.append(Remains(path, f"the {kind} {name} says the same, and is of another origin", name))
        elif any(part in same for part in looked_for):
            found.append(Remains(path, f"the {kind} {name} quotes it, and is of another origin", name))
    return tuple(stays), tuple(found)


def citing_elsewhere(
    context: Context, space: Space, home: OpenHome, lineage: Lineage, cascade: Cascade
) -> Iterator[Remains]:
    """Notes of other open Homes that cite what goes: a Home forgets what is its own."""
    for other in space.homes():
        if other is home:
            continue
        other.refresh(context)
        with other.indexes.lock:
            sources = list(other.indexes.catalog.nas_sources())
        taken = cascade.notes.keys() | cascade.entries.keys()
        for note_id, path, source in sources:
            with home.indexes.lock:
                nodes = lineage.nodes_of(source)
            if any(kind != "source" and name in taken for kind, name in nodes):
                yield Remains(f"{other.name}: {path}", f"the note {note_id} of that Home cites it; forget it there")


def _texts(home: OpenHome, lineage: Lineage, cascade: Cascade) -> Iterator[str]:
    from memoranda.notes.model import read_note

    for version in cascade.all_versions():
        data = home.repository.blob(version.blob)
        if data is not None and (same := same_text(read_note(version.path, data).body)):
            yield same
    for name, taken in cascade.entries.items():
        for entry in lineage.entries_of(taken.path):
            if entry.id == name and (same := same_text(entry.text)) and says_something(same):
                yield same


def _others(home: OpenHome, cascade: Cascade) -> Iterator[tuple[str, str, str, str]]:
    """(kind, id, path, text) of every note and entry that stays."""
    db = home.indexes.catalog.db
    for note_id, path, body in db.execute("SELECT id, path, body FROM notes WHERE live = 1 ORDER BY path"):
        if note_id not in cascade.notes:
            yield "note", note_id, path, body
    for entry, path, text in db.execute("SELECT id, path, text FROM entries WHERE text != '' ORDER BY path, place"):
        if entry not in cascade.entries:
            yield "entry", entry, path, text


def _golden(home: OpenHome, lineage: Lineage, cascade: Cascade) -> Iterator[Remains]:
    """Golden questions whose answer goes, or that repeat it: their words are a person's own, and stay."""
    from memoranda.recall.golden import PATH, parse

    data = home.repository.worktree.read(PATH)
    if data is None:
        return
    gone = {*cascade.notes, *cascade.entries}
    try:
        questions = parse(data).questions
    except InvalidInput:
        questions = ()
    expecting = [n for n, asked in enumerate(questions, 1) if gone & set(asked.expect)]
    said = [_telling(text) for text in _texts(home, lineage, cascade)]
    repeating = [
        n
        for n, asked in enumerate(questions, 1)
        if n not in expecting and any(len(words & _telling(asked.question)) > 1 for words in said)
    ]
    if expecting or (not questions and any(name.encode() in data for name in gone)):
        which = f" (number {', '.join(map(str, expecting))})" if expecting else ""
        yield Remains(PATH, f"golden questions{which} expect it, and their words stay; take them out by hand")
    if repeating:
        numbers = ", ".join(map(str, repeating))
        yield Remains(PATH, f"golden questions (number {numbers}) have words of it; take them out by hand")


def _telling(text: str) -> set[str]:
    """The words that may tell of what a text is about, in a form in which case makes no difference."""
    return {word for word in same_text(text).split() if len(word) >= 5}


def remains_of(
    home: OpenHome,
    lineage: Lineage,
    cascade: Cascade,
    quotes: Sequence[Remains],
    *,
    erase: bool,
    told: Sequence[tuple[str, str]],
) -> Iterator[Remains]:
    """Everything that could not be removed; `told` is what an erasing said itself."""
    layout = home.repository.layout
    if not erase:
        yield Remains("the history of this Home", "its commits keep the files; --erase takes them out")
        for name, taken in cascade.entries.items():
            yield Remains(f"{taken.path} ({name})", "journals are only appended to; --erase blanks these lines")
    for entry, other in cascade.shared:
        yield Remains(f"{entry.path} ({entry.id})", f"{other} cites this entry too; name the entry to take both")
    yield from quotes
    yield from _golden(home, lineage, cascade)
    remotes = sorted({name.split("/")[2] for name in all_refs(layout.common_dir) if name.startswith("refs/remotes/")})
    if remotes:
        yield Remains(f"remotes: {', '.join(remotes)}", "what was pushed there or fetched from there stays there")
    if told:
        yield from (Remains(what, why) for what, why in told)
        return
    yield Remains("clones and remotes", "they keep what they have; what comes back from one is kept out here")
    yield Remains("backups and copies of this folder", "nothing here can reach them")
    for folder in linked_worktrees(layout):
        yield Remains(folder, "it is another worktree of this repository; its files are not touched")
