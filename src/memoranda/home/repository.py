"""An open Home: one way to write, one way to see what holds now.

`Repository` ties the intake log, the working tree, the committer and the search for outside edits together. It knows
bytes and paths; what a note means, and whether it may be written, is decided above.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.errors import HomeBusy, HomeFormatUnknown, ReadOnlyHome
from memoranda.home.background import Background
from memoranda.home.commit_process import CommitProcess
from memoranda.home.contents import Contents
from memoranda.home.draft import Appending, Draft, Snapshot, found_draft
from memoranda.home.gitindex import GitIndex
from memoranda.home.keys import Keys
from memoranda.home.looker import Looker
from memoranda.home.outside import Found, Outside
from memoranda.home.record import FileChange, Record
from memoranda.home.slips import keep
from memoranda.home.store import FROM, LEDGER_REF
from memoranda.home.writer import Writer

if TYPE_CHECKING:
    from memoranda.home.comparison import Comparison
    from memoranda.home.erasing.erase import Blank, Erasure
    from memoranda.home.pieces import Pieces
    from memoranda.home.pulling import Pulled

_CLOSING_TRIES = 20
_MUCH = 8 << 20  # bytes of records
_UNKNOWN = "not looked into yet"
Admit = Callable[[bytes, str], str | None]


def everything(_data: bytes, _path: str) -> str | None:
    """Admits whatever is found."""
    return None


class Repository(Contents):
    """An open Home on disk. Threads may share it; several processes may open the same Home.

    Args:
        root: the Home's folder.
        context: gives the clock and the random source.
        keys: the installation's keys, outside the Home.
        admit: asked before found bytes are taken in, with (bytes, path); returns why they are not, or None.
        begun: a comparison that was begun a moment ago, for the first look.
    """

    def __init__(
        self,
        root: Path,
        context: Context,
        keys: Keys,
        *,
        admit: Admit = everything,
        first: bool = False,
        begun: Comparison | None = None,
    ) -> None:
        super().__init__(root, context, keys, first=first)
        self._admit = admit
        self.stamp = lambda _found: {}
        self.git_index = GitIndex(self.layout, self._git, self.worktree, self._blobs_of, begun)
        self.outside = Outside(self.layout, self.worktree, self.ours)
        self._looker = Looker(self.store, self.git_index, self.outside, self.ours, self.layout, self.only_ours)
        self._looking = threading.Lock()
        self.look_every = None
        self._looked: datetime | None = None
        self._lost: str | None = _UNKNOWN
        self._taken_in = self.layout.own / "taken-in"
        self._many = False
        self.refused = {}
        self._committer.moved = self._looker.follow
        self._erasing = self.layout.own / "erasing"
        self._plan = str(self._erasing / "plan.json")
        process = CommitProcess(self.layout, self.replica.id, self.tip)
        self._background = Background(self.flush, self._tidy_in_quiet, self._committer.left, process)
        self._writer = Writer(
            self, self._log, self._activity, self._pen,
            current=self._current, ready=self._ready, repair=self._repair, wake=self._background.wake,
            slipped=lambda: self._committer.slip() is not None,
        )  # fmt: skip
        self._generation = self.erasures.generation()
        if self.read_only is None and self._erasing.exists():
            try:
                self._finish_erasing()
            except HomeBusy:
                pass  # somebody's Git is at work; tried again before anything is read or written
        if self.read_only is None and self._log.unapplied():
            self._mend()
        if self.read_only is None:
            self._take_in_fetched()

    @property
    def comparing(self) -> bool:
        return self.git_index.comparing

    # Erasing

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
        self._writer.forget()
        looked = self.outside.looked
        leads = self.erasures.find(looked) if looked else None
        self.outside.forget()
        self.outside.looked = leads.name if leads else looked

    def _current(self) -> bool:
        """Whether no erasing is decided, and none was finished since `_ready` has looked."""
        return not self._decided() and self.erasures.generation() == self._generation

    def _decided(self) -> bool:
        """Whether an erasing is decided and not finished."""
        return os.access(self._plan, os.F_OK)  # asked twice a note: pathlib takes ten times as long

    def _finish_erasing(self) -> None:
        from memoranda.home.erasing.erase import Eraser

        Eraser(self._pieces(), self._repair).resume()

    def _pieces(self) -> Pieces:
        from memoranda.home.pieces import Pieces

        return Pieces(
            self.layout, self._git, self.store, self.worktree, self._log, self._committer, self.git_index,
            self.erasures, self.keys, self.marker.id, self.replica.id, self.tip,
        )  # fmt: skip

    def erase(
        self, context: Context, blanks: Sequence[Blank], reason: str, testimony: Sequence[Mapping[str, Any]] = ()
    ) -> Erasure:
        """Takes texts out of this Home with their history; afterwards nothing in it holds them.

        `blanks` are `erase.Whole` (all of a blob) and `erase.Lines` (lines of a file, in every version). `reason` stays
        on record, and so does `testimony`, lines of the ledger that come with the erasing or not at all. Other pointers
        go on leading to the same words.

        Raises:
            HomeBusy: a merge, a rebase or a lock is in the way; nothing was changed.
            NotFound: a blob never was in this Home.
            InvalidInput: the reason repeats the text, or a blob is no file.
        """
        from memoranda.home.erasing.erase import Eraser

        self.writing_allowed()
        self._ready()
        done = Eraser(self._pieces(), self._repair).erase(context, blanks, reason, testimony)
        self._ready()
        return done

    # The ledger

    def keep_ledger(self) -> str | None:
        """Takes in the ledgers of other clones that were fetched, and puts back what was cut from this one.

        Returns, as `ledger_lost`, the commit whose lines are lost, None when none are.
        """
        if self.read_only is None and not self._decided():
            from memoranda.home.keeping import fetched, keep  # here: most find the ledger where they left it

            told = fetched(self.store.refs)
            self._lost = keep(self.store, self.tip, self.replica.id, self._context.now())
            if told:
                self._taken_in.write_text(told, encoding="utf-8")
        else:
            self._lost = None
        return self._lost

    def _take_in_fetched(self) -> None:
        """Plain `git pull` may have brought another clone's ledger along, and nothing else."""
        if not (self.layout.common_dir / FROM).is_dir():
            return
        from memoranda.home.keeping import fetched

        known = self._taken_in.read_text(encoding="utf-8") if self._taken_in.exists() else ""
        if fetched(self.store.refs) != known:
            self.keep_ledger()

    @property
    def ledger_lost(self) -> str | None:
        """The commit whose lines the ledger has lost for good, so that nobody knows what sessions had met."""
        if self._lost is _UNKNOWN:
            stands = self.store.ref(LEDGER_REF)
            known = self.tip.read()
            self._lost = None if known is not None and known == stands else self.keep_ledger()
        return self._lost

    def pull(self, context: Context, remote: str | None) -> Pulled:
        """Takes in what another clone of this Home has; `keep_ledger` takes its ledger in. Errors: `pulling.pull`."""
        from memoranda.home.pulling import pull

        self.writing_allowed()
        self.look(context)
        if (reason := self.flush()) is not None:
            raise HomeBusy(f"Nothing can be pulled now: {reason}.", remedy="Try again when that is over.")
        self._tidy_at_last()
        done = pull(self._pieces(), context, remote, busy=self._activity.busy, note=self.ours.is_note)
        self.keep_ledger()
        return done

    def settle_ledger(self) -> None:
        """A person has said that the ledger counts as it is, whatever it has lost."""
        from memoranda.home.keeping import settle

        self.flush()
        settle(self.store, self.tip)
        self._lost = None

    # Writing

    def writing_allowed(self) -> None:
        """ReadOnlyHome or HomeFormatUnknown when nothing may be written."""
        if (reason := self.read_only) is not None:
            raise HomeFormatUnknown(f"The Home {self.root} is read-only.", why=f"Because {reason}.", remedy="Upgrade.")

    def write(self, context: Context, build: Callable[[datetime], Draft]) -> Record:
        """One write: `build` is called inside the writers' lock with its known time; durable when this returns."""
        self.writing_allowed()
        return self._writer.write(context, build)

    def may_append(self, path: str) -> bool:
        """False for a file of the branch while a person has a merge, a rebase or the like under way."""
        return self._writer.may_append(path)

    def appending(self, path: str, data: bytes) -> Appending:
        """What appending `data` to `path` will make of it; only inside the `build` of a `write`."""
        return self._writer.appending(path, data)

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
        if self.look_every is not None:
            now = context.now()
            if self._looked is not None and timedelta() <= now - self._looked < self.look_every:
                return [], self.snapshot()
            self._looked = now
        with self._looking:
            snapshot = self.snapshot()
            if self._looker.quiet(snapshot):
                return [], snapshot
            if self._committer.slip() is not None:
                self.flush()
                snapshot = self.snapshot()
            if self._busy():
                return [], snapshot
            candidates = self._looker.candidates(context, snapshot, lambda: self._tree(snapshot.commit))
            found = list(self.outside.compare(candidates, self.known(snapshot))) if candidates else []
            absent = self.git_index.left_out({item.path for item in found if item.data is None})
            found = [item for item in found if item.path not in absent]
            if found and self._looker.half_done(found) and self._activity.busy(patient=True):
                return [], None
            if found:
                if self._activity.busy():
                    return [], None  # it is compared when Git is done
                kept = self._keep(snapshot.tail)
                found = [item for item in found if item.path not in kept]
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

        def make(at: datetime) -> Record | None:
            known = self.known(self.snapshot())
            for item in self.outside.compare([f.path for f in found], known):
                reason = self._admit(item.data, item.path) if item.data is not None else None
                if reason is not None:
                    self.refused[item.path] = reason
                    continue
                self.refused.pop(item.path, None)
                taken.append(item)
            files = tuple(FileChange(f.path, f.old, f.blob, f.data or b"", False, True) for f in taken)
            return self._writer.found(at, found_draft(taken), files, self.stamp(taken)) if taken else None

        self.writing_allowed()
        self._writer.record(context, make)
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

    @contextmanager
    def many(self) -> Iterator[None]:
        """For a time in which one write follows the other: what costs as much as there is, is done once, afterwards."""
        self._many = True
        try:
            yield
        finally:
            self._many = False

    def _tidy_in_quiet(self) -> bool:
        return False if self._many else self.tidy()

    def tidy(self) -> bool:
        """Brings Git's index forward, joins small packs, begins a new log segment; whether nothing is left to do."""
        if self.read_only:
            return True
        self._make_safe()
        if self._committer.slip() is not None and self.flush() is not None:
            return False
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

    def _bring_index(self, old: str | None, new: str) -> bool:
        known = old if old is not None and self.store.get(old) else None
        touched = {c.path: (c.old, c.new) for c in self.store.changes(known, new) if c.path in self.ours}
        if known is not None and not self.only_ours(known, new):
            # A person's commit between may have taken the index elsewhere and back.
            for path in {c.path for step in self.history(known, new) for c in step.changes} - touched.keys():
                if path in self.ours:
                    blob = self.blob_at(new, path)
                    touched[path] = (blob, blob)
        return self.git_index.advance(old, touched, new)

    def _keep(self, pending: Sequence[Record] = ()) -> set[str]:
        """Puts back what a person's Git has taken out of the files of the last writes; returns their paths."""
        _, _, size = self._log.unsafe_span()
        if size > _MUCH or not (pending or size) or not self._log.takes_writes:
            return set()
        if self._activity.busy() or self._log.fresh_boot:
            return set()
        with self._log.writing():
            fresh = {record.seq: record for record in (*pending, *self._log.unsafe()[2])}
            writes = [fresh[seq] for seq in sorted(fresh)]
            known, gone = self.known(self.snapshot()), self._activity.just_now()
            return keep(self.worktree, writes, known, self.blob, gone=gone)

    def _make_safe(self) -> None:
        """Syncs the files that were written since the last time: the log is needed no more to restore them."""
        segment, offset, size = self._log.unsafe_span()
        if size > _MUCH:  # an import: reading all of it again to learn the names would cost more than it saves
            os.sync()
            self._log.set_safe(segment, offset)
            return
        self._keep()
        if self._activity.just_now():
            return  # what Git may still take away is known by that; the log holds all of it
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

    def close(self) -> None:
        """Commits what is left, leaves `git status` clean and lets go of everything."""
        with ExitStack() as closing:  # in this order, also when what is left cannot be committed
            for part in (self.store, self._log, self._committer, self.git_index, self._looker):
                closing.callback(part.close)
            self._background.stop()
            if self.read_only is None:
                if self.flush() is None:
                    self._tidy_at_last()
                else:
                    self._make_safe()

    def _tidy_at_last(self) -> None:
        for _ in range(_CLOSING_TRIES):
            if self.tidy():
                return
            time.sleep(0.05)  # another process of ours has the turn, or a person's Git the lock

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
