"""The one interface that every index of what notes and journal entries say has, and its part in a recipe.

An index holds immutable documents by key and knows nothing of Git, of files or of the catalog. A recipe says with a
`Part` which index it asks for: from what recipe, opened how, and what brings it up to the catalog. Searching is the one
thing that differs: each index has `search(question, facets, *, include_retired)`, the facets applied before anything is
ranked, and gives what it knows best (scores of words, nearness of vectors).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from memoranda.index.catalog import Catalog
from memoranda.index.documents import Applied, Document
from memoranda.index.recipe import Manifest, Recipe

Progress = Callable[[str, int, int], None]


class Counted(Protocol):
    """Documents that are found, and documents that are kept for history only."""

    @property
    def live(self) -> int: ...

    @property
    def retired(self) -> int: ...


class ContentIndex(Protocol):
    """An open index. It is a cache: IndexDamaged says that it has to be made again."""

    @property
    def directory(self) -> Path:
        """Where it lies, alone."""
        ...

    def mark(self) -> tuple[int, int]:
        """Another one after every change, by this process or another."""
        ...

    def state(self) -> dict[str, str]:
        """What the last `apply` said that it reached: `catalog` (its identity) and `feed` (a number)."""
        ...

    def counts(self) -> Counted: ...

    def keys(self) -> set[str]:
        """The keys of all documents, retired ones included."""
        ...

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that it holds, retired ones included."""
        ...

    def apply(
        self,
        add: Iterable[Document] = (),
        retire: Iterable[str] = (),
        revive: Iterable[str] = (),
        drop: Iterable[str] = (),
        *,
        state: Mapping[str, str] | None = None,
    ) -> Applied:
        """Adds, retires, revives and drops documents, in this order, and notes the state reached: all or nothing.

        Adding a known key revives it. A retired document is kept for history; of a dropped one nothing stays.
        """
        ...

    def check(self) -> None:
        """Reads everything. Raises IndexDamaged when it does not hold together."""
        ...

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next; it stays open."""
        ...

    def close(self) -> None: ...


class Part(NamedTuple):
    """One index of a recipe, see `part_of`.

    `name` is that of its directory, worked out once: a question asks for it a dozen times. `open` opens the index of a
    directory, or makes it; Unavailable when what it is made with is not there. `bring` brings it up to the catalog by
    what changed, or builds it: (catalog, index, the catalog's identity, progress). It commits as it goes, so that what
    is cut short goes on where it was.
    """

    name: str
    recipe: Recipe
    open: Callable[[Path], ContentIndex]
    bring: Callable[[Catalog, Any, str, Progress | None], object]

    def is_level(self, catalog: Catalog, index: ContentIndex) -> bool:
        """Whether the index has taken in everything that the catalog's feed says."""
        state = index.state()
        last = catalog.fed()
        return state.get("catalog") == catalog.state("identity") and int(state.get("feed", "0")) >= last


def part_of(
    recipe: Recipe,
    open_index: Callable[[Path], ContentIndex],
    bring: Callable[[Catalog, Any, str, Progress | None], object],
) -> Part:
    return Part(recipe.directory_name(), recipe, open_index, bring)


def described(catalog: Catalog, part: Part, index: ContentIndex, now: str, took_ms: int) -> None:
    """Writes the manifest of an index that is as far as the catalog."""
    counted = index.counts()
    inputs = {name: catalog.state(name) or "" for name in ("commit", "seq", "ledger")}
    counts = {"live": counted.live, "retired": counted.retired}
    Manifest(part.recipe, inputs, now, took_ms, counts).write(index.directory)
