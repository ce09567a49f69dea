"""The best of many documents without scoring all of them: exact, and as the score of each decides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memoranda.index._store import View
from memoranda.index._words import Floats, Numbers, Word

Passing = npt.NDArray[np.bool_] | None
_SAMPLE = 8192
_DENSE = 10  # to go through a list costs about as much as to look so many times fewer documents up in it
_SLACK = 1e-9  # more than what adding in another order changes
_ROOM = 4096  # documents by which a view may grow before its scratch is made anew


def candidates(view: View, words: Sequence[Word], passing: Passing, n: int) -> Numbers | None:
    """Documents among which the n best are, with all that score as the last of these; None when that saves nothing.

    The words that give most are looked at first. As soon as the n-th best document so far has more than all other words
    together can give, no document without the first ones can be among the best, and the long lists of the others are
    only asked about the few that can.
    """
    order = sorted(words, key=lambda word: -word.most)
    scratch = _borrowed(view)
    touched: list[Numbers] = []
    rest, gathered, seen = sum(word.most for word in order), 0.0, 0
    bound = sum(word.size for word in order) // 2
    try:
        for at, word in enumerate(order[:-1]):
            seen += word.size
            if seen > bound:
                return None
            for documents, gives in word.weighed():
                before = scratch[documents]
                touched.append(documents[before == 0])
                scratch[documents] = before + gives
            rest -= word.most
            gathered += word.most
            if gathered <= rest:
                continue
            found = np.concatenate(touched)
            if passing is not None:
                found = found[passing[found]]
            scores = scratch[found]
            least = _at_least(scores, n)
            if least > rest + _SLACK:
                return _narrowed(found, scratch, least, rest, order[at + 1 :], n)
        return None
    finally:
        for documents in touched:
            scratch[documents] = 0
        view.lasting["scratch"] = scratch


def _narrowed(
    found: Numbers, all_scores: Floats, least: float, rest: float, further: Sequence[Word], n: int
) -> Numbers:  # fmt: skip
    """Those of the documents that may be among the n best after the further words, which give at most `rest`."""
    scores = all_scores[found]
    for word in further:
        kept = scores + (rest + _SLACK) >= least
        found, scores = found[kept], scores[kept]
        if len(found) <= 4 * n:
            return found
        if word.size < _DENSE * len(found):
            word.add_to(all_scores)
            scores = all_scores[found]
        else:
            scores = all_scores[found] = scores + word.of(found)[1]
        rest -= word.most
        least = max(least, _at_least(scores, n))
    return found[scores + (rest + _SLACK) >= least]


def _at_least(scores: Floats, n: int) -> float:
    """A number that at least n of these reach, near the highest one; 0 when they are fewer."""
    if len(scores) < n:
        return 0.0
    if len(scores) > 4 * _SAMPLE:
        # A sample tells about where the n-th score lies; when it was too bold, all are looked at.
        bold = of_sample(scores, None, n)
        if np.count_nonzero(scores >= bold) >= n:
            return bold
    return float(np.partition(scores, len(scores) - n)[len(scores) - n])


def of_sample(scores: Floats, passing: Passing, n: int) -> float:
    """A number that probably somewhat more than n of many scores reach."""
    step = max(len(scores) // _SAMPLE, 16)
    sample = scores[::step] if passing is None else scores[::step] * passing[::step]
    rank = len(sample) - min(len(sample), 3 * n // step + 8)
    return float(np.partition(sample, rank)[rank])


def _borrowed(view: View) -> Floats:
    """Zeros, one for each document, that are zero again when they are given back; another thread gets its own."""
    scratch = view.lasting.pop("scratch", None)
    if scratch is None or len(scratch) < view.size:  # type: ignore[arg-type]
        return np.zeros(view.size + _ROOM)
    return scratch  # type: ignore[return-value]
