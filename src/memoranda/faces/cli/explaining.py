"""`recall --explain`: a table of what each index and each effect gave to the score of each item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoranda.operations.presenting import Item, View

_BESIDE = 6  # items beside each other, so that a table fits 80 columns
_CELL = 11


def table(view: View) -> Iterator[str]:
    """A column for each item, under the number that it has above; the column adds up to the score, rounding aside."""
    if not view.items:
        return
    yield ""
    yield "What made the scores, and (in brackets) the rank that an index alone would give:"
    for at in range(0, len(view.items), _BESIDE):
        yield ""
        yield from _block(view.items[at : at + _BESIDE], at + 1)


def _block(items: Sequence[Item], first: int) -> Iterator[str]:
    whys: list[Mapping[str, Any]] = [item.why for item in items]
    yield _row("", [f"{first + n}." for n in range(len(items))])
    for index in dict.fromkeys(name for why in whys for name in why["indexes"]):
        yield _row(index, [_of_index(why["indexes"].get(index)) for why in whys])
    for effect in dict.fromkeys(name for why in whys for name in why["effects"]):
        if effect == "review":
            yield _row(effect, [_of_review(item, first + n) for n, item in enumerate(items)])
        else:
            yield _row(effect, [_number(why["effects"].get(effect, 0.0)) for why in whys])
    yield _row("score", [f"{item.score:.4f}" for item in items])


def _of_index(gave: Mapping[str, Any] | None) -> str:
    if gave is None:
        return "-"
    rank = f" ({gave['rank']})" if gave["rank"] is not None else ""
    return _number(gave["gives"]) + rank


def _of_review(item: Item, place: int) -> str:
    """A review gives no number, but a place: that by score alone is told where it is another one."""
    by_score = item.why["by_score"]
    return f"from {by_score}." if by_score != place else "-"


def _number(value: float) -> str:
    return f"{value:.4f}" if value else "-"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<11}" + "".join(f"{cell:>{_CELL}}" for cell in cells)
