"""Golden recall tests: questions of a Home and the notes that must be found, in `memory/golden.yaml`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.values import dataclass

PATH = "memory/golden.yaml"
DEFAULT_K = 8
_HEAD = "# Questions that this Home must answer, and the notes that answer them: `memoranda golden run`.\n"


@dataclass(frozen=True, slots=True)
class Question:
    """One golden question: any of `expect` (ids of notes, of chains, or of entries) must be among the first k."""

    question: str
    expect: tuple[str, ...]
    as_of: str | None = None
    known_at: str | None = None


@dataclass(frozen=True, slots=True)
class Golden:
    """The file: k, the least share of hits and the least mean reciprocal rank that pass, and the questions."""

    k: int
    hit: float
    mrr: float
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question: the rank (from 1) of the first expected item, None for a miss; what was found."""

    question: Question
    rank: int | None
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldenReport:
    """hit is the share of questions answered within k, mrr the mean of 1/rank (0 for a miss)."""

    k: int
    hit: float
    mrr: float
    wanted_hit: float
    wanted_mrr: float
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        """Whether there is a question and both figures reach the file's threshold."""
        return bool(self.outcomes) and self.hit >= self.wanted_hit and self.mrr >= self.wanted_mrr

    def json(self) -> dict[str, object]:
        rows = [
            {"question": o.question.question, "expect": list(o.question.expect), "rank": o.rank, "found": list(o.found)}
            for o in self.outcomes
        ]
        return {
            "k": self.k, "questions": len(self.outcomes), f"hit@{self.k}": round(self.hit, 6),
            "hit": round(self.hit, 6), "mrr": round(self.mrr, 6),
            "threshold": {"hit": self.wanted_hit, "mrr": self.wanted_mrr},
            "passed": self.passed, "misses": [row for row in rows if row["rank"] is None], "results": rows,
        }  # fmt: skip


def parse(data: bytes) -> Golden:
    """The questions of a file; InvalidInput when it is not what it should be."""
    import yaml

    try:
        raw = yaml.load(data, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise _bad("It is not YAML.") from error
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise _bad("It holds no fields.")
    threshold = raw.get("threshold") or {}
    k = raw.get("k", DEFAULT_K)
    if not isinstance(k, int) or not 1 <= k <= 100 or not isinstance(threshold, dict):
        raise _bad("`k` is a number from 1 to 100 and `threshold` has `hit` and `mrr`.")
    return Golden(
        k, _share(threshold.get("hit", 1.0)), _share(threshold.get("mrr", 0.0)),
        tuple(_question(number, item) for number, item in enumerate(raw.get("questions") or (), 1)),
    )  # fmt: skip


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise _bad("A threshold is a number from 0 to 1.")
    return float(value)


def _question(number: int, item: Any) -> Question:
    if not isinstance(item, dict) or not isinstance(item.get("question"), str):
        raise _bad("Every question has a `question` and a list `expect`.")
    expect = item.get("expect")
    if isinstance(expect, str):
        expect = [expect]
    if not isinstance(expect, list) or not expect or not all(isinstance(x, str) for x in expect):
        raise _bad(f"Question {number} expects no ids.")
    times = {name: str(item[name]) for name in ("as_of", "known_at") if item.get(name) is not None}
    return Question(item["question"], tuple(expect), **times)


def _bad(why: str) -> InvalidInput:
    return InvalidInput(f"{PATH} cannot be used.", why=why, remedy="See docs/format.md for its form.")


def with_question(data: bytes | None, question: Question) -> bytes:
    """The file with one question more at its end; what it held stays as it was."""
    import json

    rows = [f"  - question: {json.dumps(question.question, ensure_ascii=False)}"]
    for name in ("as_of", "known_at"):
        value = getattr(question, name)
        if value is not None:
            rows.append(f'    {name}: "{value}"')
    rows.append(f"    expect: [{', '.join(question.expect)}]")
    added = "\n".join(rows) + "\n"
    if data is None or not data.strip():
        return f"{_HEAD}k: {DEFAULT_K}\nthreshold: {{hit: 1.0, mrr: 0.5}}\nquestions:\n{added}".encode()
    before = parse(data)
    text = data if data.endswith(b"\n") else data + b"\n"
    if not before.questions:
        text += b"questions:\n"
    after = text + added.encode()
    if parse(after).questions != (*before.questions, question):
        raise _bad("A question cannot be added at its end: `questions` is not the last field.")
    return after


def run(golden: Golden, k: int | None, ask: Callable[[Question, int], Sequence[Sequence[str]]]) -> GoldenReport:
    """Asks every question. `ask` gives, best first, the ids under which each found item may be expected."""
    k = k or golden.k
    outcomes = []
    for question in golden.questions:
        found = ask(question, k)[:k]
        wanted = set(question.expect)
        rank = next((n for n, ids in enumerate(found, 1) if wanted & set(ids)), None)
        outcomes.append(Outcome(question, rank, tuple(ids[0] for ids in found if ids)))
    count = len(outcomes) or 1
    hit = sum(o.rank is not None for o in outcomes) / count
    mrr = sum(1 / o.rank for o in outcomes if o.rank) / count
    return GoldenReport(k, hit, mrr, golden.hit, golden.mrr, tuple(outcomes))
