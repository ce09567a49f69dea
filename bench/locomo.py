"""LoCoMo: how often the evidence of a question is among the first that are recalled.

A Home per conversation; its turns are journal entries with speaker, session and time (the caption of a photo that was
shown stands behind the words, in brackets), and every question is a whole `recall`. Conversations 1 to 5 are for work,
6 to 10 for the report: nothing was fitted on them. A question counts at k when any of its evidence turns is among the
first k; the reciprocal rank is that of the first one. LoCoMo is CC BY-NC 4.0: it is measured with and never shipped.

    python -m bench.locomo                       the table
    python -m bench.locomo --fit                 weights fitted on conversations 1 to 5, beside the shipped ones
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench._common import CACHE, DATA
from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.index.embedding.static import installed
from memoranda.index.recipes import NamedRecipe
from memoranda.operations.journaling import Turn, append_many
from memoranda.operations.recalling import recall
from memoranda.operations.space import Space
from memoranda.recall.passages import WEIGHTS, WEIGHTS_NEAR
from memoranda.recall.ranking import SCALE

PASSAGE_WEIGHTS = WEIGHTS if installed() is None else WEIGHTS_NEAR
_SHOWN = 20
_FITTED = 100  # ranked items a question that weights are fitted to
_PLENTY = 10_000_000  # tokens: nothing is left out for want of room


@dataclass(frozen=True)
class Asked:
    text: str
    evidence: frozenset[str]
    category: int


@dataclass
class Outcome:
    """One question: the place of its first evidence turn (None: not among those shown), how many of its evidence turns
    are shown, and for every item shown what its signals gave and whether it is evidence."""

    asked: Asked
    place: int | None
    shown: list[tuple[Mapping[str, object], bool]]

    def all_at(self, k: int) -> bool:
        """Whether all of its evidence is among the first k."""
        return sum(hit for _, hit in self.shown[:k]) == len(self.asked.evidence)


def conversation(sample: Mapping[str, Any], captions: bool) -> tuple[list[str], list[Turn], list[Asked]]:
    """The turns with their ids in LoCoMo, and the questions that have evidence among them."""
    said = sample["conversation"]
    ids: list[str] = []
    turns: list[Turn] = []
    for session in sorted(int(name[8:]) for name in said if re.fullmatch(r"session_\d+", name)):
        at = datetime.strptime(said[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for n, turn in enumerate(said[f"session_{session}"]):
            shown = f" [{turn['blip_caption']}]" if captions and turn.get("blip_caption") else ""
            when = at + timedelta(seconds=20 * n)
            turns.append(Turn(turn["text"] + shown, turn["speaker"], when, session=f"session{session}"))
            ids.append(turn["dia_id"])
    asked = []
    for question in sample["qa"]:
        named = {f"D{a}:{b}" for text in question["evidence"] for a, b in re.findall(r"D:?(\d+):0*(\d+)", text)}
        if named & set(ids):
            asked.append(Asked(question["question"], frozenset(named & set(ids)), question["category"]))
    return ids, turns, asked


@contextmanager
def remembered(ids: Sequence[str], turns: Sequence[Turn]) -> Iterator[tuple[Context, Space, dict[str, str]]]:
    """A Home with these turns, as a long-lived process has it open, a day after the last of them; entry id -> id."""
    CACHE.mkdir(exist_ok=True)
    base = Path(tempfile.mkdtemp(dir=CACHE, prefix="locomo-"))
    last = max(turn.at for turn in turns if turn.at)
    context = Context(user="bench", agent="bench", clock=lambda: last + timedelta(1))
    keys = Keys(base / "keys")
    create(base / "home", context)
    finish(base / "home", context, keys)
    space = Space(context, keys, base / "home", None)
    try:
        appended = append_many(context, space.writable(), turns)
        space.watch()
        yield context, space, {entry.id: name for entry, name in zip(appended, ids, strict=True)}
    finally:
        space.close()
        shutil.rmtree(base)


def measured(
    samples: Sequence[Mapping[str, Any]],
    captions: bool,
    k: int,
    add: Callable[[Space, Sequence[str]], NamedRecipe] | None = None,
) -> tuple[list[list[Outcome]], list[float]]:
    """The outcomes by conversation, and the milliseconds of every recall; `add` puts a recipe beside the default one,
    by which is answered; it is told the questions."""
    outcomes, took = [], []
    for sample in samples:
        ids, turns, asked = conversation(sample, captions)
        here = []
        with remembered(ids, turns) as (context, space, name):
            recipe = add(space, [question.text for question in asked]) if add else None
            for question in asked:
                started = time.perf_counter()
                view = recall(context, space, question.text, k=k, budget=_PLENTY, recipe=recipe)
                took.append((time.perf_counter() - started) * 1000)
                shown = [(item.why["signals"], name.get(item.id) in question.evidence) for item in view.items]
                place = next((n for n, (_, hit) in enumerate(shown, 1) if hit), None)
                here.append(Outcome(question, place, shown))
        outcomes.append(here)
    return outcomes, took


def summary(outcomes: Iterable[Outcome]) -> str:
    places = [outcome.place for outcome in outcomes]
    n = len(places)

    def at(k: int) -> float:
        return 100 * sum(place is not None and place <= k for place in places) / n

    mrr = sum(1 / place for place in places if place) / n
    return f"{n:5d}  {at(1):5.1f}  {at(5):5.1f}  {at(10):5.1f}  {at(20):5.1f}  {mrr:6.4f}"


def table(samples: Sequence[Mapping[str, Any]], captions: bool, shown: Sequence[tuple[str, int, int]]) -> None:
    print(f"{'conversations':16s}{'questions':24s}    n     @1     @5    @10    @20     MRR", flush=True)
    for title, first, last in shown:
        outcomes, took = measured(samples[first:last], captions, _SHOWN)
        flat = [outcome for here in outcomes for outcome in here]
        print(f"{title:16s}{'all':24s}{summary(flat)}")
        print(f"{'':16s}{'without category 5':24s}{summary(o for o in flat if o.asked.category != 5)}")
        for category, name in ((4, "single hop"), (1, "multi hop"), (2, "time"), (3, "open"), (5, "adversarial")):
            print(f"{'':16s}{f'  {category} {name}':24s}{summary(o for o in flat if o.asked.category == category)}")
        took.sort()
        print(f"{'':16s}ms a recall: p50 {took[len(took) // 2]:.2f}, p95 {took[len(took) * 95 // 100]:.2f}", flush=True)


# Fitting


def fit(samples: Sequence[Mapping[str, Any]], captions: bool) -> None:
    """Weights that make the evidence likely among what is recalled, left-one-conversation-out and over all.

    The listwise likelihood (softmax over the items of a question, the mass on its evidence), a little weight decay,
    Adam over all questions at once.
    """
    import numpy as np

    names = list(PASSAGE_WEIGHTS)
    shipped = np.array([PASSAGE_WEIGHTS[name] for name in names])
    outcomes, _ = measured(samples, captions, _FITTED)

    def values(outcome: Outcome) -> Any:
        rows = [[float(str(why.get(name, 0.0))) for name in names] for why, _ in outcome.shown]
        return np.array(rows).reshape(-1, len(names)) * SCALE / shipped

    sets = [
        [(values(o), np.array([hit for _, hit in o.shown])) for o in here if o.place is not None] for here in outcomes
    ]
    spread = np.concatenate([rows for here in sets for rows, _ in here]).std(0) + 1e-9

    def fitted(data: Sequence[tuple[Any, Any]]) -> Any:
        weights, first, second = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
        for step in range(1, 401):
            slope = 2e-3 * weights
            for rows, hits in data:
                score = rows / spread @ weights
                p = np.exp(score - score.max())
                p /= p.sum()
                slope += (p - p * hits / (p @ hits + 1e-12)) @ (rows / spread) / len(data)
            first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
            weights = weights - 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
        return weights / spread

    def judged(here: Iterable[Outcome], weights: Any) -> Iterator[Outcome]:
        for outcome in here:
            score = values(outcome) @ weights
            order = sorted(range(len(score)), key=lambda i, score=score: -score[i])  # type: ignore[misc]
            yield Outcome(outcome.asked, next((n for n, i in enumerate(order, 1) if outcome.shown[i][1]), None), [])

    left_out: list[Outcome] = []
    for held_out, here in enumerate(outcomes):
        left_out += judged(here, fitted([item for i, one in enumerate(sets) if i != held_out for item in one]))
    weights = fitted([item for one in sets for item in one])
    print("shipped          ", summary(o for here in outcomes for o in here))
    print("left one out     ", summary(left_out))
    print("fitted over all  ", summary(o for here in outcomes for o in judged(here, weights)))
    for name, value in zip(names, weights, strict=True):
        print(f"  {name:10s} shipped {PASSAGE_WEIGHTS[name]:6.2f}   fitted {value:6.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="locomo10.json")
    parser.add_argument("--work", action="store_true", help="conversations 1 to 5 only")
    parser.add_argument("--without-captions", action="store_true", help="leave the captions of photos out of the turns")
    parser.add_argument("--fit", action="store_true", help="fit the weights on conversations 1 to 5")
    chosen = parser.parse_args(arguments)
    if not chosen.data.is_file():
        print(f"There is no {chosen.data}: give the file of LoCoMo with --data.", file=sys.stderr)
        return 2
    samples = json.loads(chosen.data.read_text(encoding="utf-8"))
    if chosen.fit:
        fit(samples[:5], not chosen.without_captions)
        return 0
    parts = [("1-5 (work)", 0, 5), ("6-10 (report)", 5, 10)]
    table(samples, not chosen.without_captions, parts[:1] if chosen.work else parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
