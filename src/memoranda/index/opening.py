"""The indexes of one Home as they lie in their directories: which recipe answers, and what of it is open.

Each lies in a directory of `.memoranda/` that bears its recipe's digest. A missing or damaged one is made again; what
is found there of no recipe that is kept here is foreign, is reported by `status` and never read. One recipe answers;
others stand beside it as they were when they were last used (see `recipes` and `serving`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, cast

from memoranda.context import Context
from memoranda.errors import IndexBusy, IndexDamaged, MemorandaError, NotFound, Unavailable
from memoranda.home.holding import Holding
from memoranda.home.repository import Admit, everything
from memoranda.index.catalog import Catalog
from memoranda.index.catchup import Progress
from memoranda.index.content import ContentIndex, Part
from memoranda.index.feeding import Feeding
from memoranda.index.lexical import LexicalIndex
from memoranda.index.places import remove
from memoranda.index.recipe import Recipe
from memoranda.index.recipes import FindEndpoint, NamedRecipe, default_name, find_recipe
from memoranda.index.serving import Record, Serving
from memoranda.index.tables import RECIPE as CATALOG
from memoranda.index.testimony import Review, vouched
from memoranda.index.vectors import VectorIndex

if TYPE_CHECKING:
    from memoranda.index.limited import LimitedCatalog

MODELS = "models"  # the directory of `.memoranda/` for what models need and no index is


class Present(NamedTuple):
    """What a catch-up looks at, and the marks of the catalog and of the lexical index."""

    at: tuple[object, ...]
    catalog: tuple[int, int]
    lexical: tuple[int, int]


def _no_endpoint(_name: str) -> None:
    """No server is known."""


class Opened:
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
        self._level: Present | None = None  # the present to which everything was seen to be up to date
        self.notices: list[str] = []  # what recall has to say about the state of the indexes
        self.places: frozenset[str] | None = None  # those of a reader, see `reader`; None sees everything
        self.lent: list[LimitedCatalog] = []  # connections of readers, to be used again

    @property
    def whole(self) -> Self:
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

    def serving(self) -> list[str]:
        """The names of the content indexes that answer."""
        asked = (self.lexical, self.table, self.model, self.further("graph"), self.further("outline"))
        return [index.directory.name for index in asked if index is not None]

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

    def close(self) -> None:
        with self.lock:
            self._close()
