"""The graph and the outline of a Home as content indexes: how notes hang together, and what their headings say.

Both are lexical indexes in directories of their own, over other documents. In the graph a document has no words but
edges: exact strings that stand for what it is (its id, its title) and what it points to (links, the ids that it
supersedes or cites, the lines of its sources, its subject, the names in it). Two documents that share an edge are
neighbours, the more so the fewer others share it; a search for the edges of one gives the others. The outline holds
the headings of each note that has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from memoranda.errors import InvalidPointer
from memoranda.index._facets import facet_term
from memoranda.index.analysis import Group, Query, fold
from memoranda.index.catalog import Catalog
from memoranda.index.content import Part, Progress, part_of
from memoranda.index.documents import Document
from memoranda.index.feeding import Feeding
from memoranda.index.feeding import documents as whole_documents
from memoranda.index.lexical import LexicalIndex
from memoranda.index.recipe import GRAPH, Recipe
from memoranda.notes import markdown
from memoranda.notes.lazyre import lazy
from memoranda.notes.pointers import parse_pointer

_VERSION = 1
_MOST_LINES = 40  # of one source
_MOST_NAMES = 12  # of one document
_NAME = lazy(r"(?<=[a-zà-ÿ,;] )[A-ZÀ-Þ][\w'’-]{2,}(?: [A-ZÀ-Þ][\w'’-]+)*")


class Edged(NamedTuple):
    """What an edge is made from: a note's row of the catalog, or an entry's lines."""

    key: str
    text: str
    id: str = ""
    title: str = ""
    subject: str = ""
    links: Sequence[str] = ()
    supersedes: Sequence[str] = ()
    sources: Sequence[str] = ()
    line: str = ""  # of an entry: its file and its first line of words


def part(name: str) -> Part:
    """The graph or the outline as a part of a recipe."""
    params = {**LexicalIndex.recipe().params, "structure": _VERSION}
    documents = graph_documents if name == GRAPH else outline_documents
    return part_of(Recipe(name, 1, params), LexicalIndex.open, partial(_bring, documents))


def _bring(
    documents: Callable[[Catalog, Iterable[str]], Iterator[Document]], catalog: Catalog, index: LexicalIndex,
    identity: str, progress: Progress | None,
) -> None:  # fmt: skip
    Feeding(catalog, index, identity, progress, documents).bring()


def outline_documents(catalog: Catalog, keys: Iterable[str]) -> Iterator[Document]:
    """The headings of these notes; those without any have no document."""
    for document in whole_documents(catalog, list(keys)):
        if "in:notes" in document.facets and (headings := markdown.outline(document.text)):
            yield document._replace(text="\n".join(heading.title for heading in headings), subject="", tags=())


def graph_documents(catalog: Catalog, keys: Iterable[str]) -> Iterator[Document]:
    """The edges of these notes and entries, beside the facets to filter by."""
    wanted = list(keys)
    edges = edges_of(catalog, wanted)
    for document in whole_documents(catalog, wanted):
        yield Document(document.key, facets=(*document.facets, *edges.get(document.key, ())))


def edges_of(catalog: Catalog, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """key -> the edges of that document."""
    found = {it.key: _edges(it) for it in (Edged(*row) for row in catalog.edged(keys))}
    for key, entry in catalog.entries_by_key([key for key in keys if key not in found]).items():
        found[key] = _edges(Edged(key, entry.text, entry.id, line=f"{entry.path}:{entry.first + 2}"))
    return found


def _edges(it: Edged) -> tuple[str, ...]:
    edges = [f"id:{name}" for name in (it.id, *it.supersedes) if name]
    edges += [f"name:{fold(name)}" for name in (it.title, *map(_target, it.links)) if name]
    edges += [f"about:{it.subject}"] if it.subject else []
    edges += [f"line:{it.line}"] if it.line else []
    for source in it.sources:
        edges += _cited(source)
    edges += [f"entity:{fold(name)}" for name in dict.fromkeys(_NAME.findall(it.text)[:_MOST_NAMES])]
    return tuple(dict.fromkeys(edges))


def _target(link: str) -> str:
    """The note that a link means: the last part of its path, without ending and heading."""
    return link.partition("#")[0].partition("|")[0].rstrip("/").rpartition("/")[2].removesuffix(".md").strip()


def _cited(source: str) -> list[str]:
    try:
        pointer = parse_pointer(source)
    except InvalidPointer:
        return [f"id:{source}"] if source.startswith(("mem_", "j_")) else [f"source:{source}"]
    if pointer.start is None:
        return [f"source:{pointer.path}"]
    last = min(pointer.end or pointer.start, pointer.start + _MOST_LINES - 1)
    return [f"line:{pointer.path}:{line}" for line in range(pointer.start, last + 1)]


def neighbours(
    graph: LexicalIndex, edges: Iterable[str], facets: Sequence[Sequence[str]], *, former: bool
) -> dict[str, float]:
    """key -> how strongly a document hangs together with the one of these edges, up to 1: each counts as it is rare.

    Edges that nobody shares count for nothing.
    """
    groups = tuple(Group(edge, (facet_term(edge),)) for edge in dict.fromkeys(edges))
    if not groups:
        return {}
    scores = graph.search(Query(groups), facets, include_retired=former)
    keys = [key for key, _ in scores.top(_MOST_NEIGHBOURS)]
    weights = [idf if df > 1 else 0.0 for idf, df in zip(scores.idf, scores.df, strict=True)]
    whole = sum(weights)
    if not whole:
        return {}
    return {
        key: sum(weight for i, weight in enumerate(weights) if held.mask >> i & 1) / whole
        for key, held in scores.held(keys).items()
    }


_MOST_NEIGHBOURS = 64
