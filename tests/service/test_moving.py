"""An agent's memories go from any engine to any other, as notes."""

# ruff: noqa: F811 - fixtures of another file

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Callable
from dataclasses import replace

import pytest

from memoranda.engines.contract import (
    ExportRequest,
    Policy,
    PolicyBody,
    RecallRequest,
    RememberRequest,
    UpdateRequest,
)
from memoranda.errors import InvalidInput
from memoranda.service import memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.service.moving import take_in
from memoranda.service.policies import put_policy
from tests.conftest import Clock
from tests.engines.mem0_standin import Mem0Server

from .test_hybrid import ana, cognee, desk, mem0  # noqa: F401 - the fixtures

Made = Callable[..., Caller]
SCOPES = ("user", "agent", "project")


def on(desk: Desk, by: Caller, engine: str, agent: str) -> None:
    policy = Policy.model_validate({"read_scopes": SCOPES, "write_scopes": SCOPES})
    put_policy(
        desk, by, agent, PolicyBody(engine=engine, mem0_instance="mem0", cognee_instance="cognee", policy=policy)
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(("out", "into"), list(itertools.permutations(("builtin", "mem0", "hybrid"), 2)))
def test_what_is_moved_is_what_it_was(
    desk: Desk,
    ana: Caller,
    mem0: Mem0Server,
    clock: Clock,
    out: str,
    into: str,
) -> None:
    ana = replace(ana, context=replace(ana.context, person=True))
    on(desk, ana, out, "cleo")
    whole = RememberRequest(
        content="The office closes at six.", subject="office", kind="procedural", classification="public",
        confidence=0.5, valid_from="2026-01-01", retention_days=30,
    )  # fmt: skip
    old = memories.remember(desk, ana, "cleo", whole)
    clock.tick(days=10)
    new = memories.update(desk, ana, "cleo", old.id, UpdateRequest(content="The office closes at seven."))
    memories.remember(desk, ana, "cleo", RememberRequest(content="Bread is baked at four.", scope="project"))
    memories.remember(desk, ana, "cleo", RememberRequest(content="A page says so.", scope="project", origin="external"))
    data = memories.export(desk, ana, "cleo", ExportRequest()).data
    memories.purge(desk, ana, "cleo", _purge("user"))
    memories.purge(desk, ana, "cleo", _purge("project"))

    on(desk, ana, into, "cleo")
    moved = take_in(desk, ana, "cleo", data)
    assert moved.left_out == {} and len(moved.kept) == 4
    head = memories.get(desk, ana, "cleo", moved.kept[old.id])
    assert (head.id, head.content) == (moved.kept[new.id], "The office closes at seven.")
    before = memories.get(desk, ana, "cleo", moved.kept[old.id], exact=True)
    assert (before.content, before.subject, before.kind, before.classification, before.confidence) == (
        "The office closes at six.", "office", "procedural", "public", 0.5,
    )  # fmt: skip
    assert before.valid_from == "2026-01-01T00:00:00Z" and before.engine == ("builtin" if into == "builtin" else "mem0")
    assert before.retention_days == 20  # moving makes nothing live longer
    then = memories.search(desk, ana, "cleo", RecallRequest(query="office closes", as_of="2026-05-01"))
    assert [item.content for item in then.items] == ["The office closes at six."]
    page = memories.list_items(desk, ana, "cleo", include_content=True).items
    assert {i.trust for i in page if i.content == "A page says so."} == {"quarantined"}
    assert bool(mem0.rows) is (into != "builtin")
    assert take_in(desk, ana, "cleo", data).kept == moved.kept  # nothing twice
    assert len(memories.list_items(desk, ana, "cleo").items) == 3


def _purge(scope: str):  # type: ignore[no-untyped-def]
    from memoranda.engines.contract import PurgeRequest

    return PurgeRequest.model_validate({"scope": scope, "confirm": True})


def test_another_users_memories_and_secrets_are_left_out_and_named(
    desk: Desk,
    caller: Made,
    ana: Caller,
    mem0: Mem0Server,
) -> None:
    bob = caller("acme", "bob")
    on(desk, ana, "mem0", "cleo")
    on(desk, bob, "builtin", "max")
    memories.remember(desk, bob, "max", RememberRequest(content="Of bob."))
    data = memories.export(desk, bob, "max", ExportRequest()).data
    moved = take_in(desk, ana, "cleo", data)
    assert moved.kept == {} and [*moved.left_out.values()] == ["it belongs to somebody else"]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("memory/notes/a.md", "---\nid: mem_aaaa\n---\nThe password is hunter2-Xk9!q\n")
        file.writestr("memory/notes/../../b.md", "Climbing.")
        file.writestr("elsewhere/c.md", "Elsewhere.")
    moved = take_in(desk, ana, "cleo", made.getvalue())
    assert moved.kept == {} and "memory_secret_refused" in moved.left_out["memory/notes/a.md"]
    assert mem0.rows == {}
    for nonsense in (b"", b"PK\x03\x04nonsense", b"x" * 100):
        with pytest.raises(InvalidInput):
            take_in(desk, ana, "cleo", nonsense)
