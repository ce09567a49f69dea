"""What a running service does by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoranda.context import Context
from memoranda.engines.contract import RecallRequest, RememberRequest
from memoranda.errors import NotFound
from memoranda.service import admin, memories, standing
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.upkeep import expire_due
from tests.conftest import Clock


@pytest.fixture
def database(on_both: str) -> str:
    return on_both


@pytest.mark.requirement("P-088", "P-089")
def test_what_is_past_its_retention_is_hidden_and_then_removed_unless_held(
    desk: Desk, caller: Callable[..., Caller], set_policy: Callable[..., None], context: Context, clock: Clock
) -> None:
    ana = caller("acme", "ana")
    set_policy("acme", "cleo", retention_days=30)

    def keep(text: str, **more: object) -> str:
        return memories.remember(desk, ana, "cleo", RememberRequest(content=text, **more)).id  # type: ignore[arg-type]

    short, usual = keep("For a day.", retention_days=1), keep("For a month.")
    long, held = keep("For a year.", retention_days=365), keep("For ever.", legal_hold=True)
    clock.tick(days=2)
    with pytest.raises(NotFound):
        memories.get(desk, ana, "cleo", short)
    assert memories.get(desk, ana, "cleo", usual).retention_days == 30
    clock.tick(days=30)
    for gone in (usual, long):  # the policy's limit is the shorter one
        with pytest.raises(NotFound):
            memories.get(desk, ana, "cleo", gone)
    assert expire_due(desk, context) == 0
    assert went(desk) == {short, usual, long}
    with desk.homes.whole("acme", "shop") as home:
        assert home is not None
        home.repository.flush()
        there = home.repository.store.files(home.repository.head() or "")
        files = [path for path, _ in there if path.startswith("memory/notes/") and path.endswith(".md")]
    assert len(files) == 1
    assert held[-6:] in files[0]
    assert expire_due(desk, context) == 0


@pytest.mark.requirement("P-088")
def test_a_shorter_retention_counts_for_what_is_there_already(
    desk: Desk, caller: Callable[..., Caller], set_policy: Callable[..., None], context: Context, clock: Clock
) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    old = memories.remember(desk, ana, "cleo", RememberRequest(content="The roof was mended.", scope="agent")).id
    held = memories.remember(desk, ana, "cleo", RememberRequest(content="A roof, held.", legal_hold=True)).id
    others = memories.remember(desk, bob, "max", RememberRequest(content="The roof of Max.", scope="agent")).id
    clock.tick(days=10)
    young = memories.remember(desk, ana, "cleo", RememberRequest(content="The roof is new.", scope="agent")).id
    asked = RecallRequest(query="roof")
    assert {item.id for item in memories.search(desk, ana, "cleo", asked).items} == {old, held, young}

    set_policy("acme", "cleo", retention_days=7)
    assert [item.id for item in memories.search(desk, ana, "cleo", asked).items] == [young]
    assert [item.id for item in memories.list_items(desk, ana, "cleo").items] == [young]
    for gone in (old, held):
        with pytest.raises(NotFound):
            memories.get(desk, ana, "cleo", gone)
    assert memories.get(desk, bob, "max", others).id == others
    set_policy("acme", "cleo", retention_days=20)  # nothing had gone yet
    assert memories.get(desk, ana, "cleo", old).id == old

    set_policy("acme", "cleo", retention_days=7)
    assert expire_due(desk, context) == 0
    assert went(desk) == {old}
    set_policy("acme", "cleo")
    assert {item.id for item in memories.list_items(desk, ana, "cleo").items} == {held, young}
    assert memories.get(desk, bob, "max", others).id == others


def test_the_tenants_floor_counts_for_what_is_there_too(
    desk: Desk, caller: Callable[..., Caller], context: Context, clock: Clock
) -> None:
    ana = caller("acme", "ana")
    old = memories.remember(desk, ana, "cleo", RememberRequest(content="The roof was mended.")).id
    clock.tick(days=10)
    admin.set_floor(desk, ana, desk.policies.floor("acme").model_copy(update={"retention_days": 7}))
    with pytest.raises(NotFound):
        memories.get(desk, ana, "cleo", old)
    expire_due(desk, context)
    assert {i for e in desk.audit.query("acme", operation="expire")[0] for i in e.event.items} >= {old}


@pytest.mark.requirement("P-088", "P-089")
def test_a_project_whose_agents_are_gone_is_looked_through_all_the_same(
    desk: Desk, caller: Callable[..., Caller], context: Context, clock: Clock
) -> None:
    ana, sam = caller("acme", "ana"), caller("acme", "sam")
    admin.add_agent(desk, ana, "nell", "yard", "ana")

    def keep(text: str, **more: object) -> str:
        return memories.remember(desk, ana, "nell", RememberRequest(content=text, **more)).id  # type: ignore[arg-type]

    due, held = keep("The yard is swept."), keep("The yard is sold.", legal_hold=True)
    short = keep("The gate is open.", retention_days=1)
    admin.remove_agent(desk, ana, "nell")
    assert [one.id for one in standing.holds(desk, sam).holds] == [held]
    clock.tick(days=2)
    assert expire_due(desk, context) == 0
    assert went(desk) == {short}
    admin.set_floor(desk, ana, desk.policies.floor("acme").model_copy(update={"retention_days": 7}))
    clock.tick(days=8)
    assert expire_due(desk, context) == 0
    assert went(desk) == {short, due}
    admin.add_agent(desk, ana, "nell", "quay", "ana")  # of the same name, elsewhere
    assert [one.id for one in standing.holds(desk, sam).holds] == [held]


def went(desk: Desk) -> set[str]:
    """The notes that were removed because their time was over."""
    entries = desk.audit.query("acme", operation="expire")[0]
    return {i for e in entries for i in e.event.items if i.startswith("mem_")}
