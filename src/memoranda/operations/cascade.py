"""What goes when something is forgotten: whole chains, what was derived along the lineage, and the raw words behind it.

Known are the notes that the catalog has, in their present and former states, and those that it keeps out because they
were forgotten before: so that what was only taken away can still be erased.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from memoranda.errors import InvalidPointer, NotFound
from memoranda.home.erasing.erase import Blank, Whole
from memoranda.home.erasing.plan import Lines
from memoranda.index.catalog import Catalog
from memoranda.index.feeding import RECORDS
from memoranda.index.rows import EntryRow
from memoranda.notes.ids import is_note_id
from memoranda.notes.journal import is_journal_path
from memoranda.notes.model import Note, read_note
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.open_home import OpenHome
from memoranda.values import dataclass, field, replace

Node = tuple[str, str]  # ("note" | "entry" | "source", its id or address)


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a note: `live` is what its path holds now, `out` is kept out of the catalog."""

    id: str
    path: str
    blob: str
    live: bool
    out: bool
    scope: str
    owner: Mapping[str, str]
    sources: tuple[str, ...]
    supersedes: tuple[str, ...]
    erase_history: bool
    generated: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """One thing that goes: `why` says how it was come to."""

    kind: str
    id: str
    path: str
    why: str

    def json(self) -> dict[str, object]:
        return {"kind": self.kind, "id": self.id, "path": self.path, "why": self.why}


@dataclass(slots=True)
class Cascade:
    """What goes together: the notes by id with every state, the entries, and the entries that others cite too.

    `records` are those among the entries that only record the call by which a note was written.
    """

    notes: dict[str, Taken] = field(default_factory=dict)
    entries: dict[str, Taken] = field(default_factory=dict)
    records: set[str] = field(default_factory=set)
    versions: dict[str, list[Version]] = field(default_factory=dict)
    shared: list[tuple[EntryRow, str]] = field(default_factory=list)

    @property
    def taken(self) -> tuple[Taken, ...]:
        return (*self.notes.values(), *self.entries.values())

    def joined(self, other: Cascade) -> Cascade:
        """Both together."""
        return Cascade(
            self.notes | other.notes, self.entries | other.entries, self.records | other.records,
            self.versions | other.versions, [*self.shared, *other.shared],
        )  # fmt: skip

    def without_said(self) -> Cascade:
        """Without what was said: only the entries go that record the writing of these notes."""
        return replace(self, entries={name: taken for name, taken in self.entries.items() if name in self.records})

    def all_versions(self) -> Iterator[Version]:
        for states in self.versions.values():
            yield from states

    def live_paths(self) -> list[str]:
        """The files that stand in the Home now."""
        return sorted({version.path for version in self.all_versions() if version.live})


class Lineage:
    """The links between the notes and entries of one Home. Made, and asked, under the lock of its indexes."""

    def __init__(self, home: OpenHome) -> None:
        self._home = home
        self._names = home.repository.marker.names()
        self.versions: dict[str, list[Version]] = defaultdict(list)
        self._at: dict[str, list[Version]] = defaultdict(list)  # path -> states, oldest first
        self._after: dict[str, set[str]] = defaultdict(set)  # id -> ids that supersede it
        for version in (*self._in_catalog(), *self._kept_out()):
            self.versions[version.id].append(version)
            self._at[version.path].append(version)
            for old in version.supersedes:
                self._after[old].add(version.id)
        self._entries: dict[str, list[EntryRow]] = {}
        self._citing: dict[Node, set[str]] = defaultdict(set)
        for note_id, states in self.versions.items():
            for source in {s for state in states if state.live or state is states[-1] for s in state.sources}:
                for node in self.nodes_of(source):
                    self._citing[node].add(note_id)

    @property
    def _catalog(self) -> Catalog:
        """The one of this moment: another thread may have made it anew since the links were read."""
        return self._home.indexes.catalog

    def _in_catalog(self) -> Iterator[Version]:
        query = (
            "SELECT id, path, blob, live, scope, owner, sources, supersedes, generated, retention_class FROM notes"
            " ORDER BY row"
        )
        for r in self._catalog.db.execute(query):
            sources = tuple(json.loads(r[6]))
            if r[8]:
                sources += self._inputs(r[1], r[2])
            lists = sources, tuple(json.loads(r[7]))
            ends = r[9] == "erase_history", bool(r[8])
            yield Version(r[0], r[1], r[2], bool(r[3]), False, r[4], json.loads(r[5]), *lists, *ends)

    def _inputs(self, path: str, blob: str) -> tuple[str, ...]:
        """What a generated note was made from."""
        data = self._home.repository.blob(blob)
        return _inputs_of(read_note(path, data)) if data is not None else ()

    def _kept_out(self) -> Iterator[Version]:
        query = "SELECT path, about, blob FROM kept_out WHERE blob != '' ORDER BY path, blob"
        for path, about, blob in self._catalog.db.execute(query).fetchall():
            data = self._home.repository.blob(blob)
            if data is None:
                continue  # erased
            note = read_note(path, data)
            live = self._catalog.blob_of(path) == blob
            sources = note.sources + (_inputs_of(note) if note.generated else ())
            ends = note.retention_class == "erase_history", note.generated
            yield Version(about, path, blob, live, True, note.scope, note.owner, sources, note.supersedes, *ends)

    def nodes_of(self, source: str) -> list[Node]:
        """What a source stands for: the entries in its lines, a note of this Home, or itself."""
        if is_note_id(source):
            return [("note", source)]
        if not source.startswith("nas://"):
            return [("source", source)]
        try:
            pointer = parse_pointer(source)
        except InvalidPointer:
            return [("source", source)]
        if pointer.home not in self._names:
            return [("source", source)]
        if is_journal_path(pointer.path):
            return [
                ("entry", entry.id)
                for entry in self.entries_of(pointer.path)
                if pointer.start is None or (entry.first <= (pointer.end or 0) and pointer.start <= entry.last)
            ]
        states = self._at.get(pointer.path, [])
        named = {v.id for v in states if pointer.rev == v.blob} or {v.id for v in states[-1:]}
        return [("note", note_id) for note_id in sorted(named)] or [("source", source)]

    def entries_of(self, path: str) -> list[EntryRow]:
        found = self._entries.get(path)
        if found is None:
            found = self._entries[path] = self._catalog.entries_of(path)
        return found

    def chain(self, note_id: str) -> set[str]:
        """Every id that this one is linked with by `supersedes`, itself included."""
        seen: set[str] = set()
        todo = [note_id]
        while todo:
            now = todo.pop()
            if now in seen or now not in self.versions:
                continue
            seen.add(now)
            todo += [old for state in self.versions[now] for old in state.supersedes]
            todo += self._after.get(now, ())
        return seen

    # What goes

    def cascade(self, seeds: Iterable[tuple[Node, str]], *, ending: bool = False) -> Cascade:
        """What goes with these nodes (each with the reason): their chains, and what cites it, at any distance.

        `ending`: these very notes and what was generated from them; somebody's own note that cites one stays.
        """
        done = Cascade()
        todo = list(seeds)
        seen: set[Node] = set()
        for node, why in todo:
            if node in seen:
                continue
            seen.add(node)
            kind, name = node
            if kind == "note":
                states = self.versions.get(name)
                if not states:
                    continue  # cited, and not here (any more)
                done.notes[name] = Taken("note", name, states[-1].path, why)
                done.versions[name] = states
                others = set() if ending else self.chain(name) - {name}
                todo += [(("note", other), f"of the chain of {name}") for other in sorted(others)]
            elif kind == "entry":
                entry = self._catalog.entry(name)
                if entry is None:
                    continue
                done.entries[name] = Taken("entry", name, entry.path, why)
                done.records |= {name} if entry.speaker.endswith(RECORDS) else set()
            citing = sorted(self._citing.get(node, ()))
            todo += [(("note", x), f"derived from {name}") for x in citing if not ending or self._generated(x)]
        self._raw_words(done)
        return done

    def _generated(self, note_id: str) -> bool:
        return any(version.generated for version in self.versions[note_id])

    def _raw_words(self, done: Cascade) -> None:
        """The entries that only what goes cites: the same words in the journal; those that others cite too stay."""
        for note_id, states in done.versions.items():
            for source in sorted({source for state in states for source in state.sources}):
                for kind, name in self.nodes_of(source):
                    if kind != "entry" or name in done.entries:
                        continue
                    entry = self._catalog.entry(name)
                    others = sorted(self._citing[kind, name] - done.notes.keys())
                    if entry is not None and not others:
                        done.entries[name] = Taken("entry", name, entry.path, f"cited by {note_id}")
                        done.records |= {name} if entry.speaker.endswith(RECORDS) else set()
                    elif entry is not None:
                        done.shared.append((entry, others[0]))

    def known(self, node: Node) -> bool:
        """Whether something of this name is here, or is cited here."""
        kind, name = node
        if kind == "note":
            return name in self.versions
        return (kind == "entry" and self._catalog.entry(name) is not None) or node in self._citing

    def below(self, subject: str) -> list[str]:
        """The ids of the notes on this subject and those below it."""
        wanted = subject.strip("/")
        query = (
            "SELECT DISTINCT id FROM notes WHERE live = 1 AND (subject = ? OR substr(subject, 1, ?) = ?) ORDER BY id"
        )
        return [row[0] for row in self._catalog.db.execute(query, (wanted, len(wanted) + 1, wanted + "/"))]

    def written_in(self, session: str) -> list[Node]:
        """What a session brought in: its entries and the notes that it wrote, also by calls that named no session.

        Those of an ambient session that several had are not its alone, and stay (see `shared_calls`).
        """
        ledger = self._catalog.ledger
        about = ledger.by_session(session)
        beside = ledger.beside(session)
        if beside is not None and beside[1]:
            about += ledger.by_session(beside[0])
        blobs = {name for name in about if not name.startswith("j_")}
        notes = sorted({v.id for states in self.versions.values() for v in states if v.blob in blobs})
        entries = [name for name in about if name.startswith("j_")]
        return [*(("entry", name) for name in entries), *(("note", name) for name in notes)]

    def shared_calls(self, sessions: Iterable[str]) -> Iterator[tuple[str, str]]:
        """(session, the ambient session of its calls) where that was not its alone, and something was written in it."""
        ledger = self._catalog.ledger
        for session in sessions:
            beside = ledger.beside(session)
            if beside is not None and not beside[1] and ledger.by_session(beside[0]):
                yield session, beside[0]

    def blanks(self, done: Cascade) -> list[Blank]:
        """What an erasing takes for this cascade: every state of its notes, the lines of its entries."""
        found: list[Blank] = [Whole(blob) for blob in dict.fromkeys(v.blob for v in done.all_versions())]
        for name, taken in done.entries.items():
            blob = self._catalog.blob_of(taken.path)
            for entry in self.entries_of(taken.path):
                if entry.id == name and blob is not None:
                    found.append(Lines(blob, entry.first, entry.last))
        return found


def _inputs_of(note: Note) -> tuple[str, ...]:
    value = note.extra.get("inputs")
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str) and item)


def nothing_called(what: str, shared: Iterable[tuple[str, str]] = ()) -> NotFound:
    """`shared`: the sessions among it whose calls lie in an ambient session of several."""
    calls = " ".join(
        f"The calls of {session} that named no session are in {ambient}, with others'." for session, ambient in shared
    )
    return NotFound(
        f"Nothing in this Home is called {what} or cites it.",
        remedy=calls or "Give the id of a note or an entry, a subject, a session, or a source as a note cites it.",
    )
