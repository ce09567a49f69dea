"""Recall in process, whole (outside edits looked for, filters, exact scores, the view), beside a bare FTS5 query.

The yardstick holds the same texts and asks for the same words with OR, stemmed by Porter, best eight by its own rank:
no filter, no time, no budget, no evidence. Fifty questions of ours follow one another, then the yardstick's, in turns;
a line below says what one costs that comes right after a query of the yardstick's, which has emptied the caches.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

from bench._common import (
    CACHE,
    SIZES,
    Line,
    Options,
    at_most,
    blocks,
    context,
    home_of,
    opened,
    pairs,
    percentile,
    questions,
)
from memoranda.index.catalog import Catalog
from memoranda.index.recipes import NamedRecipe
from memoranda.operations.recalling import recall

TITLE = "recall: one question in process, whole"
_BOUNDS = {  # by recipe and size: p50, p95 in ms
    "words": {1_000: (1, 3), 10_000: (2, 5), 100_000: (3, 8)},
    "static": {100_000: (4, 10)},
}


def run(options: Options) -> Iterator[Line]:
    for size in options.sizes(*SIZES):
        yield from _at(size, options)


def _at(size: int, options: Options) -> Iterator[Line]:
    """By the words alone, then as shipped, with vectors: both with everything else that a recall does."""
    asked = questions(600)
    with opened(home_of(size)) as (space, home):
        space.watch()  # as an MCP server does
        fts = _fts(home.indexes.catalog, size)

        def yard(n: int) -> None:
            fts.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 8", (_either(asked[n]),)).fetchall()

        for name, label in (("words", "words alone"), ("static", "with vectors")):
            recipe = home.indexes.recipe(name)

            def ours(n: int, recipe: NamedRecipe = recipe) -> None:
                recall(context(), space, asked[n], recipe=recipe)

            for question in questions(620)[600:]:
                recall(context(), space, question, recipe=recipe)
            times, bare = blocks(ours, yard, options.samples(400))
            bounds = _BOUNDS[name].get(size)
            for at, percent in enumerate((50, 95)):
                what = f"p{percent}, {size:,} notes, {label}"
                mine, theirs = percentile(times, percent), percentile(bare, percent)
                if bounds:
                    yield at_most(what, mine, bounds[at], "ms", "FTS5, OR, Porter", theirs)
                else:
                    yield Line(what, mine, "ms", "FTS5, OR, Porter", theirs, mine / theirs)
            apart, _ = pairs(lambda n: ours(400 + n), lambda n: yard(400 + n), options.samples(200))
            yield Line(f"  p50, each after a query of FTS5's, {size:,} notes, {label}", percentile(apart, 50), "ms")
        fts.close()


def _either(question: str) -> str:
    """The words of a question as FTS5 wants them: any of them may match."""
    return " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))


def _fts(catalog: Catalog, size: int) -> sqlite3.Connection:
    path = CACHE / f"fts-{size}.db"
    path.unlink(missing_ok=True)
    fts = sqlite3.connect(path)
    fts.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter')")
    bodies = catalog.db.execute("SELECT body FROM notes WHERE live = 1")
    fts.executemany("INSERT INTO t VALUES (?)", bodies)
    fts.execute("INSERT INTO t(t) VALUES ('optimize')")
    fts.commit()
    return fts
