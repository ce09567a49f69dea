"""The Homes that one caller has open: the nearest is written, all are recalled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.context import Context
from memoranda.errors import Erased, HomeNotFound, MemorandaError, NotFound, Unavailable
from memoranda.home.holding import Holding
from memoranda.home.keys import Keys
from memoranda.home.layout import is_home
from memoranda.home.marker import read_marker
from memoranda.home.outside import Found
from memoranda.home.repository import Admit, Repository
from memoranda.index.catchup import Progress
from memoranda.index.indexes import Indexes
from memoranda.index.testimony import Review, vouched
from memoranda.notes.pointers import Pointer
from memoranda.operations.open_home import Duties, OpenHome
from memoranda.values import replace

if TYPE_CHECKING:
    from memoranda.home.comparison import Comparison
    from memoranda.index.endpoints import Endpoint
    from memoranda.operations.sessions import Met
    from memoranda.trust.signing import Signing
    from memoranda.trust.withdrawn import Withdrawn


class Space:
    """Open Homes in the order of their nearness.

    Args:
        context: gives clock and random source to what is opened.
        keys: the installation's keys.
        nearest: the root of the nearest Home, None when there is none.
        personal: where the person's own Home lies; made at the first write when no other Home is near.
        progress: told of long work as (what, done, all).
        signing: whose signed reviews count; without it, those that this installation wrote.
        begun: a comparison of the nearest Home's files that is under way, for the first look.
        endpoints: gives the servers of embeddings that the person's settings describe, by name.
        trusted: roots of the Homes in which the person alone writes, and whose edited files are reviewed at once.
        given: Homes that somebody else opened and will close; then these are the Homes, and the first is written.
    """

    def __init__(
        self,
        context: Context,
        keys: Keys,
        nearest: Path | None,
        personal: Path | None,
        *,
        progress: Progress | None = None,
        signing: Signing | None = None,
        begun: Comparison | None = None,
        endpoints: Callable[[], Mapping[str, Endpoint]] = dict,
        trusted: Sequence[Path] = (),
        given: Sequence[OpenHome] = (),
    ) -> None:
        self._trusted = frozenset(root.resolve() for root in trusted)
        self._given = tuple(given)
        self.endpoints = endpoints
        self._begun = begun
        self._signing = signing
        self._context = context
        self._keys = keys
        self._nearest = None if nearest is None else nearest.absolute()  # the process may go to another folder
        self._personal = None if personal is None else personal.absolute()
        # Whether there is one Home at most: `met` looks for no other.
        self._lone = len(given) == 1 if given else self._personal in (None, self._nearest)
        self.progress = progress
        self._open: dict[Path, OpenHome] = {}
        self._written: OpenHome | None = None  # the nearest one, once something was written to it
        self._lock = threading.RLock()
        self.notices: list[str] = []  # why a Home is left out of what is recalled

    def homes(self) -> list[OpenHome]:
        """The Homes that are recalled; empty when there is none yet."""
        if self._given:
            return list(self._given)
        with self._lock:
            self.notices.clear()
            homes = []
            if self._nearest is not None and self._is_home(self._nearest):
                homes.append(self._opened(self._nearest))
            if self._personal not in (None, self._nearest) and self._is_home(self._personal):
                try:
                    homes.append(self._opened(self._personal))
                except Unavailable as error:
                    if not homes:
                        raise
                    self.notices.append(f"Your own Home is left out: {error}")
            return homes

    def _is_home(self, root: Path) -> bool:
        return root in self._open or is_home(root)

    def writable(self) -> OpenHome:
        """The Home that is written: the nearest one, else the person's own, which is made when it is missing."""
        if self._given:
            return self._given[0]
        if self._written is not None:
            return self._written
        with self._lock:
            if self._nearest is not None:
                self._written = self._opened(self._nearest)
                return self._written
            if self._personal is None:
                raise HomeNotFound("There is no Home here.", remedy="Make one with `memoranda init`.")
            if not is_home(self._personal):
                from memoranda.home.create import create, finish

                made = create(self._personal, self._context, name="personal")
                finish(made.root, self._context, self._keys, admit=_admitter(self._keys, ""))
            return self._opened(self._personal)

    def one(self) -> OpenHome:
        """The Home that an operation on a single Home means; HomeNotFound when there is none."""
        homes = self.homes()
        if not homes:
            raise HomeNotFound(
                "There is no Home at or above this folder.",
                remedy="Make one with `memoranda init`, or name one with --home or MEMORANDA_HOME.",
            )
        return homes[0]

    def met(self, context: Context, home: OpenHome) -> Met:
        """The session of a call in `home`, with what it has met in any open Home."""
        met = home.sessions.met(context)
        for other in () if self._lone else self.homes():
            if other is not home:
                there = other.sessions.met(context)
                met = replace(met, taint=met.taint | there.taint, private=met.private or there.private)
        return met

    def of(self, pointer: Pointer) -> OpenHome:
        """The open Home that a pointer means; NotFound when it is none of these.

        Of two that bear one name, the one that has it: a name stands in a file, and anybody may take another's.
        """
        named = [home for home in self.homes() if pointer.home in home.repository.marker.names()]
        for home in named:
            if len(named) == 1 or _has(home, pointer):
                return home
        if named:
            return named[0]
        raise NotFound(
            f"The Home {pointer.home} is not open here.",
            remedy="Go to the folder that holds it, or name it with --home.",
        )

    def _opened(self, root: Path) -> OpenHome:
        home = self._open.get(root)
        if home is None:
            begun: Comparison | None = None
            if root == self._nearest:
                begun, self._begun = self._begun, None

            def made(admit: Admit) -> Repository:
                return Repository(root, self._context, self._keys, admit=admit, begun=begun)

            home = self.take(root, read_marker(root).id, made)
        return home

    def take(self, root: Path, home_id: str, make: Callable[[Admit], Holding]) -> OpenHome:
        """Opens the Home that `make` gives, told what may be taken in of what is found in its files; `root` names its
        folder, and the space closes it."""
        opened: list[OpenHome] = []
        allowed = _admitter(self._keys, home_id)

        def admit(data: bytes, path: str) -> str | None:
            return allowed(data, path) or (opened[0].tombs.admit(data, path) if opened else None)

        repository = make(admit)
        counts, withdrawn, rule = self._counts(repository)
        endpoint = partial(_endpoint, self, repository)
        indexes = Indexes(repository, self._context, self.progress, counts, endpoint)
        indexes.admit, indexes.rule = allowed, rule
        home = self._open[root] = OpenHome(
            repository, indexes, withdrawn, _DUTIES, root == self._personal, self._signing
        )
        home.trusts_edits = self._signing is None and root.resolve() in self._trusted
        repository.stamp = partial(_stamp, home)
        home.remembered = repository.sequence
        opened.append(home)
        return home

    def _counts(self, repository: Holding) -> tuple[Callable[[Review], bool], Withdrawn, Callable[[], object]]:
        """Which reviews count in a Home, what was withdrawn in it, and what tells that other reviews may count."""
        from memoranda.home.settings import Settings
        from memoranda.trust.withdrawn import Withdrawn, not_withdrawn

        withdrawn = Withdrawn(Settings(self._keys, repository.marker.id))
        if self._signing is None:
            return not_withdrawn(vouched, withdrawn), withdrawn, lambda: None
        from memoranda.trust.signing import Verifier

        layout = repository.layout
        verifier = Verifier(self._signing, layout.root, repository.marker.id, self._keys, layout.cache)
        return not_withdrawn(verifier, withdrawn), withdrawn, verifier.rule

    def watch(self) -> None:
        """For processes that live long: edits are learned from the kernel, and no question waits for an import."""
        for home in self.homes():
            if not home.watched:
                home.watched = True
                home.repository.watch()
                with home.indexes.lock:
                    home.indexes.lexical.warm()

    def close(self) -> None:
        with self._lock:
            try:
                self.keep_memory()
            finally:
                for home in self._open.values():
                    home.close()
                self._open.clear()
                self._written = None

    def keep_memory(self) -> None:
        """Brings every open Home's `memory/MEMORY.md` up to date, where something was recorded."""
        for home in list(self._open.values()):
            if home.news_for_memory():
                from memoranda.operations.automatic import write_memory  # here: most calls change nothing of it

                write_memory(self._context, home)

    def __enter__(self) -> Space:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _has(home: OpenHome, pointer: Pointer) -> bool:
    try:
        home.repository.at(pointer.path, pointer.rev)
    except Erased:
        return True
    except MemorandaError:
        return False
    return True


def _admitter(keys: Keys, home: str) -> Admit:
    def admitted(data: bytes, path: str) -> str | None:
        from memoranda.operations.admission import Rules, admit  # here: who finds no edit does not pay for the rules

        return admit(data, path, Rules(keys, home))

    return admitted


def _claim(context: Context, home: OpenHome) -> None:
    from memoranda.operations.claiming import claim  # here: most calls find nothing that nobody has written

    claim(context, home)


def _retest(context: Context, home: OpenHome) -> None:
    from memoranda.operations.recipe_upkeep import retest  # here: an index is seldom made anew

    retest(context, home)


def _keep_up(home: OpenHome) -> None:
    from memoranda.operations.recipe_upkeep import keep_up  # here: few Homes have their vectors from a server

    keep_up(home)


def _keep_up_others(home: OpenHome) -> None:
    from memoranda.operations.recipe_upkeep import keep_up_others  # here: processes that live long ask

    keep_up_others(home)


def _trust(context: Context, home: OpenHome) -> None:
    from memoranda.operations.trusting import review_edits

    review_edits(context, home)


_DUTIES = Duties(_claim, _trust, _retest, _keep_up, _keep_up_others)


def _endpoint(space: Space, repository: Holding, name: str) -> Endpoint | None:
    """The server that the person's settings call so, once a person has let this Home's texts be sent there."""
    from memoranda.home.settings import Settings

    told = space.endpoints().get(name)
    if told is None or embedder_setting(name, told) not in Settings(repository.keys, repository.marker.id).standing():
        return None
    return told


def embedder_setting(name: str, endpoint: Endpoint) -> tuple[str, str]:
    """What is settled for a Home whose texts may be sent to a server: its name and its address."""
    return "embedder", f"{name} {endpoint.url}"


def _stamp(home: OpenHome, found: Sequence[Found]) -> Mapping[str, Mapping[str, object]]:
    from memoranda.operations.claiming import stamp_found

    return stamp_found(home, found)
