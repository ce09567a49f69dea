"""OpenBao under the service: stopped, hanging and answering nonsense, nothing is written, and it goes on by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.contract import (
    CredentialBody,
    Found,
    InstanceDeclaration,
    Item,
    OperationContext,
    PolicyBody,
    RecallRequest,
    RememberRequest,
)
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.engines.outside import Outside
from memoranda.errors import ComponentUnavailable, EngineUnavailable, Forbidden
from memoranda.governance.credentials import Credentials, OpenBao, Secret
from memoranda.governance.decisions import Opa
from memoranda.governance.injection import GatewayFilter
from memoranda.governance.relations import tuples_of_agent, tuples_of_tenant
from memoranda.service import engines, memories, opening, policies
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.values import replace
from tests.engines.component import Answer, Asked, Component, standing
from tests.governance.openbao import VALUE, bao_server
from tests.service.test_components import BROKEN

Made = Callable[..., Caller]
ROOF, ASKED = RememberRequest(content="The roof was mended in May."), RecallRequest(query="roof")
ACME, PLATFORM = "openbao://secret/tenants/acme/mem0#api_key", "openbao://secret/platform/mem0#api_key"


@pytest.fixture
def egress() -> Iterator[Egress]:
    made = Egress(EgressSettings(environment="development"))
    yield made
    made.close()


def entering(egress: Egress, url: str, secret_id: str = "s", **more: str) -> Credentials:
    client = OpenBao(egress, url, "memoranda-of-a-test", Secret(secret_id), timeout=0.4)
    return Credentials(openbao=client, environ={}, ttl=0.0, **more)  # type: ignore[arg-type]


def well(asked: Asked) -> Answer:
    """An OpenBao that is in order."""
    if "login" in asked.path:
        return Answer(body={"auth": {"client_token": "t", "lease_duration": 60}})
    return Answer(body={"data": {"data": {"api_key": VALUE}}, "sealed": False})


def deciding(desk: Desk, egress: Egress, credentials: Credentials, opa: Component) -> Desk:
    """The service whose decisions are an OPA's, entered with a token that lies in OpenBao."""
    token = lambda: credentials.resolve(PLATFORM, None)  # noqa: E731
    return replace(desk, decisions=Opa(egress, opa.url, token=token), credentials=credentials)


def refused(governed: Desk, plain: Desk, ana: Caller, opa: Component) -> None:
    """Neither a write nor a read, by an error that names OpenBao; OPA is not asked without its token."""
    asked = len(opa.asked)
    for call in (
        lambda: memories.remember(governed, ana, "cleo", ROOF),
        lambda: memories.search(governed, ana, "cleo", ASKED),
        governed.credentials.ready,
    ):
        with pytest.raises(ComponentUnavailable, match="OpenBao"):
            call()
    assert len(opa.asked) == asked
    assert len(memories.list_items(plain, ana, "cleo").items) == 1


def test_a_real_openbao_that_hangs_and_goes_away(desk: Desk, caller: Made, egress: Egress, tmp_path: Path) -> None:
    ana = caller("acme", "ana")
    memories.remember(desk, ana, "cleo", ROOF)
    with standing(lambda _: Answer(body={"result": {"allow": True, "deny": []}})) as opa:
        with bao_server(tmp_path) as bao:
            credentials = entering(egress, bao.url, bao.fixed_secret_id)
            governed = deciding(desk, egress, credentials, opa)
            assert len(memories.search(governed, ana, "cleo", ASKED).items) == 1
            assert opa.asked[-1].headers["authorization"] == "Bearer of-the-platform"
            os.kill(bao.pid, signal.SIGSTOP)  # it takes connections, and answers nothing
            try:
                refused(governed, desk, ana, opa)
            finally:
                os.kill(bao.pid, signal.SIGCONT)
            assert len(memories.search(governed, ana, "cleo", ASKED).items) == 1
            bao.ask("PUT", "sys/seal")
            refused(governed, desk, ana, opa)
            port = bao.port
        refused(governed, desk, ana, opa)
        with bao_server(tmp_path, port):  # another one, which knows none of the tokens of the first
            assert len(memories.search(governed, ana, "cleo", ASKED).items) == 1
            governed.credentials.ready()
    failures, _ = desk.audit.query("acme", limit=200, outcome="failure", code=ComponentUnavailable.code)
    assert len(failures) == 6


@pytest.mark.parametrize("name", BROKEN)
def test_an_openbao_that_answers_nonsense(desk: Desk, caller: Made, egress: Egress, name: str) -> None:
    ana = caller("acme", "ana")
    memories.remember(desk, ana, "cleo", ROOF)
    with standing(lambda _: Answer(body={"result": {"allow": True, "deny": []}})) as opa, standing(well) as bao:
        governed = deciding(desk, egress, entering(egress, bao.url), opa)
        assert len(memories.search(governed, ana, "cleo", ASKED).items) == 1
        bao.answers = lambda _: BROKEN[name]
        refused(governed, desk, ana, opa)
        bao.answers = well
        assert len(memories.search(governed, ana, "cleo", ASKED).items) == 1


def test_without_its_token_the_gateway_is_not_asked_and_nothing_is_given(
    desk: Desk, caller: Made, egress: Egress
) -> None:
    ana = caller("acme", "ana")
    memories.remember(desk, ana, "cleo", ROOF)
    answers = lambda asked: Answer(body={"verdicts": [{"level": "clean"} for _ in asked.json["texts"]]})  # noqa: E731
    with standing(answers) as gateway, standing(well) as bao:
        credentials = entering(egress, bao.url)
        token = lambda: credentials.resolve(PLATFORM, None)  # noqa: E731
        governed = replace(desk, injection=GatewayFilter(egress, gateway.url, token=token))
        assert len(memories.recall(governed, ana, "cleo", ASKED).segments) == 1
        bao.answers = lambda _: Answer(503)
        told = len(gateway.asked)
        for read in (memories.recall, memories.search):
            with pytest.raises(ComponentUnavailable, match="OpenBao"):
                read(governed, ana, "cleo", ASKED)
        assert len(gateway.asked) == told
        bao.answers = well
        assert len(memories.recall(governed, ana, "cleo", ASKED).segments) == 1


class Keyed:
    """An engine that asks its instance with the tenant's key and does nothing else."""

    def __init__(self, outside: Outside) -> None:
        self.instance, self._connection = outside.instance, outside.connection

    def remember(self, _: Context, where: OperationContext, new: RememberRequest) -> Item:
        self._connection.ask(where.tenant, "POST", "/memories", json={"text": new.content})
        return Item(id="mem_1", engine=self.instance, scope="user", owner=where.user, kind=new.kind)

    def recall(self, _: Context, where: OperationContext, asked: RecallRequest) -> Found:
        self._connection.ask(where.tenant, "POST", "/search", json={"query": asked.query})
        return Found()


def test_a_tenants_key_that_cannot_be_had_reaches_no_engine(
    context: Context, tmp_path: Path, egress: Egress, caller: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(opening.MAKERS, "mem0", Keyed)  # type: ignore[arg-type]
    prefix = "openbao://kv/{tenant}/"
    with standing(lambda _: Answer(body={})) as engine, standing(well) as bao:
        credentials = entering(egress, bao.url, prefix=prefix)
        desk = opening.open_desk(context, tmp_path / "own", egress=egress, credentials=credentials)
        try:
            desk.registry.add_tenant(context, "acme")
            desk.registry.add_user(context, "acme", "ana", ("tenant_admin",))
            desk.registry.add_agent(context, "acme", "cleo", "shop", "ana")
            desk.registry.add_user(context, None, "root", ("platform_admin",))
            ana = Caller(context, desk.tokens.authenticate(context, desk.tokens.issue(context, "acme", "ana")[1]))
            root = Caller(context, desk.tokens.authenticate(context, desk.tokens.issue(context, None, "root")[1]))
            declared = InstanceDeclaration(
                id="m", provider="mem0", base_url=engine.url, credential_ref="env://EAI_CRED_M"
            )
            engines.declare(desk, root, declared)
            with pytest.raises(Forbidden):  # the prefix of the settings counts, and no other
                engines.set_credential(desk, ana, "m", CredentialBody(credential_ref=ACME))
            own = CredentialBody(credential_ref="openbao://kv/acme/mem0#api_key")
            engines.set_credential(desk, ana, "m", own)
            desk.relations.write(add=tuples_of_tenant("acme") + tuples_of_agent("acme", "cleo", "ana"))
            policies.put_policy(desk, ana, "cleo", PolicyBody(engine="mem0", mem0_instance="m"))

            memories.remember(desk, ana, "cleo", ROOF)
            assert engine.asked[-1].headers["x-api-key"] == VALUE
            told = len(engine.asked)
            for broken in (BROKEN["an error"], BROKEN["nonsense"], BROKEN["slow"]):
                bao.answers = lambda _, answer=broken: answer  # type: ignore[misc]
                for call in (
                    lambda: memories.remember(desk, ana, "cleo", ROOF),
                    lambda: memories.search(desk, ana, "cleo", ASKED),
                ):
                    with pytest.raises(ComponentUnavailable, match="OpenBao"):
                        call()
            assert len(engine.asked) == told
            bao.answers = well
            memories.search(desk, ana, "cleo", ASKED)
            assert len(engine.asked) == told + 1
            engine.answers = lambda _: Answer(401)
            with pytest.raises(EngineUnavailable, match="does not accept the key"):
                memories.search(desk, ana, "cleo", ASKED)
        finally:
            desk.close()
