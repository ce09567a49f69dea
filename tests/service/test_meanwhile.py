"""What is changed while a write is under way counts for it: a freeze, a policy, a relation, a removal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memoranda.engines.contract import Policy, PolicyBody, PurgeRequest, RememberRequest, UpdateRequest
from memoranda.errors import ClassificationRefused, Forbidden, Frozen, MemorandaError, NotFound, Unavailable
from memoranda.governance.relations import Tuple
from memoranda.service import admin, memories, policies
from memoranda.service.answers import ReviewRequest
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.values import replace

Made = Callable[..., Caller]
Change = Callable[[], object]
ROOF = RememberRequest(content="The roof was mended in May.")
WRITES: dict[str, Callable[[Desk, Caller, str], object]] = {
    "remember": lambda desk, by, _: memories.remember(desk, by, "cleo", ROOF),
    "update": lambda desk, by, item: memories.update(desk, by, "cleo", item, UpdateRequest(content="Another roof.")),
    "forget": lambda desk, by, item: memories.forget(desk, by, "cleo", item),
    "purge": lambda desk, by, _: memories.purge(desk, by, "cleo", PurgeRequest(scope="user", confirm=True)),
    "review": lambda desk, by, item: memories.review(
        desk, by, "cleo", item, ReviewRequest(verdict="accept", etag=memories.get(desk, by, "cleo", item).etag)
    ),
}


@pytest.fixture
def database(on_both: str) -> str:
    return on_both


class Between:
    """Does something, once, when the last guard has passed and before the engine is called."""

    shipped = True

    def __init__(self, inner: Any, change: Change) -> None:
        self._inner, self._change = inner, change

    def decide(self, package: Any, document: Any) -> Any:
        decision = self._inner.decide(package, document)
        if package == "memory.write":
            self._change()
        return decision

    def ready(self) -> None: ...


def once(change: Change) -> Change:
    todo = [change]
    return lambda: todo and todo.pop()()


def after_the_guards(desk: Desk, _: pytest.MonkeyPatch, change: Change) -> Desk:
    return replace(desk, decisions=Between(desk.decisions, change))


def inside_the_engine(desk: Desk, patch: pytest.MonkeyPatch, change: Change) -> Desk:
    """When the engine has the Home in hand, and has not yet waited for those who write there."""
    reading = desk.homes.reading

    @contextmanager
    def entered(*given: Any, **more: Any) -> Iterator[Any]:
        with reading(*given, **more) as space:
            if given[0].recheck is not None:  # a write
                change()
            yield space

    patch.setattr(desk.homes, "reading", entered)
    return desk


WHEN = pytest.mark.parametrize("when", [after_the_guards, inside_the_engine])


@WHEN
@pytest.mark.parametrize("operation", WRITES)
def test_a_freeze_meanwhile_stops_the_write(
    desk: Desk, caller: Made, monkeypatch: pytest.MonkeyPatch, when: Any, operation: str
) -> None:
    ana, sam = caller("acme", "ana"), caller("acme", "sam")
    item = memories.remember(desk, ana, "cleo", ROOF)
    moving = when(desk, monkeypatch, once(lambda: admin.freeze(desk, sam, "cleo")))
    with pytest.raises(Frozen):
        WRITES[operation](moving, ana, item.id)
    left = memories.list_items(desk, ana, "cleo").items
    assert [(one.id, one.reviewed) for one in left] == [(item.id, False)]
    events, _ = desk.audit.query("acme", operation=operation, limit=1)
    assert (events[0].event.outcome, events[0].event.code) == ("deny", Frozen.code)


CHANGES: dict[str, tuple[Callable[[Desk, Made], object], type[MemorandaError]]] = {
    "a narrower policy": (
        lambda desk, caller: put(desk, caller, write_scopes=("agent",), default_scope="agent"), Forbidden,
    ),
    "a lower level": (lambda desk, caller: put(desk, caller, max_classification="public"), ClassificationRefused),
    "a lower floor": (
        lambda desk, caller: admin.set_floor(
            desk, caller("acme", "ana"), desk.policies.floor("acme").model_copy(update={"max_classification": "public"})
        ),
        ClassificationRefused,
    ),
    "a relation taken back": (
        lambda desk, caller: admin.write_relations(
            desk, caller("acme", "ana"), "cleo", [], [Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")]
        ),
        Forbidden,
    ),
    "the agent's end": (lambda desk, caller: admin.remove_agent(desk, caller("acme", "ana"), "cleo"), NotFound),
}  # fmt: skip


def put(desk: Desk, caller: Made, **fields: Any) -> None:
    policies.put_policy(desk, caller("acme", "ana"), "cleo", PolicyBody(policy=Policy(**fields)))


@WHEN
@pytest.mark.parametrize("change", CHANGES)
def test_what_may_no_longer_be_written_is_not(
    desk: Desk, caller: Made, monkeypatch: pytest.MonkeyPatch, when: Any, change: str
) -> None:
    grant = Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")
    admin.write_relations(desk, caller("acme", "ana"), "cleo", [grant], [])
    bob = caller("acme", "bob")
    done, error = CHANGES[change]
    moving = when(desk, monkeypatch, once(lambda: done(desk, caller)))
    with pytest.raises(error):
        memories.remember(moving, bob, "cleo", ROOF.model_copy(update={"scope": "user"}))
    with desk.homes.whole("acme", "shop") as home:
        if home is not None:
            home.indexes.catch_up()
        assert home is None or not list(home.indexes.catalog.live_notes())


@WHEN
def test_what_still_may_be_written_is_written_as_it_is_now_to_be(
    desk: Desk, caller: Made, monkeypatch: pytest.MonkeyPatch, when: Any
) -> None:
    moving = when(desk, monkeypatch, once(lambda: put(desk, caller, retention_days=7, legal_hold=True)))
    item = memories.remember(moving, caller("acme", "ana"), "cleo", ROOF)
    assert (item.retention_days, item.legal_hold) == (7, True)
    assert len(memories.list_items(desk, caller("acme", "ana"), "cleo").items) == 1


def test_changes_without_end_stop_the_write_and_not_the_service(
    desk: Desk, caller: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = caller("acme", "ana")
    moving = inside_the_engine(desk, monkeypatch, lambda: caller("acme", "bob"))  # a token, of somebody else
    with pytest.raises(Unavailable, match="nothing was written"):
        memories.remember(moving, ana, "cleo", ROOF)
    monkeypatch.undo()
    assert memories.list_items(desk, ana, "cleo").items == ()
    memories.remember(desk, ana, "cleo", ROOF)
