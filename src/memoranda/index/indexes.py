"""All derivatives of one Home: the catalog and what is built on it, brought up to date together.

Each lies in a directory of `.memoranda/` that bears its recipe's digest. A missing or damaged one is made again; what
is found there of no recipe that is kept here is foreign, is reported by `status` and never read. One recipe answers;
others stand beside it as they were when they were last used (see `recipes` and `serving`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from memoranda.context import Context
from memoranda.errors import IndexBusy, IndexDamaged, MemorandaError, NotFound, Unavailable
from memoranda.home.draft import Snapshot
from memoranda.home.durable import FileLock
from memoranda.home.holding import Holding
from memoranda.home.repository import Admit, everything
from memoranda.home.store import LEDGER_REF
from memoranda.index.catalog import Catalog
from memoranda.index.catchup import CatchUp, Progress
from memoranda.index.content import ContentIndex, Part, described
from memoranda.index.feeding import Feeding
from memoranda.index.journal_mode import is_broken, named_errors
from memoranda.index.lexical import LexicalIndex
from memoranda.index.places import put, remove
from memoranda.index.recipe import Manifest, Recipe
from memoranda.index.recipes import FindEndpoint, NamedRecipe, default_name, find_recipe
from memoranda.index.serving import Record, Serving
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.index.testimony import Review, vouched
from memoranda.index.vectors import VectorIndex
from memoranda.notes.times import format_instant

if TYPE_CHECKING:
    from memoranda.index.limited import LimitedCatalog

T = TypeVar("T")
_DELETIONS = 4  # of `.memoranda/` that may come in between one after the other
_WORTHWHILE = 2048  # documents that are embedded ahead together, so that they make whole chunks
REBUILDING = "rebuilding"  # the directory of `.memoranda/` in which the indexes are made again
_TOGETHER = 16  # documents that writers leave to whoever asks next; more, and the next writer takes them in
MODELS = "models"  # the directory of `.memoranda/` for what models need and no index is


class _Present(NamedTuple):
    """What a catch-up looks at, and the marks of the catalog and of the lexical index."""

    at: tuple[object, ...]
    catalog: tuple[int, int]
    lexical: tuple[int, int]


def _no_endpoint(_name: str) -> None:
    """No server is known."""


class Indexes:
    """The indexes of one repository; opened lazily, usable from several threads one at a time.

    `counts` tells which reviews count here; by default those that this installation wrote. `endpoint` knows the servers
    to which the texts of this Home may be sent; by default none. `folder` takes the place of `.memoranda/`.
    """

    def __init__(
        self,
        repository: Holding,
        context: Context,
        progress: Progress | None = None,
        counts: Callable[[Review], bool] = vouched,
        endpoint: FindEndpoint = _no_endpoint,
        folder: Path | None = None,
    ) -> None:
        self.repository = repository
        self._folder = folder or repository.layout.cache
        self._counts = counts
        self.rule: Callable[[], object] = lambda: None  # see `Testimony.rule`; set before the first question
        self._context = context
        self.progress = progress
        self._catalog: Catalog | None = None
        self.serving_record = Serving(repository.layout.own)
        self._endpoint = endpoint
        self._open: dict[str, ContentIndex] = {}  # by the name of the directory
        self._places: dict[Path, int] = {}  # what is open, and which directory it was
        self._unusable: set[str] = set()  # those that were found to lack what they are made with
        self._active: tuple[object, NamedRecipe] | None = None
        self._changed: str | None = None  # the digest that was tested, where another one answers now
        self._trying: NamedRecipe | None = None
        self.lock = threading.RLock()
        self._gathering: Feeding | None = None
        self.admit: Admit = everything  # why what a commit brought in may not be kept, None when it may
        self._generation = repository.erasures.generation()
        self.made = 0  # how often the catalog was made again from nothing
        self._level: _Present | None = None  # the present to which everything was seen to be up to date
        self.notices: list[str] = []  # what recall has to say about the state of the indexes
        self.places: frozenset[str] | None = None  # those of a reader, see `reader`; None sees everything
        self.lent: list[LimitedCatalog] = []  # connections of readers, to be used again

    @property
    def whole(self) -> Indexes:
        """Those of the whole Home, of which a reader has a part."""
        return self

    @property
    def catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = self._open_catalog()
            if self.repository.guarded(()) is not None and not self._is_ours(self._catalog):
                self._catalog.close()
                remove(self._folder / CATALOG.directory_name())
                self._catalog = self._open_catalog()
                self._is_ours(self._catalog)
            self._catalog.ledger.vouches = lambda replica, text: self.repository.pen(replica).vouches(text)
            self._catalog.ledger.counts = self._counts
            self._catalog.key = self._key
            self._catalog.ledger.rule = self.rule
        return self._catalog

    def _is_ours(self, catalog: Catalog) -> bool:
        """Whether a catalog was made for this very Home, by whoever has its keys; a fresh one is from now on."""
        told = self.repository.keys.mac("ledger", self.repository.marker.id, b"whose catalog this is")
        if catalog.state("commit") is None and catalog.state("whose") is None:
            catalog.set_state(whose=told)
        return catalog.state("whose") == told

    def _key(self) -> bytes:
        """What seals the rows of the catalog: the key of the ledger's lines, of which no digest is like these."""
        return self.repository.keys.get("ledger", self.repository.marker.id)

    # Which recipe answers

    def recipe(self, name: str) -> NamedRecipe:
        """The recipe with this name. NotFound, InvalidInput, Unavailable: see `find_recipe`."""
        return find_recipe(name, self.repository.layout.cache / MODELS, self._endpoint)

    def active(self) -> NamedRecipe:
        """The recipe that answers: the one that was chosen, or the default. A notice says when it cannot be used."""
        mark = self.serving_record.mark()
        if self._active is None or self._active[0] != mark:
            self._active = (mark, self._chosen())
        return self._active[1]

    def _chosen(self) -> NamedRecipe:
        try:
            record = self.serving_record.read()
            recipe = self.recipe(record.active or default_name())
            self._changed = record.digest if record.digest and record.digest != recipe.digest() else None
            return recipe
        except MemorandaError as error:
            instead = self.recipe(default_name())
            self.notices.append(f"{error.what} {error.remedy} Meanwhile the recipe {instead.name} answers.")
            return instead

    def take_changed(self) -> str | None:
        """The digest of the recipe that the golden questions were asked of, when another one answers; once."""
        with self.lock:
            changed, self._changed = self._changed, None
            return changed

    @property
    def changed(self) -> bool:
        """Whether the active recipe is another one than was tested."""
        return self._changed is not None

    def kept(self) -> tuple[Record, list[NamedRecipe]]:
        """What is recorded, and the recipes that can be used: the active one first, then those beside it."""
        record, active = self.serving_record.read(), self.active()
        found = [active]
        for name in record.kept:
            if name != active.name:
                try:
                    found.append(self.recipe(name))
                except (Unavailable, NotFound):
                    continue
        return record, found

    @contextmanager
    def trying(self, recipe: NamedRecipe | None) -> Iterator[None]:
        """Until the end this recipe answers here, whichever is active; None changes nothing. Others wait."""
        with self.lock:
            former, self._trying = self._trying, recipe or self._trying
            try:
                yield
            finally:
                self._trying = former

    @property
    def lexical(self) -> LexicalIndex:
        return cast(LexicalIndex, self._opened((self._trying or self.active()).lexical))

    @property
    def table(self) -> VectorIndex | None:
        """The vectors of the bundled table; None in a recipe without, or where it cannot be used (a notice says so)."""
        part = (self._trying or self.active()).table
        return None if part is None else cast("VectorIndex | None", self.opened(part))

    @property
    def model(self) -> VectorIndex | None:
        """The vectors of a model behind a server; None in a recipe without."""
        part = (self._trying or self.active()).model
        return None if part is None else cast("VectorIndex | None", self.opened(part))

    @property
    def server(self) -> str:
        """How the settings call the server of the model; "" where there is none."""
        return (self._trying or self.active()).server

    def further(self, name: str) -> LexicalIndex | None:
        """The graph or the outline, where the recipe asks for it."""
        part = (self._trying or self.active()).further(name)
        return None if part is None else cast("LexicalIndex | None", self.opened(part))

    def opened(self, part: Part) -> ContentIndex | None:
        """One index, open; None when what it is made with is not there, which only the lexical index never lacks."""
        if part.recipe.name == "lexical":
            return self._opened(part)
        try:
            return None if part.name in self._unusable else self._opened(part)
        except (IndexDamaged, IndexBusy):
            raise
        except Unavailable as error:
            self._unusable.add(part.name)
            self.notices.append(f"{error.what} {error.remedy}")
            return None

    def _opened(self, part: Part) -> ContentIndex:
        index = self._open.get(part.name)
        if index is None:
            directory = self._directory(part.recipe)
            try:
                index = part.open(directory)
            except IndexDamaged as error:
                self.notices.append(f"{error.what} It was made again.")
                remove(directory)
                index = part.open(self._directory(part.recipe))
            self._open[part.name] = index
        return index

    def discard_vectors(self, vectors: VectorIndex, error: IndexDamaged, rest: str) -> None:
        """They turned out damaged in the middle of a question: it is answered by the rest, the next one makes them
        anew."""
        with self.lock:
            if self._open.pop(vectors.directory.name, None) is not None:
                del self._places[vectors.directory]
                vectors.close()
                self._level = None
                remove(vectors.directory)
            self.notices.append(f"{error.what} This answer goes by {rest}; the next one makes it again.")

    def _open_catalog(self) -> Catalog:
        directory = self._directory(CATALOG)
        try:
            return Catalog.open(directory)
        except IndexDamaged as error:
            self.notices.append(f"{error.what} It was made again.")
            remove(directory)
            return Catalog.open(self._directory(CATALOG))

    def _directory(self, recipe: Recipe) -> Path:
        """The directory of an index, made when it is missing, and remembered as it is before it is opened."""
        directory = self._folder / recipe.directory_name()
        if not (self._folder / ".gitignore").exists():  # deleted with everything else: Git must go on ignoring it
            self._folder.mkdir(exist_ok=True)
            (self._folder / ".gitignore").write_bytes(b"*\n")
        directory.mkdir(exist_ok=True)
        self._places[directory] = directory.stat().st_ino
        return directory

    # Catching up

    def catch_up(self, seen: Snapshot | None = None, *, content: bool = True) -> Snapshot:
        """Brings catalog and content indexes to the present; returns the snapshot that they reflect now.

        `seen` is a snapshot that was taken a moment ago, if there is one: it is not taken again when nothing changed.
        Without `content` the content indexes may stay behind by some documents: for who does not ask them.
        A damaged index is made again. IndexBusy, Unavailable: nothing is thrown away because it cannot be used now.
        """
        with self.lock:
            for _ in range(_DELETIONS):
                try:
                    return self._caught_up(seen, content)
                except FileNotFoundError:  # somebody is deleting `.memoranda/` just now
                    self._close()
            return self._caught_up(seen, content)

    def _caught_up(self, seen: Snapshot | None, content: bool) -> Snapshot:
        self._reopen_if_deleted()
        try:
            with named_errors("An index"):
                return self._bring(seen, content)
        except IndexDamaged as error:
            self.discard(error)
            return self._bring()
        except Unavailable:
            if not self._reopen_if_deleted():
                raise
            return self._bring()  # it was deleted under our hands, by an erasing or a person

    def claimed(self, upto: str) -> None:
        """See `Catalog.claimed`. No index goes by that: what was up to date stays so."""
        with self.lock:
            before, level = self.catalog.mark(), self._level
            self.catalog.claimed(upto)
            if level is not None and level.catalog == before:
                self._level = level._replace(catalog=(before[0], self.catalog.mark()[1]))

    def ahead(self, *, last: bool = False) -> None:
        """A catch-up while many notes are being written: what the log says, and not yet what becomes of it in Git.

        `catch_up` afterwards finds little to do. Processes can share it: `ahead_catalog`, `ahead_content`,
        `ahead_vectors`.
        """
        self.ahead_catalog()
        self.ahead_content(last=last)

    def ahead_catalog(self) -> None:
        with self.lock, named_errors("The catalog"):
            self._reopen_if_deleted()
            if not CatchUp(self.repository, self.catalog, self.progress, self.admit).ahead():
                CatchUp(self.repository, self.catalog, self.progress, self.admit).run()

    def ahead_content(self, *, last: bool = False) -> None:
        """Many new documents are analysed at once, and written when they make a segment, or with the `last` call."""
        with self.lock:
            self._reopen_if_deleted()
            if self._gathering is None:
                self._gathering = self._feeding()
            if last:
                self._gathering.bring()
                self._gathering = None
            else:
                self._gathering.gather()

    def ahead_vectors(self, *, last: bool = False) -> None:
        """As `ahead_content`, of the vectors that a recall waits for. IndexDamaged, Unavailable, IndexBusy."""
        with self.lock:
            self._reopen_if_deleted()
            part = self.active().table
            if part is None or (index := self.opened(part)) is None:
                return
            if last or self._behind(index) >= _WORTHWHILE:
                part.bring(self.catalog, index, self._identity(), self.progress)

    def awaits_vectors(self) -> bool:
        """Whether there are vectors that a recall waits for."""
        return (part := self.active().table) is not None and self.opened(part) is not None

    def _behind(self, index: ContentIndex) -> int:
        """How much the feed says that an index has not heard."""
        (told,) = self.catalog.db.execute("SELECT coalesce(max(n), 0) FROM feed").fetchone()
        return int(told) - int(index.state().get("feed", "0"))

    def look_again_for_forgotten(self) -> None:
        """A key has come: what could not be compared before is compared at the next catch-up."""
        with self.lock:
            self.catalog.set_state(tombs=None, ledger="")

    def _reopen_if_deleted(self) -> bool:
        """`.memoranda/` may be deleted while we hold its files open, and is by an erasing: they are made again. Or
        another process has put indexes in their place that it made anew."""
        generation = self.repository.erasures.generation()
        if generation != self._generation:
            self._generation = generation
            self._close()
            return True
        for place, known in self._places.items():
            try:
                if place.stat().st_ino == known:
                    continue
            except FileNotFoundError:
                pass
            self._close()
            return True
        return False

    def _bring(self, seen: Snapshot | None = None, content: bool = True) -> Snapshot:
        started = time.monotonic()
        if seen is None and self.repository.guarded(()) is not None:
            seen = self.repository.snapshot()  # there is no log behind it: what this node wrote is told from memory
        present = self._present(seen) if seen is not None else None
        if seen is not None and present == self._level:
            return seen
        catching = CatchUp(self.repository, self.catalog, self.progress, self.admit)
        if seen is not None and seen.seq > int(self.catalog.state("seq") or 0):
            catching.ahead()  # what the log tells; that commits hold the same is then seen without asking Git
        done = catching.run(seen)
        self.made += done.rebuilt is not None
        if not (content or done.rebuilt) and self._behind(self.lexical) < _TOGETHER:
            return done.snapshot
        for part in self.active().awaited:
            self._follow(part)
        if done.changed and done.rebuilt:
            self._write_manifests(int((time.monotonic() - started) * 1000))
        self._level = None if present is None else self._reached(present, done.snapshot)
        return done.snapshot

    def _present(self, seen: Snapshot) -> _Present:
        """What a catch-up looks at, and whether anybody has written to an index since: equal means nothing to do."""
        ledger = self.repository.store.ref(LEDGER_REF)
        chosen = self.serving_record.mark()
        at = seen.commit, seen.seq, len(seen.tail), ledger, chosen
        return _Present(at, self.catalog.mark(), self.lexical.mark())

    def _reached(self, before: _Present, now: Snapshot) -> _Present | None:
        """To what everything is up to date after a catch-up; None when somebody else has written meanwhile."""
        *_, ledger, chosen = before.at
        catalog, lexical = self.catalog.mark(), self.lexical.mark()
        # The first of each mark is moved by others only, the second by ourselves.
        if (catalog[0], lexical[0]) != (before.catalog[0], before.lexical[0]):
            return None
        return _Present((now.commit, now.seq, len(now.tail), ledger, chosen), catalog, lexical)

    def _follow(self, part: Part) -> None:
        """Brings one index up to the catalog."""
        if (index := self.opened(part)) is not None:
            part.bring(self.catalog, index, self._identity(), self.progress)

    def bring(self, recipe: NamedRecipe) -> None:
        """Brings every index of a recipe up to the catalog, whichever is active. Raises what its parts raise."""
        with self.lock:
            for part in recipe.parts:
                part.bring(self.catalog, self._opened(part), self._identity(), self.progress)
                self.describe(part, 0)

    def foresee(self, question: str, recipe: NamedRecipe | None) -> None:
        """Has the server of a remote recipe see a question before anybody waits for this lock because of it."""
        with self.trying(recipe):
            model = self.model
        if model is not None:
            try:
                model.embedder.embed_question(question, lambda _: 1.0)
            except Unavailable:
                pass  # the search finds the same in a moment, and tells of it

    def behind(self) -> Part | None:
        """What the active recipe has in the background and is not up to the catalog; None when all is well."""
        part = self.active().model
        with self.lock:
            if part is None or self.model is None or part.is_level(self.catalog, self._opened(part)):
                return None
        return part

    def _feeding(self) -> Feeding:
        return Feeding(self.catalog, self.lexical, self._identity(), self.progress)

    def _identity(self) -> str:
        """The name of this catalog, by which a content index knows whether it has followed it."""
        identity = self.catalog.state("identity")
        if identity is None:
            identity = self._context.random(8).hex()
            self.catalog.set_state(identity=identity)
        return identity

    # What people ask and tell

    def serving(self) -> list[str]:
        """The names of the content indexes that answer."""
        asked = (self.lexical, self.table, self.model, self.further("graph"), self.further("outline"))
        return [index.directory.name for index in asked if index is not None]

    def _write_manifests(self, took_ms: int) -> None:
        inputs = {name: self.catalog.state(name) or "" for name in ("commit", "seq", "ledger")}
        counts = {"notes": self.catalog.count_notes(), "journal": self.catalog.count_entries()}
        Manifest(CATALOG, inputs, self._now(), took_ms, counts).write(self.catalog.directory)
        for part in self.active().awaited:
            if part.name in self._open:
                self.describe(part, took_ms)

    def describe(self, part: Part, took_ms: int) -> None:
        """Writes the manifest of an index, which is as far as the catalog."""
        described(self.catalog, part, self._opened(part), self._now(), took_ms)

    def _now(self) -> str:
        return format_instant(self._context.now().replace(microsecond=0))

    def drop(self, name: str | None = None) -> list[str]:
        """Deletes every index, or the directory `name`; returns what was deleted. Nothing is lost by it."""
        with self.lock:
            self._close()
            cache = self._folder
            found = sorted(path.name for path in cache.iterdir() if path.is_dir()) if cache.is_dir() else []
            gone = [item for item in found if name in (None, item)]
            for item in gone:
                remove(cache / item)
            return gone

    def rebuild(self) -> Snapshot:
        """Makes the catalog and every index of the active recipe again from the notes; what stands beside it stays.

        They are made in a folder of their own and put in their places when they are done: until then other processes
        recall and write by those that are there. Unavailable: `.memoranda/` was deleted meanwhile.
        """
        folder = self._folder / REBUILDING
        with self.lock:
            turn = self._turn()
            try:
                turn.acquire()
                return self._rebuild(folder)
            finally:
                if folder.exists():  # it did not come to an end: the disk is full, somebody interrupted it
                    remove(folder)
                turn.close()

    def _turn(self) -> FileLock:
        return FileLock(self.repository.layout.own / "rebuilding.lock")

    def sweep(self, *, only_look: bool = False) -> bool:
        """Takes away what a rebuild left that was killed; returns whether there is such a thing."""
        folder = self._folder / REBUILDING
        if not folder.exists():
            return False
        turn = self._turn()
        try:
            dead = turn.try_acquire()
            if dead and not only_look:
                remove(folder)
            return dead
        finally:
            turn.close()

    def _rebuild(self, folder: Path) -> Snapshot:
        if folder.exists():  # whoever made it was killed
            remove(folder)
        folder.mkdir(parents=True)
        anew = Indexes(self.repository, self._context, self.progress, self._counts, self._endpoint, folder)
        anew.admit = self.admit
        try:
            anew.catch_up()
        finally:
            anew.close()
        self._close()
        # The catalog last: an index that is ahead of it is compared with it, and nothing is made twice.
        parts = [part.name for part in self.active().parts]
        for name in (*parts, CATALOG.directory_name()):
            put(folder / name, self._folder / name)
        remove(folder)
        return self.catch_up()

    def check(self, name: str) -> None:
        """Reads everything of one index that answers; IndexDamaged when it does not hold together."""
        with self.lock, named_errors(f"The index {name}"):
            if name == CATALOG.directory_name():
                self.catalog.check()
            for part in self.active().parts:
                if part.name == name and (index := self.opened(part)) is not None:
                    index.check()

    def mending(self, ask: Callable[[], T]) -> T:
        """The answer to a question that writes nothing: asked again when an index turns out broken in the middle of it,
        and was made anew. IndexDamaged when that does not help; IndexBusy, Unavailable."""
        try:
            with named_errors("An index"):
                return ask()
        except IndexDamaged as error:
            if not is_broken(error):
                raise
            self.discard(error)
        self.catch_up()
        with named_errors("An index"):
            return ask()

    def discard(self, error: IndexDamaged) -> None:
        """What answers turned out damaged in the middle of a question: the next catch-up makes it again."""
        with self.lock:
            self.notices.append(f"An index was damaged ({error.why or error.what}) and was made again.")
            self._discard()

    def _discard(self) -> None:
        self._close()
        for name in (CATALOG.directory_name(), *(part.name for part in self.active().parts)):
            if (self._folder / name).exists():
                remove(self._folder / name)

    def _close(self) -> None:
        self._gathering = None
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None
        for limited in self.lent:
            limited.close()
        self.lent.clear()
        for index in self._open.values():
            index.close()
        self._open.clear()
        self._places.clear()
        self._level = None

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next; all stays open. IndexDamaged."""
        with self.lock:
            while len(self.lent) > 1:
                self.lent.pop().close()
            for held in (self._catalog, *self.lent, *self._open.values()):
                if held is not None:
                    held.rest()

    def close(self) -> None:
        with self.lock:
            self._close()
