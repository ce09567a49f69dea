"""The engine Cognee and the service in front of it, on the real Cognee; and the stand-in held against the real one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.engines.contract import (
    CredentialBody,
    Dataset,
    GraphRequest,
    GraphSearchRequest,
    IngestRequest,
    Policy,
    PolicyBody,
    SearchType,
)
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import IsolationUnsatisfied
from memoranda.governance.credentials import Credentials, OpenBao, Secret
from memoranda.governance.inventory import Inventory
from memoranda.manager.running import running, up
from memoranda.service import knowledge, memories
from memoranda.service.caller import Caller, authenticate
from memoranda.service.desk import Desk
from memoranda.service.engines import capabilities, health, list_engines, set_credential
from memoranda.service.opening import open_desk
from memoranda.service.policies import put_policy
from tests.calling import call
from tests.cognee_standin import Cognee as StandIn
from tests.cognee_standin import serving_cognee
from tests.governance.openbao import bao_server
from tests.service.conftest import caller as caller
from tests.service.conftest import people

from .conftest import Cognee

pytestmark = pytest.mark.xdist_group("cognee")
LYON = "Berta pays Hugo in Lyon every Friday."
ROME = "Vera moves the Archive to Rome in March."
KINDS: tuple[SearchType, ...] = ("CHUNKS", "CHUNKS_LEXICAL", "SUMMARIES", "RAG_COMPLETION", "GRAPH_COMPLETION")


@pytest.fixture
def desk(tmp_path: Path, context: Context, cognee: Cognee) -> Iterator[Desk]:
    """A service that has been told of the engine by what the launcher has rendered, and by nothing else."""
    keys = dict(line.split("=", 1) for line in cognee.place.service_env.read_text().splitlines())
    egress = Egress(EgressSettings("development"))
    desk = open_desk(
        context, tmp_path / "service", egress=egress, credentials=Credentials(environ=keys),
        rendered=Inventory(file=cognee.place.inventory),
    )  # fmt: skip
    people(desk, context)
    yield desk
    desk.close()
    egress.close()


@pytest.fixture
def cleo(desk: Desk, caller: Callable[..., Caller]) -> Caller:
    policy = Policy(modes=("session", "long_term", "agent", "knowledge_graph"))
    put_policy(
        desk, caller("acme", "ana"), "cleo", PolicyBody(engine="cognee", cognee_instance="cognee", policy=policy)
    )
    return caller("acme", "ana", "cleo")


def ingest(desk: Desk, who: Caller, *texts: str) -> Dataset:
    return knowledge.ingest(desk, who, "cleo", IngestRequest(texts=texts, build_graph=True))


def built(desk: Desk, who: Caller, dataset: str, seconds: float = 150) -> Dataset:
    until = time.monotonic() + seconds
    while True:
        (found,) = [
            one for one in knowledge.datasets(desk, who, "cleo", scope=None, limit=9, cursor=None).items
            if one.id == dataset
        ]  # fmt: skip
        if found.status == "built":
            return found
        assert found.status == "building" and time.monotonic() < until, found
        time.sleep(0.5)


def words_on_disk(cognee: Cognee, words: str) -> list[str]:
    """The files of the engine that hold these words."""
    data = cognee.place.of("cognee") / "data"
    return [path.name for path in data.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]


@pytest.mark.requirement("P-037", "P-038", "P-039", "P-040", "P-041", "P-050", "P-125", "S-047", "S-054")
def test_everything_that_cognee_announces_on_the_real_one(
    desk: Desk, cleo: Caller, cognee: Cognee, caller: Callable[..., Caller]
) -> None:
    listed = {one.id: one for one in list_engines(desk, cleo).engines}
    assert listed["cognee"].origin == "rendered"
    assert health(desk, caller("acme", "ana"), "cognee").status == "ok"
    dataset = ingest(desk, cleo, LYON, ROME)
    assert (dataset.status, dataset.documents) == ("building", 2)
    assert built(desk, cleo, dataset.id).built == 2
    ids = {item.id for item in memories.list_items(desk, cleo, "cleo").items}
    for kind in KINDS:
        asked = GraphSearchRequest(query="Who pays Hugo in Lyon?", search_type=kind)
        found = knowledge.search_graph(desk, cleo, "cleo", asked)
        assert found.passages and "Berta" in found.passages[0].text, kind
        assert all(passage.dataset_id == dataset.id for passage in found.passages)
        assert all(passage.score is not None and 0 <= passage.score <= 1 for passage in found.passages)
        if kind in ("CHUNKS", "CHUNKS_LEXICAL"):
            assert {passage.source for passage in found.passages} == ids
    relations = knowledge.relations(desk, cleo, "cleo", dataset.id)
    names = {entity.id: entity.name for entity in relations.entities}
    assert {"berta", "hugo", "lyon"} <= set(names.values())
    told = {(names[one.source], one.relation, names[one.target]) for one in relations.relations}
    assert ("berta", "stands_before", "hugo") in told

    asked = GraphSearchRequest(query=LYON)
    first = knowledge.search_graph(desk, cleo, "cleo", asked).passages[0]
    assert first.text == LYON
    gone = memories.forget(desk, cleo, "cleo", first.source)
    assert gone.removed == 1 and any("until its dataset is deleted" in one for one in gone.remains)
    left = knowledge.search_graph(desk, cleo, "cleo", asked).passages
    assert [passage.text for passage in left] == [ROME]
    knowledge.delete(desk, cleo, "cleo", dataset.id)
    assert words_on_disk(cognee, "Berta pays Hugo") == [] and words_on_disk(cognee, "Vera moves the Archive") == []
    assert "acme" not in str(call(cognee.base, "GET", "/api/v1/datasets", **cognee.service)[1])


@pytest.mark.requirement("S-060")
def test_a_tenant_with_a_user_of_its_own_is_kept_apart_by_cognee_itself(
    context: Context, cognee: Cognee, tmp_path: Path
) -> None:
    """`backend`: the dataset is that user's, and neither the service's own key nor anybody else's user opens it."""
    own, other = cognee.user("of-acme"), cognee.user("of-globex")
    keys = dict(line.split("=", 1) for line in cognee.place.service_env.read_text().splitlines())
    egress = Egress(EgressSettings("development"))
    with bao_server(tmp_path) as bao:
        bao.put("tenants/acme/cognee", user="of-acme@users.example:pass-of-acme-long")
        client = OpenBao(egress, bao.url, bao.role_id, Secret(bao.fixed_secret_id), timeout=5.0)
        desk = open_desk(
            context, tmp_path / "service", egress=egress, credentials=Credentials(openbao=client, environ=keys),
            rendered=Inventory(file=cognee.place.inventory),
        )  # fmt: skip
        try:
            people(desk, context)
            ana, zoe = told_by(desk, context, "acme", "ana"), told_by(desk, context, "globex", "zoe")
            reference = CredentialBody(credential_ref="openbao://secret/tenants/acme/cognee#user")
            set_credential(desk, ana, "cognee", reference)
            assert capabilities(desk, ana, "cognee").isolation == "backend"
            assert capabilities(desk, zoe, "cognee").isolation == "logical"
            policy = Policy(modes=("session", "agent", "knowledge_graph"), required_isolation="backend")
            body = PolicyBody(engine="cognee", cognee_instance="cognee", policy=policy)
            for by in (ana, zoe):
                put_policy(desk, by, "cleo", body)
            new = IngestRequest(texts=("Olga pays Pavel in Turin.",), build_graph=True)
            with pytest.raises(IsolationUnsatisfied):
                knowledge.ingest(desk, told_by(desk, context, "globex", "zoe", "cleo"), "cleo", new)
            cleo = told_by(desk, context, "acme", "ana", "cleo")
            made = knowledge.ingest(desk, cleo, "cleo", new)
            assert built(desk, cleo, made.id).built == 1
            asked = GraphSearchRequest(query="Who pays Pavel?")
            assert "Olga" in knowledge.search_graph(desk, cleo, "cleo", asked).passages[0].text
            (there,) = call(cognee.base, "GET", "/api/v1/datasets", **own)[1]
            assert there["name"].endswith(made.id)
            for stranger in (other, cognee.service):
                assert there["id"] not in str(call(cognee.base, "GET", "/api/v1/datasets", **stranger)[1])
                for path in ("data", "graph"):
                    told, answer = call(cognee.base, "GET", f"/api/v1/datasets/{there['id']}/{path}", **stranger)
                    assert told in (403, 404) and "Olga" not in str(answer)
                assert call(cognee.base, "DELETE", f"/api/v1/datasets/{there['id']}", **stranger)[0] in (403, 404)
            assert knowledge.delete(desk, cleo, "cleo", made.id).removed == 1
        finally:
            desk.close()
            egress.close()


def told_by(desk: Desk, context: Context, tenant: str, user: str, agent: str | None = None) -> Caller:
    """Who calls, by a token of this service."""
    _, secret = desk.tokens.issue(context, tenant, user, agent)
    return authenticate(desk, context, secret)


def test_a_build_that_was_killed_is_taken_up_by_us(desk: Desk, cleo: Caller, cognee: Cognee) -> None:
    cognee.models.held = "Wanda"
    dataset = ingest(desk, cleo, "Wanda meets Xaver in Oslo.")
    time.sleep(3)
    pid = running(cognee.place, "cognee")
    assert pid is not None
    os.killpg(pid, signal.SIGKILL)
    cognee.models.held = ""
    cognee.models.gate.set()
    while running(cognee.place, "cognee") is not None:
        time.sleep(0.05)
    up(cognee.place, "cognee")
    cognee.models.gate.clear()
    clock: Any = cleo.context.clock
    clock.tick(seconds=600)  # the service's clock stands still in a test
    assert built(desk, cleo, dataset.id).built == 1
    asked = GraphSearchRequest(query="Who meets Xaver?", dataset_ids=(dataset.id,))
    assert "Wanda" in knowledge.search_graph(desk, cleo, "cleo", asked).passages[0].text
    (again,) = knowledge.build_graph(desk, cleo, "cleo", GraphRequest(dataset_ids=(dataset.id,)))
    assert again.status == "building" and built(desk, cleo, dataset.id).built == 1


def test_the_stand_in_answers_as_the_real_one(cognee: Cognee) -> None:
    who = cognee.user("same")
    with serving_cognee(StandIn()) as server:
        server.cognee.register("same@users.example", "pass-same-long")
        form = {"username": "same@users.example", "password": "pass-same-long"}
        token = call(server.url, "POST", "/api/v1/auth/login", form=form)[1]["access_token"]
        real = shapes(cognee.base, who)
        assert shapes(server.url, {"authorization": f"Bearer {token}"}) == real
    assert len(real) == 23


def shapes(base: str, who: dict[str, str]) -> list[Any]:
    """What a client of ours sees of the same calls: each status, and of each answer the parts that are used."""
    told: list[Any] = []

    def ask(
        method: str, path: str, body: Any = None, *, see: Callable[[Any], Any] = lambda _: None, **more: Any
    ) -> Any:
        status, answer = call(base, method, path, body, **more)
        told.append((method, path.split("?")[0].count("/"), status, see(answer)))
        return answer

    ask("GET", "/api/v1/datasets")
    ask("GET", "/api/v1/datasets", x_api_key="0" * 64)
    ask("POST", "/api/v1/auth/login", form={"username": "same@users.example", "password": "wrong"})
    made = ask("POST", "/api/v1/datasets", {"name": "n:same"}, see=lambda a: a["name"], **who)
    again = ask("POST", "/api/v1/datasets", {"name": "n:same"}, **who)
    told.append(made["id"] == again["id"])
    one = made["id"]
    search = {"query": "Who pays Hugo?", "datasetIds": [one], "topK": 5}
    files = ([("datasetId", one)], [("data", "doc_1.txt", LYON.encode()), ("data", "doc_2.txt", ROME.encode())])
    ask("POST", "/api/v1/add", parts=files, see=lambda a: ("Completed" in a["status"], len(a["data_ingestion_info"])),
        **who)  # fmt: skip
    ask("POST", "/api/v1/search", {**search, "searchType": "CHUNKS"}, **who)
    ask("GET", f"/api/v1/datasets/{one}/data?limit=1000", see=lambda a: sorted(row["name"] for row in a), **who)
    ask("GET", f"/api/v1/datasets/status?dataset={one}", see=lambda a: a, **who)
    ask(
        "POST", "/api/v1/cognify", {"datasetIds": [one], "runInBackground": True}, see=lambda a: a[one]["status"], **who
    )
    until = time.monotonic() + 120
    while True:
        state = call(base, "GET", f"/api/v1/datasets/status?dataset={one}", **who)[1][one]
        if state == "DATASET_PROCESSING_COMPLETED":
            break
        assert time.monotonic() < until
        time.sleep(0.2)
    told.append(state)
    for kind in KINDS:

        def see(answer: Any, kind: str = kind) -> Any:
            found = answer[0]["search_result"]
            if kind.endswith("COMPLETION"):
                return [isinstance(hit, str) for hit in found]
            return [
                (hit["text"] in (LYON, ROME), bool(hit.get("document_id")), isinstance(hit.get("score"), float))
                for hit in found
            ]

        ask("POST", "/api/v1/search", {**search, "searchType": kind}, see=see, **who)
    ask("GET", f"/api/v1/datasets/{one}/graph", see=graph_of, **who)
    first = {row["name"]: row["id"] for row in call(base, "GET", f"/api/v1/datasets/{one}/data", **who)[1]}["doc_1"]
    ask("DELETE", f"/api/v1/datasets/{one}/data/{first}", **who)
    ask("DELETE", f"/api/v1/datasets/{one}/data/{first}", **who)
    ask("GET", f"/api/v1/datasets/{one}/data", see=lambda a: [row["name"] for row in a], **who)
    ask("DELETE", f"/api/v1/datasets/{one}", **who)
    ask("DELETE", f"/api/v1/datasets/{one}", **who)
    return told


def graph_of(answer: Any) -> Any:
    names = {node["id"]: node["label"] for node in answer["nodes"] if node["type"] == "Entity"}
    return sorted(
        (names[edge["source"]], edge["label"], names[edge["target"]])
        for edge in answer["edges"] if edge["source"] in names and edge["target"] in names
    )  # fmt: skip
