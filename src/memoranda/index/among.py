"""One question of SQL about many values, a few hundred at a time: a statement takes only so many parameters."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

_FEW = 400  # parameters of one statement


def among(db: sqlite3.Connection, query: str, values: Iterable[object], *more: object) -> Iterator[tuple[Any, ...]]:
    """The rows of a query in which `?*` stands for the values, each asked for once; `more` follow them."""
    wanted = list(dict.fromkeys(values))
    for at in range(0, len(wanted), _FEW):
        part = wanted[at : at + _FEW]
        # Few lengths, so that SQLite finds the statement prepared: to ask for a value twice costs less than to prepare.
        part += part[-1:] * (min(1 << (len(part) - 1).bit_length(), _FEW) - len(part))
        yield from db.execute(query.replace("?*", ",".join("?" * len(part)), 1), (*part, *more))
