"""Random histories of two tenants, three users and two agents: what anybody is told is exactly what the model says."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import OperationContext, RecallRequest, RememberRequest, Scope, UpdateRequest
from memoranda.engines.homes import Homes
from memoranda.errors import MemorandaError, NotFound
from tests.conftest import Clock
from tests.engines.asking import asking

SCOPES: tuple[Scope, ...] = (
    "session", "user", "agent", "shared_agents", "project", "team", "organization", "global",
)  # fmt: skip
Key = tuple[str, ...]


@dataclass(frozen=True)
class Actor:
    """Who asks: everything from which a context follows."""

    tenant: str
    project: str
    user: str
    agent: str
    session: str

    def where(self, reads: tuple[Scope, ...], writes: Scope | None = None) -> OperationContext:
        return asking(
            self.user, self.agent, tenant=self.tenant, project=self.project,
            session=self.session if "session" in reads or writes == "session" else None,
            reads=tuple(scope for scope in reads if scope != "session"), writes=writes,
        )  # fmt: skip

    def key(self, scope: Scope) -> Key:
        """What tells this actor's part of a scope from every other one."""
        in_project = (self.tenant, self.project, scope)
        return {
            "session": (*in_project, self.user, self.agent, self.session), "user": (*in_project, self.user),
            "agent": (*in_project, self.agent), "shared_agents": (*in_project, self.agent), "project": in_project,
            "team": (self.tenant, scope), "organization": (self.tenant, scope), "global": (self.tenant, scope),
        }[scope]  # fmt: skip


@dataclass
class Model:
    """The notes that there are: id -> (whose, text); what stands at the end of each one's chain; those that went."""

    notes: dict[str, tuple[Key, str]] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def head(self, item_id: str) -> str:
        while item_id in self.after:
            item_id = self.after[item_id]
        return item_id

    def heads(self, keys: set[Key]) -> dict[str, str]:
        return {i: text for i, (key, text) in self.notes.items() if key in keys and i not in self.after}

    def end(self, item_id: str) -> int:
        """The whole chain goes; how many that were."""
        head = self.head(item_id)
        chain = [i for i in self.notes if self.head(i) == head]
        for i in chain:
            del self.notes[i]
        self.gone |= set(chain)
        return len(chain)


ACTORS = st.builds(
    Actor, st.sampled_from(["acme", "evil"]), st.sampled_from(["web", "web", "app"]),
    st.sampled_from(["ana", "bob", "cy"]), st.sampled_from(["cleo", "max"]), st.sampled_from(["s1", "s2"]),
)  # fmt: skip
READS = st.lists(st.sampled_from(SCOPES), unique=True, min_size=1).map(tuple)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["remember"] * 5 + ["update", "update", "forget", "purge", "recall", "list", "get"]), ACTORS,
        READS, st.sampled_from(SCOPES), st.integers(0, 1000),
    ), min_size=12, max_size=40,
)  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@settings(  # a history is told whole: to look for a shorter one takes longer than to read it
    max_examples=12, deadline=None, suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)  # fmt: skip
@given(steps=STEPS)
def test_what_is_told_is_exactly_what_the_model_says(folder: Path, steps: list[Any]) -> None:
    root = Path(tempfile.mkdtemp(dir=folder))
    context = Context(clock=Clock(), random=random.Random(1).randbytes)
    with Homes(root, context, most=2) as homes:  # Homes are let go of and opened again meanwhile
        engine, model = Builtin(homes), Model()
        for n, step in enumerate(steps):
            _step(engine, context, model, n, *step)
            if n % 7 == 0:
                homes.tidy()
        for actor in {actor for _, actor, *_ in steps}:
            _looked_at(engine, context, model, actor, SCOPES)


def _step(
    engine: Builtin, context: Context, model: Model, n: int, what: str, actor: Actor, reads: tuple[Scope, ...],
    scope: Scope, pick: int,
) -> None:  # fmt: skip
    keys = {actor.key(one) for one in reads}
    known = [*model.notes, *sorted(model.gone)]
    target = known[pick % len(known)] if known else "mem_0000000000000000"
    visible = target in model.notes and model.notes[target][0] in keys
    where = actor.where(reads, scope)
    if what == "remember":
        mine = [i for i, (key, _) in model.notes.items() if key == actor.key(scope) and i not in model.after]
        over = mine[:1] if pick % 5 == 0 else [target] if pick % 7 == 0 and known else []
        allowed = all(i in mine for i in over)
        try:
            item = engine.remember(context, where, RememberRequest(content=f"elm {n}", supersedes=tuple(over)))
        except MemorandaError:
            assert not allowed, "a note of the caller's own place was not to be superseded"
            return
        assert allowed
        model.notes[item.id] = (actor.key(scope), f"elm {n}")
        model.after |= dict.fromkeys(over, item.id)
    elif what in ("update", "forget", "get"):
        _on_one(engine, context, model, n, what, where, target, visible=visible)
    elif what == "purge":
        done = engine.purge(context, where)
        own = [i for i, (key, _) in model.notes.items() if key == actor.key(scope)]
        assert done.removed == len(own)
        for item_id in own:
            del model.notes[item_id]
        model.gone |= set(own)
    else:
        _looked_at(engine, context, model, actor, reads)


def _on_one(
    engine: Builtin, context: Context, model: Model, n: int, what: str, where: OperationContext, target: str, *,
    visible: bool,
) -> None:  # fmt: skip
    if not visible:
        with pytest.raises(NotFound) as refused:
            if what == "get":
                engine.get(context, where, target, exact=bool(n % 2))
            elif what == "update":
                engine.update(context, where, target, UpdateRequest(content="mine"), if_match=None)
            else:
                engine.forget(context, where, target, if_match=None)
        assert target not in str(refused.value)
        return
    if what == "get":
        assert engine.get(context, where, target).content == model.notes[model.head(target)][1]
        assert engine.get(context, where, target, exact=True).content == model.notes[target][1]
    elif what == "update":
        head = model.head(target)
        item = engine.update(context, where, target, UpdateRequest(content=f"elm {n}"), if_match=None)
        model.notes[item.id] = (model.notes[head][0], f"elm {n}")
        model.after[head] = item.id
    else:
        assert engine.forget(context, where, target, if_match=None).removed == model.end(target)


def _looked_at(engine: Builtin, context: Context, model: Model, actor: Actor, reads: tuple[Scope, ...]) -> None:
    expected = model.heads({actor.key(scope) for scope in reads})
    where = actor.where(reads)
    found = engine.recall(context, where, RecallRequest(query="elm", top_k=100))
    assert {item.id: item.content for item in found.items} == expected
    known = {i for i, (key, _) in model.notes.items() if key in {actor.key(scope) for scope in reads}}
    assert found.coverage.searched == len(known)
    assert {other for item in found.items for other in (*item.supersedes, *item.superseded_by)} <= known
    listed: list[str] = []
    after = None
    while True:
        page = engine.list(context, where, scope=None, limit=3, after=after)
        listed += [item.id for item in page.items]
        if (after := page.next) is None:
            break
    assert sorted(listed) == sorted(expected)
