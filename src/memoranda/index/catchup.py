"""Brings a catalog from the state it reflects to a Home's present one: it costs what changed.

The state is a commit, the number of the last record of the log, and the commit of the ledger. When the commit has moved
on, the commits between tell what changed and when it became known; when it has moved elsewhere (a rebase, another
branch), the catalog is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from memoranda.home.draft import Snapshot
from memoranda.home.history import Step
from memoranda.home.holding import Holding
from memoranda.home.ledger import read_lines
from memoranda.home.objects import read_tree
from memoranda.home.record import Record
from memoranda.home.repository import Admit, everything
from memoranda.home.store import LEDGER_REF
from memoranda.index.catalog import Catalog
from memoranda.index.journal_mode import transaction
from memoranda.index.testimony import TABLES, Line, take_in
from memoranda.index.version import Version
from memoranda.notes.journal import is_journal_path
from memoranda.values import dataclass

if TYPE_CHECKING:
    from memoranda.index.fill import Filler
    from memoranda.index.keepout import KeepOut

Progress = Callable[[str, int, int], None]
_BATCH = 500


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What a catch-up did: what the catalog reflects now, whether anything changed, why everything was made again."""

    snapshot: Snapshot
    changed: bool
    rebuilt: str | None = None


class CatchUp:
    """Brings one catalog up to date with one repository."""

    _filler: Filler
    _told: int
    _again: set[str]
    _since: tuple[int, int]  # the last rows before: those behind them are new

    def __init__(
        self,
        repository: Holding,
        catalog: Catalog,
        progress: Progress | None = None,
        admit: Admit = everything,
    ) -> None:
        self._admit = admit  # asked about what no operation has written: commits bring it in, whatever it holds
        self._repository = repository
        self._catalog = catalog
        self._progress = progress

    def run(self, seen: Snapshot | None = None) -> CaughtUp:
        """One transaction; afterwards the catalog reflects the snapshot that is returned, and the ledger.

        `seen` is a snapshot that was taken a moment ago, if there is one: enough to tell that nothing has changed.
        """
        catalog, repository = self._catalog, self._repository
        snapshot, ledger = seen or repository.snapshot(), repository.store.ref(LEDGER_REF)
        if self._reflects(snapshot, ledger):
            return CaughtUp(snapshot, False)
        if not self._ours(snapshot, ledger):
            repository.keep_ledger()
        with catalog.roomy() if catalog.state("commit") is None else nullcontext(), transaction(catalog.db):
            # Seen again now that nobody else writes: another process may have gone further while we waited.
            snapshot, ledger = repository.snapshot(), repository.store.ref(LEDGER_REF)
            changed, rebuilt = not self._reflects(snapshot, ledger), None
            if changed:
                repository.make_durable()  # a catalog ahead of the log would lie after a loss of power
                rebuilt = self._take_in(snapshot, ledger)
                catalog.set_state(commit=snapshot.commit or "", seq=str(snapshot.seq), ledger=ledger or "")
        return CaughtUp(snapshot, changed, rebuilt)

    def ahead(self) -> bool:
        """Takes in what the log has that is new, and leaves for `run` what is committed meanwhile: it is the same.

        False when that cannot be done: somebody else has to have begun the catalog, no record may be missing, and
        nothing that was forgotten may be allowed again.
        """
        catalog, repository = self._catalog, self._repository
        if catalog.state("commit") is None or catalog.state("seq") is None:
            return False
        if repository.ahead(int(catalog.state("seq") or 0)) == []:
            return True
        catalog.db.execute("BEGIN IMMEDIATE")
        try:
            seq = int(catalog.state("seq") or 0)
            records = repository.ahead(seq)
            if records:
                repository.make_durable()
                keep = self._begin(seq)
                self._records(records)
                if keep.run(*self._since):
                    return False
                catalog.set_state(seq=str(records[-1].seq))
            catalog.db.execute("COMMIT")
        finally:
            if catalog.db.in_transaction:
                catalog.db.execute("ROLLBACK")
        return records is not None

    def _begin(self, seq: int) -> KeepOut:
        # Here: a recall that finds everything up to date parses no note.
        from memoranda.home.settings import state_of
        from memoranda.home.tombstones import Mirror, Seals
        from memoranda.index.fill import Filler
        from memoranda.index.keepout import KeepOut

        self._filler = Filler(self._catalog, self._repository.ours.is_note, self._repository.blob)
        # What the log has told already, and what has to be told again because commits came between.
        self._told, self._again = seq, set[str]()
        named = self._repository.keys, self._repository.marker.id
        settled = state_of(named[0], "person", named[1])
        keep = KeepOut(self._catalog.db, Seals(*named), Mirror(*named), self._admit, self._repository.blob, settled)
        self._since = keep.rows()
        return keep

    def _take_in(self, snapshot: Snapshot, ledger: str | None) -> str | None:
        lost = self._repository.ledger_lost
        if self._catalog.state("lost") != lost:
            # What the catalog has of lost lines could have been written by anybody, and is gone when it is made again;
            # when they have come back, all of them are read.
            for table in TABLES:
                self._catalog.db.execute(f"DELETE FROM {table}")
            self._catalog.set_state(commit=None, seq=None, committed=None, segments=None, ledger=None)
        self._catalog.set_state(lost=lost)
        keep = self._begin(int(self._catalog.state("seq") or 0))
        self._filler.pending.confirm(int(self._catalog.state("committed") or 0))
        committed = snapshot.committed
        with self._catalog.filling() if self._catalog.state("commit") is None else nullcontext():
            rebuilt = self._commits(snapshot, committed)
            self._records(snapshot.tail)
            self._ledger(ledger)
        if keep.run(*self._since):
            rebuilt = "something that was kept out is allowed again"
            self._catalog.set_state(commit=None)
            self._clear()
            self._commits(snapshot, committed)
            self._records(snapshot.tail)
            keep.run(*self._since)
        self._filler.pending.confirm(committed)
        self._catalog.set_state(committed=str(committed))
        return rebuilt

    def _reflects(self, snapshot: Snapshot, ledger: str | None) -> bool:
        level, moved = self._level(snapshot, ledger)
        if moved:
            db = self._catalog.db
            with nullcontext() if db.in_transaction else transaction(db):
                # Judged again now that nobody else writes: another process may have gone further since.
                level, moved = self._level(snapshot, ledger)
                self._catalog.set_state(**moved)
        return level

    def _level(self, snapshot: Snapshot, ledger: str | None) -> tuple[bool, dict[str, str | None]]:
        """Whether the catalog has all of this, and what of its state has only to be told anew for that."""
        state = self._catalog.state
        commit, seq, committed, told = state("commit"), state("seq"), state("committed"), state("ledger")
        if commit is None or seq is None or committed is None:
            return False, {}
        moved: dict[str, str | None] = {}
        if commit != (snapshot.commit or ""):
            # The usual case after our own commits: everything in them was taken in from the log already.
            group = self._repository.last_group()
            if group is None or self._repository.advanced(commit or None, int(committed), int(seq)) != snapshot.commit:
                return False, {}
            committed = str(group.after.seq)
            moved = {"commit": snapshot.commit or "", "committed": committed}
        if int(seq) < snapshot.seq or int(committed) != snapshot.committed:
            return False, moved
        if ledger == (told or None):
            return True, moved
        # "" also where a key has come, and everything is to be compared again.
        if told == "" or not self._repository.told_by_log((told, ledger), int(seq)):
            return False, moved
        return True, {**moved, "ledger": ledger}  # only our own groups moved it, whose lines came with the records

    def _ours(self, snapshot: Snapshot, ledger: str | None) -> bool:
        """Whether the branch and the ledger have moved by nobody's hand but ours."""
        state = self._catalog.state
        if state("commit") != (snapshot.commit or ""):
            return False
        told = state("ledger") or None
        return ledger == told or self._repository.told_by_log((told, ledger), int(state("seq") or 0))

    # Commits

    def _commits(self, snapshot: Snapshot, committed: int) -> str | None:
        """Takes in what is committed, up to that record; returns why everything was made again, if it was."""
        state = self._catalog.state("commit")
        new = snapshot.commit
        if new is None:
            return None
        store = self._repository.store
        reason = None
        old = state or None
        if old is not None and not store.is_ancestor(old, new):
            reason, old = "the branch was rewritten or another one was checked out", None
        if old is None:
            reason = reason or ("there was none" if not state else None)
            self._clear()
            self._everything(new)
        else:
            self._steps(old, new, snapshot.tail, committed)
        return reason

    def _everything(self, new: str) -> None:
        """Fills the empty catalog with all that Git remembers, one commit after the other, and never holds it whole."""
        store, ours = self._repository.store, self._repository.ours
        files = store.count(new) if self._progress else 0
        if self._progress:
            self._progress("reading objects", 0, files)  # what has to be asked of them first can take its time
        newest = datetime.fromtimestamp(0, UTC)

        def told() -> Iterator[Version]:
            nonlocal newest
            for found in self._repository.told(new):
                if isinstance(found, Step):
                    newest = found.at
                elif ours.is_note(found.path):
                    yield Version(found.path, found.new, newest)

        self._carry_out(told(), files)
        # What is no note says it all in its last state, and a merge may have settled something in its own way.
        final = (file for file in store.files(new) if file[0] in ours)
        rest = [Version(path, blob, newest) for path, blob in self._otherwise(final)]
        self._carry_out(rest, len(rest))

    def _otherwise(self, final: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str | None]]:
        """The paths that the catalog has otherwise than `final` (by path), with what they hold there."""
        held = self._catalog.db.execute("SELECT path, blob FROM files ORDER BY path")
        row = next(held, None)
        for path, blob in final:
            while row is not None and row[0] < path:
                yield row[0], None
                row = next(held, None)
            if row is None or row != (path, blob):
                yield path, blob
            if row is not None and row[0] == path:
                row = next(held, None)
        while row is not None:
            yield row[0], None
            row = next(held, None)

    def _clear(self) -> None:
        for table in ("files", "notes", "edges", "entries", "feed", "pending", "kept_out", "refused"):
            self._catalog.db.execute(f"DELETE FROM {table}")
        self._catalog.set_state(identity=None, claimed=None)
        self._told, self._since = 0, (0, 0)

    def _steps(self, old: str, new: str, tail: Sequence[Record], committed: int) -> None:
        """Brings every path from its blob at `old` to its blob at `new`, with what lay between.

        What the log told and is committed by now is in `new`, or on a branch that a person has left; then it goes.
        """
        repository = self._repository
        changes = [c for c in repository.store.changes(old, new) if c.path in repository.ours] if old != new else []
        before, final = {c.path: c.old for c in changes}, {c.path: c.new for c in changes}
        between: dict[str, list[Version]] = {}
        newest = datetime.fromtimestamp(0, UTC)
        for step in repository.history(old, new) if old != new else ():
            newest = step.at
            for change in step.changes:
                if change.path in repository.ours:
                    between.setdefault(change.path, []).append(Version(change.path, change.new, step.at))
        told: dict[str, list[Version]] = {}
        for record in tail:
            for file in record.changes if record.seq <= self._told else ():
                told.setdefault(file.path, []).append(Version(file.path, file.new, record.at))
        plan: list[Version] = []
        for path in sorted(final.keys() | between.keys() | self._filler.pending.paths(committed)):
            blob = final[path] if path in final else repository.blob_at(new, path)
            touched = path in final or path in between
            steps = _versions(path, blob, between.get(path, []), newest) if touched else []
            if not self._known(path, before.get(path, blob), steps, told.get(path, [])):
                plan += steps or [Version(path, blob, newest)]
        self._carry_out(plan, len(plan))

    def _known(self, path: str, held: str | None, steps: Sequence[Version], told: Sequence[Version]) -> bool:
        """Whether the log has told these steps already; if it told something else, that is taken back.

        `held` is the path's blob at the commit that the catalog reflects, `told` what the log says behind the steps.
        """
        current = self._catalog.blob_of(path)
        now = [*steps, *told][-1].blob if steps or told else held
        if not self._repository.ours.is_note(path):
            if current != now:
                self._again.add(path)
            return current == now
        if current == now and self._filler.pending.says(path, held, [*steps, *told]):
            # Somebody reads between the moves of the branch and of the ledger: the records are in the commit already,
            # and are still told as behind it.
            self._filler.pending.confirm_steps(path, held, steps)
            return True
        self._filler.pending.take_back(path, held, self._filler.feed)
        self._again.add(path)
        return False

    def _carry_out(self, plan: Iterable[Version], files: int) -> None:
        """Takes in these states; they are of about so many `files`."""
        store, states, done = self._repository.store, iter(plan), 0
        while part := list(islice(states, _BATCH)):
            if self._progress:
                self._progress("reading notes", done, max(files, done))
            found = iter(list(store.get_many([version.blob for version in part if version.blob is not None])))
            items = [next(found) if version.blob is not None else None for version in part]
            self._filler.steps([(v, item.data if item else None) for v, item in zip(part, items, strict=True)])
            done += len(part)
        if self._progress and done:
            self._progress("reading notes", done, done)

    # The log and the ledger

    def _records(self, records: Iterable[Record]) -> None:
        ours = self._repository.ours
        for record in records:
            new = record.seq > self._told
            steps: list[tuple[Version, bytes | None]] = []
            for change in record.changes:
                if not (new or change.path in self._again) or change.path not in ours:
                    continue
                version = Version(change.path, change.new, record.at, record.seq)
                if change.appended and change.old is not None:
                    self._filler.steps(steps)
                    steps = []
                    self._filler.append(version, change.old, change.data)
                else:
                    steps.append((version, change.data if change.new else None))
            self._filler.steps(steps)
            if new:
                take_in(self._catalog.db, self._lines(record.ledger, self._repository.replica.id))

    def _lines(self, texts: Iterable[str], replica: str) -> Iterator[Line]:
        """The lines that are JSON objects, each with whether this installation wrote it as it stands."""
        pen = self._repository.pen(replica)
        for text in texts:
            for fields in read_lines(text.encode()):
                name = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
                yield Line(fields, name, pen.vouches(text), text, replica)

    def _from_ledger(self, texts: Iterable[str], replica: str) -> Iterator[Line]:
        """As `_lines`, without what the log had told when this catch-up began."""
        mine = replica == self._repository.replica.id
        for line in self._lines(texts, replica):
            number = line.fields.get("n")
            if not (mine and line.vouched and isinstance(number, int) and number <= self._told):
                yield line

    def _ledger(self, commit: str | None) -> None:
        """Takes in the ledger's lines that are new since the last time: segments only ever grow."""
        if commit is None or commit == self._catalog.state("ledger"):
            return
        store = self._repository.store
        consumed: dict[str, tuple[str, int]] = {
            name: (blob, size) for name, blob, size in json.loads(self._catalog.state("segments") or "[]")
        }
        root = store.get(f"{commit}^{{tree}}")
        others = False
        for _, folder, tree in read_tree(root.data if root else b""):
            inside = store.get(tree)
            for _, name, blob in read_tree(inside.data if inside else b""):
                path = f"{folder.decode()}/{name.decode()}"
                before, size = consumed.get(path, ("", 0))
                if before == blob:
                    continue
                found = store.get(blob)
                data = found.data if found else b""
                texts = data[size:].decode("utf-8", "replace").splitlines()
                take_in(self._catalog.db, self._from_ledger(texts, folder.decode()))
                consumed[path] = (blob, len(data))
                others = others or folder.decode() != self._repository.replica.id
        if others:
            self._catalog.set_state(others=commit)
        self._catalog.set_state(segments=json.dumps([[name, *pair] for name, pair in sorted(consumed.items())]))


def _versions(path: str, final: str | None, between: list[Version], newest: datetime) -> list[Version]:
    """The states of a path in order, the last of them `final`; a journal only grows, its last state says it all."""
    steps: list[Version] = []
    for version in between:
        if not steps or steps[-1].blob != version.blob:
            steps.append(version)
    if not steps or steps[-1].blob != final:
        steps.append(Version(path, final, newest))  # how a merge settled it
    return steps[-1:] if is_journal_path(path) else steps
