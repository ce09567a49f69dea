"""Provenance in both directions: what something came from and what it touched; and undoing what it touched.

The nodes are notes (`mem_…`), journal entries (`j_…`), sessions and sources that lie outside every Home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, InvalidPointer, NotFound
from memoranda.home.draft import Change, Draft
from memoranda.index.catalog import Catalog
from memoranda.index.rows import NoteRow
from memoranda.notes.ids import is_note_id
from memoranda.notes.journal import is_journal_path
from memoranda.notes.pointers import parse_pointer
from memoranda.operations.holding import refuse_held
from memoranda.operations.once import permitted, shared_of
from memoranda.operations.open_home import OpenHome, undisturbed
from memoranda.operations.pipeline import Call, pass_guards
from memoranda.operations.space import Space
from memoranda.operations.stamping import taint_of_sources
from memoranda.trust.tools import host_of
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One thing on the way: its kind, its name, and how it is linked to `of`.

    The kinds are note, entry, session, source, and two that are named and not followed: tainted session, and shared
    session, the ambient one of several sessions of an agent.
    """

    kind: str
    name: str
    link: str
    of: str

    def json(self) -> dict[str, str]:
        return {"kind": self.kind, "name": self.name, "link": self.link, "of": self.of}


@dataclass(frozen=True, slots=True)
class Trace:
    """What `start` came from (`upstream`) and what it touched (`downstream`), each once, nearest first."""

    start: str
    home: str
    upstream: tuple[Step, ...]
    downstream: tuple[Step, ...]

    def json(self) -> dict[str, object]:
        return {
            "start": self.start, "home": self.home, "upstream": [s.json() for s in self.upstream],
            "downstream": [s.json() for s in self.downstream],
        }  # fmt: skip

    def notes(self) -> list[str]:
        """The ids of the notes that were touched, the start itself included if it is one."""
        found = [self.start] if is_note_id(self.start) else []
        return found + [step.name for step in self.downstream if step.kind == "note"]


def trace(context: Context, space: Space, what: str) -> Trace:
    """Follows a note's id, an entry's id, a session or a source in the nearest Home. NotFound when it is none there.

    Addresses outside of every Home are somebody else's words: an agent's session has met those that it is told, unless
    a note that a person reviewed cites them.
    """
    pass_guards(context, Call("trace"))
    home = space.one()
    home.refresh(context)
    found = _traced(home, what)
    if not context.person and (roots := taint_of_sources([home], _addresses(home, found)).roots):
        home.sessions.raise_taint(context, sorted(roots))
    return found


@undisturbed
def _addresses(home: OpenHome, found: Trace) -> list[str]:
    """The addresses in a trace that the caller did not name, without those that a reviewed note cites."""
    steps = [step for step in (*found.upstream, *found.downstream) if step.kind == "source"]
    citing = {step.of: home.indexes.catalog.by_id(step.of) for step in steps if step.link == "cites"}
    reviewed = {note for note, rows in citing.items() if rows and all(home.reviewed(row.blob) for row in rows)}
    return [step.name for step in steps if step.of not in reviewed]


@undisturbed
def _traced(home: OpenHome, what: str) -> Trace:
    graph = _Graph(home)
    start = graph.start(what)
    return Trace(start[1], home.name, _walk(start, graph.up), _walk(start, graph.down))


Node = tuple[str, str]
Look = Callable[[Node], Iterable[tuple[str, Node]]]


def _walk(start: Node, look: Look) -> tuple[Step, ...]:
    seen = {start}
    todo = [start]
    found: list[Step] = []
    for node in todo:
        for link, other in look(node):
            if other not in seen:
                seen.add(other)
                todo.append(other)
                found.append(Step(other[0], other[1], link, node[1]))
    return tuple(found)


class _Graph:
    """The links of one Home, read from the catalog as they are asked for."""

    def __init__(self, home: OpenHome) -> None:
        self._home = home
        self._catalog: Catalog = home.indexes.catalog
        self._citing: dict[Node, list[str]] = {}
        self._rows: dict[str, NoteRow] = {}
        for row in self._catalog.live_notes():
            self._rows.setdefault(row.id, row)
        for row in self._rows.values():
            for source in row.sources:
                for node in self._nodes_of(source):
                    self._citing.setdefault(node, []).append(row.id)

    def start(self, what: str) -> Node:
        if what in self._rows:
            return "note", what
        if self._catalog.entry(what) is not None:
            return "entry", what
        if next(self._catalog.ledger.session_events(what), None) is not None or self._catalog.ledger.by_session(what):
            return "session", what
        nodes = self._nodes_of(what) if ":" in what else []
        if len(nodes) == 1 and (nodes[0] in self._citing or nodes[0][0] != "source"):
            return nodes[0]
        if _kind_of(what) == "source" and (
            self._catalog.ledger.tainted_by(what) or self._catalog.ledger.stamped_by(what)
        ):
            return "source", what
        tools = self._catalog.ledger.tools_at(host_of(what) or what.lower())
        raise NotFound(
            f"Nothing in this Home is called {what} or cites it.",
            remedy=f"Tools that met its host are kept by that only: {', '.join(repr(tool) for tool in tools)}."
            if tools
            else "Give the id of a note or an entry, a session, a source as it is cited, or what tainted a session.",
        )

    def _nodes_of(self, source: str) -> list[Node]:
        """What a source stands for: the entries in its lines, a note of this Home, or itself."""
        if not source.startswith("nas://"):
            return [("source", source)]
        try:
            pointer = parse_pointer(source)
        except InvalidPointer:
            return [("source", source)]
        if pointer.home not in self._home.repository.marker.names():
            return [("source", source)]
        if is_journal_path(pointer.path):
            return [
                ("entry", entry.id)
                for entry in self._catalog.entries_of(pointer.path)
                if pointer.start is None or (entry.first <= (pointer.end or 0) and pointer.start <= entry.last)
            ]
        row = self._catalog.by_path(pointer.path)
        return [("note", row.id)] if row else [("source", source)]

    def up(self, node: Node) -> Iterator[tuple[str, Node]]:
        kind, name = node
        if kind == "note" and name in self._rows:
            row = self._rows[name]
            for source in row.sources:
                yield from (("cites", other) for other in self._nodes_of(source))
            yield from (("supersedes", ("note", old)) for old in row.supersedes)
            yield from self._written_in(row.blob)
            yield from self._stamped_with(row.blob)
        elif kind == "entry":
            yield from self._written_in(name)
            yield from self._stamped_with(name)
        elif kind == "session":
            for event in self._catalog.ledger.session_events(name):
                if event.event == "taint" and event.source:
                    yield "tainted by", (_kind_of(event.source), event.source)

    def _written_in(self, about: str) -> Iterator[tuple[str, Node]]:
        wrote = self._catalog.ledger.wrote([about]).get(about)
        if wrote is not None and wrote.session:
            yield "written in", ("session", wrote.session)

    def _stamped_with(self, about: str) -> Iterator[tuple[str, Node]]:
        """Where its taint began: also what another session met that this one had inherited from."""
        wrote = self._catalog.ledger.wrote([about]).get(about)
        for source in sorted({root.get("source") or "" for root in wrote.taint} if wrote is not None else ()):
            if source and source != about:
                yield "tainted by", (_kind_of(source), source)

    def down(self, node: Node) -> Iterator[tuple[str, Node]]:
        kind, name = node
        for citing in self._citing.get(node, ()):
            yield "cited by", ("note", citing)
        if kind == "note":
            yield from (("superseded by", ("note", new)) for new in self._catalog.successors(name))
        elif kind == "session":
            for about in self._catalog.ledger.by_session(name):
                if about.startswith("j_"):
                    yield "wrote", ("entry", about)
            blobs = set(self._catalog.ledger.by_session(name))
            if beside := self._catalog.ledger.beside(name):
                # Shared with other sessions it is only named: not all that was written in it was this one's.
                yield "calls without a session", ("session" if beside[1] else "shared session", beside[0])
            yield from (("wrote", ("note", row.id)) for row in self._rows.values() if row.blob in blobs)
        if kind in ("entry", "source", "note"):
            # A session that it tainted wrote other things before; only what bears its stamp was touched.
            for session in self._catalog.ledger.tainted_by(name):
                yield "tainted", ("tainted session", session)
            stamped = set(self._catalog.ledger.stamped_by(name))
            yield from (("stamped", ("entry", about)) for about in sorted(stamped) if about.startswith("j_"))
            yield from (("stamped", ("note", row.id)) for row in self._rows.values() if row.blob in stamped)


def _kind_of(name: str) -> str:
    return "note" if is_note_id(name) else "entry" if name.startswith("j_") else "source"


# Rolling back


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The notes that were taken away (or would be, with `dry_run`), and those that hold again because of it."""

    start: str
    removed: tuple[str, ...]
    restored: tuple[str, ...]
    dry_run: bool

    def json(self) -> dict[str, object]:
        return {
            "start": self.start, "removed": list(self.removed), "restored": list(self.restored),
            "dry_run": self.dry_run,
        }  # fmt: skip


def rollback(context: Context, space: Space, what: str, *, dry_run: bool = False) -> RolledBack:
    """Takes away, in one commit, every note that `what` touched; what they had superseded holds again.

    Journals stay: they are the raw log. History stays in Git; `forget --erase` is what removes it. LegalHold when one
    of the notes is held; nothing is taken away then. What a person reviewed, an agent takes away as little as it
    forgets it: ConfirmationRequired.
    """
    home = space.one()
    pass_guards(context, Call("rollback", writes=True, text=what, rules=home.rules))
    home.refresh(context)
    found = _traced(home, what)  # nothing of it is told but ids, so that the session meets nothing
    rows, restored = _touched(home, found.notes())
    refuse_held(home, {row.id for row in rows})
    told = {"what": what, "notes": [row.id for row in rows], "bytes": [row.blob for row in rows]}
    scope = shared_of([row.scope for row in rows])
    permit = permitted(context, home, space.met(context, home), "rollback", scope, told)
    done = RolledBack(found.start, tuple(row.id for row in rows), tuple(restored), dry_run)
    if dry_run or not rows:
        return done
    if not context.person and permit is None and _any_reviewed(home, rows):
        raise ConfirmationRequired(
            "This is rolled back by a person at a terminal only; nothing was taken away.",
            why="It takes notes that a person reviewed.",
            remedy="Run the command in a terminal of your own; --dry-run shows what would go.",
        )

    def build(_at: datetime) -> Draft:
        reason = f"Roll back what {found.start} touched: {len(rows)} note(s)"
        return Draft("rollback", reason, [Change(row.path, None) for row in rows], (), {}, context.user)

    if permit is not None:
        permit.use(context)
    home.repository.write(context, build)
    home.refresh(context)
    return done


@undisturbed
def _any_reviewed(home: OpenHome, rows: Sequence[NoteRow]) -> bool:
    ledger = home.indexes.catalog.ledger
    return any(ledger.reviews(note_id=row.id) for row in rows)


@undisturbed
def _touched(home: OpenHome, ids: Sequence[str]) -> tuple[list[NoteRow], list[str]]:
    """The rows of these notes, and the ids of what they had superseded and is not among them."""
    catalog = home.indexes.catalog
    rows = [row for note_id in ids for row in catalog.by_id(note_id)]
    removed = {row.id for row in rows}
    return rows, sorted({old for row in rows for old in row.supersedes if old not in removed and catalog.by_id(old)})
