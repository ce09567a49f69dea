"""What the catalog's feed says of documents that came and went, taken over by the vector index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from memoranda.index.beside import Beside
from memoranda.index.catalog import Catalog
from memoranda.index.feeding import documents
from memoranda.index.vectors import VectorIndex

_BATCH = 2048  # documents between two commits: a killed build goes on from there

Progress = Callable[[str, int, int], None]


def bring(
    catalog: Catalog, vectors: VectorIndex, identity: str, progress: Progress | None = None, *, batch: int = _BATCH
) -> int:
    """Brings the vectors up to the catalog; `identity` is the catalog's, see `Feeding`. Returns how many were dropped.

    After `batch` documents what was made is kept.
    """
    state = vectors.state()
    last = catalog.fed()
    reached = {"catalog": identity, "feed": str(last)}
    if state.get("catalog") != identity:
        return _compare(catalog, vectors, reached, progress, batch)
    if int(state.get("feed", "0")) < last:
        rows = catalog.db.execute("SELECT key, live FROM feed WHERE n > ? ORDER BY n", (int(state["feed"]),))
        live: dict[str, int] = dict(rows)  # 1: live, 0: a former state, -1: forgotten
        held = vectors.known([key for key in live if live[key] == 0])
        wanted = [k for k in live if live[k] > 0 or (not live[k] and k not in held)]
        rest = _add_many(catalog, vectors, iter(wanted), len(wanted), progress, batch)
        return vectors.apply(
            add=documents(catalog, rest), retire=[key for key in live if live[key] == 0],
            drop=vectors.known([key for key in live if live[key] < 0]), state=reached,
        ).dropped  # fmt: skip
    return 0


def _compare(
    catalog: Catalog, vectors: VectorIndex, reached: dict[str, str], progress: Progress | None, batch: int
) -> int:
    """The catalog was made again, or the vectors never were: what has a vector already is not embedded again."""
    beside = Beside(catalog, vectors.keys())
    about = catalog.documents() if progress else 0
    rest = _add_many(catalog, vectors, beside.missing(), about, progress, batch)
    return vectors.apply(
        add=documents(catalog, rest), retire=beside.former(), revive=beside.again, drop=beside.gone, state=reached,
    ).dropped  # fmt: skip


def _add_many(
    catalog: Catalog, vectors: VectorIndex, keys: Iterator[str], about: int, progress: Progress | None, batch: int
) -> Sequence[str]:
    """Adds all but the last few, with a commit between; returns those that are left to be added.

    `about` is how many there are, for who waits.
    """
    part, done = list(islice(keys, batch)), 0
    while following := list(islice(keys, batch)):
        if progress:
            progress("embedding", done, max(done, about))
        vectors.apply(add=documents(catalog, part))
        part, done = following, done + len(part)
    if progress and done:
        progress("embedding", done, done)
    return part
