"""OpenTelemetry: one span a request, by its route's template; no id, no header and no word of content in it.

Without OTEL_EXPORTER_OTLP_ENDPOINT nothing is recorded or sent. The SDK comes with the extra `telemetry`.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from memoranda.errors import ConfigRefused

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROPAGATOR = TraceContextTextMapPropagator()


def set_up() -> None:
    """Sends spans to the collector that the environment names, if it names one.

    Raises:
        ConfigRefused: one is named, and the extra is not installed.
    """
    if not os.environ.get(ENDPOINT) or not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    if importlib.util.find_spec("opentelemetry.sdk") is None:
        raise ConfigRefused(
            f"The variable {ENDPOINT} is set, and OpenTelemetry's SDK is not installed.",
            remedy="Install memoranda[telemetry], or unset the variable.",
        )
    exporter: Any = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
    sdk: Any = import_module("opentelemetry.sdk.trace")
    resource: Any = import_module("opentelemetry.sdk.resources").Resource.create({"service.name": "memoranda"})
    provider = sdk.TracerProvider(resource=resource)
    provider.add_span_processor(import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


@contextmanager
def span_of(method: str, traceparent: str | None) -> Iterator[trace.Span]:
    """The span of one request, below the caller's where the caller sent one; `named` says the rest."""
    parent = _PROPAGATOR.extract({"traceparent": traceparent}) if traceparent else None
    tracer = trace.get_tracer("memoranda.http")
    with tracer.start_as_current_span(
        method, parent, trace.SpanKind.SERVER, record_exception=False, set_status_on_exception=False
    ) as span:
        yield span


def named(span: trace.Span, method: str, route: str, status: int, code: str | None) -> None:
    """What is known of a request at its end: the template of its route, its status, its error's code."""
    if not span.is_recording():
        return
    span.update_name(f"{method} {route}")
    told: dict[str, Any] = {
        "http.request.method": method, "http.route": route, "http.response.status_code": status,
    }  # fmt: skip
    if code is not None:
        told["error.type"] = code
    span.set_attributes(told)
    if status >= 500:
        span.set_status(trace.StatusCode.ERROR)
