"""Turns records of the intake log into commits, one a record, and moves the branch and the ledger together.

`commit.json` names the group that was written last, before its refs move; together with the refs it tells after any
crash up to which record everything is in Git. A commit that a person makes, amends or drops does not disturb that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memoranda.errors import HomeDamaged, RefMoved
from memoranda.home.activity import Activity
from memoranda.home.durable import FileLock, write_durably
from memoranda.home.gitindex import went_back
from memoranda.home.groups import Group, Position, encode_group, read_group
from memoranda.home.layout import Layout
from memoranda.home.ledger import last_segment, segment_path
from memoranda.home.ledger_tip import LedgerTip
from memoranda.home.log import IntakeLog
from memoranda.home.making import Making
from memoranda.home.refs import Refs
from memoranda.home.segments import HEAD_SIZE
from memoranda.home.slips import Slip, Slips, mend
from memoranda.home.store import LEDGER_REF, ObjectStore, RefMove
from memoranda.home.streak import Streak
from memoranda.home.worktree import Worktree

GROUP = 256
_TRIES = 5
JUST_NOW = "a group has just been committed"
_SOON = 0.03  # seconds from one group of this Home to the next, whichever process makes it


class Committer:
    """The committing half of an open Home; its callers hold no lock."""

    def __init__(
        self,
        layout: Layout,
        store: ObjectStore,
        refs: Refs,
        log: IntakeLog,
        replica: str,
        activity: Activity,
        worktree: Worktree,
        tip: LedgerTip,
    ) -> None:
        self._layout = layout
        self._store = store
        self._refs = refs
        self._log = log
        self._replica = replica
        self._activity = activity
        self._tip = tip
        self._threads = threading.Lock()
        self._handles: list[object] = []
        self._lock = FileLock(layout.own / "commit.lock")
        self._path = layout.own / "commit.json"
        self._seen: tuple[tuple[int, int], Group] | None = None
        self._worktree = worktree
        self._slips = Slips(layout, store)
        self._making = Making(store, replica, worktree.executable)
        self.streak = Streak()
        self.moved: Callable[[str | None, str | None], None] = lambda _old, _new: None  # told of our own commits

    # Where we are

    def last_group(self) -> Group | None:
        """The newest group, whether its refs have moved or not."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        mark = (status.st_mtime_ns, status.st_ino)
        if self._seen is None or self._seen[0] != mark:
            try:
                group = read_group(self._path)
            except HomeDamaged:
                group = self._worked_out()
            self._seen = (mark, group)
            self.streak.follow(group)  # another process's, when it has not been followed yet
        return self._seen[1]

    def _worked_out(self) -> Group:
        """What a damaged `commit.json` would say: the record whose lines end our part of the ledger is in Git.

        The next group writes it anew. A record without lines behind that one is committed again, which changes nothing
        where it was committed before.
        """
        ledger = self._refs.read(LEDGER_REF)
        held = self._log.everything()
        place = Position(self._log.segment, HEAD_SIZE, held[0][0].seq - 1 if held else self._log.last)
        if ledger is not None and (last := self._last_line(ledger)) is not None:
            for record, end in reversed(held):
                if last in record.ledger:
                    place = Position(self._log.segment, end, record.seq)
                    break
        name = ledger if ledger is not None else "0" * 40
        return Group(place, place, self._refs.head() or "", (None, None), (ledger, name))

    def _last_line(self, ledger: str) -> str | None:
        folder = self._store.get(f"{ledger}:{self._replica}")
        if folder is None:
            return None
        segment = self._store.get(f"{ledger}:{segment_path(self._replica, last_segment(folder.data))}")
        lines = segment.data.split(b"\n") if segment is not None else []
        return next((line.decode("ascii", "replace") for line in reversed(lines) if line), None)

    def position(self) -> Position:
        """Up to where the records are in Git, judged from `commit.json` and the refs."""
        group = self.last_group()
        if group is None:
            return Position(self._log.segment if self._log.segment == 1 else 1, HEAD_SIZE, 0)
        return group.after if self._done(group) else group.before

    def _done(self, group: Group) -> bool:
        ledger = self._refs.read(LEDGER_REF)
        if ledger == group.ledger[1]:
            return True
        if ledger == group.ledger[0]:
            return False
        return ledger is not None and self._store.is_ancestor(group.ledger[1], ledger)

    def _settle(self) -> Position:
        """Finishes or drops a group whose writer died between writing it and moving both refs."""
        group = self.last_group()
        if group is None or self._done(group):
            return self.position()
        if self._refs.read(LEDGER_REF) != group.ledger[0]:
            return group.before  # another worktree's commit took the place
        main = self._refs.read(group.branch)
        moves = [RefMove(LEDGER_REF, group.ledger[0], group.ledger[1], "memoranda")]
        if group.main[1] is not None and main != group.main[1]:
            if main == group.main[0]:
                moves.insert(0, RefMove(group.branch, main, group.main[1], "memoranda: finish a group"))
            elif main is None or not self._store.is_ancestor(group.main[1], main):
                return group.before  # a person's commit took the place: the records are committed again on top of it
        if self._store.get(group.ledger[1]) is None:
            return group.before
        self._store.move(moves)
        self._keep(*group.ledger)
        return group.after

    def slip(self) -> Slip | None:
        """What of our commits a person's Git has taken off the branch by mistake; `flush` puts it back."""
        group = self.last_group()
        if group is None:
            return None
        left, now = group.main[1] or group.main[0], self._refs.read(group.branch)
        return self._slips.find(group.branch, now) if left is not None and now not in (None, left) else None

    def _put_back(self, slip: Slip, done: Position) -> None:
        """Files first and the branch afterwards: who is killed between does it once more."""
        if self._refs.head() == slip.branch:
            mend(slip, self._store, self._log, self._worktree, [record for record, _ in self._log.after(done.seq)])
            went_back(self._layout, self._store, slip.now)
        self._store.move([slip.move])
        self._making.forget_trees()

    # Committing

    def flush(self, *, wait: bool) -> str | None:
        """Commits what the log holds; returns why something remains, None when nothing does."""
        if self._idle():
            return None
        if not wait and self._just_now():
            return JUST_NOW
        if not self._threads.acquire(blocking=wait):
            return "another thread is committing"
        try:
            if wait:
                self._lock.acquire()
            elif not self._lock.try_acquire():
                return "another process is committing"
            try:
                reason = self._flush(patient=wait)
                if reason is None:
                    self._store.sweep()  # every group is finished; another worktree may be at work on its own
                return reason
            finally:
                self._lock.release()
        finally:
            self._threads.release()

    @contextmanager
    def alone(self) -> Iterator[Callable[[], str | None]]:
        """Nobody else commits meanwhile; gives what commits the log then, and says why something remains."""
        with self._threads:
            self._lock.acquire()
            try:
                self._store.sweep(alone=True)
                self._refs.unlock()
                yield lambda: self._flush(patient=True)
            finally:
                self._lock.release()

    def settle_on(self, branch: str, ledger: tuple[str | None, str]) -> None:
        """Notes that every record is in Git, on whichever of these two commits the ledger stands (inside `alone`)."""
        place = self.position()
        self._making.forget()
        write_durably(self._path, encode_group(Group(place, place, branch, (None, None), ledger)))

    def unlock(self) -> None:
        """Removes the locks of refs that a killed process of ours left; does nothing while one of ours commits."""
        if self._threads.acquire(blocking=False):
            try:
                if self._lock.try_acquire():
                    self._refs.unlock()
                    self._lock.release()
            finally:
                self._threads.release()

    def _just_now(self) -> bool:
        """Whether some process has committed a moment ago: then what came since waits until it makes a group."""
        try:
            # The machine's clock and no other: it is compared with a file's time, which the system has set by it.
            return 0 <= time.time() - self._path.stat().st_mtime < _SOON
        except FileNotFoundError:
            return False

    def left(self) -> int | None:
        """The last record that is in Git while others are not, None when all are; whoever commits them."""
        if self._idle():
            return None
        done = self.position().seq
        self._log.forget(done)
        return done

    def _idle(self) -> bool:
        """Whether there is nothing to commit and no group to finish: most processes only read."""
        group = self.last_group()
        if group is not None and not self._done(group):
            return False
        if self.slip() is not None:
            return False
        self._log.refresh()
        return not self._log.any_after(self.position().seq)

    def _flush(self, *, patient: bool) -> str | None:
        self._refs.unlock()  # nobody else of ours is at work now: these locks are a killed process's
        # Before anything is committed: whoever is killed on the way leaves records, and so a reason to come here again.
        self._store.sweep(holds=False)
        if (self._layout.own / "erasing" / "plan.json").exists():
            return "an erasing has to be finished first"
        reason = None
        for _ in range(_TRIES * (10 if patient else 1)):
            if (reason := self._activity.busy(patient=patient)) is not None:
                return reason
            try:
                while (size := self._commit_group()) and (patient or size == GROUP):
                    pass
                return None
            except RefMoved as error:
                self._making.forget_trees()
                reason = str(error)
                time.sleep(0.01)
        return reason

    def _commit_group(self) -> int:
        """One group; how many records it had."""
        before = self._settle()
        self._release()  # the last group is finished, or was overtaken and is made again
        self._log.refresh()
        self._log.forget(before.seq)
        if (slip := self.slip()) is not None:
            self._put_back(slip, before)
        todo = self._log.after(before.seq)[:GROUP]
        if not todo:
            return 0
        branch = self._refs.head()
        if branch is None:
            return 0
        main = self._refs.read(branch)
        objects = self._making.begin()
        head = self._making.commits(main, [record for record, _ in todo])
        ledger_old = self._refs.read(LEDGER_REF)
        ledger_new = self._making.ledger(ledger_old, [record for record, _ in todo])
        last, end = todo[-1]
        after = Position(self._log.segment, end, last.seq)
        row = self.streak.row((main, ledger_old, before.seq))
        group = Group(before, after, branch, (main, head if head != main else None), (ledger_old, ledger_new), row)
        self._handles.append(self._store.put(list(objects.values())))
        write_durably(self._path, encode_group(group))
        if (reason := self._activity.busy()) is not None:
            raise RefMoved(reason)
        moves = [RefMove(LEDGER_REF, ledger_old, ledger_new, "memoranda")]
        if head is not None and head != main:
            moves.insert(0, RefMove(branch, main, head, f"memoranda: {len(todo)} record(s)"))
        self._store.move(moves)
        self._keep(ledger_old, ledger_new)
        self.streak.follow(group)
        self.moved(main, head)
        self._release()
        self._making.end()
        self._log.forget(last.seq)
        return len(todo)

    def _keep(self, old: str | None, new: str) -> None:
        """Keeps where the ledger stands, unless it stood elsewhere before than was known: that is looked into first."""
        if self._tip.read() in (None, old):
            self._tip.write(new)

    def _release(self) -> None:
        while self._handles:
            self._store.release(self._handles.pop())

    def close(self) -> None:
        self._lock.close()
