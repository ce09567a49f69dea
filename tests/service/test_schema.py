"""The contract's schema: checked in, made from the types, and saying what the requirement says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from pydantic import BaseModel

from memoranda.engines import contract as c
from memoranda.errors import EngineUnavailable
from memoranda.service.schema import MODULES, OPERATIONS, models_of, text

FILE = Path(__file__).parent.parent.parent / "contracts/v1/memory-provider.schema.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def validator(name: str) -> Draft202012Validator:
    """What checks a value against one type of the contract."""
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DOCUMENT["$defs"]})


@pytest.mark.requirement("P-001")
def test_the_checked_in_schema_is_the_one_that_the_types_give() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run `make contract`"


@pytest.mark.requirement("P-001")
def test_it_is_a_schema_of_2020_12_and_every_reference_leads_somewhere() -> None:
    Draft202012Validator.check_schema(DOCUMENT)
    assert DOCUMENT["$schema"] == Draft202012Validator.META_SCHEMA["$id"]

    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for inner in value.values() for found in references(inner)]
        return [found for inner in value for found in references(inner)] if isinstance(value, list) else []

    assert references(DOCUMENT)
    assert {ref.removeprefix("#/$defs/") for ref in references(DOCUMENT)} <= set(DOCUMENT["$defs"])


@pytest.mark.requirement("P-045")
def test_the_context_of_an_operation_stands_under_its_name() -> None:
    fields = DOCUMENT["$defs"]["context"]["properties"]
    assert {"tenant", "organization", "project", "user", "agent", "session", "scope", "team"} <= set(fields)
    place = {"scope": "user", "owner": "ana"}
    context = {"tenant": "acme", "project": "crm", "user": "ana", "agent": "cleo", "reads": [place], "writes": place}
    validator("context").validate(context)
    with pytest.raises(ValidationError):
        validator("context").validate({**context, "sent_by_the_agent": "another"})


@pytest.mark.requirement("P-002", "P-003", "P-004", "P-005", "P-006")
def test_the_root_is_the_document_by_which_an_instance_declares_itself() -> None:
    root = Draft202012Validator(DOCUMENT)
    groups = {"memory": list(c.MEMORY), "knowledge": list(c.KNOWLEDGE)}
    for provider in ("builtin", "mem0", "cognee"):
        root.validate({"schema_version": "1.0", "provider": provider, "engine_instance": "a", "capabilities": groups})
    told = {"provider": "mem0", "engine_instance": "a", "capabilities": groups}
    for wrong in (
        {"provider": "hybrid"},
        {"capabilities": {"memory": ["ingest_knowledge"]}},
        {"capabilities": {"knowledge": ["remember"]}},
        {"capabilities": {"others": []}},
        {"schema_version": "2.0"},
        {"engine_instance": None},
    ):
        with pytest.raises(ValidationError):
            root.validate({**told, **wrong})
    for lacking in ("provider", "engine_instance", "capabilities"):
        with pytest.raises(ValidationError):
            root.validate({name: value for name, value in told.items() if name != lacking})


def test_every_operation_has_a_request_a_result_and_an_error() -> None:
    assert set(OPERATIONS) == {*c.MEMORY, *c.KNOWLEDGE}
    stands = DOCUMENT["$defs"]["operations"]["properties"]
    assert set(stands) == set(OPERATIONS)
    for operation in stands.values():
        assert set(operation["properties"]) == {"context", "request", "result", "error"}


def test_every_type_stands_in_it_and_is_closed() -> None:
    for model in [model for module in MODULES for model in models_of(module) if model is not c.Model]:
        name = "context" if model is c.OperationContext else model.__name__
        assert DOCUMENT["$defs"][name]["additionalProperties"] is False, name


def test_an_error_of_ours_is_a_problem_of_the_contract() -> None:
    problem = EngineUnavailable("It does not answer.").problem()
    validator("Problem").validate(problem)
    with pytest.raises(ValidationError):
        validator("Problem").validate({**problem, "content": "words of a memory"})


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (c.RememberRequest, {"content": "x", "scope": "everywhere"}),
        (c.RememberRequest, {"content": ""}),
        (c.RememberRequest, {"content": "x", "tenant": "other"}),
        (c.RecallRequest, {"query": "x", "top_k": 0}),
        (c.PurgeRequest, {"confirm": True}),
        (c.PolicyBody, {"policy": {"required_isolation": "none"}}),
        (c.IngestRequest, {"texts": []}),
        (c.IngestRequest, {"texts": ["x"] * 51}),
        (c.InstanceDeclaration, {"id": "a", "provider": "builtin", "base_url": "https://a"}),
    ],
)
def test_schema_and_types_refuse_the_same(model: type[BaseModel], value: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=model.__name__):
        model.model_validate_json(json.dumps(value))
    with pytest.raises(ValidationError):
        validator(model.__name__).validate(value)
