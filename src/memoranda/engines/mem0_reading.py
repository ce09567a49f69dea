"""Reading many memories of Mem0: those of a place that holds little else in one call, the rest one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.mem0_routes import MOST, Memory, Routes
from memoranda.engines.mem0_writing import lies_at
from memoranda.engines.naming import Named
from memoranda.engines.outside import Outside
from memoranda.engines.records import Record
from memoranda.engines.together import soon
from memoranda.errors import Unavailable

_SEVERAL = 5  # of a place, from which on it is worth to have all of it
_TIMES = 4  # as many as are wanted may come with them


def places_of(where: OperationContext, scopes: Iterable[str]) -> list[Place]:
    """The places of these scopes (none: of all) that are read, without sessions, which lie in builtin."""
    wanted = frozenset(scopes)
    return [p for p in where.reads if p.scope != "session" and (not wanted or p.scope in wanted)]


def read_each(outside: Outside, routes: Routes, tenant: str, rows: Sequence[Record]) -> list[Memory | None]:
    """The memory of each row, in their order; None for what Mem0 no longer has. EngineUnavailable."""
    by_place: dict[Named, list[Record]] = {}
    for row in rows:
        by_place.setdefault(lies_at(row), []).append(row)
    found: dict[str, Memory] = {}
    for place, there in by_place.items():
        if len(there) >= _SEVERAL and outside.records.number_at(there[0]) <= min(_TIMES * len(there), MOST):
            found |= {memory.id: memory for memory in _all_at(routes, tenant, place)}
    lacking = [str(row.record) for row in rows if row.record not in found]
    alone = dict(zip(lacking, soon([partial(routes.get, tenant, id) for id in lacking]), strict=True))
    return [found.get(str(row.record)) or alone.get(str(row.record)) for row in rows]


def _all_at(routes: Routes, tenant: str, place: Named) -> Sequence[Memory]:
    try:
        return routes.at(tenant, place)
    except Unavailable as error:
        if not error.finished:
            raise
        return ()  # it has answered, and too much for one answer: then one by one, which tells what else is wrong
