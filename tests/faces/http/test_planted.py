"""What is sent and kept is told nowhere: a sweep of every route and every failure with planted words and secrets.

Everything is logged from the lowest level on, every request is a span, the audit is copied to a file, and the service
asks components that repeat in their errors whatever they were asked. Then every file but those of the Homes, every line
and every error is searched for what was planted.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memoranda.engines.builtin import Builtin
from memoranda.faces.http import create_app
from memoranda.faces.http.config import Config
from memoranda.governance.credentials import Credentials
from tests.engines.component import Answer, Asked, Component, standing
from tests.faces.http.standing_in import furnish
from tests.governance.openfga_standin import MODEL, STORE, OpenFgaServer

CONTENT, QUERY, SUBJECT, REASON = "zirconroof", "zirconquestion", "zirconsubject", "zirconreason"
SOURCE, STRANGE, KEY = "https://zircon.source/page", "Zirconstrange", "zirconkey"
SECRET, PERSONAL = "password: zirconPass-93hT7qLw", "zircon.person@example.org"
TOKENS = {name: f"zircon-token-of-{name}" for name in ("opa", "openfga", "gateway", "role", "secret", "nobody")}
PLANTED = (CONTENT, QUERY, SUBJECT, REASON, "zircon.source", STRANGE, KEY, "zirconPass", PERSONAL, *TOKENS.values())
AGENT, ROUTES = "/v1/memory/agents/cleo", "/v1/memory/agents/{agent_id}"
Header = dict[str, str]


@dataclass
class Shown:
    """Everything that the service says beside its answers: name of the place -> text."""

    log: io.StringIO
    spans: InMemorySpanExporter
    sink: Path
    data: Path
    errors: list[str] = field(default_factory=list)

    def places(self, client: TestClient, auditor: Header) -> dict[str, str]:
        told = {
            "log": self.log.getvalue(), "errors": "\n".join(self.errors), "metrics": client.get("/metrics").text,
            "spans": "\n".join(span.to_json() for span in self.spans.get_finished_spans()),
            "audit over HTTP": client.get("/v1/memory/audit", params={"limit": 200}, headers=auditor).text,
            "audit copy": self.sink.read_text(),
        }  # fmt: skip
        for path in self.data.rglob("*"):
            if path.is_file() and "homes" not in path.relative_to(self.data).parts[:2]:
                told[f"file {path.name}"] = path.read_bytes().decode("latin-1")
        return told


class Everything(logging.Handler):
    """A log that leaves nothing out: message, arguments, extra fields and tracebacks with their exceptions' words."""

    def __init__(self, to: io.StringIO) -> None:
        super().__init__(level=0)
        self._to = to

    def emit(self, record: logging.LogRecord) -> None:
        if "http://testserver" in record.getMessage():
            return  # the client of this test
        self._to.write(f"{record.name} {record.getMessage()} {record.args!r} {vars(record)!r}\n")
        if record.exc_info and record.exc_info[1]:
            self._to.write("".join(traceback.format_exception(record.exc_info[1])))


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    log, root = io.StringIO(), logging.getLogger()
    handler, before = Everything(log), root.level
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", lambda name, *_: provider.get_tracer(name))
    root.addHandler(handler)
    root.setLevel(1)
    monkeypatch.setattr(logging.getLogger("sqlalchemy"), "level", 1)  # which sets its own
    try:
        yield Shown(log, spans, tmp_path / "audit.jsonl", tmp_path / "data")
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def opa(_: Asked) -> Answer:
    return Answer(body={"result": {"allow": True, "deny": []}})


def gateway(asked: Asked) -> Answer:
    return Answer(body={"verdicts": [{"level": "clean"} for _ in asked.json["texts"]]})


def openbao(asked: Asked) -> Answer:
    if "login" in asked.path:
        return Answer(body={"auth": {"client_token": "zircon-token-of-nobody", "lease_duration": 0}})
    return Answer(body={"data": {"data": {"key": TOKENS["gateway"]}}})


def echo(asked: Asked) -> Answer:
    """What was asked, with its headers: the worst that an error of a component can say."""
    return Answer(500, json.dumps([asked.headers, asked.body.decode()]).encode(), {"x-told": "zirconreason"})


def nonsense(asked: Asked) -> Answer:
    return Answer(200, {"verdicts": asked.body.decode(), "result": asked.body.decode(), "allowed": str(asked.headers)})


@contextmanager
def components() -> Iterator[dict[str, Component]]:
    fga = OpenFgaServer()
    with ExitStack() as stack:
        answers: dict[str, Callable[[Asked], Answer]] = {
            "openfga": fga, "opa": opa, "gateway": gateway, "openbao": openbao,
        }  # fmt: skip
        yield {name: stack.enter_context(standing(one)) for name, one in answers.items()}


def config_of(shown: Shown, servers: Mapping[str, Component]) -> Config:
    return Config(
        environment="development", data=shown.data, log_level="debug", audit_sink=str(shown.sink), timeout=20,
        body_limit=4096, openfga_url=servers["openfga"].url, openfga_store=STORE, openfga_model=MODEL,
        openfga_credential="env://EAI_CRED_FGA", opa_url=servers["opa"].url, opa_credential="env://EAI_CRED_OPA",
        gateway_url=servers["gateway"].url, gateway_credential="openbao://secret/platform/gateway#key",
        openbao_url=servers["openbao"].url, openbao_role="env://EAI_CRED_ROLE", openbao_secret="env://EAI_CRED_ID",
        credentials={
            "EAI_CRED_FGA": TOKENS["openfga"], "EAI_CRED_OPA": TOKENS["opa"], "EAI_CRED_ROLE": TOKENS["role"],
            "EAI_CRED_ID": TOKENS["secret"],
        },
    )  # fmt: skip


def bodies(path: str) -> list[Any]:
    """What a route is sent: something that it takes, with the planted words in it, and things that it refuses."""
    note = {"content": f"The {CONTENT} leaks.", "subject": SUBJECT, "source": SOURCE}
    known: dict[str, list[Any]] = {
        "memories": [
            note, {**note, "session_id": "s1"}, {**note, "scope": "team", "team": "none"},
            {**note, "classification": "restricted"}, {**note, "content": f"The {CONTENT}, {SECRET}"},
            {**note, "content": f"{CONTENT} of {PERSONAL}"}, {**note, "source": f"https://x.example/?{SECRET}"},
            {**note, STRANGE: CONTENT}, {**note, "kind": STRANGE}, {**note, "user_id": STRANGE},
        ],
        "recall": [{"query": QUERY}, {"query": f"{QUERY} {CONTENT}"}, {"query": QUERY, "scopes": ["team"]}],
        "search": [{"query": QUERY}, {"query": QUERY, "as_of": STRANGE}, {"query": QUERY, "search_type": "CHUNKS"}],
        "purge": [{"scope": "session", "session_id": "s1"}, {"scope": "session", "session_id": "s1", "confirm": True}],
        "export": [{"format": form} for form in ("zip", "ndjson", "bundle")],
        "review": [{"verdict": "reject", "etag": "0", "comment": REASON}],
        "taint": [{"reason": REASON}, {"reason": f"{REASON} {SECRET}"}],
        "hold": [{"event": event, "reason": REASON} for event in ("set", "release")],
        "{item_id}": [{"content": f"The {CONTENT} was mended."}, {"content": f"{CONTENT} {SECRET}"}],
        "knowledge": [{"texts": [CONTENT]}, {"texts": [SECRET]}], "graph": [{"dataset_ids": ["ds_1"]}],
        "restore": [{"version": 0}], "policy": [{"policy": {"recall_top_k": 5}}, {"policy": {STRANGE: CONTENT}}],
        "engines": [{"id": "m", "provider": "mem0", "base_url": "https://m", "credential_ref": TOKENS["nobody"]}],
        "credential": [{"credential_ref": TOKENS["nobody"]}],
        "tokens": [{"agent": "cleo"}, {"agent": "cleo", "name": SECRET}], "tenants": [{"id": "t", "name": SECRET}],
        "users": [{"id": "eve", "roles": [STRANGE]}], "{team_id}": [{"members": [STRANGE]}],
        "{agent_id}": [{"project": "crm", "name": SECRET}], "first-token": [{"user": STRANGE}],
        "relations": [{"add": [{"user": STRANGE, "relation": "viewer"}]}], "floor": [{}, {STRANGE: CONTENT}],
    }  # fmt: skip
    last = path.rsplit("/", 1)[-1]
    return [*known.get(last, [{}]), {STRANGE: STRANGE}, [CONTENT], f"{CONTENT}"]


class Sweep:
    """Asks, and keeps what every error says."""

    def __init__(self, client: TestClient, app: FastAPI, shown: Shown) -> None:
        self.client, self.shown = client, shown
        self.routes = [
            (method, path, "requestBody" in told)
            for path, methods in app.openapi()["paths"].items()
            for method, told in methods.items()
            if path not in ("/healthz", "/metrics")
        ]
        self.statuses: set[int] = set()
        self.item = ""

    def ask(self, method: str, path: str, header: Header, **more: Any) -> Any:
        headers = {**header, "idempotency-key": KEY} | more.pop("also", {})
        answer = self.client.request(method, path, headers=headers, **more)
        self.statuses.add(answer.status_code)
        if answer.status_code >= 400:
            self.shown.errors.append(f"{answer.text} {answer.headers}")
        return answer

    def remember(self, header: Header) -> None:
        body = {"content": f"The {CONTENT} has a hole.", "subject": SUBJECT}
        self.item = str(self.client.post(f"{AGENT}/memories", json=body, headers=header).json()["id"])

    def every(self, header: Header, *, only: str = "") -> None:
        """Every route but those that take away what the sweep stands on; `only` some, with what they take."""
        for method, path, body in self.routes:
            if not path.startswith(only) or (method == "delete" and "/admin/" in path) or path.endswith("/freeze"):
                continue
            names = {
                "agent_id": "cleo", "item_id": self.item, "session_id": "s1", "dataset_id": "d", "engine_id": "builtin",
                "tenant_id": "acme", "user_id": "ana", "team_id": "crew", "token_id": "tok_x",
            }  # fmt: skip
            at = path.format(**names)
            if only:
                for n, sent in enumerate(bodies(path)[:2] if body else [None]):
                    more = {} if sent is None else {"json": sent}
                    self.ask(method, at, header, **more, also={"idempotency-key": f"{KEY} of {len(self.statuses)} {n}"})
                continue
            if not body:
                self.ask(method, at, header)
                self.ask(method, at, header, params={STRANGE: QUERY})
                self.ask(method, at, header, params={"cursor": STRANGE, "limit": STRANGE})
                continue
            for n, sent in enumerate(bodies(path)):
                self.ask(method, at, header, json=sent, also={"idempotency-key": f"{KEY}{n}"})
            self.ask(method, at, header, content=f"{{{CONTENT}", also={"content-type": "application/json"})
            self.ask(method, at, header, content=CONTENT, also={"content-type": "text/plain"})


def tools(sweep: Sweep, header: Header) -> None:
    """The tools of MCP, well and badly asked."""
    also = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    calls = [
        ("nas_remember", {"text": f"The {CONTENT} again.", "subject": SUBJECT}), ("nas_recall", {"query": QUERY}),
        ("nas_read", {"uri": STRANGE}), ("nas_forget", {"id": STRANGE}), ("nas_remember", {"text": SECRET}),
        (STRANGE, {STRANGE: CONTENT}), ("nas_recall", {"query": [QUERY]}),
    ]  # fmt: skip
    for n, (name, arguments) in enumerate(calls):
        call = {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        answer = sweep.client.post("/mcp", json=call, headers={**header, **also})
        if answer.status_code >= 400 or answer.json().get("result", {}).get("isError"):
            sweep.shown.errors.append(answer.text)


def break_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine fails with the words that it was working on, in a way that nobody has foreseen."""

    def broken(self: Builtin, *given: Any, **more: Any) -> Any:
        raise RuntimeError(f"{CONTENT} {QUERY} {SECRET} {given!r} {more!r}")

    for name in ("remember", "recall", "get", "list", "update", "forget", "purge", "history", "export", "review"):
        monkeypatch.setattr(Builtin, name, broken)


@pytest.mark.requirement("S-050", "S-073")
def test_what_is_planted_is_told_nowhere(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    unkept = {**(Credentials.__init__.__kwdefaults__ or {}), "ttl": 0.0}  # OpenBao is asked each time
    monkeypatch.setattr(Credentials.__init__, "__kwdefaults__", unkept)
    with components() as servers:
        app = create_app(config_of(shown, servers))
        desk = app.state.desk
        headers = furnish(desk)
        ana, agent, root = headers["ana"], headers["cleo of acme"], headers["root"]
        nobody = {"authorization": f"Bearer {TOKENS['nobody']}"}
        with TestClient(app, raise_server_exceptions=False) as client:
            sweep = Sweep(client, app, shown)
            sweep.remember(agent)
            for header in (ana, agent, root, nobody):
                sweep.every(header)
                sweep.remember(agent)
            sweep.ask(
                "PATCH", f"{AGENT}/memories/{sweep.item}", ana, json={"content": CONTENT}, also={"if-match": f'"{KEY}"'}
            )
            sweep.ask("GET", f"{AGENT}/memories/{CONTENT}", agent)
            sweep.ask("POST", f"/{CONTENT}/{QUERY}", agent, json={"query": QUERY})
            sweep.ask("POST", f"{AGENT}/recall", {**agent, "x-user-id": STRANGE}, json={"query": QUERY})
            sweep.ask("POST", f"{AGENT}/recall", agent, json={"query": QUERY * 1000})
            tools(sweep, agent)

            right = {name: server.answers for name, server in servers.items()}
            for name, worse in itertools.product(servers, (echo, nonsense)):
                servers[name].answers = worse
                sweep.every(ana if worse is echo else agent, only=ROUTES)
                sweep.ask("GET", "/readyz", {})
                servers[name].answers = right[name]

            assert client.put("/v1/memory/admin/freeze", headers=ana).is_success
            sweep.every(agent, only=ROUTES)
            assert client.delete("/v1/memory/admin/freeze", headers=ana).is_success
            sweep.remember(agent)
            break_off(monkeypatch)
            sweep.every(agent, only=ROUTES)
            tools(sweep, agent)
            monkeypatch.undo()

            told = shown.places(client, ana)
    told["standard output and error"] = "".join(capfd.readouterr())
    told["files at the end"] = "".join(
        path.read_bytes().decode("latin-1") for path in shown.data.glob("*") if path.is_file()
    )
    assert sweep.statuses >= {200, 201, 400, 401, 403, 404, 409, 412, 413, 415, 422, 423, 500, 503}
    operations = {json.loads(line)["operation"] for line in told["audit copy"].splitlines()}
    assert operations >= {
        "remember", "recall", "search", "list", "get", "update", "forget", "purge", "export", "history", "review",
        "taint", "set_hold", "end_session", "put_policy", "ingest_knowledge", "search_graph", "issue_token", "claim",
        "authenticate", "list_engines", "get_health",
    }  # fmt: skip
    assert len(told["spans"]) > 100_000 and len(told["errors"]) > 100_000 and len(told["log"]) > 1_000_000
    assert "memoranda_requests_total" in told["metrics"] and "sqlalchemy.engine" in told["log"]
    bearers = [header["authorization"].removeprefix("Bearer ") for header in headers.values()]
    found = [
        f"{place}: …{text[max(0, at - 300) : at + 100]}…"
        for place, text in told.items()
        for planted in (*PLANTED, *bearers)
        if (at := text.find(planted)) >= 0
    ]
    assert not found, "\n\n".join(found)
