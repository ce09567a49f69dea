"""How well recall finds, with the defaults as shipped: LoCoMo's conversations 6 to 10, on which nothing was fitted.

A question counts when any of its evidence turns is among the first ten, or, in the second measurement, when its words
are inside the view that 2,000 tokens hold and nobody says how many items. `background` measures the same with a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import mean

from bench._common import DATA, Line, Options
from bench.locomo import conversation, measured, remembered
from memoranda.operations.recalling import recall

TITLE = "finding: LoCoMo, conversations 6 to 10, defaults as shipped"
_BUDGET = 2000
_MISSING = ()


def run(options: Options) -> Iterator[Line]:
    if DATA.is_file():
        samples = json.loads(DATA.read_text(encoding="utf-8"))[5 : 6 if options.quick else 10]
        yield from _locomo(samples)
    else:
        yield Line("LoCoMo", 0, "%", note="not measured: shared/data/locomo10.json is not there")


def _locomo(samples: list[dict[str, object]]) -> Iterator[Line]:
    outcomes = [outcome for here in measured(samples, True, 20)[0] for outcome in here]
    first = 100 * mean(o.place is not None and o.place <= 10 for o in outcomes)
    mrr = mean(1 / o.place if o.place else 0 for o in outcomes)
    yield least(f"evidence in the first 10, {len(outcomes)} questions", first, 88, "%")
    yield least("mean reciprocal rank", mrr, 0.61, "")
    several = [o for o in outcomes if o.asked.category == 1]
    all_of_it = 100 * mean(o.all_at(10) for o in several)
    yield Line(f"all evidence in the first 10, {len(several)} multi-hop", all_of_it, "%")
    seen, whole, items = _in_view(samples)
    yield least(f"evidence inside the view of {_BUDGET:,} tokens", 100 * mean(seen), first, "%")
    yield Line("all evidence inside it, multi-hop", 100 * mean(whole), "%")
    yield Line("items in it", mean(items), "")


def least(what: str, ours: float, bound: float, unit: str, note: str = "") -> Line:
    return Line(what, ours, unit, bound=f"at least {bound:.3g}", met=ours >= bound, note=note)


def _in_view(samples: list[dict[str, object]]) -> tuple[list[bool], list[bool], list[int]]:
    """For each question whether any of its evidence is in view; of multi-hop ones whether all is; how many items."""
    seen, whole, items = [], [], []
    for sample in samples:
        ids, turns, asked = conversation(sample, True)
        with remembered(ids, turns) as (context, space, name):
            for question in asked:
                view = recall(context, space, question.text, k=None, budget=_BUDGET)
                inside = {name.get(item.id) for item in view.items if item.view == "full"}
                seen.append(bool(inside & question.evidence))
                items.append(len(view.items))
                if question.category == 1:
                    whole.append(question.evidence <= inside)
    return seen, whole, items
