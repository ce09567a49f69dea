"""Which of many short texts may stand in a long one, told with numpy by the three letters in a row that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

_BITS = 5  # of a byte: no two lower-case letters have the same
_ALL = 1 << 3 * _BITS

Numbers = npt.NDArray[np.uint16]


def may_hold(text: str, hints: tuple[str, ...]) -> Sequence[str]:
    """Those of the hints whose triples all stand in the text; of a hint without one nothing can be told."""
    there = np.zeros(_ALL, np.bool_)
    there[_triples(text)] = True
    short, rows = _table(hints)
    return [*short, *(hints[n] for n in np.flatnonzero(there[rows].all(axis=1)).tolist() if hints[n] not in short)]


@cache
def _table(hints: tuple[str, ...]) -> tuple[tuple[str, ...], Numbers]:
    """The hints that are too short to have a triple; a row of triples for each hint, filled up with its last one."""
    found = [_triples(hint) for hint in hints]
    longest = max(map(len, found))
    rows = np.zeros((len(hints), longest), np.uint16)
    for row, triples in zip(rows, found, strict=True):
        if len(triples):
            row[: len(triples)], row[len(triples) :] = triples, triples[-1]
    return tuple(hint for hint, triples in zip(hints, found, strict=True) if not len(triples)), rows


def _triples(text: str) -> Numbers:
    letters = np.frombuffer(text.encode("utf-8", "replace"), np.uint8) & ((1 << _BITS) - 1)
    if len(letters) < 3:
        return np.zeros(0, np.uint16)
    wide = letters.astype(np.uint16)
    return (wide[:-2] << 2 * _BITS | wide[1:-1] << _BITS | wide[2:]).astype(np.uint16, copy=False)
