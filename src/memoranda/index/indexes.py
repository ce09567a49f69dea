"""All derivatives of one Home: the catalog and what is built on it, brought up to date together.

Each lies in a directory of `.memoranda/` that bears its recipe's digest. A missing or damaged one is made again; what
is found there of another recipe is foreign, is reported by `status` and never read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from memoranda.context import Context
from memoranda.errors import IndexDamaged, Unavailable
from memoranda.home.draft import Snapshot
from memoranda.home.repository import Admit, Repository, everything
from memoranda.home.store import LEDGER_REF
from memoranda.index.catalog import Catalog
from memoranda.index.catchup import CatchUp, Progress
from memoranda.index.embedding.static import StaticEmbedder, installed
from memoranda.index.embedding_feed import bring
from memoranda.index.feeding import Feeding
from memoranda.index.journal_mode import named_errors
from memoranda.index.lexical import LexicalIndex
from memoranda.index.recipe import Manifest, Recipe, read_manifest
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.index.testimony import Review, vouched
from memoranda.index.vectors import VectorIndex
from memoranda.notes.times import format_instant
from memoranda.values import dataclass

VECTORS = VectorIndex.recipe(StaticEmbedder)


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One directory of `.memoranda/`: `state` is fresh, behind, missing, damaged or foreign."""

    name: str
    recipe: Recipe | None
    state: str
    inputs: dict[str, str]
    counts: dict[str, int]
    built_at: str | None
    took_ms: int | None
    bytes: int


class Indexes:
    """The indexes of one repository; opened lazily, usable from several threads one at a time.

    `counts` tells which reviews count here; by default those that this installation wrote.
    """

    def __init__(
        self,
        repository: Repository,
        context: Context,
        progress: Progress | None = None,
        counts: Callable[[Review], bool] = vouched,
    ) -> None:
        self.repository = repository
        self._counts = counts
        self._context = context
        self._progress = progress
        self._catalog: Catalog | None = None
        self._lexical: LexicalIndex | None = None
        self._vectors: VectorIndex | None = None
        self._table = installed()  # of the bundled embedder; without it there are no vectors
        self.lock = threading.RLock()
        self._gathering: Feeding | None = None
        self.admit: Admit = everything  # why what a commit brought in may not be kept, None when it may
        self._generation = repository.erasures.generation()
        self._level: tuple[object, ...] | None = None  # the present to which everything was seen to be up to date
        self.notices: list[str] = []  # what recall has to say about the state of the indexes

    @property
    def catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = self._open_catalog()
            self._catalog.ledger.vouches = lambda replica, text: self.repository.pen(replica).vouches(text)
            self._catalog.ledger.counts = self._counts
        return self._catalog

    @property
    def lexical(self) -> LexicalIndex:
        if self._lexical is None:
            directory = self._directory(LexicalIndex.recipe())
            try:
                self._lexical = LexicalIndex.open(directory)
            except IndexDamaged as error:
                self.notices.append(f"{error.what} It was made again.")
                _remove(directory)
                self._lexical = LexicalIndex.open(directory)
        return self._lexical

    @property
    def vectors(self) -> VectorIndex | None:
        """The vector index; None where no embedder is installed, or its table cannot be used (a notice says so)."""
        if self._vectors is None and self._table is not None:
            directory = self._directory(VECTORS)
            embedder = StaticEmbedder(self._table, directory)
            try:
                fresh = not directory.exists()
                if fresh:
                    embedder.check()
                self._vectors = VectorIndex.open(directory, embedder)
            except Unavailable as error:
                self._table = None
                self.notices.append(f"{error.what} {error.remedy}")
            except IndexDamaged as error:
                self.notices.append(f"{error.what} It was made again.")
                _remove(directory)
                self._vectors = VectorIndex.open(directory, embedder)
        return self._vectors

    def discard_vectors(self, error: IndexDamaged) -> None:
        """They turned out damaged in the middle of a question: it is answered without, the next one makes them anew."""
        with self.lock:
            if self._vectors is not None:
                directory = self._vectors.directory
                self._vectors.close()
                self._vectors = None
                self._level = None
                _remove(directory)
            self.notices.append(f"{error.what} This answer goes by the words alone; the next one makes it again.")

    def _open_catalog(self) -> Catalog:
        directory = self._directory(CATALOG)
        try:
            return Catalog.open(directory)
        except IndexDamaged as error:
            self.notices.append(f"{error.what} It was made again.")
            _remove(directory)
            return Catalog.open(directory)

    def _directory(self, recipe: Recipe) -> Path:
        cache = self.repository.layout.cache
        if not (cache / ".gitignore").exists():  # deleted with everything else: Git must go on ignoring it
            cache.mkdir(exist_ok=True)
            (cache / ".gitignore").write_bytes(b"*\n")
        return cache / recipe.directory_name()

    # Catching up

    def catch_up(self, seen: Snapshot | None = None) -> Snapshot:
        """Brings catalog and content indexes to the present; returns the snapshot that they reflect now.

        `seen` is a snapshot that was taken a moment ago, if there is one: it is not taken again when nothing changed.
        A damaged index is made again. IndexBusy, Unavailable: nothing is thrown away because it cannot be used now.
        """
        with self.lock:
            self._reopen_if_deleted()
            try:
                with named_errors("An index"):
                    return self._bring(seen)
            except IndexDamaged as error:
                self.notices.append(f"An index was damaged ({error}) and was made again.")
                self.drop()
                return self._bring()
            except Unavailable:
                if not self._reopen_if_deleted():
                    raise
                return self._bring()  # it was deleted under our hands, by an erasing or a person

    def ahead(self, *, last: bool = False) -> None:
        """A catch-up while many notes are being written: what the log says, and not yet what becomes of it in Git.

        `catch_up` afterwards finds little to do. Two processes can share it: `ahead_catalog`, `ahead_content`.
        """
        self.ahead_catalog()
        self.ahead_content(last=last)

    def ahead_catalog(self) -> None:
        with self.lock, named_errors("The catalog"):
            self._reopen_if_deleted()
            if not CatchUp(self.repository, self.catalog, self._progress, self.admit).ahead():
                CatchUp(self.repository, self.catalog, self._progress, self.admit).run()

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

    def look_again_for_forgotten(self) -> None:
        """A key has come: what could not be compared before is compared at the next catch-up."""
        with self.lock:
            self.catalog.set_state(tombs=None, ledger="")

    def _reopen_if_deleted(self) -> bool:
        """`.memoranda/` may be deleted while we hold its files open, and is by an erasing: they are made again."""
        generation = self.repository.erasures.generation()
        if generation != self._generation:
            self._generation = generation
            self._close()
            return True
        for held in (self._catalog, self._lexical, self._vectors):
            if held is not None and not held.directory.exists():
                self._close()
                return True
        return False

    def _bring(self, seen: Snapshot | None = None) -> Snapshot:
        started = time.monotonic()
        present = self._present(seen) if seen is not None else None
        if seen is not None and present == self._level:
            return seen
        done = CatchUp(self.repository, self.catalog, self._progress, self.admit).run(seen)
        self._feed_lexical()
        if self.vectors is not None:
            bring(self.catalog, self.vectors, self._identity(), self._progress)
        if done.changed and done.rebuilt:
            self._write_manifests(int((time.monotonic() - started) * 1000))
        if done.snapshot is seen and not done.changed:
            self._level = present
        return done.snapshot

    def _present(self, seen: Snapshot) -> tuple[object, ...]:
        """What a catch-up looks at, and whether anybody has written to an index since: equal means nothing to do."""
        ledger = self.repository.store.ref(LEDGER_REF)
        return seen.commit, seen.seq, len(seen.tail), ledger, self.catalog.mark(), self.lexical.mark()

    def _feed_lexical(self) -> None:
        self._feeding().bring()

    def _feeding(self) -> Feeding:
        return Feeding(self.catalog, self.lexical, self._identity(), self._progress)

    def _identity(self) -> str:
        """The name of this catalog, by which a content index knows whether it has followed it."""
        identity = self.catalog.state("identity")
        if identity is None:
            identity = self._context.random(8).hex()
            self.catalog.set_state(identity=identity)
        return identity

    def _recipes(self) -> tuple[Recipe, ...]:
        """Those of the indexes that there should be."""
        return (CATALOG, LexicalIndex.recipe()) if self._table is None else (CATALOG, LexicalIndex.recipe(), VECTORS)

    # What people ask and tell

    def serving(self) -> list[str]:
        """The names of the content indexes that answer."""
        vectors = self.vectors
        return [self.lexical.directory.name, *([vectors.directory.name] if vectors else [])]

    def status(self) -> list[IndexStatus]:
        """Every index there is or should be, without changing any."""
        with self.lock:
            cache = self.repository.layout.cache
            ours = {recipe.directory_name(): recipe for recipe in self._recipes()}
            found = {path.name for path in cache.iterdir() if path.is_dir()} if cache.is_dir() else set()
            return [self._status(cache / name, ours.get(name), name in found) for name in sorted(found | set(ours))]

    def _status(self, directory: Path, recipe: Recipe | None, exists: bool) -> IndexStatus:
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) if exists else 0
        if not exists:
            return IndexStatus(directory.name, recipe, "missing", {}, {}, None, None, 0)
        try:
            manifest = read_manifest(directory)
        except IndexDamaged:
            return IndexStatus(directory.name, recipe, "damaged", {}, {}, None, None, size)
        if recipe is None:
            other = manifest.recipe if manifest else None
            return IndexStatus(directory.name, other, "foreign", {}, {}, None, None, size)
        inputs, counts, state = self._inside(recipe)
        built, took = (manifest.built_at, manifest.took_ms) if manifest else (None, None)
        return IndexStatus(directory.name, recipe, state, inputs, counts, built, took, size)

    def _inside(self, recipe: Recipe) -> tuple[dict[str, str], dict[str, int], str]:
        """(inputs, counts, state) of one of our own indexes as it stands."""
        snapshot = self.repository.snapshot()
        catalog = self.catalog
        inputs = {name: catalog.state(name) or "" for name in ("commit", "seq", "ledger")}
        fresh = inputs["commit"] == (snapshot.commit or "") and int(inputs["seq"] or 0) >= snapshot.seq
        if recipe == CATALOG:
            counts = {"notes": catalog.count_notes(), "journal": catalog.count_entries()}
            return inputs, counts, "fresh" if fresh else "behind"
        index = self.vectors if recipe == VECTORS and self.vectors is not None else self.lexical
        state = index.state()
        last = catalog.db.execute("SELECT coalesce(max(n), 0) FROM feed").fetchone()[0]
        level = state.get("catalog") == catalog.state("identity") and int(state.get("feed", "0")) >= last
        counted = index.counts()
        counts = {"live": counted.live, "retired": counted.retired}
        return inputs, counts, "fresh" if fresh and level else "behind"

    def _write_manifests(self, took_ms: int) -> None:
        now = format_instant(self._context.now().replace(microsecond=0))
        for recipe in self._recipes():
            inputs, counts, _ = self._inside(recipe)
            Manifest(recipe, inputs, now, took_ms, counts).write(self._directory(recipe))

    def drop(self, name: str | None = None) -> list[str]:
        """Deletes every index, or the directory `name`; returns what was deleted. Nothing is lost by it."""
        with self.lock:
            self._close()
            cache = self.repository.layout.cache
            found = sorted(path.name for path in cache.iterdir() if path.is_dir()) if cache.is_dir() else []
            gone = [item for item in found if name in (None, item)]
            for item in gone:
                _remove(cache / item)
            return gone

    def rebuild(self) -> Snapshot:
        """Makes every index again from the notes."""
        with self.lock:
            self.drop()
            return self.catch_up()

    def _close(self) -> None:
        self._gathering = None
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None
        if self._lexical is not None:
            self._lexical.close()
            self._lexical = None
        if self._vectors is not None:
            self._vectors.close()
            self._vectors = None
        self._level = None

    def close(self) -> None:
        with self.lock:
            self._close()


def _remove(directory: Path) -> None:
    import shutil  # not at the top: it costs a fresh process 2 ms

    shutil.rmtree(directory)
