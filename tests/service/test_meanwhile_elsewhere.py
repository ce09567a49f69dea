"""What is changed while a write to Mem0 or Cognee is under way counts for it: before their server is called, and when
it has written and nobody was told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoranda.context import Context
from memoranda.engines.company import Company
from memoranda.engines.contract import (
    IngestRequest,
    InstanceDeclaration,
    Policy,
    PolicyBody,
    PurgeRequest,
    RememberRequest,
    UpdateRequest,
)
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ClassificationRefused, Frozen
from memoranda.governance.credentials import Credentials
from memoranda.service import admin, knowledge, memories, policies
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.engines import declare
from memoranda.service.opening import open_desk
from memoranda.service.upkeep import expire_elsewhere
from tests.cognee_standin import Cognee, Server, serving_cognee
from tests.engines.component import Answer, Asked
from tests.engines.mem0_standin import KEY, Mem0Server, mem0_standing

from .conftest import people

Made = Callable[..., Caller]
Change = Callable[[], object]
USER = "memoranda@users.example:a-long-password"
ROOF = RememberRequest(content="The roof was mended in May.")
TEXTS = IngestRequest(texts=("Greta pays Hugo in Lyon every Friday.",), build_graph=False, scope="user")
MODES = ("session", "long_term", "agent", "shared", "knowledge_graph")


@dataclass
class Elsewhere:
    """An agent of acme's on Mem0, and another on Cognee."""

    desk: Desk
    mem0: Mem0Server
    cognee: Server
    ana: Caller
    sam: Caller
    context: Context

    def put(self, agent: str, **fields: Any) -> None:
        engine: Any = {"engine": "mem0", "mem0_instance": "mem0"}
        if agent == "max":
            engine = {"engine": "cognee", "cognee_instance": "cognee"}
        body = PolicyBody(**engine, policy=Policy.model_validate({"modes": MODES, **fields}))
        policies.put_policy(self.desk, self.ana, agent, body)

    def documents(self) -> int:
        return sum(len(one["data"]) for one in self.cognee.cognee.told["datasets"].values())


@pytest.fixture
def there(tmp_path: Path, context: Context, caller: Made, desk: Desk, engines: Any) -> Elsewhere:
    root, (mem0, cognee) = caller(None, "root"), engines
    for body in (
        {"id": "mem0", "provider": "mem0", "base_url": mem0.url, "credential_ref": "env://EAI_CRED_MEM0"},
        {"id": "cognee", "provider": "cognee", "base_url": cognee.url, "credential_ref": "env://EAI_CRED_COGNEE"},
    ):
        declare(desk, root, InstanceDeclaration.model_validate({**body, "access_control": True, "timeout_seconds": 3}))
    admin.add_agent(desk, caller("acme", "ana"), "max", "shop", owner="ana")
    made = Elsewhere(desk, mem0, cognee, caller("acme", "ana"), caller("acme", "sam"), context)
    made.put("cleo")
    made.put("max")
    return made


@pytest.fixture
def engines() -> Iterator[tuple[Mem0Server, Server]]:
    with mem0_standing() as mem0, serving_cognee(Cognee()) as cognee:
        cognee.cognee.register(*USER.split(":"))
        yield mem0, cognee


@pytest.fixture
def desk(tmp_path: Path, context: Context) -> Iterator[Desk]:
    credentials = Credentials(environ={"EAI_CRED_MEM0": KEY, "EAI_CRED_COGNEE": USER})
    egress = Egress(EgressSettings("development"))
    desk = open_desk(context, tmp_path / "service", egress=egress, credentials=credentials)
    people(desk, context)
    yield desk
    desk.close()
    egress.close()


def once(change: Change) -> Change:
    todo = [change]
    return lambda: todo and todo.pop()()


WRITES: dict[str, Callable[[Elsewhere, str], object]] = {
    "remember": lambda at, _: memories.remember(at.desk, at.ana, "cleo", ROOF),
    "update": lambda at, item: memories.update(at.desk, at.ana, "cleo", item, UpdateRequest(content="Another roof.")),
    "forget": lambda at, item: memories.forget(at.desk, at.ana, "cleo", item),
    "purge": lambda at, _: memories.purge(at.desk, at.ana, "cleo", PurgeRequest(scope="user", confirm=True)),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_freeze_stops_a_write_before_mem0_is_called(
    there: Elsewhere, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    item = memories.remember(there.desk, there.ana, "cleo", ROOF)
    rows = dict(there.mem0.rows)
    in_the_engine(monkeypatch, once(lambda: admin.freeze(there.desk, there.sam)))
    with pytest.raises(Frozen):
        WRITES[operation](there, item.id)
    assert there.mem0.rows == rows
    assert len(there.mem0.sent("POST")) == 1 and not there.mem0.sent("DELETE")
    assert [one.id for one in memories.list_items(there.desk, there.ana, "cleo").items] == [item.id]


def in_the_engine(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """When the engine has begun with a write, and has not called its server for it."""
    permit = Company.permit

    def permitted(*given: Any) -> None:
        change()
        permit(*given)

    monkeypatch.setattr(Company, "permit", permitted)


@pytest.mark.parametrize("gone", [False, True], ids=["reached", "out of reach by then"])
@pytest.mark.parametrize("operation", ["remember", "update"])
@pytest.mark.parametrize("infer", [False, True], ids=["plain", "infer"])
def test_what_mem0_has_written_is_taken_back_when_nobody_was_told(
    there: Elsewhere, operation: str, gone: bool, infer: bool
) -> None:
    there.put("cleo", infer=infer)
    item = memories.remember(there.desk, there.ana, "cleo", ROOF)
    rows, freeze = dict(there.mem0.rows), once(lambda: admin.freeze(there.desk, there.sam))

    def fault(asked: Asked, do: Callable[[], Answer]) -> Answer:
        if asked.method == "DELETE" and gone:
            return Answer(503, {})
        answer = do()
        if asked.method == "POST" and asked.path == "/memories":
            freeze()
        return answer

    there.mem0.fault = fault
    before = [one.id for one in memories.list_items(there.desk, there.ana, "cleo").items]
    with pytest.raises(Frozen):
        WRITES[operation](there, item.id)
    assert [one.id for one in memories.list_items(there.desk, there.ana, "cleo").items] == before
    assert (there.mem0.rows != rows) == gone
    there.mem0.fault = None
    assert expire_elsewhere(there.desk, there.context) == 0
    assert there.mem0.rows == rows
    admin.thaw(there.desk, there.sam)
    WRITES[operation](there, item.id)


def test_what_may_still_be_written_there_is_written_as_it_is_now_to_be(there: Elsewhere) -> None:
    narrower = once(lambda: there.put("cleo", retention_days=7, legal_hold=True))

    def fault(asked: Asked, do: Callable[[], Answer]) -> Answer:
        answer = do()
        if asked.method == "POST":
            narrower()
        return answer

    there.mem0.fault = fault
    item = memories.remember(there.desk, there.ana, "cleo", ROOF)
    assert (item.retention_days, item.legal_hold) == (7, True)
    assert len(there.mem0.rows) == 1


@pytest.mark.parametrize("named", [False, True], ids=["a new dataset", "one that was there"])
@pytest.mark.parametrize("when", ["before", "written", "out of reach by then"])
def test_what_no_longer_may_be_kept_does_not_stay_in_cognee(
    there: Elsewhere, monkeypatch: pytest.MonkeyPatch, when: str, named: bool
) -> None:
    desk, cognee = there.desk, there.cognee
    kept = knowledge.ingest(desk, there.ana, "max", TEXTS)
    asked = TEXTS.model_copy(update={"texts": ("Ines lives in Rome.",), "dataset_id": kept.id if named else None})
    change, answer = once(lambda: there.put("max", max_classification="public")), cognee.cognee.answer

    def told(method: str, path: str, *more: Any) -> Any:
        if method == "DELETE" and when == "out of reach by then":
            return 503, {}
        found = answer(method, path, *more)
        if method == "POST" and "/add" in path:
            change()
        return found

    if when == "before":
        in_the_engine(monkeypatch, change)
    else:
        monkeypatch.setattr(cognee.cognee, "answer", told)
    with pytest.raises(ClassificationRefused):
        knowledge.ingest(desk, there.ana, "max", asked)
    monkeypatch.setattr(cognee.cognee, "answer", answer)
    seen = knowledge.datasets(desk, there.ana, "max", scope=None, limit=50, cursor=None).items
    assert [one.id for one in seen] == [kept.id]
    assert len(memories.list_items(desk, there.ana, "max").items) == 1
    assert (there.documents() == 1) == (when != "out of reach by then")
    assert expire_elsewhere(desk, there.context) == 0
    assert there.documents() == 1
