"""Credentials: resolved on the server, from a real OpenBao by AppRole, and shown to nobody."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import traceback
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable, Forbidden, InvalidInput
from memoranda.governance.credentials import Credentials, OpenBao, Secret
from tests.engines.component import Answer, Asked, standing
from tests.governance.openbao import VALUE, Bao, bao_server

ACME = "openbao://secret/tenants/acme/mem0#api_key"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def bao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bao]:
    with bao_server(tmp_path_factory.mktemp("bao")) as made:
        yield made


@pytest.fixture
def egress() -> Iterator[Egress]:
    made = Egress(EgressSettings(environment="development"))
    yield made
    made.close()


def entering(bao: Bao, egress: Egress, clock: Clock | None = None, **more: Any) -> Credentials:
    clock = clock or Clock()
    client = OpenBao(egress, bao.url, bao.role_id, Secret(bao.secret_id()), clock=clock)
    return Credentials(openbao=client, environ={}, clock=clock, **more)


@pytest.mark.requirement("S-049")
def test_a_reference_is_resolved_by_approle(bao: Bao, egress: Egress) -> None:
    credentials = entering(bao, egress)
    credentials.ready()
    assert credentials.resolve(ACME, "acme").reveal() == VALUE
    assert credentials.resolve("openbao://secret/platform/mem0#api_key", None).reveal() == "of-the-platform"


def test_another_tenants_reference_is_refused_here_and_by_openbao(bao: Bao, egress: Egress) -> None:
    """Twice, so that neither a mistake in the stored reference nor one in the policy of OpenBao is enough."""
    credentials = entering(bao, egress)
    with pytest.raises(Forbidden):
        credentials.resolve("openbao://secret/tenants/globex/mem0#api_key", "acme")
    with pytest.raises(ComponentUnavailable, match="does not let"):
        credentials.resolve("openbao://secret/tenants/globex/mem0#api_key", "globex")


@pytest.mark.parametrize(
    "ref",
    ["openbao://secret/tenants/acme/../globex/mem0#api_key", "openbao://secret/tenants/acme/./mem0#api_key",
     "openbao://secret/tenants/acme/..#api_key", "openbao://secret/tenants/acme/mem0", "openbao://secret/tenants/acme/#x",
     "openbao://secret/tenants/acme/mem0?version=1#api_key", "openbao://secret/tenants/acme/%2e%2e/globex/mem0#api_key",
     "openbao://secret/tenants/acme//mem0#api_key"],
)  # fmt: skip
def test_a_reference_that_climbs_or_is_none_is_refused(bao: Bao, egress: Egress, ref: str) -> None:
    with pytest.raises(InvalidInput):
        entering(bao, egress).resolve(ref, "acme")


@pytest.mark.parametrize("ref", ["env://EAI_CRED_MEM0", "openbao://secret/tenants/acmex/mem0#api_key",
                                 "openbao://secret/platform/mem0#api_key", "https://example.org", ""])  # fmt: skip
def test_a_tenants_key_lies_under_its_own_prefix_of_openbao(ref: str) -> None:
    with pytest.raises(Forbidden):
        Credentials(environ={"EAI_CRED_MEM0": VALUE}).resolve(ref, "acme")


def test_a_variable_serves_the_platform_only_and_only_one_that_is_meant_for_it() -> None:
    credentials = Credentials(environ={"EAI_CRED_MEM0": VALUE, "HOME": "/root", "EAI_CRED_EMPTY": ""})
    assert credentials.resolve("env://EAI_CRED_MEM0", None).reveal() == VALUE
    for ref in ("env://HOME", "env://eai_cred_mem0", "env://EAI_CRED_", "env://EAI_CRED_MEM0\n", "file:///etc/passwd"):
        with pytest.raises(InvalidInput):
            credentials.resolve(ref, None)
    for ref in ("env://EAI_CRED_OTHER", "env://EAI_CRED_EMPTY", "openbao://secret/platform/mem0#api_key"):
        with pytest.raises(ComponentUnavailable):
            credentials.resolve(ref, None)
    credentials.ready()


@pytest.mark.parametrize("ref", ["openbao://secret/tenants/acme/none#api_key", "openbao://secret/tenants/acme/mem0#none",
                                 "openbao://secret/tenants/acme/mem0#number"])  # fmt: skip
def test_what_is_not_there_is_said(bao: Bao, egress: Egress, ref: str) -> None:
    with pytest.raises(ComponentUnavailable, match="holds no such credential"):
        entering(bao, egress).resolve(ref, "acme")


def test_a_value_is_kept_briefly_and_a_failure_not_at_all(bao: Bao, egress: Egress) -> None:
    clock, ref = Clock(), "openbao://secret/tenants/acme/turning#key"
    credentials = entering(bao, egress, clock, ttl=30.0)
    with pytest.raises(ComponentUnavailable):
        credentials.resolve(ref, "acme")
    bao.put("tenants/acme/turning", key="first")
    assert credentials.resolve(ref, "acme").reveal() == "first"
    bao.put("tenants/acme/turning", key="second")
    clock.now += 29
    assert credentials.resolve(ref, "acme").reveal() == "first"
    clock.now += 2
    assert credentials.resolve(ref, "acme").reveal() == "second"
    bao.put("tenants/acme/turning", key="third")
    credentials.forget(ref)
    assert credentials.resolve(ref, "acme").reveal() == "third"


def counted(bao: Bao, egress: Egress, clock: Clock, seen: list[str]) -> Iterator[Credentials]:
    """Through a server that passes everything on to OpenBao and tells what was asked."""

    def answers(asked: Asked) -> Answer:
        seen.append(f"{asked.method} {asked.path}")
        request = urllib.request.Request(bao.url + asked.path, method=asked.method, data=asked.body or None)
        if "x-vault-token" in asked.headers:
            request.add_header("X-Vault-Token", asked.headers["x-vault-token"])
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
                return Answer(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read())

    with standing(answers) as server:
        client = OpenBao(egress, server.url, bao.role_id, Secret(bao.secret_id()), clock=clock)
        yield Credentials(openbao=client, ttl=0.0, clock=clock)


def test_a_token_is_renewed_before_it_ends_and_taken_anew_when_it_was_revoked(bao: Bao, egress: Egress) -> None:
    clock, seen = Clock(), []  # type: Clock, list[str]
    for credentials in counted(bao, egress, clock, seen):
        credentials.resolve(ACME, "acme")
        credentials.resolve(ACME, "acme")
        assert sum("login" in one for one in seen) == 1 and not any("renew" in one for one in seen)
        clock.now += 45  # of 60 seconds
        credentials.resolve(ACME, "acme")
        assert sum("login" in one for one in seen) == 1 and sum("renew" in one for one in seen) == 1
        clock.now += 3600
        credentials.resolve(ACME, "acme")
        assert sum("login" in one for one in seen) == 2
        bao.ask("POST", "sys/leases/revoke-prefix/auth/approle/login", {})
        assert credentials.resolve(ACME, "acme").reveal() == VALUE
        assert sum("login" in one for one in seen) == 3


def test_a_wrong_secret_id_opens_nothing(bao: Bao, egress: Egress) -> None:
    client = OpenBao(egress, bao.url, bao.role_id, Secret("wrong-" + VALUE))
    with pytest.raises(ComponentUnavailable, match="does not let this service in") as error:
        Credentials(openbao=client).resolve(ACME, "acme")
    assert VALUE not in str(error.value)


LOGIN = {"auth": {"client_token": "t", "lease_duration": 60}}


@pytest.mark.parametrize(
    "answer",
    [Answer(500), Answer(503, b"sealed"), Answer(200, {"data": None}), Answer(200, {"data": {"data": {"api_key": {}}}}),
     Answer(200, []), Answer(200, b"x"), Answer(wait=3.0), Answer(302, headers={"location": "/x"}), Answer(raw=b"?")],
)  # fmt: skip
def test_an_openbao_that_fails_or_answers_nonsense_gives_no_credential(egress: Egress, answer: Answer) -> None:
    def answers(asked: Asked) -> Answer:
        return Answer(body=LOGIN) if "login" in asked.path else answer

    with standing(answers) as server:
        client = OpenBao(egress, server.url, "r", Secret("s"), timeout=0.3)
        with pytest.raises(ComponentUnavailable):
            Credentials(openbao=client).resolve(ACME, "acme")


@pytest.mark.parametrize("login", [{}, {"auth": None}, {"auth": {"client_token": "", "lease_duration": 1}},
                                   {"auth": {"client_token": "t", "lease_duration": "x"}}, []])  # fmt: skip
def test_a_login_that_gives_no_token_is_none(egress: Egress, login: Any) -> None:
    with standing(lambda _: Answer(body=login)) as server, pytest.raises(ComponentUnavailable):
        OpenBao(egress, server.url, "r", Secret("s")).ready()


@pytest.mark.requirement("S-050")
def test_no_log_at_any_level_and_no_error_shows_a_credential(
    bao: Bao, egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("httpcore2"), "level", 1)  # which says less of itself
    shown = io.StringIO()
    handler, root = logging.StreamHandler(shown), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(1)
    secret_id = bao.secret_id()
    try:
        client = OpenBao(egress, bao.url, bao.role_id, Secret(secret_id))
        credentials = Credentials(openbao=client, environ={})
        found = credentials.resolve(ACME, "acme")
        with standing(lambda _: Answer(403)) as engine:
            target = egress.to(engine.url, name="mem0")
            target.request("POST", "/x", json={}, headers={"x-api-key": found.reveal()})
            assert engine.asked[0].headers["x-api-key"] == VALUE
        with pytest.raises(ComponentUnavailable) as error:
            credentials.resolve("openbao://secret/tenants/acme/mem0#none", "acme")
        shown.write("".join(traceback.format_exception(error.value)) + repr(error.value.problem()))
        logging.error("%s %r %s", found, found, [found])
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
    text = shown.getvalue()
    assert "receive_response_headers" in text  # what HTTP logs at its lowest level is among it
    token = client._token.reveal() if client._token else "-"
    for secret in (VALUE, secret_id, token):
        assert secret not in text


def test_a_secret_shows_itself_only_when_it_is_asked_to() -> None:
    secret = Secret(VALUE)
    assert secret.reveal() == VALUE
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", f"{secret:>40}", repr([secret]),
                  repr({"k": secret}), f"{[secret]}"):  # fmt: skip
        assert VALUE not in shown
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps, hash, vars, bytes, list, len):
        with pytest.raises(TypeError):
            attempt(secret)  # type: ignore[operator]
    assert secret == Secret(VALUE) and secret != Secret("other") and secret != VALUE
