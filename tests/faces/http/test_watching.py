"""Health, readiness, metrics and traces: names and numbers, never an id and never a word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memoranda.errors import ComponentUnavailable, ConfigRefused, EngineUnavailable
from memoranda.faces.http import spans

from .standing_in import Failing

BASE = "/v1/memory/agents/cleo"
WORDS = "zanzibar"


def test_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200 and set(ready.json()["components"].values()) == {"ok"}
    assert ready.json()["making"] is None


def test_who_asks_whether_a_node_is_ready_is_told_how_far_its_caches_are(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers meanwhile, and is ready; what it says names no Home."""
    desk = client.app.state.desk  # type: ignore[attr-defined]
    monkeypatch.setattr(desk.homes.shelf, "made_of", lambda: (2, 300, 1000))
    ready = client.get("/readyz")
    assert ready.status_code == 200 and ready.json()["making"] == {"homes": 2, "done": 300, "all": 1000}


def test_a_component_that_is_down_is_named_and_nothing_else_is_said(client: TestClient, decisions: Failing) -> None:
    decisions.fails = ComponentUnavailable("http://opa.internal:8181 does not answer.")
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert ready.json()["components"] == {
        "state": "ok", "relations": "ok", "decisions": "unavailable", "injection": "ok", "audit": "ok",
        "credentials": "ok",
    }  # fmt: skip
    assert "opa.internal" not in ready.text and "retry-after" in ready.headers
    assert client.get("/healthz").status_code == 200


def test_metrics_count_by_route_and_never_by_what_was_sent(
    client: TestClient, auth: dict[str, str], decisions: Failing
) -> None:
    client.post(f"{BASE}/memories", json={"content": WORDS, "subject": WORDS}, headers=auth)
    client.get(f"{BASE}/memories/{WORDS}", headers=auth)
    client.request("BREW", f"/{WORDS}?{WORDS}={WORDS}", headers=auth)
    decisions.fails = EngineUnavailable("It does not answer.")
    client.post(f"{BASE}/recall", json={"query": WORDS}, headers=auth)
    told = client.get("/metrics").text
    items = '"/v1/memory/agents/{agent_id}/memories'
    assert f'memoranda_requests_total{{method="POST",route={items}",status="201"}} 1.0' in told
    assert f'memoranda_requests_total{{method="GET",route={items}/{{item_id}}",status="404"}} 1.0' in told
    assert 'memoranda_requests_total{method="other",route="unmatched",status="404"} 1.0' in told
    assert 'memoranda_engine_errors_total{route="/v1/memory/agents/{agent_id}/recall"} 1.0' in told
    assert 'memoranda_problems_total{code="memory_engine_unavailable"} 1.0' in told
    assert "memoranda_request_seconds_bucket" in told
    for secret in (WORDS, "cleo", "ana", "acme", "mem_"):
        assert secret not in told


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def test_a_request_is_one_span_below_the_callers(
    client: TestClient, auth: dict[str, str], decisions: Failing, recorded: InMemorySpanExporter
) -> None:
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    client.post(f"{BASE}/recall?", json={"query": WORDS}, headers={**auth, "traceparent": parent})
    decisions.fails = EngineUnavailable(WORDS)
    client.post(f"{BASE}/recall", json={"query": WORDS}, headers=auth)
    good, bad = recorded.get_finished_spans()
    assert good.name == "POST /v1/memory/agents/{agent_id}/recall"
    assert good.context is not None and f"{good.context.trace_id:032x}" == parent[3:35]
    assert dict(good.attributes or {})["http.response.status_code"] == 200
    assert dict(bad.attributes or {})["error.type"] == "memory_engine_unavailable"
    for span in (good, bad):
        for secret in (WORDS, "cleo", "Bearer", "acme"):
            assert secret not in span.to_json()


def test_a_collector_without_the_extra_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spans.ENDPOINT, "http://127.0.0.1:9")
    missing: Any = lambda name: None  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", missing)
    with pytest.raises(ConfigRefused, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        spans.set_up()
