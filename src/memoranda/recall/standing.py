"""Reviewed notes keep their place: what no person has accepted crowds out none that answers the question.

A flood of near-duplicates, or one text that repeats the question word for word, ranks above a plain sentence that is
true. So the reviewed notes that answer a question are looked for by themselves, the best of them are always among the
first k, and what nobody stands by comes after a reviewed note that answers about as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memoranda.recall.items import Found

T = TypeVar("T")
# How much of another item's score a reviewed note needs to stand before it; what is quarantined stands behind all.
_ENOUGH = {"quarantined": 0.0, "unclaimed": 0.5, "unreviewed": 0.7, "contested": 0.7}
_CLOSE = 0.5  # of the best score: what keeps its place for certain


def keep_reviewed(ranked: Sequence[T], beside: Sequence[T], k: int, of: Callable[[T], Found]) -> list[T]:
    """The k that are shown: `ranked` best first, `beside` the reviewed notes that ranked behind them, best first.

    At most half of the places, and one at least, are kept for reviewed notes; where they score less than half of the
    best, only the last place.
    """
    chosen = list(ranked[:k])
    if not chosen:
        return list(beside[:k])
    best = of(chosen[0]).score
    beside = _before_edits(chosen, beside, k, of)
    there = sum(of(item).trust == "reviewed" for item in chosen)
    for item in beside:
        close = of(item).score >= _CLOSE * best
        if there >= (max(1, k // 2) if close else int(k > 1)):
            break
        if len(chosen) >= k:
            last = next((n for n in reversed(range(len(chosen))) if of(chosen[n]).trust != "reviewed"), None)
            if last is None:
                break
            del chosen[last]
        chosen.append(item)
        there += 1
    return _in_front(chosen, of)


def _before_edits(chosen: list[T], beside: Sequence[T], k: int, of: Callable[[T], Found]) -> list[T]:
    """Gives a note's reviewed words a place where an edit of them has one; returns the others of `beside`."""
    left = []
    for item in beside:
        edit = next((n for n, other in enumerate(chosen) if _edits(of(other), of(item))), None)
        if edit is None:
            left.append(item)
            continue
        if len(chosen) >= k:
            del chosen[edit]
        chosen.append(item)
    return left


def _edits(other: Found, item: Found) -> bool:
    """Whether `other` is what the file of this reviewed note says by now, or another file with its id."""
    if item.trust != "reviewed" or other.trust == "reviewed" or other.kind == "journal":
        return False
    return item.id == other.id or item.path == other.path


def _in_front(chosen: Sequence[T], of: Callable[[T], Found]) -> list[T]:
    """Reviewed notes before what nobody stands by and answers no better, otherwise as they were."""
    order: list[T] = []
    for item in chosen:
        place = len(order)
        found = of(item)
        if found.trust == "reviewed":
            after = (n for n, other in enumerate(order) if _yields(of(other), found.score) or _edits(of(other), found))
            place = next(after, place)
        order.insert(place, item)
    return order


def _yields(other: Found, score: float) -> bool:
    if other.kind == "journal" and not other.taint:
        return False  # what was said stands where it was found
    share = _ENOUGH["quarantined"] if other.taint and other.trust != "reviewed" else _ENOUGH.get(other.trust)
    return share is not None and score >= share * other.score
