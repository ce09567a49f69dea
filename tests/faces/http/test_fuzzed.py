"""The whole OpenAPI document under generated requests, such as it allows and such as it does not.

`MEMORANDA_FUZZ=200` tries that many per operation and kind; otherwise a few, so that the suite stays quick.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from memoranda.faces.http.openapi import routes_of
from memoranda.faces.http.routes import admin, audit, engines, holds, knowledge, memories, policies, standing

CASES = int(os.environ.get("MEMORANDA_FUZZ", "3"))
OPERATIONS = [
    (method, route.path)
    for area in (engines, policies, memories, knowledge, holds, audit, admin, standing)
    for route in area.router.routes
    for method in route.methods  # type: ignore[attr-defined]
]


def test_all_operations_are_tried(app: FastAPI) -> None:
    assert {(method, route.path) for route in routes_of(app) for method in route.methods} == set(OPERATIONS)


@pytest.mark.parametrize("kind", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["allowed", "not allowed"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_brings_an_answer_that_the_document_does_not_know(
    app: FastAPI, tokens: dict[str, dict[str, str]], method: str, path: str, kind: GenerationMode
) -> None:
    if kind is GenerationMode.NEGATIVE and not path.startswith("/v1/"):
        pytest.skip("it takes nothing that could be wrong")
    headers = tokens["root"] if "/engines" in path or "tenants" in path else tokens["ana"]
    operation = schemathesis.openapi.from_asgi("/openapi.json", app)[path][method]

    @given(case=operation.as_strategy(generation_mode=kind))
    @settings(
        max_examples=CASES, deadline=None, phases=[Phase.generate], derandomize=CASES < 10, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def tried(case: Any) -> None:
        answer = case.call(headers=headers)
        assert answer.status_code < 500 or answer.status_code in (502, 503), answer.text
        # What a schema allows may still be refused: a time that does not exist, an operation that an engine lacks.
        left_out = [positive_data_acceptance, not_a_server_error]
        if answer.status_code == 413:
            left_out.append(negative_data_rejection)  # it was refused, before it was looked at
        case.validate_response(answer, headers=headers, excluded_checks=left_out)

    tried()
