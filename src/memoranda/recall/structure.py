"""What the graph and the outline say of a question, in the recipes that ask for them.

The weights are not fitted: no question of LoCoMo and of the French set meets a link or a heading. They are small, so
that what hangs together with a good answer, and what bears the question in a heading, rises among its equals.
"""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.index.catalog import Catalog
from memoranda.index.lexical import Accept, LexicalIndex
from memoranda.index.structure import edges_of, neighbours
from memoranda.recall.question import Question

_SEEDS = 5  # the best that were found, whose neighbours are looked for
_FURTHER = 8  # neighbours that no word found and that may be shown
NEAR_ENOUGH = 0.2  # how strong the bond must be for that


class Structure:
    """The two indexes' view of one question; either may be missing."""

    def __init__(
        self, catalog: Catalog, graph: LexicalIndex | None, outline: LexicalIndex | None,
        facets: Sequence[Sequence[str]], *, former: bool,
    ) -> None:  # fmt: skip
        self._catalog = catalog
        self._graph = graph
        self._outline = outline
        self._facets = facets
        self._former = former

    @property
    def names(self) -> tuple[str, ...]:
        """The indexes that are asked."""
        return tuple(name for name, index in (("graph", self._graph), ("outline", self._outline)) if index is not None)

    def headings(self, question: Question, keys: Sequence[str]) -> dict[str, float]:
        """The share of the question that the headings of each note hold."""
        if self._outline is None or not keys:
            return {}
        scores = self._outline.search(question.query, self._facets, include_retired=self._former)
        return {key: share for key, held in scores.held(keys).items() if (share := scores.share(held.mask))}

    def bonds(self, best: Sequence[str]) -> dict[str, float]:
        """key -> how strongly it hangs together with the best that were found: each with its share of the bonds."""
        if self._graph is None:
            return {}
        bonds: dict[str, float] = {}
        edges = edges_of(self._catalog, list(best[:_SEEDS]))
        for seed in best[:_SEEDS]:
            near = neighbours(self._graph, edges.get(seed, ()), self._facets, former=self._former)
            for key, bond in near.items():
                if key != seed:
                    bonds[key] = max(bonds.get(key, 0.0), bond)
        return bonds

    def further(self, bonds: dict[str, float], known: Sequence[str], accept: Accept | None) -> list[str]:
        """The neighbours that no index found, nearest first."""
        held = set(known)
        keys = [key for key, bond in bonds.items() if bond >= NEAR_ENOUGH and key not in held]
        keys = sorted(keys, key=lambda key: (-bonds[key], key))[:_FURTHER]
        passing = keys if accept is None or not keys else set(accept(keys))
        return [key for key in keys if key in passing]
