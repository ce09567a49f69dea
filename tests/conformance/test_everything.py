"""What every engine does, whether it keeps memories or documents, written against the contract."""

from __future__ import annotations

from typing import get_args

import pytest

from memoranda.context import Context
from memoranda.engines.contract import KNOWLEDGE, MEMORY, Operation, OperationContext, RememberRequest, Scope
from memoranda.errors import (
    CapabilityUnsupported,
    Forbidden,
    Forgotten,
    InvalidInput,
    LegalHold,
    NotFound,
    PreconditionFailed,
    RuleOfTwo,
    SecretRefused,
)
from memoranda.values import replace
from tests.conformance.subject import Subject
from tests.conftest import Clock
from tests.engines.asking import asking

ENGINES = ("builtin", "cognee", "hybrid", "mem0")
SIX = "The office closes at six."
SCOPES: tuple[Scope, ...] = ("user", "agent", "shared_agents", "project", "team", "organization", "global")
OTHERS = {
    "another tenant": asking(tenant="globex"), "another project": asking(project="bank"),
    "another user": asking("bob", "max", reads=("user", "agent", "shared_agents")),
}  # fmt: skip
METHODS = {"get_health": "health", "get_capabilities": "document", "ingest_knowledge": "ingest",
           "get_relations": "relations", "search": "recall"}  # fmt: skip


def meet_private(subject: Subject, context: Context, where: OperationContext) -> None:
    """The session of `where` is given something confidential."""
    new = RememberRequest(content="The offer is two million.", classification="confidential")
    private = subject.sessions.remember(context, asking(agent="max", writes="user"), new)
    subject.sessions.get(context, where, private.id)


@pytest.mark.requirement("P-020", "P-030", "P-031", "P-042")
def test_it_does_what_it_announces_and_refuses_what_it_does_not(subject: Subject, context: Context) -> None:
    told = subject.engine.document()
    assert (told.provider, told.engine_instance) == (subject.provider, subject.engine.instance)
    announced = {*told.capabilities.memory, *told.capabilities.knowledge}
    assert {"forget", "list", "purge", "get_health", "get_capabilities"} <= announced <= {*MEMORY, *KNOWLEDGE}
    assert announced <= set(get_args(Operation))
    for capability in (*MEMORY, *KNOWLEDGE):
        does = getattr(subject.engine, METHODS.get(capability, capability), None)
        if capability in announced:
            assert callable(does), capability
        elif does is not None:
            with pytest.raises(CapabilityUnsupported) as error:
                does(context, asking(), None)
            assert (error.value.status, error.value.code) == (422, "memory_capability_unsupported")


@pytest.mark.requirement("P-029")
def test_it_tells_how_it_is(subject: Subject, context: Context) -> None:
    told = subject.engine.health(context)
    assert (told.status, told.provider, told.engine_instance) == ("ok", subject.provider, subject.engine.instance)


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_kept_is_listed_in_its_scope_with_its_labels(subject: Subject, context: Context, scope: Scope) -> None:
    where = asking(writes=scope)
    kept = subject.keep(context, SIX, scope, classification="confidential", retention_days=30, legal_hold=True)
    (item,) = subject.listed(replace(context, person=True), where, scope=scope)
    assert where.writes is not None
    assert (item.id, item.engine, item.scope, item.owner) in (
        (kept, subject.engine.instance, scope, where.writes.owner),
        (kept, "cognee-1", scope, where.writes.owner),
    )
    assert (item.classification, item.retention_days, item.legal_hold) == ("confidential", 30, True)
    assert (item.state, item.trust, item.reviewed, item.taint) == ("current", "unreviewed", False, ())
    assert item.recorded_at and item.etag and item.content == SIX
    assert [one.scope for one in subject.listed(context, where)] == [scope]


@pytest.mark.requirement("P-026")
def test_a_list_goes_on_where_it_ended_while_items_come_and_go(
    subject: Subject, context: Context, clock: Clock
) -> None:
    made = []
    for n in range(9):
        made.append(subject.keep(context, f"Number {n}."))
        clock.tick()
    first = subject.engine.list(context, asking(), scope=None, limit=4, after=None)
    assert [item.id for item in first.items] == made[8:4:-1]
    subject.keep(context, "A new one.")
    subject.engine.forget(context, asking(), made[3], if_match=None)
    subject.engine.forget(context, asking(), made[6], if_match=None)
    rest, after = [], first.next
    while after is not None:
        page = subject.engine.list(context, asking(), scope=None, limit=2, after=after)
        rest += page.items
        after = page.next
    assert [item.id for item in rest] == [made[n] for n in (4, 2, 1, 0)]
    assert subject.listed(context, scope="project") == []


@pytest.mark.parametrize("other", OTHERS)
def test_what_lies_elsewhere_is_not_there(subject: Subject, context: Context, other: str) -> None:
    scope: Scope = "user" if other == "another user" else "project"
    kept = subject.keep(context, SIX, scope)
    where = OTHERS[other]
    assert subject.listed(context, where) == []
    refused = []
    for item in (kept, "mem_00000000000000a1"):
        with pytest.raises(NotFound) as error:
            subject.engine.forget(context, where, item, if_match=None)
        refused.append(str(error.value))
    assert len(set(refused)) == 1  # another's is as unknown as one that nobody has
    writes = where.model_copy(update={"writes": next(p for p in where.reads if p.scope == scope)})
    assert subject.engine.purge(context, writes).removed == 0
    assert [item.id for item in subject.listed(context)] == [kept]


def test_a_place_that_is_not_the_callers_own_is_not_written(subject: Subject, context: Context) -> None:
    where = asking(writes="user").model_copy(update={"writes": asking("bob", writes="user").writes})
    with pytest.raises(Forbidden):
        subject.keep(context, SIX, by=where)
    with pytest.raises(Forbidden):
        subject.engine.purge(context, where)


@pytest.mark.requirement("P-134")
def test_what_belongs_to_a_session_is_kept_by_builtin_or_refused(subject: Subject, context: Context) -> None:
    where = asking(writes="session", session="s-1")
    if subject.name in ("builtin", "hybrid"):
        assert subject.remember(context, SIX, "session", by=where).engine == "builtin"
        assert subject.engine.purge(context, where).removed == 1
    else:
        with pytest.raises(CapabilityUnsupported) as error:
            subject.keep(context, SIX, "session", by=where)
        assert error.value.status == 422


@pytest.mark.requirement("P-025")
def test_what_is_forgotten_is_gone_says_what_remains_and_does_not_come_back(subject: Subject, context: Context) -> None:
    kept = subject.keep(context, SIX)
    other = subject.keep(context, "Bread is baked at four.")
    gone = subject.engine.forget(context, asking(), kept, if_match=None)
    assert (gone.id, gone.removed) == (kept, 1) and gone.remains
    assert [item.id for item in subject.listed(context)] == [other]
    with pytest.raises(NotFound):
        subject.engine.forget(context, asking(), kept, if_match=None)
    if subject.name != "builtin":  # whose tombstones keep an id out, and words as they were
        with pytest.raises(Forgotten) as error:
            subject.keep(context, " the OFFICE closes at  six. ")
        assert error.value.status == 409
    again = subject.keep(replace(context, person=True), SIX)
    assert {item.id for item in subject.listed(context)} == {again, other}


def test_what_has_changed_meanwhile_is_not_forgotten(subject: Subject, context: Context) -> None:
    kept = subject.keep(context, SIX)
    (item,) = subject.listed(context)
    with pytest.raises(PreconditionFailed) as error:
        subject.engine.forget(context, asking(), kept, if_match="0" * len(item.etag))
    assert error.value.status == 412
    assert subject.engine.forget(context, asking(), kept, if_match=item.etag).removed == 1


@pytest.mark.requirement("P-028")
def test_a_purge_empties_one_place(subject: Subject, context: Context) -> None:
    for n in range(12):
        subject.keep(context, f"The office closes at {n}.")
    left = subject.keep(context, "The office closes never.", "project")
    assert subject.engine.purge(context, asking(writes="user")).removed == 12
    assert [item.id for item in subject.listed(context)] == [left]
    assert subject.engine.purge(context, asking(writes="user")).removed == 0


def test_what_is_held_is_neither_forgotten_nor_purged(subject: Subject, context: Context) -> None:
    held = subject.keep(context, SIX, legal_hold=True)
    subject.keep(context, "Bread is baked at four.")
    with pytest.raises(LegalHold) as error:
        subject.engine.forget(context, asking(), held, if_match=None)
    assert error.value.status == 409
    done = subject.engine.purge(context, asking(writes="user"))
    assert done.removed == 1 and any(held in line for line in done.remains)
    (item,) = subject.listed(context)
    assert (item.id, item.legal_hold) == (held, True)


def test_what_is_past_its_retention_is_hidden_on_time(subject: Subject, context: Context, clock: Clock) -> None:
    kept = subject.keep(context, SIX, retention_days=1)
    subject.keep(context, "The office closes at seven.", retention_days=1, legal_hold=True)
    clock.tick(days=1, seconds=-5)
    assert len(subject.listed(context)) == 2
    clock.tick(seconds=10)
    assert subject.listed(context) == []
    with pytest.raises(NotFound):
        subject.engine.forget(context, asking(), kept, if_match=None)


def test_a_secret_is_not_kept(subject: Subject, context: Context) -> None:
    kept = subject.keep(context, SIX)
    with pytest.raises(SecretRefused) as error:
        subject.keep(context, "The password is hunter2-Xk9!q")
    assert error.value.status == 422 and "hunter2" not in str(error.value.problem())
    assert [item.id for item in subject.listed(context)] == [kept]


@pytest.mark.parametrize("text", ["a\0b", " \n "])
def test_what_cannot_be_kept_as_it_is_is_refused_and_leaves_nothing(
    subject: Subject, context: Context, text: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        subject.keep(context, text)
    assert error.value.status == 400
    assert subject.listed(context) == []


def test_what_a_session_keeps_that_has_met_something_from_outside_is_quarantined(
    subject: Subject, context: Context
) -> None:
    where = asking(session="s-out", writes="user")
    subject.sessions.taint(replace(context, session="s-out"), where, "a page of the web")
    kept = subject.keep(context, SIX, by=where)
    clean = asking(session="s-clean", agent="max", reads=("user",))
    (item,) = subject.listed(context, clean)
    assert (item.id, item.taint, item.trust) == (kept, ("external",), "quarantined")
    assert (item.content, item.subject) == (None, None)  # a session that has met none is shown no word of it


def test_what_is_private_and_from_outside_together_reach_no_others(subject: Subject, context: Context) -> None:
    where = asking(session="s-out", writes="user")
    subject.sessions.taint(replace(context, session="s-out"), where, "a page of the web")
    subject.keep(context, "Bread.", "project", by=asking(agent="max", writes="project"))
    meet_private(subject, context, where)
    shared = where.model_copy(update={"writes": asking(writes="project").writes})
    for write in (
        lambda: subject.keep(context, "Told to everybody.", "project", by=shared),
        lambda: subject.engine.purge(context, shared),
    ):
        with pytest.raises(RuleOfTwo) as error:
            write()
        assert error.value.status == 403
    assert subject.keep(context, "Told to nobody.", by=where)
