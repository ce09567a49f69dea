"""An open Home: one way to write, one way to see what holds now.

`Repository` ties the intake log, the working tree, the committer and the search for outside edits together. It knows
bytes and paths; what a note means, and whether it may be written, is decided above.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import Erased, HomeBusy, HomeDamaged, HomeFormatUnknown, InvalidPath, NotFound, ReadOnlyHome
from memoranda.home.activity import Activity
from memoranda.home.background import Background
from memoranda.home.commit_process import CommitProcess
from memoranda.home.committer import Committer, Group
from memoranda.home.disk import DiskStore
from memoranda.home.draft import Appending, Change, Draft, Snapshot, found_draft
from memoranda.home.erasures import Erasures, Leads, find_in_ledger
from memoranda.home.git import Git
from memoranda.home.gitindex import GitIndex
from memoranda.home.history import Step, past_blobs, walk
from memoranda.home.keys import Keys
from memoranda.home.layout import Layout, layout_of
from memoranda.home.ledger import Pen
from memoranda.home.log import IntakeLog
from memoranda.home.looker import Looker
from memoranda.home.marker import FORMAT, Marker, Replica, read_marker, replica_of
from memoranda.home.objects import TreeEditor, object_id, read_tree
from memoranda.home.outside import Found, Ours, Outside
from memoranda.home.record import FileChange, Record
from memoranda.home.store import LEDGER_REF
from memoranda.home.worktree import Worktree

if TYPE_CHECKING:
    from memoranda.home.erase import Blank, Erasure
    from memoranda.home.prepare import Pieces

_NOTHING: tuple[str, str | None, bytes, str, bytes] = ("", None, b"", "", b"")


_CLOSING_TRIES = 20
Admit = Callable[[bytes, str], str | None]
Stamp = Callable[[Sequence[Found]], Mapping[str, Mapping[str, object]]]


def everything(_data: bytes, _path: str) -> str | None:
    """Admits whatever is found."""
    return None


class Repository:
    """An open Home on disk. Threads may share it; several processes may open the same Home.

    Args:
        root: the Home's folder.
        context: gives the clock and the random source.
        keys: the installation's keys, outside the Home.
        admit: asked before found bytes are taken in, with (bytes, path); returns why they are not, or None.
    """

    def __init__(
        self,
        root: Path,
        context: Context,
        keys: Keys,
        *,
        admit: Admit = everything,
        first: bool = False,
    ) -> None:
        self.root = root
        self.layout: Layout = layout_of(root)
        self.marker: Marker = read_marker(root)
        self.keys = keys
        self.ours = Ours(self.marker)
        self._context = context
        self._admit = admit
        self.stamp: Stamp = lambda _found: {}  # path -> what the ledger says of found bytes beside their blob
        self.replica: Replica = replica_of(self.layout, context.random, first=first)
        self._pen = Pen(keys, self.marker.id, self.replica.id)
        self._git = Git(self.layout)
        self.store = DiskStore(self.layout, self._git, context.clock)
        self.worktree = Worktree(root)
        self._log = IntakeLog(self.layout.own)
        self._activity = Activity(self.layout, self.store.refs, context.clock)
        self._committer = Committer(
            self.layout, self.store, self.store.refs, self._log, self.replica.id, self._activity, self.worktree
        )
        self.git_index = GitIndex(self.layout, self._git, self.worktree, self._blobs_of)
        self.outside = Outside(self.layout, self.worktree, self.ours)
        self._looker = Looker(self.store, self.git_index, self.outside, self.ours, self.layout)
        self._looking = threading.Lock()
        self._trees: dict[str, TreeEditor] = {}
        self.refused: dict[str, str] = {}
        self._open: tuple[str, str, bytes, int] = ("", "", b"", -1)  # the open journal: path, blob, content, record
        self._opening: tuple[str, str, bytes, int] | None = None  # what it will be when the record is written
        self._coming: tuple[str, str | None, bytes, str, bytes] = _NOTHING  # what `appending` foresaw
        place = self._committer.position()
        self._log.skip_to(place.segment, place.offset, place.seq)
        self._log.refresh()
        self._committer.moved = self._looker.follow
        self._erasing = self.layout.own / "erasing"
        process = CommitProcess(self.layout, self.replica.id)
        self._background = Background(self.flush, self.tidy, self._committer.left, process)
        self.erasures = Erasures(self.layout.own / "erased", keys, self.marker.id)
        self._generation = self.erasures.generation()
        if self.read_only is None and self._erasing.exists():
            try:
                self._finish_erasing()
            except HomeBusy:
                pass  # somebody's Git is at work; tried again before anything is read or written
        if self.read_only is None and self._log.unapplied():
            self._mend()

    # What holds now

    @property
    def read_only(self) -> str | None:
        """Why this Home cannot be written, None when it can."""
        if self.marker.format != FORMAT:
            return f"its format is {self.marker.format} and this program knows {FORMAT}"
        return None

    @property
    def name(self) -> str:
        return self.marker.name

    def snapshot(self) -> Snapshot:
        """The commit that HEAD stands on and the records that are not in it, consistent with each other."""
        while True:
            commit = self.store.refs.head_commit()
            self._log.refresh()
            done = self._committer.position().seq
            tail = tuple(record for record, _ in self._log.after(done))
            last = tail[-1].seq if tail else max(done, self._log.last)
            if self.store.refs.head_commit() == commit:
                return Snapshot(commit, last, tail)

    def pen(self, replica: str) -> Pen:
        """What tells whether a line of that replica's ledger was written by this installation."""
        return Pen(self.keys, self.marker.id, replica)

    def subscribe(self, listener: Callable[[Record], None]) -> None:
        """`listener` is told of every record that is written or read from now on, in their order."""
        self._log.listeners.append(listener)

    def make_durable(self) -> None:
        """Returns when every record read so far survives a loss of power, other processes' records too."""
        try:
            self._log.sync(self._log.segment, self._log.end)
        except ReadOnlyHome:
            return  # every write is refused from now on and says why; what is there can still be read

    def advanced(self, commit: str | None, committed: int, seq: int) -> str | None:
        """The commit that holds exactly `commit`, which holds the records up to `committed`, and those up to `seq`.

        None when our own groups do not say so: somebody's commits may lie between, or records that are not known yet.
        """
        group = self._committer.last_group()
        if group is None or seq < group.after.seq:
            return None
        held = self._committer.streak.held(group, commit)
        if held is None and commit == group.main[0]:
            held = group.before.seq
        # When more is known to be committed, a person went back to here: then it was in a commit that is left.
        if held is None or committed > held:
            return None
        return group.main[1] or group.main[0]

    def told_by_log(self, ledger: tuple[str | None, str | None], seq: int) -> bool:
        """Whether the ledger came from one commit to the other by our own groups, with records up to `seq`."""
        group = self._committer.last_group()
        if group is None or ledger[1] != group.ledger[1] or seq < group.after.seq:
            return False
        return ledger[0] == group.ledger[0] or self._committer.streak.continues(group, ledger[0])

    def ahead(self, seq: int) -> list[Record] | None:
        """The records behind `seq`, committed or not, as far as they have been read here; None when some are missing.

        For a process that follows the log: what it has been given before is let go.
        """
        self._log.refresh()
        records = [record for record, _ in self._log.after(seq)]
        if records and records[0].seq != seq + 1:
            return None
        return records if records or self._log.last <= seq else None

    def let_go(self, seq: int) -> None:
        """Forgets the records up to `seq` that were read; only for a process that commits nothing."""
        self._log.forget(seq)

    def last_group(self) -> Group | None:
        """The newest group of commits that this clone made."""
        return self._committer.last_group()

    def known(self, snapshot: Snapshot) -> Callable[[str], str | None]:
        """A function that gives the blob id of a path in a snapshot."""
        overlay = {change.path: change.new for record in snapshot.tail for change in record.changes}
        tree = self._tree(snapshot.commit)

        def blob_of(path: str) -> str | None:
            return overlay[path] if path in overlay else tree.get(path)

        return blob_of

    def blob_at(self, commit: str, path: str) -> str | None:
        """The blob id of `path` at a commit."""
        return self._tree(commit).get(path)

    def _tree(self, commit: str | None) -> TreeEditor:
        if commit is None:
            return TreeEditor(lambda _oid: b"", None)
        tree = self._trees.get(commit)
        if tree is None:
            found = self.store.get(f"{commit}^{{tree}}")
            tree = TreeEditor(self._tree_data, found.oid if found else None)
            self._trees = {commit: tree}  # one is enough: reads ask about now
        return tree

    def _tree_data(self, oid: str) -> bytes:
        found = self.store.get(oid)
        return found.data if found else b""

    # Reading

    def _ready(self) -> None:
        """Waits for an erasing that is under way, finishes one that was cut short, lets go of what one made void."""
        if self.read_only is None and self._decided():
            self._finish_erasing()
        generation = self.erasures.generation()
        if generation == self._generation:
            return
        self._generation = generation
        self._git.renew()
        self._trees = {}
        self._open, self._coming = ("", "", b"", -1), _NOTHING
        looked = self.outside.looked
        leads = self.erasures.find(looked) if looked else None
        self.outside.forget()
        self.outside.looked = leads.name if leads else looked

    def _decided(self) -> bool:
        """Whether an erasing is decided and not finished."""
        return (self._erasing / "plan.json").exists()

    def _finish_erasing(self) -> None:
        from memoranda.home.erase import Eraser

        Eraser(self._pieces(), self._repair).resume()

    def _pieces(self) -> Pieces:
        from memoranda.home.prepare import Pieces

        return Pieces(
            self.layout, self._git, self.store, self.worktree, self._log, self._committer, self.git_index,
            self.erasures, self.keys, self.marker.id, self.replica.id,
        )  # fmt: skip

    def erase(self, context: Context, blanks: Sequence[Blank], reason: str) -> Erasure:
        """Takes texts out of this Home with their history; afterwards nothing in it holds them.

        `blanks` are `erase.Whole` (all of a blob) and `erase.Lines` (lines of a file, in every version). `reason` stays
        on record. Other pointers go on leading to the same words.

        Raises:
            HomeBusy: a merge, a rebase or a lock is in the way; nothing was changed.
            NotFound: a blob never was in this Home.
            InvalidInput: the reason repeats the text, or a blob is no file.
        """
        from memoranda.home.erase import Eraser

        self.writing_allowed()
        self._ready()
        done = Eraser(self._pieces(), self._repair).erase(context, blanks, reason)
        self._ready()
        return done

    def blob(self, oid: str) -> bytes | None:
        """The bytes of a blob, also of one that is still in the log only."""
        found = self.store.get(oid)
        if found is not None:
            return found.data if found.kind == "blob" else None
        data = self._pending_blob(oid)
        if data is None and (leads := self.erasures.find(oid)) is not None and leads.name is not None:
            found = self.store.get(leads.name)
            return found.data if found is not None and found.kind == "blob" else None
        return data

    def _pending_blob(self, oid: str) -> bytes | None:
        contents: dict[str, bytes] = {}
        for record, _ in self._log.after(0):
            for change in record.changes:
                if change.new is None:
                    continue
                data = change.data
                if change.appended and change.old is not None:
                    before = contents.get(change.old)
                    if before is None:
                        found = self.store.get(change.old)
                        before = found.data if found else b""
                    data = before + data
                contents[change.new] = data
                if change.new == oid:
                    return data
        return None

    def at(self, path: str, rev: str | None) -> bytes:
        """The bytes of `path` now, at a commit, or (for a blob id) of that very blob; NotFound, Erased.

        Commits and blobs that an erasing replaced lead to what stands in their place.
        """
        if rev is None:
            blob = self.known(self.snapshot())(path)
            data = self.blob(blob) if blob else None
        else:
            data = self._at_rev(path, rev) if "\n" not in rev + path else None
        if data is None:
            raise NotFound(
                f"{path} does not exist{f' at {rev}' if rev else ''} in this Home.",
                remedy="Look for its history with `memoranda log`, or fetch the commit from the clone that has it.",
            )
        return data

    def _at_rev(self, path: str, rev: str) -> bytes | None:
        found = self.store.get(rev)
        if found is None:
            data = self._pending_blob(rev)
            if data is not None:
                return data
            leads = self.erasures.find(rev) or self._told_by_ledger(rev)
            if leads is not None and leads.name is None:
                raise Erased(leads.day)
            found = self.store.get(leads.name) if leads is not None and leads.name is not None else None
        if found is None or found.kind == "blob":
            return found.data if found else None
        inside = self.store.get(f"{found.oid}:{path}")
        if inside is None and (day := self.erasures.lost(path)) is not None:
            raise Erased(day)
        return inside.data if inside else None

    def _told_by_ledger(self, rev: str) -> Leads | None:
        """What another clone's erasing says of an id that this one does not know."""
        segments = ((replica, data) for _, replica, data in self.ledger_segments())
        return find_in_ledger(segments, lambda replica, line: self.pen(replica).vouches(line), rev)

    # Writing

    def writing_allowed(self) -> None:
        """ReadOnlyHome or HomeFormatUnknown when nothing may be written."""
        if (reason := self.read_only) is not None:
            raise HomeFormatUnknown(f"The Home {self.root} is read-only.", why=f"Because {reason}.", remedy="Upgrade.")

    def write(self, context: Context, build: Callable[[datetime], Draft]) -> Record:
        """One write: `build` is called inside the writers' lock with its known time; durable when this returns."""
        self.writing_allowed()
        with self._writing():
            self._opening, self._coming = None, _NOTHING
            at = context.now().astimezone(UTC)
            draft = build(at)
            record = self._record(draft, at)
            end = self._log.append(record)
            applied: list[FileChange] = []
            try:
                for change in record.changes:
                    self.worktree.apply(change)
                    applied.append(change)
            except (OSError, InvalidPath) as error:
                self._log.take_back(end)
                self.worktree.take_back(applied, self.blob)
                if isinstance(error, InvalidPath):
                    raise
                raise ReadOnlyHome(
                    "A file of the Home could not be written.",
                    why=str(error),
                    remedy="Mend the folder's permissions or make room, then try again; nothing was written.",
                ) from error
            self._log.publish(record, end)
            self._open = self._opening or self._open
            segment = self._log.segment
        self._log.sync(segment, end)
        self._background.wake()
        return record

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The writers' lock, with no erasing half done, and what a killed writer left repaired."""
        while True:
            self._ready()
            with self._log.writing():
                if not self._decided():
                    if self._log.unapplied():
                        self._repair()
                    yield
                    return

    def _record(self, draft: Draft, at: datetime) -> Record:
        files = []
        blobs: dict[str, str | None] = {}
        for change in draft.changes:
            old, new = self._pair(change)
            blobs[change.path] = new
            appended = change.appended and old is not None
            files.append(FileChange(change.path, old, new, change.data or b"", appended, change.laid))
        lines: list[str] = []
        for line in draft.ledger:
            filled = {"n": self._log.last + 1, "at": at.isoformat(), **line}
            if "path" in line and line["path"] in blobs:
                filled["blob"] = blobs[line["path"]]
            lines.append(self._pen.line(filled))
        return Record(
            self._log.last + 1, at, draft.op, draft.reason, draft.author, draft.trailers, tuple(files), tuple(lines)
        )

    def _pair(self, change: Change) -> tuple[str | None, str | None]:
        """The blobs of a path before and after a change; an append's content is held for the next one."""
        if change.data is None:
            return self._before(change)[0], None
        path, old, before, new, content = self._coming
        if not change.appended or path != change.path or len(content) != len(before) + len(change.data):
            old, before = self._before(change)
            content = before + change.data
            new = object_id("blob", content)
        self._coming = _NOTHING
        if change.appended:
            self._opening = (change.path, new, content, self._log.last + 1)
        return old, new

    def _before(self, change: Change) -> tuple[str | None, bytes]:
        """The blob that a change replaces, and for an append the bytes that it continues."""
        self._follow_open(change)
        path, blob, content, seq = self._open
        if change.appended and path == change.path and seq == self._log.last and self.worktree.untouched(path, blob):
            return blob, content  # nobody has written since our own last append: the usual case
        if (
            not change.appended
            and change.data is not None
            and not change.laid
            and not self.worktree.exists(change.path)
        ):
            return None, b""
        old = self.known(self.snapshot())(change.path)
        if not change.appended or old is None:
            return old, b""
        data = self.blob(old)
        if data is None:
            raise HomeDamaged(
                f"The file {change.path} is missing in Git.", remedy="Run `git fsck`, restore from a clone."
            )
        self.worktree.verify(change.path, old, data)
        return old, data

    def _follow_open(self, change: Change) -> None:
        """Brings the open journal to what other processes have appended to it since, from their records."""
        path, blob, content, seq = self._open
        if not change.appended or path != change.path or seq == self._log.last:
            return
        for record, _ in self._log.after(seq):
            if record.seq != seq + 1:
                return  # records in between are committed and forgotten already
            seq = record.seq
            for found in record.changes:
                if found.path == path:
                    if not found.appended or found.old != blob or found.new is None:
                        return
                    blob, content = found.new, content + found.data
        if seq == self._log.last:
            self._open = (path, blob, content, seq)
            self.worktree.verify(path, blob, content)

    def may_append(self, path: str) -> bool:
        """False for a file of the branch while a person has a merge, a rebase or the like under way.

        Git would stumble over its change, and refuse to go on; a file that it does not know yet is in nobody's way.
        """
        if self._activity.busy() is None:
            return True
        commit = self.store.refs.head_commit()
        return commit is None or self._tree(commit).get(path) is None

    def appending(self, path: str, data: bytes) -> Appending:
        """What appending `data` to `path` will make of it; only inside the `build` of a `write`."""
        change = Change(path, data, appended=True)
        old, before = self._before(change)
        content = before + data
        blob = object_id("blob", content)
        self._coming = (path, old, before, blob, content)
        return Appending(change, blob, before.count(b"\n") + 1)

    def _mend(self) -> None:
        """What a writer left that died, at the opening; a Home that cannot be mended now can still be read."""
        try:
            with self._log.writing():
                if self._log.unapplied():
                    self._repair()
        except OSError as error:
            self._log.fail(f"what a killed writer left could not be finished: {error}")

    def _repair(self) -> None:
        """Writes the files that a writer recorded and did not live to write, or that went with the power."""
        if self._log.fresh_boot:
            records = [record for record, _ in self._log.everything(self._log.safe)]
            # What was deleted since, or lies on another branch, is not lost and must not come back.
            self.worktree.repair(records, self.blob, self.known(self.snapshot()))
            self.git_index.doubt()
        else:
            records = [record for record, _ in self._log.everything(self._log.applied)]
            self.worktree.repair(records, self.blob)
        self._log.set_repaired()

    # Outside edits

    def look(self, context: Context) -> list[Found]:
        """Takes in what was edited outside the program; returns it. Does nothing while Git is busy here."""
        return self.sight(context)[0]

    def sight(self, context: Context) -> tuple[list[Found], Snapshot | None]:
        """Looks as `look` does; gives what was taken in, and the snapshot that was compared with when nothing was."""
        self._ready()
        if self.read_only:
            return [], None
        with self._looking:
            snapshot = self.snapshot()
            if self._looker.quiet(snapshot.commit) or self._busy():
                return [], snapshot
            candidates = self._looker.candidates(context, snapshot, self._tree(snapshot.commit))
            found = list(self.outside.compare(candidates, self.known(snapshot))) if candidates else []
            if found and self._looker.half_done(found) and self._activity.busy(patient=True):
                return [], None
            taken: list[Found] = []
            if found:
                try:
                    taken = self._take_in(context, found)
                except ReadOnlyHome as error:  # what is remembered can still be read
                    self.refused.update((item.path, str(error)) for item in found)
            self._looker.settle({*self.refused, *self.outside.strange})
            return taken, None if found else snapshot

    def _busy(self) -> str | None:
        """Why nothing can be looked for at the moment; a lock that a killed process of ours left is no reason."""
        if self._activity.busy() is None:
            return None
        self._committer.unlock()
        self.git_index.unlock()
        return self._activity.busy(patient=True)

    def _take_in(self, context: Context, found: list[Found]) -> list[Found]:
        taken: list[Found] = []

        def build(_at: datetime) -> Draft:
            known = self.known(self.snapshot())
            for item in self.outside.compare([f.path for f in found], known):
                reason = self._admit(item.data, item.path) if item.data is not None else None
                if reason is not None:
                    self.refused[item.path] = reason
                    continue
                self.refused.pop(item.path, None)
                taken.append(item)
            return found_draft(taken)

        self.writing_allowed()
        with self._writing():
            at = context.now().astimezone(UTC)
            draft = build(at)
            if not taken:
                return []
            files = tuple(FileChange(f.path, f.old, f.blob, f.data or b"", False, True) for f in taken)
            told = self.stamp(taken)
            seq = self._log.last + 1
            lines = tuple(
                self._pen.line(
                    {"n": seq, "at": at.isoformat(), "kind": "found", "path": c.path, "blob": c.new}
                    | dict(told.get(c.path, {}))
                )
                for c in files
            )
            record = Record(seq, at, draft.op, draft.reason, draft.author, {}, files, lines)
            end = self._log.append(record)
            self._log.publish(record, end)
            segment = self._log.segment
        self._log.sync(segment, end)
        self._background.wake()
        return taken

    def watch(self) -> None:
        """From the next look on, learns of edits from the kernel instead of comparing files each time."""
        self._looker.watching = True

    # Committing and tidying

    def flush(self, *, wait: bool = True) -> str | None:
        """Commits what the log holds; returns why something remains."""
        if self.read_only:
            return None
        try:
            self._ready()
        except HomeBusy as error:
            return str(error)
        self.git_index.unlock()
        return self._committer.flush(wait=wait)

    def tidy(self) -> bool:
        """Brings Git's index forward, joins small packs, begins a new log segment; whether nothing is left to do."""
        if self.read_only:
            return True
        self._make_safe()
        commit = self.store.refs.head_commit()
        indexed = self.git_index.reflects()
        if commit is None or indexed == commit:
            return True
        if self._activity.busy():
            return False
        tried = self.git_index.tried()
        if tried is not None and tried != commit and self.store.get(tried) and not self._bring_index(indexed, tried):
            return False
        if not self._bring_index(self.git_index.reflects(), commit):
            return False
        self.store.consolidate()
        self._rotate()
        return True

    def _blobs_of(self, path: str, since: str | None) -> set[str | None]:
        head = self.store.refs.head_commit()
        known = since if since is not None and self.store.get(since) else None
        return past_blobs(self._git, known, head, path) if head else set()

    def _bring_index(self, old: str | None, new: str) -> bool:
        known = old if old is not None and self.store.get(old) else None
        touched = {c.path: (c.old, c.new) for c in self.store.changes(known, new) if c.path in self.ours}
        if known is not None:  # a person's commit between may have taken the index elsewhere and back
            for path in {c.path for step in self.history(known, new) for c in step.changes} - touched.keys():
                if path in self.ours:
                    blob = self.blob_at(new, path)
                    touched[path] = (blob, blob)
        return self.git_index.advance(old, touched, new)

    def _make_safe(self) -> None:
        """Syncs the files that were written since the last time: the log is needed no more to restore them."""
        segment, offset, records = self._log.unsafe()
        if records:
            self.worktree.sync({change.path for record in records for change in record.changes})
            self._log.set_safe(segment, offset)

    def _rotate(self) -> None:
        if not self._log.large():
            return
        with self._log.writing():
            place = self._committer.position()
            if place.segment == self._log.segment and place.offset == self._log.end == self._log.safe:
                self._log.rotate()

    def history(self, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step]:
        """The commits from behind `old` to `new`, parents before children, each with what it changed."""
        return walk(self._git, old, new, newest=newest)

    def verify(self) -> list[str]:
        """What Git's own check says is damaged."""
        heads = [h for h in (self.store.refs.head_commit(), self.store.ref(LEDGER_REF)) if h]
        return self.store.verify(heads)

    def ledger_segments(self) -> Iterator[tuple[str, str, bytes]]:
        """(path, replica, data) of every committed segment of the ledger."""
        root = self.store.get(f"{self.store.ref(LEDGER_REF)}^{{tree}}")
        for _, folder, tree in read_tree(root.data if root else b""):
            for _, name, blob in read_tree(self._tree_data(tree)):
                yield f"{folder.decode()}/{name.decode()}", folder.decode(), self._tree_data(blob)

    def close(self) -> None:
        """Commits what is left, leaves `git status` clean and lets go of everything."""
        self._background.stop()
        if self.read_only is None:
            if self.flush() is None:
                self._tidy_at_last()
            else:
                self._make_safe()
        self._looker.close()
        self.store.close()
        self.git_index.close()
        self._committer.close()
        self._log.close()

    def _tidy_at_last(self) -> None:
        for _ in range(_CLOSING_TRIES):
            if self.tidy():
                return
            time.sleep(0.05)  # another process of ours has the turn, or a person's Git the lock

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
