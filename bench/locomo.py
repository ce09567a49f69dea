"""LoCoMo: how often a question finds the turn that answers it.

One index per conversation, one document per turn, as a journal has them. Conversations 1 to 5 are for work, 6 to 10
for the report. A question counts as found at k when any of its evidence turns is among the first k; the reciprocal
rank is that of the first one. Needs the data of the tests: `--data FILE` (LoCoMo is CC BY-NC 4.0, so it is measured
with and never shipped).

    python bench/locomo.py                       the table
    python bench/locomo.py --fit                 weights fitted on conversations 1 to 5, beside the shipped ones
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memoranda.index.lexical import Document, LexicalIndex
from memoranda.recall.question import read_question
from memoranda.recall.ranking import PASSAGE_WEIGHTS, SCALE, Fact, Ranked, rank

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo10.json"


@dataclass(frozen=True)
class Turn:
    id: str
    session: int
    place: int
    speaker: str
    at: datetime
    text: str

    @property
    def key(self) -> str:
        return hashlib.sha1(f"{self.id} {self.speaker} {self.text}".encode()).hexdigest()


@dataclass(frozen=True)
class Asked:
    text: str
    evidence: frozenset[str]
    category: int


def conversation(sample: Mapping[str, object], captions: bool) -> tuple[list[Turn], list[Asked]]:
    """The turns in their order and the questions that have evidence among them."""
    said: Mapping[str, object] = sample["conversation"]  # type: ignore[assignment]
    turns: list[Turn] = []
    for session in sorted(int(name[8:]) for name in said if re.fullmatch(r"session_\d+", name)):
        at = datetime.strptime(str(said[f"session_{session}_date_time"]), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in said[f"session_{session}"]:  # type: ignore[attr-defined]
            text = turn["text"]
            if captions and turn.get("blip_caption"):
                text += f" [{turn['blip_caption']}]"
            turns.append(Turn(turn["dia_id"], session, len(turns), turn["speaker"], at, text))
    ids = {turn.id for turn in turns}
    asked = []
    for question in sample["qa"]:  # type: ignore[attr-defined]
        named = {f"D{a}:{b}" for text in question["evidence"] for a, b in re.findall(r"D:?(\d+):0*(\d+)", text)}
        if named & ids:
            asked.append(Asked(question["question"], frozenset(named & ids), question["category"]))
    return turns, asked


class InMemory:
    """The facts of one conversation."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._all = [
            Fact(turn.key, int(turn.at.timestamp() * 1000), "journal", turn.place, str(turn.session), turn.speaker)
            for turn in turns
        ]
        self._by_key = {fact.key: fact for fact in self._all}

    def facts(self, keys: Sequence[str]) -> Mapping[str, Fact]:
        return {key: self._by_key[key] for key in keys}

    def around(self, spans: Sequence[tuple[str, int, int]]) -> Iterable[Fact]:
        for _, first, last in spans:
            yield from self._all[first : last + 1]


@dataclass
class Outcome:
    """One question: the rank of its first evidence turn (None when it is not found), and everything ranked."""

    asked: Asked
    place: int | None
    ranked: list[tuple[Ranked, bool]]


def measured(
    samples: Sequence[Mapping[str, object]], captions: bool, n: int = 1000
) -> tuple[list[list[Outcome]], list[float]]:
    """The outcomes by conversation, and the milliseconds of every question."""
    outcomes, took = [], []
    for sample in samples:
        turns, asked = conversation(sample, captions)
        ids = {turn.key: turn.id for turn in turns}
        with tempfile.TemporaryDirectory() as directory:
            index = LexicalIndex.open(Path(directory))
            facets = ("in:journal", "kind:journal")
            index.apply(Document(turn.key, turn.speaker, "", turn.text, (), facets) for turn in turns)
            index.warm()
            facts = InMemory(turns)
            now = turns[-1].at + timedelta(1)
            here = []
            for question in asked:
                started = time.perf_counter()
                read = read_question(question.text, now)
                ranked = rank(read, index.search(read.query), facts, n) if read.query else []
                took.append((time.perf_counter() - started) * 1000)
                hits = [(item, ids[item.key] in question.evidence) for item in ranked]
                place = next((i for i, (_, hit) in enumerate(hits, 1) if hit), None)
                here.append(Outcome(question, place, hits))
            outcomes.append(here)
            index.close()
    return outcomes, took


def summary(outcomes: Iterable[Outcome]) -> str:
    places = [outcome.place for outcome in outcomes]
    n = len(places)

    def at(k: int) -> float:
        return 100 * sum(place is not None and place <= k for place in places) / n

    mrr = sum(1 / place for place in places if place) / n
    return f"{n:5d}  {at(1):5.1f}  {at(5):5.1f}  {at(10):5.1f}  {at(20):5.1f}  {mrr:6.4f}"


def table(samples: Sequence[Mapping[str, object]], captions: bool, shown: Sequence[tuple[str, int, int]]) -> None:
    print(f"{'conversations':24s}{'questions':28s}    n     @1     @5    @10    @20     MRR")
    for title, first, last in shown:
        outcomes, took = measured(samples[first:last], captions)
        flat = [outcome for here in outcomes for outcome in here]
        took.sort()
        print(f"{title:24s}{'all':28s}{summary(flat)}")
        print(f"{'':24s}{'without category 5':28s}{summary(o for o in flat if o.asked.category != 5)}")
        names = ((4, "single hop"), (1, "multi hop"), (2, "time"), (3, "open"), (5, "adversarial"))
        for category, name in names:
            print(f"{'':24s}{f'  {category} {name}':28s}{summary(o for o in flat if o.asked.category == category)}")
        print(f"{'':24s}ms a question: p50 {took[len(took) // 2]:.2f}, p95 {took[int(len(took) * 0.95)]:.2f}")


# Fitting


def fit(samples: Sequence[Mapping[str, object]], captions: bool) -> None:
    """Weights that make the evidence likely among what was ranked, left-one-conversation-out and over all."""
    import numpy as np

    names = list(PASSAGE_WEIGHTS)
    outcomes, _ = measured(samples, captions)
    sets = []
    for here in outcomes:
        of_conversation = []
        for outcome in here:
            if outcome.place is None:
                continue
            few = outcome.ranked[: max(100, outcome.place)]
            values = [[item.why.get(name, 0.0) * SCALE / PASSAGE_WEIGHTS[name] for name in names] for item, _ in few]
            of_conversation.append((np.array(values), np.array([hit for _, hit in few])))
        sets.append(of_conversation)
    spread = np.concatenate([values for here in sets for values, _ in here]).std(0) + 1e-9

    def fitted(data: Sequence[tuple[object, object]]) -> object:
        weights, first, second = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
        for step in range(1, 401):  # Adam on the listwise likelihood, all questions at once
            slope = 2e-3 * weights
            for values, hits in data:
                score = values / spread @ weights
                p = np.exp(score - score.max())
                p /= p.sum()
                slope += (p - p * hits / (p @ hits + 1e-12)) @ (values / spread) / len(data)
            first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
            weights = weights - 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
        return weights / spread

    def judged(here: Iterable[Outcome], weights: Callable[[], object]) -> list[Outcome]:
        judged = []
        for outcome in here:
            values = [[i.why.get(n, 0.0) * SCALE / PASSAGE_WEIGHTS[n] for n in names] for i, _ in outcome.ranked]
            score = np.array(values).reshape(-1, len(names)) @ weights()
            order = sorted(range(len(score)), key=lambda i: (-score[i], outcome.ranked[i][0].key))
            place = next((p for p, i in enumerate(order, 1) if outcome.ranked[i][1]), None)
            judged.append(Outcome(outcome.asked, place, []))
        return judged

    left_out = []
    for held_out, here in enumerate(outcomes):
        weights = fitted([item for i, of_one in enumerate(sets) if i != held_out for item in of_one])
        left_out += judged(here, lambda weights=weights: weights)  # type: ignore[misc]
    weights = fitted([item for of_one in sets for item in of_one])
    print("shipped           ", summary(o for here in outcomes for o in here))
    print("left one out      ", summary(left_out))
    print("fitted over all   ", summary(o for here in outcomes for o in judged(here, lambda: weights)))
    for name, value in zip(names, weights, strict=True):  # type: ignore[call-overload]
        print(f"  {name:10s} shipped {PASSAGE_WEIGHTS[name]:6.2f}   fitted {value:6.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="locomo10.json")
    parser.add_argument("--work", action="store_true", help="conversations 1 to 5 only")
    parser.add_argument("--without-captions", action="store_true", help="leave the captions of images out of the turns")
    parser.add_argument("--fit", action="store_true", help="fit the weights on conversations 1 to 5")
    chosen = parser.parse_args(arguments)
    if not chosen.data.is_file():
        print(f"There is no {chosen.data}: give the file of LoCoMo with --data.", file=sys.stderr)
        return 2
    samples = json.loads(chosen.data.read_text(encoding="utf-8"))
    assert math.isclose(sum(len(s["qa"]) for s in samples), 1986), "not the LoCoMo of ten conversations"
    if chosen.fit:
        fit(samples[:5], not chosen.without_captions)
        return 0
    shown = [("1-5 (work)", 0, 5)] if chosen.work else [("1-5 (work)", 0, 5), ("6-10 (report)", 5, 10)]
    table(samples, not chosen.without_captions, shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
