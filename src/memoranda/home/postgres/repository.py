"""An open Home whose objects and refs are rows: `Holding` for any number of nodes at once.

Nothing of it is kept on this node but caches. A write is acknowledged when its transaction is committed. Writers of one
node who wait together share one transaction (`Underway`); it holds the row of the Home, so that writers of other nodes
wait for it, and every record is built on the newest one of all nodes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.errors import ComponentUnavailable, HomeFormatUnknown
from memoranda.home.create import first_files
from memoranda.home.draft import Appending, Change, Draft, Snapshot
from memoranda.home.durable import FileLock
from memoranda.home.erasing.erasures import Erasures
from memoranda.home.groups import Group
from memoranda.home.ledger import Pen
from memoranda.home.making import Making
from memoranda.home.marker import Replica, parse_marker
from memoranda.home.objects import read_tree
from memoranda.home.outside import Ours
from memoranda.home.postgres import erasing
from memoranda.home.postgres.contents import PostgresContents
from memoranda.home.postgres.heads import keep_heads
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.node import hold, known, let_go, node_layout, renew
from memoranda.home.postgres.places import Place
from memoranda.home.postgres.standing import BRANCH, State, still_here
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.tidings import Tidings
from memoranda.home.postgres.transactions import answered, sending
from memoranda.home.postgres.underway import FilesNow, Underway, abandon, outcome
from memoranda.home.record import Record
from memoranda.home.store import LEDGER_REF, RefMove
from memoranda.home.streak import Streak

if TYPE_CHECKING:
    from memoranda.home.erasing.erase import Blank, Erasure

_MOST = 64  # records of one transaction
_TOGETHER = frozenset(("remember", "journal"))  # operations after which others may join the same transaction
_ROUNDS = 8
_COUNT = "UPDATE memory_homes SET seq = %s WHERE home = %s AND seq = %s"


class PostgresRepository(PostgresContents):
    """An open Home in PostgreSQL. Threads may share it, and any number of nodes have it open.

    Args:
        store: its rows.
        place: what its row says.
        keys: its tenant's.
        context: gives the clock and the random source.
        folder: of this node and this Home, for caches.
        state: what holds in it, where that was read a moment ago.
    """

    def __init__(
        self, store: PostgresStore, place: Place, keys: SealedKeys, context: Context, folder: Path,
        state: State | None = None,
    ) -> None:  # fmt: skip
        self.store: PostgresStore = store
        self.layout = node_layout(folder)
        self.root = self.layout.root
        self.marker = parse_marker(place.marker.decode("utf-8"), place.name)
        self.keys: SealedKeys = keys
        self.ours = Ours(self.marker)
        self.replica = Replica(place.replica, place.suffix)
        self.erasures = Erasures(self.layout.own / "erased", keys, self.marker.id)
        self.worktree = FilesNow(self._building, lambda path: self._tree(self._state.main).get(path), self.blob)
        self.look_every = None
        self.stamp = lambda _found: {}
        self.refused = {}
        self._context = context
        self._pen = Pen(keys, self.marker.id, self.replica.id)
        self._trees = {}
        self._making = Making(store, self.replica.id, lambda _path: False)
        self._streak = Streak()
        self._group: Group | None = None
        self._tidings = Tidings(store, self.replica.id)
        self._turn = threading.Lock()
        self._waiting = 0
        self._counting = threading.Lock()
        self._open: Underway | None = None
        self._builder: int | None = None  # the thread that builds a record at this moment
        self._moved = False
        self._seeing = threading.RLock()
        self._shown = threading.local()  # whether this thread has been told a moment ago what holds
        self._hold: FileLock | None = hold(self.layout)
        try:
            if state is None or known(self.layout) != state.generation:
                self._generation = renew(store, self.layout, self.erasures)
                state = store.look()
            else:
                self._generation = state.generation
                store.saw(state)
            self._see(state)
            if self._state.main is None and self.read_only is None:
                self.write(context, self._first)
        except BaseException:
            self.close()
            raise

    def _first(self, _at: datetime) -> Draft:
        files = [Change(path, data) for path, data in first_files(self.marker).items()]
        return Draft("init", "Make this a Home", files, author=self._context.user)

    # What it is

    def head(self) -> str | None:
        return self._now().main

    # What holds now

    def _building(self) -> Underway | None:
        """The transaction in which this thread builds a record at this moment."""
        return self._open if self._builder == threading.get_ident() else None

    def _now(self) -> State:
        """What holds at this moment: one question to the database, and none to whoever writes at this moment."""
        if (group := self._building()) is not None:
            return group.state
        if getattr(self._shown, "to", False):
            return self._state
        state = self.store.look()
        self._see(state)
        return state

    @contextmanager
    def shown(self, state: State) -> Iterator[None]:
        """This request has asked already: until it ends, or this thread writes, that holds, or what is newer."""
        self.store.saw(state)
        self._see(state)
        self._shown.to = True
        try:
            yield
        finally:
            self._shown.to = False

    def as_written(self) -> AbstractContextManager[None]:
        return self.shown(self._state)

    def _see(self, state: State) -> None:
        """Takes note of what was read, and of what others have written and erased meanwhile."""
        still_here(state)
        self.keys.heard(state.lines)
        with self._seeing:
            if state.generation > self._generation:
                self._generation = renew(self.store, self.layout, self.erasures)
                self.store.undone()
                self._trees = {}
                self._making.forget()
                self._tidings.lose()
            before: State | None = getattr(self, "_state", None)
            if before is not None and state.seq > before.seq:
                self.store.foresee(before, state)
            self._tidings.follow(state)
            if before is None or state.mark >= before.mark:
                self._state = state

    def snapshot(self) -> Snapshot:
        """The commit that holds now; every record is in it. Who asks while he builds a record is first given that what
        was written before him in the same transaction is committed."""
        if (group := self._building()) is not None and group.records:
            self._part()
        state = self._now()
        return Snapshot(state.main, state.seq, ())

    @property
    def sequence(self) -> int:
        return self._state.seq

    def subscribe(self, word: str, listener: Callable[[Record], None]) -> None:
        self._tidings.listen(word, listener)

    def hear(self) -> int:
        self._now()
        return self._tidings.missed

    def last_group(self) -> Group | None:
        return self._group

    @property
    def streak(self) -> Streak:
        return self._streak

    def ahead(self, seq: int) -> list[Record] | None:
        return self._tidings.ahead(seq, self._state.seq)

    def let_go(self, seq: int) -> None:
        self._tidings.let_go(seq)

    def entries(self, folder: str) -> int:
        group = self._open
        found = self.store.get(f"{self._state.main}:{folder}") if self._state.main else None
        names = {name.decode("utf-8", "surrogateescape") for _, name, _ in read_tree(found.data)} if found else set()
        for path in group.blobs if group is not None else ():
            above, _, name = path.rpartition("/")
            if above == folder:
                names.add(name)
        return len(names)

    # Writing

    def writing_allowed(self) -> None:
        """HomeFormatUnknown when nothing may be written."""
        if (reason := self.read_only) is not None:
            raise HomeFormatUnknown(f"The Home {self.name} is read-only.", why=f"Because {reason}.", remedy="Upgrade.")

    def write(self, context: Context, build: Callable[[datetime], Draft]) -> Record:
        self.writing_allowed()
        self._shown.to = False
        with self._counting:
            self._waiting += 1
        self._turn.acquire()
        with self._counting:
            self._waiting -= 1
        try:
            try:
                record = self._built(self._open or self._begin(), context, build)
                group = self._open
                assert group is not None
            except BaseException:
                if self._open is not None and (self._waiting == 0 or not self._open.records):
                    self._end(self._open)
                raise
            with self.store.within(group.cursor):
                group.take(record)
            if record.op not in _TOGETHER or len(group.records) >= _MOST or self._waiting == 0:
                self._end(group)
        finally:
            self._turn.release()
        self._wait(group)
        return record

    def _wait(self, group: Underway) -> None:
        """Until the transaction is committed by who came after; by us, when it turns out that nobody did."""
        while not group.done.wait(0.02):
            if self._turn.acquire(blocking=False):
                try:
                    if self._open is group and self._waiting == 0:
                        self._end(group)
                finally:
                    self._turn.release()
        if group.error is not None:
            raise group.error

    def _begin(self) -> Underway:
        stack = ExitStack()
        try:
            cursor = stack.enter_context(self.store.writing())
            with answered():
                state = self.store.state(cursor, hold=True)
        except BaseException as error:
            abandon(stack, error)
            raise
        group = self._open = Underway(cursor, state, stack, self._tree_of(state), self.blob)
        with self.store.within(cursor):
            self._see(state)
        group.journal = self._tidings.journal
        return group

    def _tree_of(self, state: State) -> Callable[[str], str | None]:
        return lambda path: self._tree(state.main).get(path)

    def _built(self, group: Underway, context: Context, build: Callable[[datetime], Draft]) -> Record:
        for _ in range(_ROUNDS):
            self._moved, group.coming, self._builder = False, None, threading.get_ident()
            now = context.now()
            at = now if now.tzinfo is UTC else now.astimezone(UTC)
            try:
                with self.store.within(group.cursor):
                    draft = build(at)
                    if self._open is not None and not self._moved:
                        return self._open.record(draft, at, self._pen)
            finally:
                self._builder = None
            group = self._open or self._begin()
        raise ComponentUnavailable("Others write in this Home all the time.", remedy="Try again.")

    def _part(self) -> None:
        """Commits what was written before, and begins a transaction of his own for who builds at this moment."""
        group = self._open
        assert group is not None
        head = self._end(group)
        if group.error is not None:
            raise group.error
        fresh = self._begin()
        self.store.become(fresh.cursor)
        self._moved = fresh.state.main != head

    def _end(self, group: Underway) -> str | None:
        """Commits the transaction; the head that it made. What goes wrong, everybody is told who wrote in it."""
        self._open = None
        before, records = group.state, group.records
        head, ledger = before.main, before.ledger
        try:
            with answered():
                with self.store.within(group.cursor):
                    if records:
                        head, ledger = self._store(group)
                group.stack.close()
        except BaseException as error:  # noqa: BLE001 - told to everybody who wrote in it
            abandon(group.stack, error)
            self.store.undone()
            self._making.forget()
            group.error = outcome(self.store, error, ledger if ledger != before.ledger else None)
            if group.error is not None:
                group.done.set()
                return None
        if records:
            self._committed(group, head, ledger)
        group.done.set()
        return head

    def _store(self, group: Underway) -> tuple[str | None, str]:
        before, cursor = group.state, group.cursor
        if self._state_is_new(before):
            self._making.forget_trees()
        objects = self._making.begin()
        head = self._making.commits(before.main, group.records)
        ledger = self._making.ledger(before.ledger, group.records)
        moves = [RefMove(LEDGER_REF, before.ledger, ledger, "")]
        if head is not None and head != before.main:
            moves.append(RefMove(BRANCH, before.main, head, ""))
        with sending(cursor) as each_one:
            kept = self.store.send(cursor, list(objects.values()))
            self.store.send_moves(each_one, before, moves)
            keep_heads(cursor, self.store.home, group.records, self.ours, objects)
            each_one(_COUNT, (group.records[-1].seq, self.store.home, before.seq))
        kept()
        return head, ledger

    def _state_is_new(self, state: State) -> bool:
        """Whether somebody else wrote last, so that what is held of the trees is not of this state."""
        group = self._group
        return group is None or (group.main[1] or group.main[0], group.ledger[1]) != (state.main, state.ledger)

    def _committed(self, group: Underway, head: str | None, ledger: str | None) -> None:
        assert ledger is not None
        made, state = group.after(head, ledger)
        with self._seeing:
            self._making.end()
            self._streak.follow(made)
            self._group = made
            self.store.saw(state)
            if state.mark >= self._state.mark:
                self._state = state
            self._tidings.wrote(group.records, state, group.contents, group.blobs)

    def appending(self, path: str, data: bytes) -> Appending:
        group = self._open
        assert group is not None
        return group.appending(path, data)

    def erase(
        self, context: Context, blanks: Sequence[Blank], reason: str, testimony: Sequence[Mapping[str, Any]] = ()
    ) -> Erasure:
        self.writing_allowed()
        self._shown.to = False
        done = erasing.erase(self.store, self, self.keys, self._turn, context, blanks, reason, testimony)
        self._now()
        return done

    def rest(self) -> None:
        self.store.rest()

    def close(self) -> None:
        self.store.close()
        hold, self._hold = self._hold, None
        if hold is not None:
            let_go(hold)
