"""A process that commits, for a time in which one writes without a pause.

The thread that commits while nobody waits shares the interpreter with those who write, and takes every other of their
moments. So who writes many notes a second starts a process that reads the log and commits what it finds, for all
processes that write in this Home: one at a time, holding a lock for as long as it lives. It is one more process with
this Home open and nothing else: the locks are the same, and whatever it leaves undone when it ends or is killed, the
thread does, or who closes the Home. It ends with the process that started it, and when nothing was written for a while.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

from memoranda.context import system_clock
from memoranda.home import committer
from memoranda.home.activity import Activity
from memoranda.home.committer import Committer
from memoranda.home.disk import DiskStore
from memoranda.home.durable import FileLock
from memoranda.home.git import Git
from memoranda.home.layout import Layout, layout_of
from memoranda.home.ledger_tip import LedgerTip
from memoranda.home.log import IntakeLog
from memoranda.home.worktree import Worktree

_LOCK = "committing.lock"
_LOOK = 0.01  # seconds between two looks at the log
_BETWEEN = 0.1  # seconds from group to group while more is coming: each folder is written whole once a group
_LATER = 0.1  # seconds until a held-up commit is tried again
_PATIENCE = 10.0  # seconds that it is given to end
_IDLE = 2.0  # seconds without a record after which it ends
_MOST = (
    4  # that one process has at once: of many Homes that are written without a pause, the threads of the rest commit
)
_turns = threading.BoundedSemaphore(_MOST)


class CommitProcess:
    """The process, seen from the one that may start it."""

    def __init__(self, layout: Layout, replica: str, tip: LedgerTip) -> None:
        self._layout = layout
        self._replica = replica
        self._tip = tip
        self._process: subprocess.Popen[bytes] | None = None
        self._failed = False

    def at_work(self) -> bool:
        """Whether one commits for this Home, started by this process or by another."""
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return True
            self._failed = status != 0  # what stopped it will stop the thread too, which tells of it
            self._release()
        lock = FileLock(self._layout.own / _LOCK)
        try:
            return not lock.try_acquire()
        finally:
            lock.close()

    def start(self) -> bool:
        """Starts one if there is none; whether one is at work now."""
        if self._failed or not sys.executable:
            return self.at_work()
        lock = FileLock(self._layout.own / _LOCK)
        try:
            if not lock.try_acquire():
                return True
            if not _turns.acquire(blocking=False):
                return False
            # The lock goes over to it with the open file: nobody else can start one meanwhile. -P: what lies in the
            # folder that somebody works in is no module of ours.
            call = f"from {__name__} import main; main()"
            words = [str(self._layout.root.absolute()), self._replica, str(committer.GROUP), str(os.getpid())]
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", call, *words, *self._tip.words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[lock.descriptor],
                )
            except OSError:
                _turns.release()
                raise
        except OSError:
            self._failed = True  # no memory, no more processes: the thread goes on as before
        finally:
            lock.close()
        return self._process is not None

    def stop(self) -> None:
        """Ends the process that was started here, after the group that it is at."""
        if self._process is not None:
            self._release()

    def _release(self) -> None:
        assert self._process is not None
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()  # somebody has stopped it; what it leaves half-made, the next one finishes or drops
            self._process.wait()
        self._process = None
        _turns.release()


def main() -> None:
    """Commits what the log holds until nothing more comes, or the process that started this one has ended."""
    root, replica, most, parent, keys, home, _, place = sys.argv[1:]
    committer.GROUP = int(most)
    layout = layout_of(Path(root))
    git = Git(layout)
    store = DiskStore(layout, git, system_clock)
    log = IntakeLog(layout.own)
    activity = Activity(layout, store.refs, system_clock, git)
    tip = LedgerTip(Path(keys), home, replica, Path(place))
    committing = Committer(layout, store, store.refs, log, replica, activity, Worktree(layout.root), tip)
    done_to = committing.position()
    log.skip_to(done_to.segment, done_to.offset, done_to.seq)
    erasings = layout.own / "erased" / "generation"
    generation = _changed(erasings)
    done, mark, heard, began = (0, 0), (0, 0), time.monotonic(), 0.0
    pause = 0.0
    while os.getppid() == int(parent) and not select.select([sys.stdin], [], [], pause)[0]:
        now, clock = log.mark(), time.monotonic()
        coming = now != mark
        if coming:
            mark, heard = now, clock
        elif clock - heard > _IDLE:
            break
        if _changed(erasings) != generation:
            break  # the files that Git holds open here may be those of what was erased
        pause = _LOOK
        if now == done or (coming and clock - began < _BETWEEN):
            continue
        reason = committing.flush(wait=False)
        if reason is None:
            done, began = now, clock
        elif reason != committer.JUST_NOW:
            pause = _LATER
    store.close()


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
