"""What Prometheus is told: numbers by route, status and code; never an id and never a word of content in a label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
METHODS = frozenset("GET PUT POST PATCH DELETE HEAD OPTIONS".split())


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "memoranda_requests", "Requests by route template and status", ["method", "route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "memoranda_request_seconds", "How long requests took", ["method", "route"], buckets=_SECONDS,
            registry=self.registry,
        )  # fmt: skip
        self._running = Gauge("memoranda_requests_running", "Requests that are worked on", registry=self.registry)
        self._problems = Counter(
            "memoranda_problems", "Requests that were refused or failed, by error code", ["code"],
            registry=self.registry,
        )  # fmt: skip
        self._decisions = Counter(
            "memoranda_decisions", "Decisions by package and outcome (allow, deny, error)", ["package", "outcome"],
            registry=self.registry,
        )  # fmt: skip
        self._engine_errors = Counter(
            "memoranda_engine_errors", "Operations that an engine did not answer, by route template", ["route"],
            registry=self.registry,
        )  # fmt: skip

    def began(self) -> None:
        self._running.inc()

    def ended(self, method: str, route: str, status: int, seconds: float, code: str | None) -> None:
        """One request: `route` is a template, `code` that of its problem document."""
        method = method if method in METHODS else "other"
        self._running.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if code is not None:
            self._problems.labels(code).inc()
        if code == "memory_engine_unavailable":
            self._engine_errors.labels(route).inc()

    def decided(self, package: str, outcome: str) -> None:
        self._decisions.labels(package, outcome).inc()

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)


class CountedDecisions:
    """Decisions that are counted as they are made."""

    def __init__(self, decisions: Any, metrics: Metrics) -> None:
        self._decisions = decisions
        self._metrics = metrics

    @property
    def shipped(self) -> bool:
        told: bool = self._decisions.shipped
        return told

    def decide(self, package: Any, document: Mapping[str, Any]) -> Any:
        outcome = "error"
        try:
            decision = self._decisions.decide(package, document)
            outcome = "allow" if decision.allow else "deny"
            return decision
        finally:
            self._metrics.decided(package, outcome)

    def ready(self) -> None:
        self._decisions.ready()
