"""Chains: notes linked by `supersedes`, their heads, and when each of them held.

Asking costs what the chain at hand costs, not what all notes cost. Links that run in a circle contradict each other:
they count for nothing, every note of the circle stays visible, and `cycles` names it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from datetime import datetime

from memoranda.errors import ChainConflict, UnknownNote
from memoranda.notes.times import Interval
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """What a chain needs to know of a note. Times are aware, in UTC.

    `known_from` is when the Home learned the note; `valid_from` and `valid_to` when it says that it holds.
    """

    id: str
    supersedes: tuple[str, ...]
    valid_from: datetime | None
    valid_to: datetime | None
    known_from: datetime


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The notes beside one in its chain: those that it supersedes and those that supersede it."""

    supersedes: tuple[str, ...]
    successors: tuple[str, ...]


class Chains:
    """The chains among these links. Of several links with one id the first counts.

    An id that is only named in `supersedes` belongs to the chain (it resolves to the head), though its note is missing.
    """

    def __init__(self, links: Iterable[Link]) -> None:
        self._links: dict[str, Link] = {}
        self._successors: dict[str, list[str]] = {}
        for link in links:
            if self._links.setdefault(link.id, link) is link:
                for old in dict.fromkeys(link.supersedes):
                    self._successors.setdefault(old, []).append(link.id)
        self._cycles: tuple[tuple[str, ...], ...] | None = None
        self._in_cycle: frozenset[str] = frozenset()

    def heads_of(self, note_id: str, known_at: datetime | None = None) -> tuple[str, ...]:
        """The notes that stand at the end of this id's chain: one, or several that contradict each other.

        As of `known_at`, if given. In the order in which they became known; empty when nothing was known.

        Raises:
            UnknownNote: no note has this id or supersedes it.
        """
        self._require(note_id)
        reached = self._reach(note_id, known_at)
        circles = self._circles(reached, known_at)
        heads = [x for x in reached if self._known(x, known_at) and not self._standing_successors(x, known_at, circles)]
        return tuple(sorted(heads, key=self._age))

    def members(self, note_id: str) -> tuple[str, ...]:
        """All notes of this id's chain, each after those that it supersedes, else in the order they became known.

        Raises:
            UnknownNote: no note has this id or supersedes it.
        """
        self._require(note_id)
        found = self._component(note_id)
        waits = {
            x: sum(old in found for old in dict.fromkeys(self._links[x].supersedes)) for x in found if self._has(x)
        }
        for ghost in found:
            if not self._has(ghost):
                for x in self._successors[ghost]:
                    waits[x] -= 1
        ready = [self._age(x) for x, n in waits.items() if n == 0]
        heapq.heapify(ready)
        out: list[str] = []
        while ready:
            _, x = heapq.heappop(ready)
            out.append(x)
            for successor in self._successors.get(x, ()):
                waits[successor] -= 1
                if waits[successor] == 0:
                    heapq.heappush(ready, self._age(successor))
        placed = set(out)
        return (*out, *sorted((x for x in waits if x not in placed), key=self._age))

    def successors(self, note_id: str) -> tuple[str, ...]:
        """The notes that name this id in their `supersedes`, in the order in which they became known."""
        return tuple(sorted(self._successors.get(note_id, ()), key=self._age))

    def neighbours(self, note_id: str) -> Neighbours | None:
        """What stands beside this note, or None when there is no such note; made for `check_supersedes`."""
        link = self._links.get(note_id)
        return None if link is None else Neighbours(link.supersedes, self.successors(note_id))

    def is_head(self, note_id: str) -> bool:
        """Whether this note exists and nothing supersedes it (but a circle that it is part of itself)."""
        if note_id not in self._links:
            return False
        return note_id not in self._successors or note_id in self.heads_of(note_id)

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """The circles among the links, each as its sorted ids; also a note that supersedes itself."""
        if self._cycles is None:
            self._cycles = tuple(sorted(self._find_cycles(self._successors, None)))
            self._in_cycle = frozenset(x for cycle in self._cycles for x in cycle)
        return self._cycles

    def unknown(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a note and an id that it supersedes without there being such a note; sorted."""
        missing = (old for old in self._successors if old not in self._links)
        return tuple(sorted((new, old) for old in missing for new in self._successors[old]))

    def effective(self, note_id: str, known_at: datetime) -> Interval | None:
        """When this note held, as it was known at that time; None when it did not hold or was not known.

        A successor with a later start ends it there. A successor without a later start is a correction: the note never
        held once the correction is known. What a correction replaces ends nothing any more; the correction does so in
        its place, from its own start or, having none, from the start of what it corrected.
        """
        link = self._links.get(note_id)
        if link is None or link.known_from > known_at:
            return None
        start, end = link.valid_from, link.valid_to
        if note_id in self._successors:
            for cut in self._cuts(note_id, known_at):
                if cut is None or not _later(cut, start):
                    return None
                if end is None or cut < end:
                    end = cut
        if start is not None and end is not None and end <= start:
            return None
        return Interval(start, end)

    def _cuts(self, note_id: str, known_at: datetime) -> list[datetime | None]:
        """The starts of what stands directly after this note, corrections in the place of what they correct."""
        circles = self._circles(self._reach(note_id, known_at), known_at) if self.cycles() else {}
        cuts: list[datetime | None] = []
        todo = [(x, self._links[x].valid_from) for x in self._standing_successors(note_id, known_at, circles)]
        seen = set(todo)
        while todo:
            x, start = todo.pop()
            nexts = [(y, self._links[y].valid_from) for y in self._standing_successors(x, known_at, circles)]
            corrections = [(y, start if since is None else since) for y, since in nexts if not _later(since, start)]
            if not corrections:
                cuts.append(start)
            fresh = [item for item in corrections if item not in seen]
            seen.update(fresh)
            todo += fresh
        return cuts

    def _require(self, note_id: str) -> None:
        if note_id not in self._links and note_id not in self._successors:
            raise unknown_note(note_id)

    def _has(self, note_id: str) -> bool:
        return note_id in self._links

    def _known(self, note_id: str, known_at: datetime | None) -> bool:
        link = self._links.get(note_id)
        return link is not None and (known_at is None or link.known_from <= known_at)

    def _age(self, note_id: str) -> tuple[datetime, str]:
        return self._links[note_id].known_from, note_id

    def _reach(self, note_id: str, known_at: datetime | None) -> list[str]:
        """This id and everything that supersedes it, directly or not, as far as known."""
        found = {note_id: None}
        todo = [note_id]
        while todo:
            for x in self._successors.get(todo.pop(), ()):
                if x not in found and self._known(x, known_at):
                    found[x] = None
                    todo.append(x)
        return list(found)

    def _component(self, note_id: str) -> set[str]:
        found = {note_id}
        todo = [note_id]
        while todo:
            x = todo.pop()
            link = self._links.get(x)
            for y in (*self._successors.get(x, ()), *(link.supersedes if link else ())):
                if y not in found:
                    found.add(y)
                    todo.append(y)
        return found

    def _circles(self, ids: Iterable[str], known_at: datetime | None) -> dict[str, int]:
        """For each of these ids that is part of a circle of known links, the number of the circle."""
        if not self.cycles() or self._in_cycle.isdisjoint(ids):
            return {}
        here = self._find_cycles([x for x in ids if x in self._in_cycle], known_at)
        return {x: n for n, circle in enumerate(here) for x in circle}

    def _standing_successors(self, x: str, known_at: datetime | None, circles: dict[str, int]) -> list[str]:
        own = circles.get(x, -1)
        return [
            y for y in self._successors.get(x, ()) if self._known(y, known_at) and (own == -1 or circles.get(y) != own)
        ]

    def _find_cycles(self, roots: Iterable[str], known_at: datetime | None) -> list[tuple[str, ...]]:
        """The strongly connected parts that hold a circle (Tarjan's algorithm, without recursion)."""
        order: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        on_stack: set[str] = set()
        found: list[tuple[str, ...]] = []
        for root in roots:
            if root in order or not self._known(root, known_at):
                continue
            path = [(root, iter(self._successors.get(root, ())))]
            order[root] = low[root] = len(order)
            stack.append(root)
            on_stack.add(root)
            while path:
                x, nexts = path[-1]
                y = next(nexts, None)
                if y is not None:
                    if not self._known(y, known_at):
                        continue
                    if y not in order:
                        order[y] = low[y] = len(order)
                        stack.append(y)
                        on_stack.add(y)
                        path.append((y, iter(self._successors.get(y, ()))))
                    elif y in on_stack:
                        low[x] = min(low[x], order[y])
                    continue
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[x])
                if low[x] == order[x]:
                    part = [stack.pop()]
                    while part[-1] != x:
                        part.append(stack.pop())
                    on_stack.difference_update(part)
                    if len(part) > 1 or x in self._successors.get(x, ()):
                        found.append(tuple(sorted(part)))
        return found


def _later(start: datetime | None, than: datetime | None) -> bool:
    """Whether a start is later than another; no start is since ever."""
    return start is not None and (than is None or start > than)


def unknown_note(note_id: str) -> UnknownNote:
    """The error for an id that no note has."""
    return UnknownNote(
        f"There is no note {note_id}.",
        why="No note of this Home has this id.",
        remedy="`memoranda list` shows the ids; `memoranda recall` finds notes by their words.",
    )


def check_supersedes(new_id: str, supersedes: Iterable[str], lookup: Callable[[str], Neighbours | None]) -> None:
    """Nothing when a note with this id may supersede these. `lookup` gives a note's neighbours, None for no note.

    Raises:
        UnknownNote: one of them does not exist.
        ChainConflict: a cycle would arise, or the chain of one of them would get a second head.
    """
    targets = tuple(dict.fromkeys(supersedes))
    for target in targets:
        if target == new_id:
            raise _cycle("A note cannot supersede itself.")
        if lookup(target) is None:
            raise unknown_note(target)
    older = _walk(targets, lambda x: x.supersedes, lookup)
    if new_id in older:
        raise _cycle(f"{new_id} is itself superseded by a note that it would supersede.")
    for target in targets:
        for other in sorted(_walk((target,), lambda x: x.successors, lookup)):
            found = lookup(other)
            is_end = found is not None and not [x for x in found.successors if x != new_id]
            if is_end and other != new_id and other not in targets:
                raise ChainConflict(
                    f"{target} is superseded already.",
                    why=f"What holds now is {other}; a second successor would give the chain two heads.",
                    remedy=f"Supersede {other} instead, or both in one note.",
                )


def _walk(
    start: Iterable[str],
    step: Callable[[Neighbours], tuple[str, ...]],
    lookup: Callable[[str], Neighbours | None],
) -> set[str]:
    """Everything that is reached from `start` by these steps, `start` included."""
    found = set(start)
    todo = list(found)
    while todo:
        neighbours = lookup(todo.pop())
        for x in step(neighbours) if neighbours else ():
            if x not in found:
                found.add(x)
                todo.append(x)
    return found


def _cycle(why: str) -> ChainConflict:
    return ChainConflict(
        "The notes would supersede each other in a circle.",
        why=why,
        remedy="Supersede only notes that are older than this one.",
    )
