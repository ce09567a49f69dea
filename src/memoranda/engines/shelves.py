"""Where the Homes of a service lie: in folders of this machine, or in PostgreSQL for all nodes together."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from memoranda.context import Context
from memoranda.engines.contract import Isolation
from memoranda.errors import ComponentUnavailable, HomeBusy, HomeNotFound
from memoranda.home.create import create, finish
from memoranda.home.durable import FileLock
from memoranda.home.keys import Keys
from memoranda.home.layout import is_home
from memoranda.operations.space import Space

if TYPE_CHECKING:
    from memoranda.home.postgres.keys import SealedKeys
    from memoranda.home.postgres.moving import Moved, Target
    from memoranda.home.postgres.places import Place
    from memoranda.home.postgres.places import Sight as Told
    from memoranda.home.postgres.standing import State
    from memoranda.home.postgres.store import PostgresStore
    from memoranda.index.catchup import Progress
    from memoranda.operations.open_home import OpenHome
    from memoranda.state.database import Database

LOG = logging.getLogger("memoranda.homes")
CACHES = 20 << 30  # bytes of a node's caches of Homes in PostgreSQL: about ten million notes
RESTING = 1024  # Homes of PostgreSQL: some 0.8 MB each
_USED = "in-use.lock"
_TELL = 5.0  # seconds between two lines of the log about one Home
_LOOK = timedelta(seconds=5)  # what somebody edits in the files of a Home is noticed within that time


class Sight(Protocol):
    """What a request was told at its beginning of the Homes that it is about."""

    def shows(self, project: str | None) -> bool:
        """Whether there is such a Home, or may be one. ComponentUnavailable: it was carried elsewhere."""

    def shown(self, home: OpenHome, project: str | None) -> AbstractContextManager[None]:
        """Until the end, the Home need not be asked again what holds in it."""


class Unseen:
    """Implements `Sight`: nobody was asked."""

    def shows(self, project: str | None) -> bool:  # noqa: ARG002
        return True

    def shown(self, home: OpenHome, project: str | None) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()


class Shelf(Protocol):
    """Knows where the Homes of tenants and projects lie, and opens them."""

    folder: Path  # of this node
    isolation: Isolation  # what keeps tenants apart there
    files: int  # that an open Home of it needs
    resting: int  # Homes that may stay open beside those that were used last, with little in memory

    def keys_of(self, tenant: str) -> Keys:
        """The keys of a tenant, which no other tenant's Homes are made with."""

    def root_of(self, tenant: str, project: str | None) -> Path:
        """The folder of a Home on this node: that of a project, or of the tenant as a whole."""

    def has(self, tenant: str) -> bool:
        """Whether there is any Home of this tenant, open or not."""

    def sight(self, tenant: str, projects: Sequence[str | None]) -> Sight:
        """What there is of these Homes, at the beginning of a request."""

    def open(self, context: Context, tenant: str, project: str | None, sight: Sight, *, make: bool) -> Space | None:
        """A space with one Home in it; None when there is none, and it shall not be made."""

    def trim(self) -> int:
        """Keeps what this node could make again within its bound; the bytes above it, of Homes that are open."""

    def size_of(self, tenant: str, project: str | None) -> int:
        """The bytes that this node keeps of a Home and could make again."""

    def making(self) -> str:
        """What is being made again at this moment, in words that name no Home; empty when nothing is."""

    def made_of(self) -> tuple[int, int, int]:
        """Of how many Homes something is being made again at this moment, and what is done of how much."""

    def tidy(self, tenant: str) -> int:
        """What keeps a tenant's Homes small that grew for long; how many objects were moved."""

    def trouble(self) -> str:
        """Why nothing can be written there, in words that name no Home; empty when it can."""

    def close(self) -> None:
        """No Home of it is open any more."""


class DiskShelf:
    """Implements `Shelf` below a folder."""

    isolation: Isolation = "logical"  # this program alone keeps them apart
    files = 26
    resting = 0  # each has threads and a process of Git

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._keys: dict[str, Keys] = {}
        self._lock = threading.Lock()
        self._used: FileLock | None = None  # shared by all processes that have a Home open here

    def keys_of(self, tenant: str) -> Keys:
        with self._lock:
            return self._keys.setdefault(tenant, Keys(self.folder / "keys" / named(tenant)))

    def root_of(self, tenant: str, project: str | None) -> Path:
        return _below(self.folder / "homes" / named(tenant), project)

    def has(self, tenant: str) -> bool:
        return self.root_of(tenant, None).parent.exists()

    def sight(self, tenant: str, projects: Sequence[str | None]) -> Sight:  # noqa: ARG002
        return Unseen()

    def open(self, context: Context, tenant: str, project: str | None, sight: Sight, *, make: bool) -> Space | None:  # noqa: ARG002
        root, keys = self.root_of(tenant, project), self.keys_of(tenant)
        if not is_home(root) and not make:
            return None
        self._use()
        if not is_home(root):
            made = create(root, context, name=name_of(tenant, project))
            finish(made.root, context, keys)
        space = Space(context, keys, root, None)
        try:
            home = space.homes()[0]
            home.repository.look_every = _LOOK  # before the first look, so that the request does not look once more
            home.refresh(context)
        except BaseException:
            space.homes()[0].close()
            raise
        return space

    def _use(self) -> None:
        """Says to `alone` that Homes are open here; ComponentUnavailable while they are being moved."""
        with self._lock:
            if self._used is None:
                lock = FileLock(self.folder / _USED)
                if not lock.try_share():
                    lock.close()
                    raise ComponentUnavailable(
                        "These memories are being moved.", remedy="Try again when `memoranda move` has finished."
                    )
                self._used = lock

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No service has a Home open here, nor opens one until the end; HomeBusy when one has."""
        lock = FileLock(self.folder / _USED)
        try:
            if not lock.try_acquire():
                raise HomeBusy(
                    "A service has Homes open in these folders.", why=f"It holds the lock {self.folder / _USED}.",
                    remedy="Stop it, then move them.",
                )  # fmt: skip
            yield
        finally:
            lock.close()

    def trim(self) -> int:
        """Each Home has its own indexes, as large as it is."""
        return 0

    def size_of(self, tenant: str, project: str | None) -> int:  # noqa: ARG002
        return 0

    def making(self) -> str:
        return ""

    def made_of(self) -> tuple[int, int, int]:
        return 0, 0, 0

    def tidy(self, tenant: str) -> int:  # noqa: ARG002
        """Their own processes do it, while they commit."""
        return 0

    def trouble(self) -> str:
        there = self.folder if self.folder.exists() else self.folder.parent
        return "" if os.access(there, os.W_OK) else "nothing can be written to the data folder"

    def close(self) -> None:
        with self._lock:
            if self._used is not None:
                self._used.close()
                self._used = None


class _Told:
    """Implements `Sight` by what one question told."""

    def __init__(self, shelf: PostgresShelf, sights: Mapping[str, Told]) -> None:
        self._shelf = shelf
        self.sights = sights

    def shows(self, project: str | None) -> bool:
        from memoranda.home.postgres.standing import still_here

        sight = self.sights.get(self._shelf.place_of(project))
        return sight is not None and not still_here(sight.state).moved

    def shown(self, home: OpenHome, project: str | None) -> AbstractContextManager[None]:
        from memoranda.home.postgres.repository import PostgresRepository

        sight, repository = self.sights.get(self._shelf.place_of(project)), home.repository
        if sight is None or not isinstance(repository, PostgresRepository):
            return nullcontext()
        return repository.shown(sight.state) if repository.store.home == sight.place.home else nullcontext()


class PostgresShelf:
    """Implements `Shelf` in PostgreSQL; `folder` holds this node's caches, which may be deleted at any moment.

    Args:
        secrets: by the first the tenants' keys are sealed, by each they open; the same on every node.
        most: bytes that the caches of this node may take on its disk; those of Homes that are open stay.
    """

    isolation: Isolation = "backend"  # row-level security keeps them apart
    files = 15
    resting = RESTING

    def __init__(self, folder: Path, database: Database, secrets: tuple[bytes, ...], *, most: int = CACHES) -> None:
        self.folder = folder.absolute()
        self._most = most
        self._making: dict[object, tuple[str, int, int]] = {}  # what of which Home is under way
        self._database = database
        self._secrets = secrets
        self._keys: dict[str, SealedKeys] = {}
        self._lock = threading.Lock()

    def keys_of(self, tenant: str) -> SealedKeys:
        from memoranda.home.postgres.keys import SealedKeys

        with self._lock:
            if tenant not in self._keys:
                folder = self.folder / "keys" / named(tenant)
                self._keys[tenant] = SealedKeys(self._store(tenant, 0), self._secrets, folder)
            return self._keys[tenant]

    def _store(self, tenant: str, home: int) -> PostgresStore:
        from memoranda.home.postgres.store import PostgresStore

        return PostgresStore(self._database, tenant, home)

    def root_of(self, tenant: str, project: str | None) -> Path:
        return _below(self.folder / "caches" / named(tenant), project)

    def has(self, tenant: str) -> bool:
        from memoranda.home.postgres.places import places

        return bool(places(self._store(tenant, 0)))

    def place_of(self, project: str | None) -> str:
        """What the row of a Home calls its place."""
        return "tenant" if project is None else f"project:{project}"

    def sight(self, tenant: str, projects: Sequence[str | None]) -> Sight:
        from memoranda.home.postgres.places import sights

        return _Told(self, sights(self._store(tenant, 0), [self.place_of(project) for project in projects]))

    def open(self, context: Context, tenant: str, project: str | None, sight: Sight, *, make: bool) -> Space | None:
        from memoranda.home.postgres.places import COMING, make_place

        where = self.place_of(project)
        told = sight.sights.get(where) if isinstance(sight, _Told) else None
        if told is None and not make:
            return None
        place = (
            make_place(self._store(tenant, 0), context, where, name_of(tenant, project)) if told is None else told.place
        )
        if place.state == COMING:
            raise ComponentUnavailable(
                "These memories are being moved here.", remedy="Try again when `memoranda move` has finished."
            )
        return self._space(context, tenant, project, place, told.state if told is not None else None)

    def _space(self, context: Context, tenant: str, project: str | None, place: Place, state: State | None) -> Space:
        from memoranda.home.postgres.repository import PostgresRepository

        keys, root = self.keys_of(tenant), self.root_of(tenant, project)
        repository = PostgresRepository(self._store(tenant, place.home), place, keys, context, root, state)
        told = _Progress(self._making, repository)
        space = Space(context, keys, None, None, progress=told.tell)
        try:
            home = space.take(root, place.id, lambda _admit: repository)
            with nullcontext() if state is None else repository.shown(state):
                home.refresh(context)
        except BaseException:
            repository.close()
            raise
        finally:
            told.end()
        return Space(context, keys, None, None, given=[home])

    def target_of(self, tenant: str, project: str | None) -> Target:
        """Where a Home lies, or will lie, for whoever carries it."""
        from memoranda.home.postgres.moving import Target

        node = self.root_of(tenant, project)
        return Target(self._store(tenant, 0), self.keys_of(tenant), self.place_of(project), node)

    def trim(self) -> int:
        from memoranda.home.postgres.node import trim

        caches = self.folder / "caches"
        return trim([*caches.glob("*/tenant"), *caches.glob("*/projects/*")], self._most)

    def size_of(self, tenant: str, project: str | None) -> int:
        from memoranda.home.postgres.node import size_of

        return size_of(self.root_of(tenant, project))

    def making(self) -> str:
        under_way = list(self._making.values())
        told = ", ".join(f"{what} {done:,} of {everything:,}" for what, done, everything in under_way[:3])
        return f"caches of {len(under_way)} Homes are being made: {told}" if under_way else ""

    def made_of(self) -> tuple[int, int, int]:
        under_way = list(self._making.values())
        return len(under_way), sum(done for _, done, _ in under_way), sum(everything for *_, everything in under_way)

    def tidy(self, tenant: str) -> int:
        from memoranda.home.postgres.places import READY, places

        found = places(self._store(tenant, 0))
        return sum(self._store(tenant, place.home).join() for place in found if place.state == READY)

    def trouble(self) -> str:
        try:
            self._database.ready()
        except ComponentUnavailable:
            return "the database cannot be reached"
        return ""

    def close(self) -> None:
        """Nothing is held."""

    def alone(self) -> None:
        """HomeBusy when other nodes of the service are connected to the database."""
        if (count := self._database.others()) > 0:
            raise HomeBusy(
                "Other nodes of the service are running.", why=f"They have {count} connection(s) to the database.",
                remedy="Stop every node, then move them.",
            )  # fmt: skip


class _Progress:
    """Tells of one Home whose caches are being made, where many know nothing of it: in the log, and to who asks."""

    def __init__(self, under_way: dict[object, tuple[str, int, int]], of: object) -> None:
        self._under_way, self._of = under_way, of
        self._told = time.monotonic()

    def tell(self, what: str, done: int, everything: int) -> None:
        self._under_way[self._of] = what, done, everything
        if time.monotonic() - self._told >= _TELL:
            self._told = time.monotonic()
            LOG.info("the caches of a Home are being made: %s %d of %d", what, done, everything)

    def end(self) -> None:
        self._under_way.pop(self._of, None)


def carry(
    context: Context, shelf: PostgresShelf, tenant: str, project: str | None, *,
    to: Literal["postgresql", "folders"], progress: Progress | None = None,
) -> Moved:  # fmt: skip
    """Carries a Home between the folders of this machine and PostgreSQL.

    HomeBusy while a service has Homes open in the folders, or nodes are connected to the database; other errors: see
    `home.postgres.moving`.
    """
    from memoranda.home.postgres.moving import to_folder, to_postgres

    folders = DiskShelf(shelf.folder.with_name("homes"))
    root, keys, target = folders.root_of(tenant, project), folders.keys_of(tenant), shelf.target_of(tenant, project)
    if to == "postgresql" and not is_home(root):
        raise HomeNotFound(
            "There is no such Home in the folders.", why=f"Nothing lies in {root}.",
            remedy="Name the tenant and the project as the service does, and the data folder.",
        )  # fmt: skip
    shelf.alone()
    with folders.alone():
        if to == "postgresql":
            return to_postgres(context, root, keys, target, progress)
        root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return to_folder(root, keys, target)


def name_of(tenant: str, project: str | None) -> str:
    """What a Home is called."""
    return f"tenant-{tenant}" if project is None else f"project-{project}"


def _below(tenant: Path, project: str | None) -> Path:
    return tenant / "tenant" if project is None else tenant / "projects" / named(project)


def named(name: str) -> str:
    """The folder of a name: readable as far as it is plain, and one of its own for each name."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24]
    return f"{plain or 'x'}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"
