"""The part of a lexical view that one reader may know of: what lies in other places is as if it were not there.

A group of facets that begin with `of:` names the places of a reader. What the others hold has no part in a score, nor
in how rare a word is: the same question to the same notes is answered alike, whatever lies beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from memoranda.index._facets import Fetch, facet_term, worked_out
from memoranda.index._store import DROPPED, LIVE, View
from memoranda.index.documents import OF

_MOST = 8  # readers whose views are kept until something is written
_LIVE = bytes([1 if status == LIVE else 0 for status in range(256)])
_CLOSED = bytes([DROPPED, LIVE, *[DROPPED] * 254])  # of a byte that says whether a document may be known


def within(view: View, groups: Sequence[Sequence[str]], fetch: Fetch) -> tuple[View, Sequence[Sequence[str]]]:
    """The view without what the places among these groups shut out, and the groups that are left to be met."""
    places = [group for group in groups if group and group[0].startswith(OF)]
    if not places:
        return view, groups
    wanted = tuple(sorted(tuple(sorted(group)) for group in places))
    kept: dict[object, View] = view.derived.setdefault("within", {})  # type: ignore[assignment]
    found = kept.get(wanted)
    if found is None:
        if len(kept) >= _MOST:
            kept.clear()
        terms = [[facet_term(facet) for facet in group] for group in wanted]
        found = kept[wanted] = _part(view, worked_out(view, terms, fetch))
    return found, [group for group in groups if group not in places]


def _part(view: View, allowed: bytes) -> View:
    segments, live, total = [], 0, 0
    for base, segment in zip(view.bases, view.segments, strict=False):
        status = _shut(segment.status, allowed[base : base + segment.size])
        there = status.translate(_LIVE)
        here, lengths = there.count(1), sum(compress(segment.lengths, there))
        segments.append(segment._replace(status=status, live=here, total=lengths))
        live, total = live + here, total + lengths
    status = _shut(view.tail.status, allowed[view.bases[-1] :])
    there = status.translate(_LIVE)
    tail = view.tail._replace(status=status)
    total += sum(compress(tail.lengths, there))
    return View(view.generation, tuple(segments), tail, live + there.count(1), total)


def _shut(status: bytes, allowed: bytes) -> bytes:
    return bytes(map(max, status, allowed.translate(_CLOSED)))
