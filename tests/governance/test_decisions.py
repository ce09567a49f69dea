"""The decisions as they are shipped: their own Rego tests, and that nothing but a plain yes is one."""

from __future__ import annotations

import json
import random
import re
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from memoranda.errors import ComponentUnavailable, ConfigRefused
from memoranda.governance.decisions import Decision, EmbeddedDecisions, decision_of, shipped_policies
from tests.governance.documents import DOCUMENT, random_document

POLICIES = Path(__file__).parent.parent.parent / "policies"
THOUSANDS = 3000


def opa() -> Any:
    """The real OPA with the shipped policies and their tests."""
    try:
        made = import_module("opa_bindings").OpaEngine()
    except (ImportError, OSError) as error:
        pytest.skip(f"NOT CHECKED against OPA: requirements/opa.txt is not installed here ({error})")
    for path in sorted(POLICIES.glob("*.rego")):
        made.add_policy(path.name, path.read_text())
    return made


def rego_tests() -> list[str]:
    return re.findall(r"^(test_\w+) if", (POLICIES / "memory_test.rego").read_text(), re.M)


def test_the_rego_tests_pass_in_the_engine_in_process() -> None:
    import regorus

    engine = regorus.Engine()
    for path in sorted(POLICIES.glob("*.rego")):
        engine.add_policy(path.name, path.read_text())
    failed = [name for name in rego_tests() if engine.eval_rule(f"data.memory_test.{name}") is not True]
    assert len(rego_tests()) > 15 and not failed


def test_the_rego_tests_pass_in_opa() -> None:
    found = opa().eval_document("memory_test")
    assert [name for name in rego_tests() if found.get(name) is not True] == []


def decided_by(engine: Any, package: str, document: dict[str, Any]) -> Decision | None:
    try:
        return decision_of(engine.eval_document(package, document), "")
    except import_module("opa_bindings").OpaError:
        return None


def embedded(decisions: EmbeddedDecisions, package: Any, document: dict[str, Any]) -> Decision | None:
    try:
        return decisions.decide(package, document)
    except ComponentUnavailable:
        return None


@pytest.mark.parametrize("package", ["memory.write", "memory.search"])
def test_the_engine_in_process_and_opa_agree_on_random_inputs(package: Any) -> None:
    theirs, ours, rng = opa(), EmbeddedDecisions(), random.Random(package)
    allowed = broken = 0
    for _ in range(THOUSANDS):
        document = random_document(rng, package)
        expected, found = decided_by(theirs, package, document), embedded(ours, package, document)
        if expected is None or found is None:
            # What is of a wrong type stops one engine and is undefined to the other. Neither of them allows.
            broken += 1
            assert not (expected and expected.allow) and not (found and found.allow), json.dumps(document)
        else:
            assert (found.allow, found.reasons) == (expected.allow, expected.reasons), json.dumps(document)
            allowed += found.allow
    assert THOUSANDS // 20 < allowed < THOUSANDS * 3 // 4 and broken < THOUSANDS // 10


def test_the_files_that_decide_are_those_that_are_shown() -> None:
    assert shipped_policies() == {
        path.name: path.read_text() for path in POLICIES.glob("*.rego") if path.name != "memory_test.rego"
    }


def test_every_reason_is_explained() -> None:
    given = {name for text in shipped_policies().values() for name in re.findall(r'deny contains "(\w+)"', text)}
    page = (POLICIES.parent / "docs/governance.md").read_text()
    explained = {name for row in re.findall(r"^\| (`.+?) \|", page, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert given | {"undefined"} == explained - {"viewer", "editor", "can_invoke"}


def test_an_allowed_and_a_denied_decision_say_what_decided() -> None:
    decisions = EmbeddedDecisions()
    decisions.ready()
    assert decisions.decide("memory.write", DOCUMENT).allow
    denied = decisions.decide("memory.write", {**DOCUMENT, "frozen": True})
    assert (denied.allow, denied.reasons) == (False, ("frozen",))
    assert re.fullmatch(r"memory\.write@[0-9a-f]{12}", denied.policy)


@pytest.mark.parametrize(
    "answer",
    [None, True, "true", [], {}, {"allow": "true", "deny": []}, {"allow": 1, "deny": []},
     {"allow": True, "deny": ["x"]}, {"deny": []}, {"allow": False, "deny": []}, {"allow": True, "deny": None},
     {"allow": True, "deny": [1]}],
)  # fmt: skip
def test_nothing_but_a_plain_yes_allows(answer: object) -> None:
    found = decision_of(answer, "p")
    assert not found.allow and found.reasons


@pytest.mark.parametrize("input", [{}, [], "remember", None, 7])
def test_an_input_that_is_none_denies(input: Any) -> None:
    assert not EmbeddedDecisions().decide("memory.write", input).allow


def test_a_package_that_is_not_there_denies() -> None:
    assert not EmbeddedDecisions().decide("memory.erase", DOCUMENT).allow  # type: ignore[arg-type]


def test_many_threads_decide_at_once() -> None:
    decisions, wrong = EmbeddedDecisions(), []

    def run(frozen: bool) -> None:
        for _ in range(50):
            if decisions.decide("memory.write", {**DOCUMENT, "frozen": frozen}).allow == frozen:
                wrong.append(frozen)

    threads = [threading.Thread(target=run, args=(n % 2 == 0,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_policies_of_an_operator_count_and_broken_ones_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused):
        EmbeddedDecisions(tmp_path)
    broken = tmp_path / "memory.rego"
    broken.write_text("package memory.write\nallow if {")
    with pytest.raises(ConfigRefused):
        EmbeddedDecisions(tmp_path)
    broken.write_text('package memory.write\nimport rego.v1\ndeny contains "closed" if true\n')
    assert not EmbeddedDecisions(tmp_path).decide("memory.write", DOCUMENT).allow
    broken.write_text("package memory.write\nimport rego.v1\nallow := true\ndeny := []\n")
    decisions = EmbeddedDecisions(tmp_path)
    assert decisions.decide("memory.write", DOCUMENT).allow
    with pytest.raises(ComponentUnavailable):
        decisions.ready()
