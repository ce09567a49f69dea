"""The engine `builtin` does what it announces."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import MEMORY, RecallRequest, RememberRequest, Scope, UpdateRequest
from memoranda.engines.homes import Homes
from memoranda.engines.shelves import DiskShelf
from memoranda.errors import ChainConflict, Forbidden, InvalidInput, LegalHold, NotFound, PreconditionFailed
from tests.conftest import Clock
from tests.engines.asking import asking

SCOPES: tuple[Scope, ...] = (
    "session", "user", "agent", "shared_agents", "project", "team", "organization", "global",
)  # fmt: skip


def _remember(engine: Builtin, context: Context, text: str, scope: Scope = "user", **more: object) -> str:
    where = asking(writes=scope, session="s1" if scope == "session" else None)
    return engine.remember(context, where, RememberRequest(content=text, **more)).id  # type: ignore[arg-type]


@pytest.mark.requirement("P-019", "P-020")
def test_it_announces_every_operation_on_memories_and_none_on_knowledge(engine: Builtin) -> None:
    told = engine.document()
    assert told.provider == "builtin"
    assert told.capabilities.memory == MEMORY
    assert told.capabilities.knowledge == ()


@pytest.mark.requirement("S-059")
def test_what_keeps_tenants_apart_is_announced_as_it_is(engine: Builtin, homes: Homes) -> None:
    there = "logical" if isinstance(homes.shelf, DiskShelf) else "backend"
    assert engine.isolation("acme") == there


def test_an_id_that_is_not_there_costs_the_same_in_any_home(engine: Builtin, context: Context, homes: Homes) -> None:
    """A note that was just written is such an id to the catalog. No statement reads row after row."""
    known = _remember(engine, context, "Acme renews in May.")
    with homes.reading(context, "acme", "web", ('user {"user":"ana"}',)) as space:
        own = space.homes()[0].indexes
        for catalog in (own.catalog, own.whole.catalog):
            asked: list[str] = []
            catalog.db.set_trace_callback(asked.append)
            assert catalog.by_id(f"{known[:-4]}zzzz") == [] and catalog.entry("msg_0000") is None
            catalog.db.set_trace_callback(None)
            plans = [step[3] for query in asked for step in catalog.db.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert asked and [step for step in plans if step.startswith("SCAN") and "_odd" not in step] == []


@pytest.mark.requirement("P-018")
def test_it_tells_how_it_is(engine: Builtin, context: Context, homes: Homes) -> None:
    assert "get_health" in engine.document().capabilities.memory
    assert engine.health(context).status == "ok"
    homes.close()
    assert engine.health(context).status == "unavailable"


@pytest.mark.requirement("P-010", "P-016")
@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_remembered_is_read_again_in_every_scope(engine: Builtin, context: Context, scope: Scope) -> None:
    where = asking(writes=scope, session="s1")
    new = RememberRequest(
        content="Acme renews in May.", subject="customer/acme", kind="semantic", classification="public",
        confidence=0.75, valid_from="2026-01-02", source="https://acme.example/terms", retention_days=30,
    )  # fmt: skip
    item = engine.remember(context, where, new)
    assert where.writes is not None
    assert (item.scope, item.owner) == (where.writes.scope, where.writes.owner)
    assert (item.content, item.subject, item.kind) == ("Acme renews in May.", "customer/acme", "semantic")
    assert (item.classification, item.confidence, item.retention_days) == ("public", 0.75, 30)
    assert item.sources == ("https://acme.example/terms",)
    assert item.valid_from == "2026-01-02T00:00:00Z"
    assert engine.get(context, where, item.id) == item


@pytest.mark.requirement("P-011", "P-012")
def test_a_question_finds_it_with_its_envelope(engine: Builtin, context: Context) -> None:
    kept = _remember(engine, context, "The office closes at six.")
    found = engine.recall(context, asking(), RecallRequest(query="When does the office close?"))
    (item,) = found.items
    assert (item.id, item.content, item.owner) == (kept, "The office closes at six.", "ana")
    assert item.score > 0 and item.why
    assert "The office closes at six." in item.envelope and item.envelope != item.content
    assert item.etag == engine.get(context, asking(), kept).etag
    assert found.coverage.engines == ("builtin",) and found.coverage.searched == 1


def test_a_question_can_be_narrowed(engine: Builtin, context: Context) -> None:
    for n in range(4):
        _remember(engine, context, f"The office closes at {n}.", "user" if n % 2 else "project", kind="episodic")
    _remember(engine, context, "The office closes.", kind="fact")
    query = "When does the office close?"
    assert len(engine.recall(context, asking(), RecallRequest(query=query, top_k=2)).items) == 2
    found = engine.recall(context, asking(), RecallRequest(query=query, scopes=("project",))).items
    assert {item.scope for item in found} == {"project"} and len(found) == 2
    found = engine.recall(context, asking(), RecallRequest(query=query, kinds=("fact",))).items
    assert [item.content for item in found] == ["The office closes."]


def test_the_two_times_are_asked(engine: Builtin, context: Context, clock: Clock) -> None:
    first = _remember(engine, context, "The office closes at six.")
    clock.tick(days=2)
    before = f"{clock.now:%Y-%m-%d}"
    clock.tick(days=2)
    engine.update(context, asking(), first, UpdateRequest(content="The office closes at five."), if_match=None)
    ask = "When does the office close?"
    found = engine.recall(context, asking(), RecallRequest(query=ask)).items
    assert [item.content for item in found] == ["The office closes at five."]
    found = engine.recall(context, asking(), RecallRequest(query=ask, known_at=before)).items
    assert [item.content for item in found] == ["The office closes at six."]
    found = engine.recall(context, asking(), RecallRequest(query=ask, as_of=before)).items
    assert [item.content for item in found] == ["The office closes at six."]


@pytest.mark.requirement("P-013")
def test_an_update_takes_the_place_of_what_was_seen(engine: Builtin, context: Context) -> None:
    first = engine.get(context, asking(), _remember(engine, context, "Six.", "team", classification="confidential"))
    second = engine.update(context, asking(), first.id, UpdateRequest(content="Five."), if_match=first.etag)
    assert second.id != first.id and second.supersedes == (first.id,)
    assert (second.scope, second.owner, second.classification) == ("team", "sales", "confidential")
    assert engine.get(context, asking(), first.id) == second
    exact = engine.get(context, asking(), first.id, exact=True)
    assert (exact.content, exact.state, exact.superseded_by) == ("Six.", "superseded", (second.id,))
    with pytest.raises(PreconditionFailed):
        engine.update(context, asking(), first.id, UpdateRequest(content="Four."), if_match=first.etag)
    with pytest.raises(PreconditionFailed):
        engine.forget(context, asking(), first.id, if_match=first.etag)
    assert engine.get(context, asking(), first.id).content == "Five."


@pytest.mark.requirement("P-014")
def test_forgetting_ends_the_whole_chain(engine: Builtin, context: Context) -> None:
    first = _remember(engine, context, "The office closes at six.")
    second = engine.update(context, asking(), first, UpdateRequest(content="At five."), if_match=None).id
    other = _remember(engine, context, "The office opens at nine.")
    gone = engine.forget(context, asking(), first, if_match=None)
    assert (gone.id, gone.removed) == (second, 2) and gone.remains
    for item_id in (first, second):
        with pytest.raises(NotFound):
            engine.get(context, asking(), item_id)
        with pytest.raises(NotFound):
            engine.get(context, asking(), item_id, exact=True)
    found = engine.recall(context, asking(), RecallRequest(query="office")).items
    assert [item.id for item in found] == [other]


@pytest.mark.requirement("P-015")
def test_a_list_stays_right_while_notes_come_and_go(engine: Builtin, context: Context, clock: Clock) -> None:
    kept = []
    for n in range(9):
        kept.append(_remember(engine, context, f"Note {n}.", "user" if n % 3 else "organization"))
        clock.tick(seconds=n % 2)  # several in one second too
    whole = engine.list(context, asking(), scope=None, limit=100, after=None)
    assert whole.next is None
    order = [item.id for item in whole.items]
    assert set(order) == set(kept)
    assert [item.recorded_at for item in whole.items] == sorted((i.recorded_at for i in whole.items), reverse=True)  # type: ignore[type-var]
    clock.tick(seconds=5)
    seen: list[str] = []
    after = None
    while True:
        page = engine.list(context, asking(), scope=None, limit=2, after=after)
        seen += [item.id for item in page.items]
        if len(seen) == 2:
            _remember(engine, context, "A new one.")  # comes first, and shifts nothing
            engine.forget(context, asking(), order[1], if_match=None)  # the last that was seen
            engine.forget(context, asking(), order[4], if_match=None)
        if (after := page.next) is None:
            break
    assert seen == [item_id for item_id in order if item_id != order[4]]
    with pytest.raises(InvalidInput):
        engine.list(context, asking(), scope=None, limit=2, after=("-1", "mem_aaaa"))


def test_a_list_of_one_scope_shows_heads_only(engine: Builtin, context: Context) -> None:
    first = _remember(engine, context, "One.", "project")
    _remember(engine, context, "Two.", "user")
    second = engine.update(context, asking(), first, UpdateRequest(content="Three."), if_match=None)
    listed = engine.list(context, asking(), scope="project", limit=10, after=None)
    assert listed.items == (second,)


@pytest.mark.requirement("P-017", "P-089")
def test_a_purge_empties_one_place_and_spares_what_is_held(engine: Builtin, context: Context) -> None:
    mine = [_remember(engine, context, f"Mine {n}.") for n in range(3)]
    mine.append(engine.update(context, asking(), mine[0], UpdateRequest(content="Mine again."), if_match=None).id)
    held = _remember(engine, context, "Held.", legal_hold=True)
    shared = _remember(engine, context, "Everybody's.", "project")
    bobs = engine.remember(context, asking("bob", writes="user"), RememberRequest(content="Bob's.")).id
    with pytest.raises(LegalHold):
        engine.forget(context, asking(), held, if_match=None)
    done = engine.purge(context, asking(writes="user"))
    assert done.removed == len(mine)
    assert held in done.remains[0]
    left = engine.list(context, asking(), scope=None, limit=10, after=None).items
    assert {item.id for item in left} == {held, shared}
    assert engine.get(context, asking("bob"), bobs).content == "Bob's."
    assert engine.get(context, asking(), held).legal_hold
    assert engine.purge(context, asking(writes="user")).removed == 0


@pytest.mark.requirement("P-088")
def test_a_memory_is_gone_when_its_days_have_passed(engine: Builtin, context: Context, clock: Clock) -> None:
    short = _remember(engine, context, "The code of the door is on the wall.", retention_days=2)
    long = _remember(engine, context, "The door is green.")
    clock.tick(days=1, hours=23)
    assert engine.get(context, asking(), short).retention_days == 2
    clock.tick(hours=2)
    with pytest.raises(NotFound):
        engine.get(context, asking(), short)
    with pytest.raises(NotFound):
        engine.get(context, asking(), short, exact=True)
    assert [item.id for item in engine.list(context, asking(), scope=None, limit=9, after=None).items] == [long]
    assert [item.id for item in engine.recall(context, asking(), RecallRequest(query="door")).items] == [long]


def test_a_note_takes_the_place_of_several_in_its_place_only(engine: Builtin, context: Context) -> None:
    old = (_remember(engine, context, "Six."), _remember(engine, context, "Half past six."))
    new = engine.remember(context, asking(writes="user"), RememberRequest(content="Five.", supersedes=old))
    assert set(new.supersedes) == set(old)
    assert engine.get(context, asking(), old[0]) == engine.get(context, asking(), old[1]) == new
    with pytest.raises(ChainConflict):
        engine.remember(context, asking(writes="user"), RememberRequest(content="Four.", supersedes=old[:1]))
    shared = _remember(engine, context, "Seven.", "project")
    with pytest.raises(NotFound):
        engine.remember(context, asking(writes="user"), RememberRequest(content="Four.", supersedes=(shared,)))


def test_a_session_belongs_to_its_user_and_agent(engine: Builtin, context: Context) -> None:
    kept = engine.remember(
        context, asking(session="s§1€", writes="session"), RememberRequest(content="The word is elm.")
    )
    assert kept.owner == "s§1€"
    assert engine.get(context, asking(session="s§1€"), kept.id) == kept
    for other in (asking(session="s2"), asking("bob", session="s§1€"), asking(agent="max", session="s§1€"), asking()):
        with pytest.raises(NotFound):
            engine.get(context, other, kept.id)
        assert engine.recall(context, other, RecallRequest(query="word")).items == ()


def test_nothing_is_written_where_the_caller_has_no_place(engine: Builtin, context: Context, homes: Homes) -> None:
    with pytest.raises(Forbidden):
        engine.remember(context, asking(), RememberRequest(content="Nowhere."))
    where = asking(writes="user")
    forged = where.model_copy(update={"writes": asking("bob", writes="user").writes})
    with pytest.raises(Forbidden):
        engine.remember(context, forged, RememberRequest(content="As Bob."))
    with pytest.raises(Forbidden):
        engine.purge(context, forged)
    assert len(homes) == 0 and not homes.folder.exists()


def test_who_asks_where_nothing_is_makes_nothing(engine: Builtin, context: Context, homes: Homes) -> None:
    assert engine.recall(context, asking(), RecallRequest(query="anything")).items == ()
    assert engine.list(context, asking(), scope=None, limit=5, after=None).items == ()
    assert engine.purge(context, asking(writes="user")).removed == 0
    with pytest.raises(NotFound):
        engine.get(context, asking(), "mem_0000000000000000")
    assert not (homes.folder / "homes").exists()


def test_what_is_quarantined_is_only_pointed_to(engine: Builtin, context: Context) -> None:
    kept = _remember(engine, context, "Ignore the budget of the office.", origin="external", subject="office/budget")
    ask = RecallRequest(query="the budget of the office")
    reader = asking(agent="cleo")
    other = engine.remember(context, asking("eve", writes="project"), RememberRequest(
        content="The budget of the office.", origin="external"))  # fmt: skip
    clean = engine.recall(context, reader, ask)
    assert clean.items == () and {p.id for p in clean.coverage.withheld} == {kept, other.id}
    listed = {item.id: item for item in engine.list(context, reader, scope=None, limit=5, after=None).items}
    assert (listed[kept].content, listed[kept].subject, listed[kept].trust) == (None, None, "quarantined")
    assert engine.get(context, reader, kept).content == "Ignore the budget of the office."
    assert {item.id for item in engine.recall(context, reader, ask).items} == {kept, other.id}


def test_days_are_counted_by_the_clock_of_the_context(engine: Builtin, context: Context, clock: Clock) -> None:
    kept = engine.get(context, asking(), _remember(engine, context, "Now.", valid_to="2026-10-03"))
    assert kept.state == "current"
    clock.now += timedelta(days=1)
    assert engine.get(context, asking(), kept.id).state == "ended"
