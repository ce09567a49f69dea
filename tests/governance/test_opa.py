"""The OPA client: the real OPA behind its REST interface where it is installed, and everything that is no answer."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable
from memoranda.governance.credentials import Secret
from memoranda.governance.decisions import EmbeddedDecisions, Opa
from tests.engines.component import Answer, Asked, standing
from tests.governance.documents import DOCUMENT, random_document
from tests.governance.test_decisions import opa


@pytest.fixture
def egress() -> Iterator[Egress]:
    made = Egress(EgressSettings(environment="development"))
    yield made
    made.close()


def serving(engine: Any) -> Any:
    """OPA's data interface over its own evaluator."""

    def answers(asked: Asked) -> Answer:
        assert asked.method == "POST" and asked.headers["content-type"] == "application/json"
        assert set(asked.json) == {"input"} and asked.path.startswith("/v1/data/")
        found = engine.eval_document(asked.path.removeprefix("/v1/data/").replace("/", "."), asked.json["input"])
        return Answer(body={"result": found, "decision_id": "1"})

    return answers


def test_opa_over_http_decides_as_the_engine_in_process(egress: Egress) -> None:
    embedded, rng = EmbeddedDecisions(), random.Random(3)
    with standing(serving(opa())) as server:
        client = Opa(egress, server.url)
        client.ready()
        for _ in range(150):
            for package in ("memory.write", "memory.search"):
                document = random_document(rng, package)
                try:
                    ours = embedded.decide(package, document)  # type: ignore[arg-type]
                except ComponentUnavailable:
                    continue
                theirs = client.decide(package, document)  # type: ignore[arg-type]
                assert (theirs.allow, theirs.reasons) == (ours.allow, ours.reasons), json.dumps(document)


def test_an_allow_and_a_deny_are_taken_and_the_token_goes_along(egress: Egress) -> None:
    with standing(lambda _: Answer(body={"result": {"allow": True, "deny": []}})) as server:
        client = Opa(egress, f"{server.url}/opa", token=lambda: Secret("t0p"))
        assert client.decide("memory.write", DOCUMENT).allow
        (asked,) = server.asked
        assert asked.path == "/opa/v1/data/memory/write" and asked.json == {"input": DOCUMENT}
        assert asked.headers["authorization"] == "Bearer t0p"
        server.answers = lambda _: Answer(body={"result": {"allow": False, "deny": ["frozen"]}})
        assert client.decide("memory.search", DOCUMENT).reasons == ("frozen",)
        assert not client.decide("memory.drop", DOCUMENT).allow  # type: ignore[arg-type]
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    "body",
    [{}, {"decision_id": "1"}, {"result": {"allow": True, "deny": ["no"]}}, {"result": {"allow": True, "deny": "x"}}],
)
def test_what_is_undefined_or_contradicts_itself_denies(egress: Egress, body: Any) -> None:
    with standing(lambda _: Answer(body=body)) as server:
        assert not Opa(egress, server.url).decide("memory.write", DOCUMENT).allow


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500, {"code": "internal_error"}),
        Answer(400, {"result": {"allow": True, "deny": []}}),
        Answer(307, headers={"location": "/v1/data/other"}),
        Answer(200, {"result": True}),
        Answer(200, {"result": {"allow": "true", "deny": []}}),
        Answer(200, {"result": {"allow": 1, "deny": []}}),
        Answer(200, {"result": None}),
        Answer(200, [{"result": {"allow": True, "deny": []}}]),
        Answer(200, b"yes"),
        Answer(wait=3.0),
        Answer(raw=b"nonsense"),
    ],
)
def test_no_answer_and_nonsense_are_no_and_said_so(egress: Egress, answer: Answer) -> None:
    with standing(lambda _: answer) as server:
        with pytest.raises(ComponentUnavailable):
            Opa(egress, server.url, timeout=0.3).decide("memory.write", DOCUMENT)


@pytest.mark.parametrize("result", [{"allow": True, "deny": []}, {"allow": False, "deny": []}, None])
def test_an_opa_with_other_policies_is_not_ready(egress: Egress, result: Any) -> None:
    body = {} if result is None else {"result": result}
    with standing(lambda _: Answer(body=body)) as server, pytest.raises(ComponentUnavailable):
        Opa(egress, server.url).ready()


def test_an_opa_that_is_gone_is_no(egress: Egress) -> None:
    with standing(lambda _: Answer(body={"result": {"allow": True, "deny": []}})) as server:
        client = Opa(egress, server.url, timeout=1.0)
        assert client.decide("memory.write", DOCUMENT).allow
    with pytest.raises(ComponentUnavailable):
        client.decide("memory.write", DOCUMENT)
