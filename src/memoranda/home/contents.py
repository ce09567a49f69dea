"""What a Home holds now, and what it held: commits and the records behind them, seen as one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import ReadOnlyHome
from memoranda.home.activity import Activity
from memoranda.home.committer import Committer
from memoranda.home.disk import DiskStore
from memoranda.home.draft import Snapshot
from memoranda.home.erasing.erasures import Erasures
from memoranda.home.git import Git
from memoranda.home.groups import Group
from memoranda.home.history import Step, past_blobs, walk, walk_rows
from memoranda.home.holding import Holding
from memoranda.home.joining import segments
from memoranda.home.keys import Keys
from memoranda.home.layout import Layout, layout_of
from memoranda.home.ledger import Pen, read_lines
from memoranda.home.ledger_tip import LedgerTip
from memoranda.home.log import IntakeLog
from memoranda.home.marker import Marker, Replica, read_marker, replica_of
from memoranda.home.objects import GitObject, TreeEditor
from memoranda.home.outside import Ours
from memoranda.home.record import Record
from memoranda.home.store import LEDGER_REF, TreeChange
from memoranda.home.streak import Streak
from memoranda.home.worktree import Worktree

if TYPE_CHECKING:
    from memoranda.home.inventory import Text


class Contents(Holding):
    """The reading half of an open Home; `Repository` is the whole, and says what the arguments are."""

    def __init__(self, root: Path, context: Context, keys: Keys, *, first: bool = False) -> None:
        self.root = root
        self.layout: Layout = layout_of(root)
        self.marker: Marker = read_marker(root)
        self.keys = keys
        self.ours = Ours(self.marker)
        self._context = context
        self.replica: Replica = replica_of(self.layout, context.random, first=first)
        self._pen = Pen(keys, self.marker.id, self.replica.id)
        self._git = Git(self.layout)
        self.store = DiskStore(self.layout, self._git, context.clock)
        self.store.refs.check_format()
        self.worktree = Worktree(root)
        self.tip = LedgerTip(keys.folder, self.marker.id, self.replica.id, self.layout.common_dir.resolve())
        self._log = IntakeLog(self.layout.own, self._last_number)
        self._activity = Activity(self.layout, self.store.refs, context.clock, self._git)
        parts = self.layout, self.store, self.store.refs, self._log
        self._committer = Committer(*parts, self.replica.id, self._activity, self.worktree, self.tip)
        self._trees: dict[str, TreeEditor] = {}
        place = self._committer.position()
        self._log.skip_to(place.segment, place.offset, place.seq)
        self._log.refresh()
        self.erasures = Erasures(self.layout.own / "erased", keys, self.marker.id)

    def _last_number(self) -> int:
        """The number of the last record of which this clone's ledger tells, also where it was cut back since."""
        found = [0]
        for commit in (self.tip.read(), self.store.ref(LEDGER_REF)):
            for path, blob in (segments(self.store, commit) or {}).items():
                if path.startswith(f"{self.replica.id}/"):
                    numbers = (line.get("n") for line in read_lines(self._tree_data(blob)))
                    found += [number for number in numbers if isinstance(number, int)]
        return max(found)

    # What holds now

    store: DiskStore
    worktree: Worktree

    def head(self) -> str | None:
        return self.store.refs.head_commit()

    def branch(self) -> str | None:
        return self.store.refs.head()

    def entries(self, folder: str) -> int:
        try:
            return len(os.listdir(self.root / folder))  # noqa: PTH208 - counts, and nothing else
        except FileNotFoundError:
            return 0

    @contextmanager
    def whole(self) -> Iterator[Path]:
        yield self.root

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

    @property
    def sequence(self) -> int:
        """The number of the newest record that this process knows of."""
        return self._log.last

    def settled(self) -> bool:
        """Whether everything that was written in this Home is in Git."""
        return self._committer.left() is None

    def subscribe(self, word: str, listener: Callable[[Record], None]) -> None:
        """`listener` is told of every record in whose ledger lines `word` stands, written or read from now on."""
        self._log.listen(word, listener)

    def hear(self) -> int:
        """Takes in what other processes have written since; how often records went by that nobody here was told of."""
        self._log.refresh()
        return self._log.missed

    def is_being_written(self, path: str) -> bool:
        """Whether a write to this file is so new that it is not in Git yet, as far as it was read here."""
        return self._log.newest_change(path, self._committer.position().seq)[1] is not None

    def make_durable(self) -> None:
        """Returns when every record read so far survives a loss of power, other processes' records too."""
        try:
            self._log.sync(self._log.segment, self._log.end)
        except ReadOnlyHome:
            return  # every write is refused from now on and says why; what is there can still be read

    def only_ours(self, old: str, new: str) -> bool:
        """Whether our own groups, and nothing else, lead from one commit to the other."""
        group = self._committer.last_group()
        if group is None or new != group.main[1]:
            return False
        return old == group.main[0] or self._committer.streak.leads(group, old)

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

    @property
    def streak(self) -> Streak:
        return self._committer.streak

    def last_group(self) -> Group | None:
        """The newest group of commits that this clone made."""
        return self._committer.last_group()

    # What it holds and held

    def _object(self, name: str) -> GitObject | None:
        """An object of Git, or a blob that is still in the log only."""
        found = self.store.get(name)
        if found is None:
            data = self._pending_blob(name)
            if data is not None:
                return GitObject("blob", data, name)
            found = self.store.get(name)  # it may have been committed since we looked, and let go by the log
        return found

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
                        if found is None:
                            continue  # without it there are other bytes behind this id
                        before = found.data
                    data = before + data
                contents[change.new] = data
                if change.new == oid:
                    return data
        return None

    def _blobs_of(self, path: str, since: str | None) -> set[str | None]:
        head = self.store.refs.head_commit()
        known = since if since is not None and self.store.get(since) else None
        return past_blobs(self._git, known, head, path) if head else set()

    def history(self, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step]:
        """The commits from behind `old` to `new`, parents before children, each with what it changed."""
        return walk(self._git, old, new, newest=newest)

    def told(self, new: str) -> Iterator[Step | TreeChange]:
        """The whole history of a commit, parents before children: each commit, then what it changed, read as one
        goes."""
        return walk_rows(self._git, None, new)

    def verify(self) -> list[str]:
        """What Git's own check says is damaged."""
        heads = [h for h in (self.store.refs.head_commit(), self.store.ref(LEDGER_REF)) if h]
        return self.store.verify(heads)

    def texts(self, *, history: bool = False) -> Iterator[Text]:
        """Every text that the working tree and the ledger hold, and with `history` all that Git keeps."""
        from memoranda.home.inventory import in_files, in_history, ledger_text  # here: only a scan looks through all

        seen: set[str] = set()
        yield from in_files(self.layout, seen)
        if history:
            yield from in_history(self._git, self.layout, seen)
            return
        for path, _, data in self.ledger_segments():
            yield ledger_text(path, data)
