"""What is refused, and how it is told: a problem document that repeats nothing of what was sent."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from memoranda.engines.contract import Problem
from memoranda.errors import ComponentUnavailable, HomeDamaged

from .standing_in import Events, Failing

BASE = "/v1/memory/agents/cleo"
PROBLEM = Draft202012Validator(Problem.model_json_schema())
PLANTED = "m0sk_planted-9f27"
Header = dict[str, str]


def refused(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    told: dict[str, Any] = answer.json()
    PROBLEM.validate(told)
    assert (told["status"], told["code"]) == (status, code)
    assert PLANTED not in answer.text
    return told


def kept(client: TestClient, auth: Header) -> int:
    """How many memories there are."""
    return len(client.get(f"{BASE}/memories?limit=200", headers=auth).json()["items"])


@pytest.mark.requirement("P-048")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer nobody"},
        {"authorization": "Bearer"},
        {"authorization": "Basic YW5hOmFuYQ=="},
        {"authorization": "mem_tok_x"},
    ],
)
def test_without_a_credential_nothing_is_looked_at(
    client: TestClient, events: Events, auth: Header, headers: Header
) -> None:
    assert client.get("/v1/memory/engines", headers=auth).status_code == 200
    refused(client.get("/v1/memory/engines", headers=headers), 401, "memory_unauthenticated")
    for body in ({"content": "x"}, {"content": PLANTED, "tenant": "umbrella"}, ["nonsense"]):
        answer = client.post(f"{BASE}/memories", json=body, headers=headers)
        refused(answer, 401, "memory_unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    refused(client.get(f"{BASE}/memories?limit=many&tenant=umbrella", headers=headers), 401, "memory_unauthenticated")
    assert not [event for event in events("acme") if event.operation in ("remember", "claim")]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": 5}, "content"),
        ({"content": "x", "kind": PLANTED}, "kind"),
        ({"content": "x", "confidence": 7}, "confidence"),
        ({"content": "x", "retention_days": "30"}, "retention_days"),
        ({"content": "x", "legal_hold": 1}, "legal_hold"),
        ({"content": "x", "sources": ["a", ""]}, "sources[1]"),
        ({"content": "x", "session_id": f"{PLANTED} "}, "session_id"),
        ({"content": "x", "contents": PLANTED}, "contents"),
    ],
)
def test_a_field_that_cannot_be_taken_is_named_and_its_value_not_repeated(
    client: TestClient, auth: Header, body: dict[str, Any], named: str
) -> None:
    before = kept(client, auth)
    told = refused(client.post(f"{BASE}/memories", json=body, headers=auth), 400, "memory_invalid")
    assert f"`{named}`" in told["detail"]
    assert told["why"] or "missing" in told["detail"]
    assert kept(client, auth) == before


def test_the_name_of_an_unknown_field_is_not_repeated_where_it_may_be_a_secret(
    client: TestClient, auth: Header
) -> None:
    refused(client.post(f"{BASE}/memories", json={"content": "x", PLANTED: 1}, headers=auth), 400, "memory_invalid")
    refused(client.get(f"{BASE}/memories?{PLANTED}=1", headers=auth), 400, "memory_invalid")


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"null", b"[]", b'"x"', b'{"content": "\xff"}', b'{"content": NaN}', b"[" * 3000, b'{"a":' * 500]
)
def test_what_is_not_a_json_object_is_refused(client: TestClient, auth: Header, raw: bytes) -> None:
    headers = {**auth, "content-type": "application/json"}
    refused(client.post(f"{BASE}/memories", content=raw, headers=headers), 400, "memory_invalid")


def test_the_size_and_the_type_of_a_body_are_bounded(client: TestClient, auth: Header) -> None:
    refused(client.post(f"{BASE}/memories", json={"content": "x" * 5000}, headers=auth), 413, "memory_too_large")
    pieces = (b"x" * 1000 for _ in range(100))  # no length is announced
    headers = {**auth, "content-type": "application/json"}
    refused(client.post(f"{BASE}/memories", content=pieces, headers=headers), 413, "memory_too_large")
    for told in ("9" * 5000, "-1", "1_0"):
        answer = client.post(f"{BASE}/memories", content=b"{}", headers={**headers, "content-length": told})
        refused(answer, 413, "memory_too_large")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        headers = {**auth, "content-type": kind}
        answer = client.post(f"{BASE}/memories", content=b'{"content": "x"}', headers=headers)
        refused(answer, 415, "memory_media_type_unknown")


def test_a_body_where_none_is_taken_is_refused(client: TestClient, auth: Header) -> None:
    made = client.post(f"{BASE}/memories", json={"content": "Stays."}, headers=auth).json()
    at = f"{BASE}/memories/{made['id']}"
    refused(client.request("DELETE", at, json={"tenant": "umbrella"}, headers=auth), 400, "memory_invalid")
    assert client.get(at, headers=auth).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/memory", "/v1/memory/engines/", f"{BASE}/nothing", "/docs"])
def test_an_unknown_address_is_not_found(client: TestClient, auth: Header, path: str) -> None:
    refused(client.get(path, headers=auth), 404, "memory_not_found")


def test_another_method_is_refused_with_those_that_are_taken(client: TestClient, auth: Header) -> None:
    answer = client.put(f"{BASE}/recall", json={}, headers=auth)
    refused(answer, 405, "memory_method_unknown")
    assert answer.headers["allow"] == "POST"


@pytest.mark.requirement("S-051", "S-052")
@pytest.mark.parametrize(
    ("headers", "query", "body", "word"),
    [
        ({"x-tenant-id": "umbrella"}, "", {}, "tenant"),
        ({"X-Tenant": "umbrella"}, "", {}, "tenant"),
        ({"x-user-id": "bob"}, "", {}, "user"),
        ({"x-forwarded-user": "bob"}, "", {}, "user"),
        ({"x-agent-id": "other"}, "", {}, "agent"),
        ({"x-session-id": "theirs"}, "", {}, "session"),
        ({"x-team-id": "sales"}, "", {}, "team"),
        ({"x-organization-id": "umbrella"}, "", {}, "organization"),
        ({"x-project-id": "theirs"}, "", {}, "project"),
        ({}, "?tenant=umbrella", {}, "tenant"),
        ({}, "?user_id=bob", {}, "user"),
        ({}, "", {"tenant_id": "umbrella"}, "tenant"),
        ({}, "", {"user": "bob"}, "user"),
        ({}, "", {"agent_id": "other"}, "agent"),
        ({}, "", {"organization": {"id": "umbrella"}}, "organization"),
    ],
)
def test_an_identity_that_is_sent_is_refused_on_record(
    client: TestClient, events: Events, auth: Header, headers: Header, query: str, body: dict[str, Any], word: str
) -> None:
    before = kept(client, auth)
    answer = client.post(f"{BASE}/memories{query}", json={"content": "x", **body}, headers={**auth, **headers})
    told = refused(answer, 403, "memory_forbidden")
    assert f"The {word} of a request" in told["detail"]
    newest = events("acme")[0]
    assert (newest.operation, newest.outcome, newest.code) == ("claim", "deny", "memory_forbidden")
    assert newest.request_id == answer.headers["x-request-id"]
    assert kept(client, auth) == before


def test_the_callers_own_name_in_a_header_is_no_claim(client: TestClient, auth: Header) -> None:
    headers = {**auth, "x-tenant-id": "acme", "x-user-id": "ana", "x-agent-id": "cleo"}
    assert client.post(f"{BASE}/memories", json={"content": "A word of my own."}, headers=headers).status_code == 201
    twice = [*headers.items(), ("x-user", "bob")]
    refused(client.post(f"{BASE}/memories", json={"content": "x"}, headers=twice), 403, "memory_forbidden")
    body = {"content": "x", "tenant": "acme"}
    refused(client.post(f"{BASE}/memories", json=body, headers=auth), 400, "memory_invalid")


def test_a_parameter_that_comes_twice_is_refused(client: TestClient, auth: Header) -> None:
    refused(client.get(f"{BASE}/memories?limit=1&limit=2", headers=auth), 400, "memory_invalid")


@pytest.mark.requirement("P-043", "S-083")
def test_an_error_of_an_operation_is_told_as_it_explains_itself(client: TestClient, auth: Header) -> None:
    answer = client.post(f"{BASE}/knowledge", json={"texts": [PLANTED]}, headers=auth)
    refused(answer, 422, "memory_capability_unsupported")
    secret = {"content": "The password of the router is hunter2-Zebra!9"}
    told = refused(client.post(f"{BASE}/memories", json=secret, headers=auth), 422, "memory_secret_refused")
    assert "hunter2" not in str(told) and told["remedy"]
    other = client.get(f"{BASE}/memories/mem_0000000000000000", headers=auth)
    refused(other, 404, "memory_not_found")


def test_what_does_not_answer_is_said_and_the_caller_may_come_again(
    client: TestClient, auth: Header, decisions: Failing
) -> None:
    decisions.fails = ComponentUnavailable("OPA does not answer.")
    before = client.post(f"{BASE}/memories", json={"content": "Not kept."}, headers=auth)
    told = refused(before, 503, "memory_component_unavailable")
    assert told["detail"] == "OPA does not answer." and int(before.headers["retry-after"]) > 0
    decisions.fails = None
    found = client.post(f"{BASE}/memories/search", json={"query": "Not kept"}, headers=auth).json()
    assert all(item["content"] != "Not kept." for item in found["items"])


def test_what_is_damaged_here_is_not_described_to_callers(client: TestClient, auth: Header, decisions: Failing) -> None:
    decisions.fails = HomeDamaged("/srv/homes/umbrella/crm cannot be read.", why="umbrella", remedy="umbrella")
    answer = client.post(f"{BASE}/recall", json={"query": "x"}, headers=auth)
    refused(answer, 503, "memory_home_damaged")
    assert "umbrella" not in answer.text


def test_a_defect_is_told_and_logged_without_words(
    client: TestClient, auth: Header, decisions: Failing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    decisions.fails = ValueError(f"{PLANTED} was not expected")
    answer = client.post(f"{BASE}/recall", json={"query": PLANTED}, headers=auth)
    refused(answer, 500, "memory_error")
    assert PLANTED not in caplog.text
    assert "ValueError" in caplog.text and "standing_in.py" in caplog.text
    assert answer.headers["x-request-id"] in caplog.text


def test_the_request_id_is_taken_only_if_it_is_one(client: TestClient, auth: Header, events: Events) -> None:
    for sent in ("4bf92f3577b34da6a3ce929d0e0e4736", "b1a7e9e2-30f5-4a38-93d5-3f7a6f7a7c11"):
        answer = client.post(f"{BASE}/recall", json={"query": "x"}, headers={**auth, "x-request-id": sent})
        assert answer.headers["x-request-id"] == sent == events("acme")[0].request_id
    for sent in (PLANTED, "x", "a" * 64, "4BF92F3577B34DA6A3CE929D0E0E4736", "", "4bf92f35 77b34da6"):
        answer = client.post(f"{BASE}/recall", json={"query": "x"}, headers={**auth, "x-request-id": sent})
        assert answer.headers["x-request-id"] != sent and len(answer.headers["x-request-id"]) == 32
