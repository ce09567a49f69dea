"""The recipes that people choose between, by name: each asks for a set of indexes.

`words` is the lexical index alone; `static` adds vectors from the bundled table; `+endpoint:NAME` behind either adds
vectors of a model behind a server that the person's own settings name, in an index of their own; `+graph` and
`+outline` add the index of what hangs together, and that of headings. `endpoint:NAME` is the default recipe with that
model beside it. A recipe's digest stands on those of its indexes: another model, another version of the code or another
library is another recipe, whatever its name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import InvalidInput, NotFound, Unavailable
from memoranda.index import embedding_feed
from memoranda.index.catalog import Catalog
from memoranda.index.content import ContentIndex, Part, Progress, part_of
from memoranda.index.embedding.static import StaticEmbedder, installed
from memoranda.index.feeding import Feeding
from memoranda.index.lexical import LexicalIndex
from memoranda.index.recipe import GRAPH, OUTLINE, VECTORS, Recipe
from memoranda.index.vectors import VectorIndex
from memoranda.values import dataclass, replace

if TYPE_CHECKING:
    from memoranda.index.endpoints import Endpoint

WORDS, STATIC, ENDPOINT = "words", "static", "endpoint:"
KNOWN = (
    f"`{WORDS}`, `{STATIC}` and `{ENDPOINT}NAME`, `{WORDS}+{ENDPOINT}NAME` and `{STATIC}+{ENDPOINT}NAME`, each also "
    f"with `+{GRAPH}` or `+{OUTLINE}` behind it"
)

FindEndpoint = Callable[[str], "Endpoint | None"]
"""The server that the person's settings call so, if this Home's texts may be sent there."""


@dataclass(frozen=True, slots=True)
class NamedRecipe:
    """A name and the indexes that it asks for, the lexical one first.

    `endpoint` is the server of a model, `server` how the settings call it; `spelt` is the name that says everything,
    also what `endpoint:NAME` leaves to what is installed.
    """

    name: str
    spelt: str
    parts: tuple[Part, ...]
    endpoint: Endpoint | None = None
    server: str = ""

    @property
    def remote(self) -> bool:
        """Whether it has vectors that are brought up in the background, and no recall waits for them."""
        return self.endpoint is not None

    @property
    def lexical(self) -> Part:
        return self.parts[0]

    @property
    def table(self) -> Part | None:
        """The vectors of the bundled table."""
        return next((part for part in self.parts if part.recipe.name == VECTORS and not _served(part)), None)

    @property
    def model(self) -> Part | None:
        """The vectors of a model behind a server."""
        return next((part for part in self.parts if _served(part)), None)

    def further(self, name: str) -> Part | None:
        """The graph or the outline, if it asks for it."""
        return next((part for part in self.parts if part.recipe.name == name), None)

    @property
    def awaited(self) -> tuple[Part, ...]:
        """The parts that a recall waits for."""
        return tuple(part for part in self.parts if not _served(part))

    def digest(self) -> str:
        """12 hex characters that stand for everything that determines an answer of its indexes."""
        return Recipe(self.name, 1, {"indexes": [part.recipe.digest() for part in self.parts]}).digest()[:12]


def _served(part: Part) -> bool:
    return "endpoint" in part.recipe.params


def default_name() -> str:
    """The recipe of a Home in which none was chosen: with vectors where the bundled table is installed."""
    return STATIC if installed() is not None else WORDS


def server_of(name: str) -> str | None:
    """The server that a recipe of this name asks; None when it asks none. It may not exist."""
    while (further := name.rpartition("+"))[2] in (GRAPH, OUTLINE) and further[0]:
        name = further[0]
    return name.partition(ENDPOINT)[2] if name.startswith(ENDPOINT) or f"+{ENDPOINT}" in name else None


def find_recipe(name: str, models: Path, endpoint: FindEndpoint) -> NamedRecipe:
    """The recipe with this name; `models` is the folder for what models need and no index is.

    Raises:
        NotFound: there is none. InvalidInput: it cannot be one.
        Unavailable: what it needs is not there (the package with the table, the settings of the server).
    """
    if (further := name.rpartition("+"))[2] in (GRAPH, OUTLINE) and further[0]:
        from memoranda.index.structure import part  # here: few have one

        base = find_recipe(further[0], models, endpoint)
        return replace(base, name=name, spelt=f"{base.spelt}+{further[2]}", parts=(*base.parts, part(further[2])))
    server = server_of(name)
    first = name if server is None else name[: -len(ENDPOINT + server)].removesuffix("+") or default_name()
    if first not in (WORDS, STATIC):
        raise NotFound(f"There is no recipe {name!r}.", remedy=f"There are {KNOWN}.")
    parts = [part_of(LexicalIndex.recipe(), LexicalIndex.open, _bring_words)]
    if first == STATIC:
        parts.append(_table(models))
    if server is None:
        return NamedRecipe(name, name, tuple(parts))
    told = _told(name, server, endpoint)
    from memoranda.index.endpoints import bring_vectors, open_vectors, vectors_recipe  # here: few have one

    bring = partial(bring_vectors, batch=told.batch)
    parts.append(part_of(vectors_recipe(told), partial(open_vectors, told, models), bring))
    return NamedRecipe(name, f"{first}+{ENDPOINT}{server}", tuple(parts), told, server)


def _table(models: Path) -> Part:
    folder = installed()
    if folder is None:
        raise Unavailable(
            f"The recipe {STATIC} needs the package wordllama, which is not installed.",
            remedy="Install it: it is among what Memoranda asks for.",
        )
    return part_of(VectorIndex.recipe(StaticEmbedder), partial(_open_static, folder, models), embedding_feed.bring)


def _told(name: str, server: str, endpoint: FindEndpoint) -> Endpoint:
    if not server:
        raise InvalidInput(
            f"The recipe {name!r} names no server.", remedy="Name one of `[embedders]`: `endpoint:NAME`."
        )
    told = endpoint(server)
    if told is None:
        raise Unavailable(
            f"The recipe {name} cannot be used here.",
            why=f"Your settings have no `[embedders.{server}]`, or you never let this Home's texts be sent there.",
            remedy=f"Describe the server in your own config.toml, then run `memoranda index add {name}`.",
        )
    return told


def _bring_words(catalog: Catalog, index: LexicalIndex, identity: str, progress: Progress | None) -> None:
    Feeding(catalog, index, identity, progress).bring()


def _open_static(folder: Path, models: Path, directory: Path) -> ContentIndex:
    embedder = StaticEmbedder(folder, models)
    embedder.check()
    return VectorIndex.open(directory, embedder, close=embedder.close)
