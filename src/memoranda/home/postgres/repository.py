"""An open Home whose objects and refs are rows: `Holding` for any number of nodes at once.

Nothing of it is kept on this node but caches. A write is acknowledged when its transaction is committed. Writers of one
node who wait together share one transaction (`_Group`); it holds the row of the Home, so that writers of other nodes
wait for it, and every record is built on the newest one of all nodes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.context import Context
from memoranda.errors import ComponentUnavailable, HomeFormatUnknown, MemorandaError
from memoranda.home.create import first_files
from memoranda.home.draft import Appending, Change, Draft, Snapshot
from memoranda.home.durable import FileLock
from memoranda.home.erasing.erasures import Erasures
from memoranda.home.groups import Group, Position
from memoranda.home.history import Step
from memoranda.home.holding import Holding
from memoranda.home.ledger import Pen
from memoranda.home.making import Making
from memoranda.home.marker import Replica, parse_marker
from memoranda.home.objects import GitObject, object_id, read_tree
from memoranda.home.outside import Found, Ours
from memoranda.home.postgres import copying, trees
from memoranda.home.postgres.heads import keep_heads, read_heads
from memoranda.home.postgres.keys import SealedKeys
from memoranda.home.postgres.node import hold, known, let_go, node_layout, renew
from memoranda.home.postgres.places import Place
from memoranda.home.postgres.store import BRANCH, Cursor, PostgresStore, State, answered, sending
from memoranda.home.postgres.tidings import Tidings
from memoranda.home.record import FileChange, Record
from memoranda.home.store import LEDGER_REF, RefMove, TreeChange
from memoranda.home.streak import Streak
from memoranda.home.writer import record_of
from memoranda.values import dataclass, field

if TYPE_CHECKING:
    from memoranda.home.erasing.erase import Blank, Erasure
    from memoranda.home.inventory import Text

_MOST = 64  # records of one transaction
_TOGETHER = frozenset(("remember", "journal"))  # operations after which others may join the same transaction
_ROUNDS = 8
_COUNT = "UPDATE memory_homes SET seq = %s WHERE home = %s AND seq = %s"


@dataclass(slots=True)
class _Group:
    """A transaction under way, and what was written in it."""

    cursor: Cursor
    state: State
    stack: ExitStack
    records: list[Record] = field(default_factory=list)
    blobs: dict[str, str | None] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class PostgresRepository(Holding):
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
        self.worktree = _Files(self)
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
        self._open: _Group | None = None
        self._builder: int | None = None  # the thread that builds a record at this moment
        self._coming: tuple[str, bytes, bytes, str] | None = None  # what `appending` foresaw
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

    @property
    def comparing(self) -> bool:
        return False

    def head(self) -> str | None:
        return self._now().main

    def branch(self) -> str | None:
        return BRANCH

    # What holds now

    def _now(self) -> State:
        """What holds at this moment: one question to the database, and none to whoever writes at this moment."""
        group = self._open
        if group is not None and self._builder == threading.get_ident():
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

    def _see(self, state: State) -> None:
        """Takes note of what was read, and of what others have written and erased meanwhile."""
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
        if self._open is not None and self._builder == threading.get_ident() and self._open.records:
            self._part()
        state = self._now()
        return Snapshot(state.main, state.seq, ())

    @property
    def sequence(self) -> int:
        return self._state.seq

    def settled(self) -> bool:
        return True

    def subscribe(self, word: str, listener: Callable[[Record], None]) -> None:
        self._tidings.listen(word, listener)

    def hear(self) -> int:
        self._now()
        return self._tidings.missed

    def make_durable(self) -> None:
        """What can be read is committed."""

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

    # What it holds and held

    def history(self, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step]:
        return trees.walk(self.store.get_all, old, new, newest)

    def told(self, new: str) -> Iterator[Step | TreeChange]:
        from memoranda.home.git import Git
        from memoranda.home.history import walk_rows

        with copying.objects_in_folder(self.store, self.layout) as layout:
            git = Git(layout)
            try:
                yield from walk_rows(git, None, new)
            finally:
                git.close()

    def verify(self) -> list[str]:
        from memoranda.home.git import Git

        state = self._now()
        with copying.objects_in_folder(self.store, self.layout) as layout:
            git = Git(layout)
            try:
                return git.check(list(state.refs.values()))
            finally:
                git.close()

    @contextmanager
    def whole(self) -> Iterator[Path]:
        with copying.objects_in_folder(self.store, self.layout) as layout:
            yield layout.root

    def texts(self, *, history: bool = False) -> Iterator[Text]:
        from memoranda.home.git import Git
        from memoranda.home.inventory import Text, in_history, ledger_text

        head, seen = self.head(), set[str]()
        for path, blob in self.store.files(head) if head else ():
            shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield Text("name", shown, shown)
            seen.add(blob)
            if (data := self.blob(blob)) is not None:
                yield Text("file", shown, data.decode("utf-8", "replace"))
        if not history:
            for path, _, data in self.ledger_segments():
                yield ledger_text(path, data)
            return
        with copying.objects_in_folder(self.store, self.layout) as layout:
            git = Git(layout)
            try:
                yield from in_history(git, layout, seen)
            finally:
                git.close()

    def guarded(self, blobs: Iterable[str]) -> Mapping[str, bytes]:
        wanted = list(dict.fromkeys(blobs))
        found = read_heads(self.store, wanted) if wanted else {}
        if missing := [blob for blob in wanted if blob not in found]:
            found |= {item.oid: item.data for item in self.store.get_all(missing) if item is not None}
        return found

    # The ledger

    def keep_ledger(self) -> str | None:
        """Nobody can cut it who is not the service: its refs are rows."""
        return None

    @property
    def ledger_lost(self) -> str | None:
        return None

    # Outside edits: there are no files that anybody could edit

    def look(self, context: Context) -> list[Found]:  # noqa: ARG002
        return []

    def sight(self, context: Context) -> tuple[list[Found], Snapshot | None]:  # noqa: ARG002
        return [], self.snapshot()

    def watch(self) -> None:
        """There is nothing to watch: what others write is seen at the next question."""

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
            self._take(group, record)
            if record.op not in _TOGETHER or len(group.records) >= _MOST or self._waiting == 0:
                self._end(group)
        finally:
            self._turn.release()
        self._wait(group)
        return record

    def _wait(self, group: _Group) -> None:
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

    def _begin(self) -> _Group:
        stack = ExitStack()
        try:
            cursor = stack.enter_context(self.store.writing())
            with answered():
                state = self.store.state(cursor, hold=True)
        except BaseException as error:
            _abandon(stack, error)
            raise
        self._open = _Group(cursor, state, stack)
        with self.store.within(cursor):
            self._see(state)
        return self._open

    def _built(self, group: _Group, context: Context, build: Callable[[datetime], Draft]) -> Record:
        for _ in range(_ROUNDS):
            self._moved, self._coming, self._builder = False, None, threading.get_ident()
            now = context.now()
            at = now if now.tzinfo is UTC else now.astimezone(UTC)
            try:
                with self.store.within(group.cursor):
                    draft = build(at)
                    if self._open is not None and not self._moved:
                        return self._record(self._open, draft, at)
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
        self.store._own.cursor = fresh.cursor
        self._moved = fresh.state.main != head
        self._coming = None

    def _record(self, group: _Group, draft: Draft, at: datetime) -> Record:
        files: list[FileChange] = []
        blobs: dict[str, str | None] = {}
        for change in draft.changes:
            old, new = self._pair(group, change)
            blobs[change.path] = new
            appended = change.appended and old is not None
            files.append(FileChange(change.path, old, new, change.data or b"", appended))
        seq = group.state.seq + len(group.records) + 1
        return record_of(draft, seq, at, files, blobs, self._pen)

    def _pair(self, group: _Group, change: Change) -> tuple[str | None, str | None]:
        """The blobs of a path before and after a change."""
        old = self._blob_now(group, change.path)
        if change.data is None:
            return old, None
        if not change.appended:
            return old, change.blob or object_id("blob", change.data)
        coming = self._coming
        if coming is not None and coming[:2] == (change.path, change.data):
            return old, coming[3]
        return old, object_id("blob", self._content(group, change.path) + change.data)

    def _blob_now(self, group: _Group, path: str) -> str | None:
        return group.blobs[path] if path in group.blobs else self._tree(group.state.main).get(path)

    def _content(self, group: _Group, path: str) -> bytes:
        """The bytes of a file as they are at this moment of the transaction."""
        if path in group.contents:
            return group.contents[path]
        blob = self._blob_now(group, path)
        held = self._tidings.journal
        if held is not None and held[:2] == (path, blob):
            return held[2]
        return (self.blob(blob) or b"") if blob is not None else b""

    def _take(self, group: _Group, record: Record) -> None:
        coming = self._coming
        for change in record.changes:
            if change.appended or (coming is not None and coming[0] == change.path):
                before = b"" if change.old is None else self._content_before(group, change)
                group.contents[change.path] = before + change.data
            group.blobs[change.path] = change.new
        group.records.append(record)
        self._coming = None

    def _content_before(self, group: _Group, change: FileChange) -> bytes:
        if self._coming is not None and self._coming[0] == change.path:
            return self._coming[2]
        with self.store.within(group.cursor):
            return self._content(group, change.path)

    def _end(self, group: _Group) -> str | None:
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
            _abandon(group.stack, error)
            self.store.undone()
            self._making.forget()
            group.error = self._outcome(error, ledger if ledger != before.ledger else None)
            if group.error is not None:
                group.done.set()
                return None
        if records:
            self._committed(group, head, ledger)
        group.done.set()
        return head

    def _store(self, group: _Group) -> tuple[str | None, str]:
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

    def _outcome(self, error: BaseException, ledger: str | None) -> BaseException | None:
        """What became of a transaction whose end nobody told: None when it is committed after all.

        `ledger` is the commit that it made of the ledger, None when it did not come to its end. As long as it holds the
        Home it may yet be committed: the server may have the word already, and stand still.
        """
        if ledger is None or not isinstance(error, MemorandaError):
            return error
        try:
            with self.store.writing() as cursor:
                self.store.state(cursor, hold=True)
                with self.store.within(cursor):
                    return None if self.store.get_all([ledger])[0] is not None else error
        except MemorandaError:
            return ComponentUnavailable(
                "It is not known whether this was written.",
                why="The database went away while it was being committed.",
                remedy="Look for it before you repeat it.",
            )

    def _committed(self, group: _Group, head: str | None, ledger: str | None) -> None:
        before, last = group.state, group.records[-1]
        assert ledger is not None
        made = Group(
            Position(0, 0, before.seq), Position(0, 0, last.seq), BRANCH,
            (before.main, head if head != before.main else None), (before.ledger, ledger),
        )  # fmt: skip
        refs = {**before.refs, LEDGER_REF: ledger} | ({BRANCH: head} if head is not None else {})
        state = before._replace(seq=last.seq, refs=refs)
        with self._seeing:
            self._making.end()
            self._streak.follow(made)
            self._group = made
            self.store.saw(state)
            if state.mark >= self._state.mark:
                self._state = state
            self._tidings.wrote(group.records, state, group.contents, group.blobs)

    def may_append(self, path: str) -> bool:  # noqa: ARG002
        return True

    def is_being_written(self, path: str) -> bool:  # noqa: ARG002
        return False

    def appending(self, path: str, data: bytes) -> Appending:
        group = self._open
        assert group is not None
        before = self._content(group, path)
        blob = object_id("blob", before + data)
        self._coming = (path, data, before, blob)
        return Appending(Change(path, data, appended=True), blob, before.count(b"\n") + 1)

    def flush(self, *, wait: bool = True) -> str | None:  # noqa: ARG002
        return None

    def erase(
        self, context: Context, blanks: Sequence[Blank], reason: str, testimony: Sequence[Mapping[str, Any]] = ()
    ) -> Erasure:
        self.writing_allowed()
        self._shown.to = False
        with self._turn:
            done = copying.erase(self.store, self, context, blanks, reason, testimony)
        self._now()
        return done

    def _object(self, name: str) -> GitObject | None:
        return self.store.get(name)

    def close(self) -> None:
        self.store.close()
        hold, self._hold = self._hold, None
        if hold is not None:
            let_go(hold)


class _Files:
    """The files of a Home that has none: what a path holds now."""

    def __init__(self, home: PostgresRepository) -> None:
        self._home = home

    def _blob(self, name: str) -> str | None:
        home = self._home
        group = home._open
        if group is not None and home._builder == threading.get_ident():
            return home._blob_now(group, name)
        return home._tree(home._state.main).get(name)

    def read(self, name: str) -> bytes | None:
        blob = self._blob(name)
        return None if blob is None else self._home.blob(blob)

    def size(self, name: str) -> int:
        home = self._home
        group = home._open
        if group is not None and home._builder == threading.get_ident():
            return len(home._content(group, name))
        return len(self.read(name) or b"")

    def exists(self, name: str) -> bool:
        return self._blob(name) is not None


def _abandon(stack: ExitStack, error: BaseException) -> None:
    """Ends a transaction that shall not be committed."""
    try:
        stack.__exit__(type(error), error, error.__traceback__)
    except BaseException as other:
        if not isinstance(other, Exception):
            raise
