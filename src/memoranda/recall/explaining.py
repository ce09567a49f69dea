"""Why an item stands where it does: what each index gave to its score, and what else counted.

Signals are what is weighed; there are many, and their names are those of the formula. What a reader asks for is
coarser: which index found it, at which rank, and what the time, the neighbours, the session, the speaker and the rest
did. Both accounts add up to the score, rounding aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from memoranda.recall.likeness import SERVED

# Which index a signal comes from; what is not named here is an effect.
_INDEX = {
    "words": "lexical", "cover": "lexical",
    "linked": "graph", "heading": "outline", "like": "vectors", "like_near": "vectors", "like_session": "vectors",
    "model": SERVED, "model_near": SERVED, "model_session": SERVED,
}  # fmt: skip
_EFFECT = {
    "superseded": "validity", "ended": "validity", "near": "neighbours", "answer": "neighbours", "month": "date",
    "day": "date", "late": "date", "when": "date", "names": "entities",
}  # fmt: skip
# Named for every item, also where they did nothing. A review never changes a score: it keeps a place.
EFFECTS = ("validity", "review", "neighbours", "session", "speaker", "date", "entities")


def why(
    signals: Mapping[str, float], weights: Mapping[str, float], scale: float, ranks: Mapping[str, int | None]
) -> dict[str, object]:
    """The account of one item.

    `ranks` names every index that was asked, with the item's place by that index alone among the notes, or among the
    passages, that were looked at: from 1, None where the index did not find it. `indexes` has the rank and what the
    index gave, `effects` the rest, `signals` each signal that gave something, under its own name.
    """
    gave = {name: weights[name] * value / scale for name, value in signals.items() if value}
    indexes = dict.fromkeys(ranks, 0.0)
    served = next((name for name in ranks if name.startswith(SERVED)), SERVED)
    effects = dict.fromkeys(EFFECTS, 0.0)
    for name, value in gave.items():
        if (index := _INDEX.get(name)) is not None:
            index = served if index == SERVED else index
            indexes[index] = indexes.get(index, 0.0) + value
        else:
            effect = _EFFECT.get(name, name)
            effects[effect] = effects.get(effect, 0.0) + value
    return {
        "indexes": {name: {"rank": ranks.get(name), "gives": round(value, 6)} for name, value in indexes.items()},
        "effects": {name: round(value, 6) for name, value in effects.items()},
        "signals": {name: round(value, 6) for name, value in gave.items()},
    }


def places(keys: Iterable[str]) -> dict[str, int]:
    """key -> its place, from 1."""
    return {key: n for n, key in enumerate(keys, 1)}


def placed_by_score(scores: Sequence[float]) -> list[int]:
    """For each item, in the order in which they are shown, its place by score alone.

    They differ where a review keeps a place. Items of one score stand as they are shown.
    """
    by_score = sorted(range(len(scores)), key=lambda n: (-scores[n], n))
    place = {n: at for at, n in enumerate(by_score, 1)}
    return [place[n] for n in range(len(scores))]
