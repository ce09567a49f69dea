"""The Homes of one node: opened when somebody asks, let go of when nobody has for a while.

Where they lie a `Shelf` knows. In folders, each tenant has one of Homes below the data folder, one Home for each
project and one for what belongs to the tenant as a whole, and, outside of all Homes, a folder of keys of its own. The
folders bear hashes, so that no name climbs, and no two names that differ in a letter's case meet. A Home is made at its
first write.
"""

from __future__ import annotations

import resource
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Literal

from memoranda.context import Context
from memoranda.engines.shelves import DiskShelf, Shelf, Sight
from memoranda.errors import MemorandaError
from memoranda.home.keys import Keys
from memoranda.operations.open_home import OpenHome
from memoranda.operations.space import Space
from memoranda.values import dataclass, field

MOST = 64  # Homes that stay open at once, when nobody uses them: 3 to 6 MB each
IDLE = timedelta(minutes=10)
_TRIM = 30.0  # seconds between two looks at the size of a node's caches


@dataclass(slots=True)
class _Entry:
    """One Home of the pool. `users` counts who has it in hand or waits for it; `lock` is held to open and to close."""

    tenant: str
    project: str | None
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False)
    space: Space | None = None
    users: int = 0
    last: datetime | None = None
    rests: bool = False  # it is open, and holds little in memory


class Homes:
    """The pool of the Homes below `folder`. Threads share it; `context` gives the clock and the random source.

    At most `most` Homes stay open that nobody uses, fewer where the system lets a process open few files, and none for
    longer than `idle`; those in use are not counted. Behind them as many rest as the shelf says (`Shelf.resting`): they
    are open and have given back their memory, so that to be asked again costs them a fraction of an opening.
    """

    def __init__(
        self, folder: Path, context: Context, *, most: int = MOST, idle: timedelta = IDLE, shelf: Shelf | None = None
    ) -> None:
        self.shelf: Shelf = DiskShelf(folder) if shelf is None else shelf
        self.folder = self.shelf.folder
        self._context = context
        fitting = resource.getrlimit(resource.RLIMIT_NOFILE)[0] * 3 // 4 // self.shelf.files
        self._most = min(most, max(4, fitting))
        self._resting = min(self.shelf.resting, max(0, fitting - self._most))
        self._idle = idle
        self._entries: OrderedDict[tuple[str, str | None], _Entry] = OrderedDict()
        self._lock = threading.Condition(threading.Lock())
        self._surplus = threading.Event()
        self._awake = 0  # of the entries, those that do not rest
        self._closed = False
        self._keeper: threading.Thread | None = None
        self.trouble: MemorandaError | OSError | None = None  # why a Home could not be closed as it should, the last

    # Where they lie

    def keys_of(self, tenant: str) -> Keys:
        """The keys of a tenant, which no other tenant's Homes are made with."""
        return self.shelf.keys_of(tenant)

    def root_of(self, tenant: str, project: str | None) -> Path:
        """Where a Home lies: that of a project, or of the tenant as a whole."""
        return self.shelf.root_of(tenant, project)

    def has(self, tenant: str) -> bool:
        """Whether any Home of this tenant lies here, open or not."""
        return self.shelf.has(tenant)

    # Using them

    @contextmanager
    def reading(
        self, context: Context, tenant: str, project: str, places: Iterable[str], *, write: str | None = None
    ) -> Iterator[Space]:
        """The Homes of a project and of its tenant as a reader of these places has them; those that exist.

        With `write`, `project` or `tenant`, that one is the first of them, and is made when it is missing. Nothing is
        open here for whom there is no Home: `homes()` is empty then.
        """
        given = frozenset(places)
        order = [project, None] if write != "tenant" else [None, project]
        with ExitStack() as stack:
            seen = []
            sight = self.shelf.sight(tenant, order)
            for at, of in enumerate(order):
                make = write is not None and at == 0
                home, made = stack.enter_context(self._open(tenant, of, sight, make=make))
                if home is not None:
                    stack.enter_context(sight.shown(home, of))
                    limited = home.seen_by(given, context.keep_days)
                    limited.made = made
                    stack.callback(limited.leave)
                    seen.append(limited)
            yield Space(context, self.keys_of(tenant), None, None, given=seen)

    @contextmanager
    def whole(self, tenant: str, project: str | None) -> Iterator[OpenHome | None]:
        """A Home with everything in it, for what concerns all of it; None when there is none."""
        with self._open(tenant, project, self.shelf.sight(tenant, [project]), make=False) as (home, _):
            yield home

    @contextmanager
    def _open(
        self, tenant: str, project: str | None, sight: Sight, *, make: bool
    ) -> Iterator[tuple[OpenHome | None, int]]:
        """With the Home, how often its indexes had been made anew when it was asked for; it may be made for it."""
        there = sight.shows(project)
        if not (make or there):
            yield None, 0
            return
        entry = self._taken(tenant, project)
        try:
            before = entry.space
            made = 0 if before is None else before.homes()[0].indexes.made
            with entry.lock:
                if entry.space is None:
                    entry.space = self.shelf.open(self._context, tenant, project, sight, make=make)
                space = entry.space
            yield (None, 0) if space is None else (space.homes()[0], made)
        finally:
            self._left(entry)

    def _taken(self, tenant: str, project: str | None) -> _Entry:
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool of Homes is closed")
            entry = self._entries.get((tenant, project))
            if entry is None:
                entry = self._entries[tenant, project] = _Entry(tenant, project)
                self._awake += 1
            entry.users += 1
            self._awake += entry.rests
            entry.rests = False
            self._entries.move_to_end((tenant, project))
            return entry

    def _left(self, entry: _Entry) -> None:
        with self._lock:
            entry.users -= 1
            entry.last = self._context.now()
            self._lock.notify_all()
            if entry.space is None and not entry.users:
                self._forget(entry)  # there is no such Home, and who asks for it leaves nothing
            if self._entries and not self._closed:
                self._keep(surplus=self._awake > self._most)

    # Letting go of them

    def _keep(self, *, surplus: bool) -> None:
        """Starts or wakes the thread that closes what nobody uses: no request waits for a closing."""
        if surplus:
            self._surplus.set()
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._run, name="memoranda-homes", daemon=True)
            self._keeper.start()

    def _run(self) -> None:
        # What works on many numbers does it many times faster with it, and uses it only where it is there already: a
        # single command would wait for it longer than it gains.
        import_module("numpy")
        due = 0.0
        while not self._closed:
            self._surplus.wait(min(_TRIM, self._idle.total_seconds() / 4))
            self._surplus.clear()
            if not self._closed:
                self.tidy()
                if time.monotonic() >= due:
                    self._trim_or_tell()
                    due = time.monotonic() + _TRIM

    def _trim_or_tell(self) -> None:
        try:
            self.trim()
        except OSError as error:
            self.trouble = error

    def trim(self) -> None:
        """Keeps the node's caches within their bound: of Homes that are open without a user, those go that were not
        used for longest; of one in use nothing."""
        over = self.shelf.trim()
        if over <= 0:
            return
        with self._lock:
            idle = [entry for entry in self._entries.values() if not entry.users]
        for entry in idle:
            if over <= 0:
                break
            size = self.shelf.size_of(entry.tenant, entry.project)
            if self._let_go(entry):
                over -= size
        self.shelf.trim()

    def tidy(self) -> int:
        """Closes what is too much or was not used for long, and lays to rest what is not among the last; returns how
        many were closed."""
        now = self._context.now()
        with self._lock:
            idle = [entry for entry in self._entries.values() if not entry.users]
            surplus = max(0, len(self._entries) - self._most - self._resting)
            old = [e for n, e in enumerate(idle) if n < surplus or (e.last is not None and now - e.last >= self._idle)]
        closed = sum(self._let_go(entry) for entry in old)
        with self._lock:
            awake = [entry for entry in self._entries.values() if not (entry.users or entry.rests)]
            tired = awake[: max(0, self._awake - self._most)]
        for entry in tired:
            self._lay_to_rest(entry)
        return closed

    def _lay_to_rest(self, entry: _Entry) -> None:
        with entry.lock:
            with self._lock:
                if entry.users or entry.rests or entry.space is None:
                    return
                entry.rests = True
                self._awake -= 1
            try:
                entry.space.homes()[0].rest()
            except (MemorandaError, OSError) as error:
                self.trouble = error

    def _let_go(self, entry: _Entry) -> bool:
        """Closes one Home, unless somebody has taken it up again; its records are committed first."""
        with entry.lock:
            with self._lock:
                if entry.users:
                    return False
                space, entry.space = entry.space, None
            if space is not None:
                try:
                    space.homes()[0].close()  # not the space: what it would load by itself nobody loads here
                except (MemorandaError, OSError) as error:
                    self.trouble = error  # what is not committed stays in its log, and is when it is opened again
            with self._lock:
                if not entry.users:
                    self._forget(entry)
        return space is not None

    def _forget(self, entry: _Entry) -> None:
        """Two may let go of one Home at once, and a third have opened it again between them: that one stays known."""
        if self._entries.get((entry.tenant, entry.project)) is entry:
            del self._entries[entry.tenant, entry.project]
            self._awake -= not entry.rests

    def close(self) -> None:
        """Commits and closes every Home; waits for who is still in one."""
        with self._lock:
            self._closed = True
            self._surplus.set()
            self._lock.wait_for(lambda: not any(entry.users for entry in self._entries.values()))
            entries = list(self._entries.values())
        if self._keeper is not None:
            self._keeper.join()
        for entry in entries:
            self._let_go(entry)
        self.shelf.close()

    def state(self) -> tuple[Literal["ok", "degraded", "unavailable"], str]:
        """How the pool is, and what is wrong with it, in words that name no Home."""
        if self._closed:
            return "unavailable", "the service is ending"
        if trouble := self.shelf.trouble():
            return "unavailable", trouble
        if self.trouble is not None:
            return "degraded", "a Home could not be closed as it should; what it holds is safe in its log"
        return "ok", self.shelf.making()

    def __len__(self) -> int:
        """How many are open."""
        with self._lock:
            return sum(entry.space is not None for entry in self._entries.values())

    def __enter__(self) -> Homes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
