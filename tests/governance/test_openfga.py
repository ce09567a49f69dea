"""The OpenFGA client: what it sends is what OpenFGA's description takes, and nothing but a plain yes is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable, ConfigRefused, InvalidInput
from memoranda.governance.credentials import Secret
from memoranda.governance.openfga import OpenFga, model_of
from memoranda.governance.relations import Tuple, shipped_model, tuple_of_member, tuples_of_agent, tuples_of_roles
from tests.engines.component import Answer, Component, standing
from tests.governance.openfga_standin import MODEL, STORE, OpenFgaServer, shipped_as_json

CLEO = "agent:acme/cleo"
ANA = "user:acme/ana"


@pytest.fixture
def answering() -> OpenFgaServer:
    return OpenFgaServer()


@pytest.fixture
def server(answering: OpenFgaServer) -> Iterator[Component]:
    with standing(answering) as component:
        yield component
    assert answering.wrong == []


@pytest.fixture
def egress() -> Iterator[Egress]:
    made = Egress(EgressSettings(environment="development"))
    yield made
    made.close()


@pytest.fixture
def client(server: Component, egress: Egress) -> OpenFga:
    return OpenFga(egress, server.url, STORE, MODEL, timeout=2.0)


@pytest.mark.requirement("S-067")
def test_each_question_names_the_model_and_asks_for_the_higher_consistency(client: OpenFga, server: Component) -> None:
    client.write(tuples_of_agent("acme", "cleo", "ana"))
    assert client.check(ANA, "can_invoke", CLEO)
    assert not client.check("user:acme/eve", "can_invoke", CLEO)
    for asked in server.asked[1:]:
        assert asked.json["authorization_model_id"] == MODEL
        assert asked.json["consistency"] == "HIGHER_CONSISTENCY"
    assert server.asked[0].json["authorization_model_id"] == MODEL


def test_what_was_written_is_read_by_pages_and_taken_away(client: OpenFga) -> None:
    grants = [Tuple(f"user:acme/u{n}", "viewer", CLEO) for n in range(8)]
    client.write(grants)
    client.write(grants)  # what is there already is no error
    client.write([tuple_of_member("acme", "sales", "u1")])
    assert client.read(object=CLEO) == sorted(grants)
    assert client.read(user="user:acme/u1") == sorted([grants[1], tuple_of_member("acme", "sales", "u1")])
    assert client.read(object=CLEO, user="user:acme/u2") == [grants[2]]
    client.write(remove=grants[:4])
    client.write(remove=grants[:4])
    client.write()
    assert client.read(object=CLEO) == sorted(grants[4:])
    assert not client.check("user:acme/u0", "viewer", CLEO)


def test_adding_and_removing_the_same_leaves_it_as_in_process(client: OpenFga) -> None:
    one = Tuple(ANA, "viewer", CLEO)
    client.write([one, one], [one, one])
    assert client.read(object=CLEO) == [one]


def test_roles_of_a_token_go_with_the_question(client: OpenFga) -> None:
    client.write([Tuple("role:acme/tenant_admin#assignee", "editor", CLEO)])
    roles = tuples_of_roles("acme", "ana", ["tenant_admin"])
    assert client.check(ANA, "editor", CLEO, roles)
    assert not client.check(ANA, "editor", CLEO)


def test_what_joins_tenants_is_refused_before_anybody_is_asked(client: OpenFga, server: Component) -> None:
    assert not client.check("user:globex/ana", "viewer", CLEO)
    assert not client.check(ANA, "viewer", CLEO, [Tuple("user:globex/x", "viewer", "agent:globex/y")])
    for refused in (Tuple("user:globex/ana", "viewer", CLEO), Tuple(ANA, "assignee", "role:acme/platform_admin")):
        with pytest.raises(InvalidInput):
            client.write([refused])
    with pytest.raises(InvalidInput):
        client.check(ANA, "owns", CLEO)
    with pytest.raises(InvalidInput):
        client.write([Tuple(f"user:acme/u{n}", "viewer", CLEO) for n in range(101)])
    assert server.asked == []


def test_the_token_goes_with_every_call(server: Component, egress: Egress, answering: OpenFgaServer) -> None:
    answering.token = "t0p"
    client = OpenFga(egress, server.url, STORE, MODEL, token=lambda: Secret("t0p"))
    assert not client.check(ANA, "viewer", CLEO)
    with pytest.raises(ComponentUnavailable):
        OpenFga(egress, server.url, STORE, MODEL, token=lambda: Secret("other")).check(ANA, "viewer", CLEO)


NONSENSE = [
    Answer(500, {"code": "internal_error", "message": ""}),
    Answer(400, {"code": "authorization_model_resolution_too_complex", "message": ""}),
    Answer(404, {}),
    Answer(429, {}),
    Answer(302, headers={"location": "/elsewhere"}),
    Answer(201, {"allowed": True}),
    Answer(200, {}),
    Answer(200, {"allowed": "true"}),
    Answer(200, {"allowed": 1}),
    Answer(200, {"Allowed": True}),
    Answer(200, [True]),
    Answer(200, b"true"),
    Answer(200, b"<html>"),
    Answer(200, b""),
    Answer(wait=3.0),
    Answer(raw=b"nonsense"),
]


@pytest.mark.parametrize("answer", NONSENSE)
def test_no_answer_and_nonsense_are_no_and_said_so(egress: Egress, answer: Answer) -> None:
    with standing(lambda _: answer) as server:
        client = OpenFga(egress, server.url, STORE, MODEL, timeout=0.3)
        with pytest.raises(ComponentUnavailable):
            client.check(ANA, "can_invoke", CLEO)


def test_a_server_that_is_gone_is_no_and_it_recovers_by_itself(egress: Egress, answering: OpenFgaServer) -> None:
    with standing(answering) as server:
        port = server.port
        client = OpenFga(egress, server.url, STORE, MODEL, timeout=1.0)
        client.write(tuples_of_agent("acme", "cleo", "ana"))
        right = server.answers
        server.answers = lambda _: Answer(503)
        with pytest.raises(ComponentUnavailable):
            client.check(ANA, "viewer", CLEO)
        server.answers = right
        assert client.check(ANA, "viewer", CLEO)
    with pytest.raises(ComponentUnavailable):
        OpenFga(egress, f"http://127.0.0.1:{port}", STORE, MODEL, timeout=1.0).check(ANA, "viewer", CLEO)


@pytest.mark.parametrize(
    "answer",
    [Answer(200, {}), Answer(200, {"tuples": [{}], "continuation_token": ""}), Answer(503),
     Answer(200, {"tuples": [], "continuation_token": "again"})],
)  # fmt: skip
def test_relations_that_cannot_be_read_are_said_so(egress: Egress, answer: Answer) -> None:
    with standing(lambda _: answer) as server, pytest.raises(ComponentUnavailable):
        OpenFga(egress, server.url, STORE, MODEL).read(object=CLEO)


def test_openfga_reads_the_shipped_model_as_we_do() -> None:
    assert model_of(shipped_as_json()) == shipped_model()


def test_ready_asks_whether_the_pinned_model_is_the_shipped_one(client: OpenFga, answering: OpenFgaServer) -> None:
    answering.model = shipped_as_json()
    client.ready()
    agent: Any = next(one for one in answering.model["type_definitions"] if one["type"] == "agent")
    agent["relations"]["can_invoke"]["union"]["child"].append({"computedUserset": {"relation": "viewer"}})
    with pytest.raises(ComponentUnavailable, match="not the one that is shipped"):
        client.ready()
    answering.model = {"schema_version": "1.1"}
    with pytest.raises(ComponentUnavailable):
        client.ready()


@pytest.mark.parametrize(
    ("store", "model"), [("x", MODEL), (STORE, "../" + MODEL), (STORE, ""), (STORE.lower(), MODEL)]
)
def test_ids_that_are_none_are_refused(egress: Egress, store: str, model: str) -> None:
    with pytest.raises(ConfigRefused):
        OpenFga(egress, "http://127.0.0.1:1", store, model)
