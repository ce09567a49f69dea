"""What people decide: a security officer holds and releases, a person ends a session; and no agent either of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memoranda.engines.contract import Policy, PolicyBody, PurgeRequest, RecallRequest, RememberRequest
from memoranda.errors import Forbidden, Frozen, InvalidInput, LegalHold, NotFound, SecretRefused
from memoranda.governance.relations import Tuple
from memoranda.service import admin, memories, policies, standing
from memoranda.service.answers import HoldRequest, TaintRequest
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk

Made = Callable[..., Caller]
ROOF = RememberRequest(content="The roof was mended in May.")
SET, RELEASE = (HoldRequest(event=event, reason="The case Roof v. Rain.") for event in ("set", "release"))  # type: ignore[arg-type]
ASKED = RecallRequest(query="roof")


def test_an_officer_holds_what_the_officer_cannot_read_and_releases_it(desk: Desk, caller: Made) -> None:
    ana, sam = caller("acme", "ana"), caller("acme", "sam")
    item = memories.remember(desk, ana, "cleo", ROOF)
    newer = memories.remember(desk, ana, "cleo", ROOF.model_copy(update={"supersedes": (item.id,)}))
    with pytest.raises(Forbidden):
        memories.get(desk, sam, "cleo", item.id)

    told = standing.hold(desk, sam, "cleo", item.id, SET)
    assert told.legal_hold and set(told.held) == {item.id, newer.id}
    assert "roof" not in told.model_dump_json()
    with pytest.raises(LegalHold):
        memories.forget(desk, ana, "cleo", newer.id)
    assert memories.get(desk, ana, "cleo", newer.id).legal_hold

    told = standing.hold(desk, sam, "cleo", newer.id, RELEASE)
    assert not told.legal_hold and told.held == ()
    memories.forget(desk, ana, "cleo", newer.id)
    events, _ = desk.audit.query("acme", item=item.id)
    assert [(e.event.operation, e.event.user, e.event.outcome) for e in events if "hold" in e.event.operation] == [
        ("release_hold", "sam", "success"), ("set_hold", "sam", "success"),
    ]  # fmt: skip


def test_what_lies_in_the_tenants_home_is_held_too(desk: Desk, caller: Made, set_policy: Callable[..., None]) -> None:
    wide = ("organization",)
    set_policy("acme", "cleo", write_scopes=wide, read_scopes=wide, default_scope="organization")
    ana = caller("acme", "ana")
    item = memories.remember(desk, ana, "cleo", ROOF)
    standing.hold(desk, caller("acme", "sam"), "cleo", item.id, SET)
    assert memories.purge(desk, ana, "cleo", PurgeRequest(scope="organization", confirm=True)).removed == 0


@pytest.mark.parametrize("who", [("acme", "ana"), ("acme", "ana", "cleo"), ("acme", "ada"), ("acme", "sam", "cleo")])
def test_nobody_else_holds_or_releases(desk: Desk, caller: Made, who: tuple[str, ...]) -> None:
    """Not who owns the agent, not an auditor, and not the agent, even when it acts for an officer."""
    item = memories.remember(desk, caller("acme", "ana"), "cleo", ROOF)
    standing.hold(desk, caller("acme", "sam"), "cleo", item.id, SET)
    for asked in (SET, RELEASE):
        with pytest.raises(Forbidden):
            standing.hold(desk, caller(*who), "cleo", item.id, asked)
    assert memories.get(desk, caller("acme", "ana"), "cleo", item.id).legal_hold
    denied, _ = desk.audit.query("acme", operation="release_hold", outcome="deny")
    assert len(denied) == 1


def test_another_tenants_officer_finds_nothing_and_a_reason_holds_no_secret(desk: Desk, caller: Made) -> None:
    item = memories.remember(desk, caller("acme", "ana"), "cleo", ROOF)
    for agent in ("cleo", "max"):
        with pytest.raises(NotFound):
            standing.hold(desk, caller("globex", "zoe"), agent, item.id, SET)
    for strange in ("mem_0000000000000000", "nothing"):
        with pytest.raises(NotFound):
            standing.hold(desk, caller("acme", "sam"), "cleo", strange, SET)
    leaking = HoldRequest(event="set", reason="password = hunter2-Zq81xx9")
    with pytest.raises(SecretRefused):
        standing.hold(desk, caller("acme", "sam"), "cleo", item.id, leaking)
    assert not memories.get(desk, caller("acme", "ana"), "cleo", item.id).legal_hold


def test_an_agent_holds_nothing_by_itself(desk: Desk, caller: Made, set_policy: Callable[..., None]) -> None:
    wanted = ROOF.model_copy(update={"legal_hold": True})
    agent, ana = caller("acme", "ana", "cleo"), caller("acme", "ana")
    with pytest.raises(Forbidden, match="holds nothing by itself"):
        memories.remember(desk, agent, "cleo", wanted)
    assert memories.list_items(desk, ana, "cleo").items == ()
    assert memories.remember(desk, ana, "cleo", wanted).legal_hold
    set_policy("acme", "cleo", legal_hold=True)
    assert memories.remember(desk, agent, "cleo", wanted).legal_hold
    assert memories.remember(desk, agent, "cleo", ROOF).legal_hold


def test_a_freeze_stops_no_hold_and_no_release(desk: Desk, caller: Made) -> None:
    item, sam = memories.remember(desk, caller("acme", "ana"), "cleo", ROOF), caller("acme", "sam")
    admin.freeze(desk, sam)
    assert standing.hold(desk, sam, "cleo", item.id, SET).legal_hold
    assert not standing.hold(desk, sam, "cleo", item.id, RELEASE).legal_hold
    with pytest.raises(Frozen):
        standing.end_session(desk, caller("acme", "ana"), "cleo")


def _tainted(desk: Desk, by: Caller, session: str | None) -> bool:
    """Whether what is written now waits for a review: its session has met something from outside."""
    item = memories.remember(desk, by, "cleo", ROOF.model_copy(update={"session_id": session, "scope": "user"}))
    return item.trust == "quarantined"


def test_a_person_ends_a_session_and_the_next_one_begins_clean(desk: Desk, caller: Made) -> None:
    ana, agent = caller("acme", "ana"), caller("acme", "ana", "cleo")
    memories.taint(desk, agent, "cleo", "s1", TaintRequest(reason="a page of the web"))
    assert _tainted(desk, agent, "s1") and _tainted(desk, agent, "s2") and _tainted(desk, agent, None)

    for session in ("s1", "s2", None):
        with pytest.raises(Forbidden):
            standing.end_session(desk, agent, "cleo", session)
    with pytest.raises(Forbidden):
        standing.end_session(desk, caller("acme", "bob"), "cleo")
    assert _tainted(desk, agent, "s3")

    ended = standing.end_session(desk, ana, "cleo", "s1")
    assert (ended.ended, ended.taint) == (1, ())  # the others had only inherited it
    assert not _tainted(desk, agent, "s4") and not _tainted(desk, agent, None)
    assert _tainted(desk, agent, "s1")  # who takes the name up again takes up what it has met
    events, _ = desk.audit.query("acme", operation="end_session", outcome="success")
    assert [(e.event.user, e.event.session) for e in events] == [("ana", "s1")]


def test_a_person_ends_what_goes_on_without_a_name(desk: Desk, caller: Made) -> None:
    ana, agent = caller("acme", "ana"), caller("acme", "ana", "cleo")
    memories.taint(desk, agent, "cleo", "s1", TaintRequest(reason="a page of the web"))
    outside = memories.remember(desk, agent, "cleo", ROOF)
    assert outside.trust == "quarantined"
    memories.get(desk, agent, "cleo", outside.id)  # the session without a name has met it by itself now
    assert standing.end_session(desk, ana, "cleo", "s1").taint == ("external",)
    ended = standing.end_session(desk, ana, "cleo")
    assert ended.ended >= 1 and ended.taint == ()
    assert not _tainted(desk, agent, None)
    assert memories.get(desk, ana, "cleo", outside.id).trust == "quarantined"  # what was written stays what it is


def test_nobody_ends_anothers_session(desk: Desk, caller: Made) -> None:
    ana, agent = caller("acme", "ana"), caller("acme", "ana", "cleo")
    admin.write_relations(desk, ana, "cleo", [Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")], [])
    memories.taint(desk, agent, "cleo", "s1", TaintRequest(reason="a page of the web"))
    standing.end_session(desk, caller("acme", "bob"), "cleo")
    assert _tainted(desk, agent, None)


def test_an_officer_sees_all_that_is_held_and_no_word_of_it(
    desk: Desk, caller: Made, set_policy: Callable[..., None]
) -> None:
    """Whoever's it is and wherever it lies: a user's, a session's, the organization's; page by page, in one order."""
    wide = ("session", "user", "organization")
    set_policy("acme", "cleo", write_scopes=wide, read_scopes=wide)
    ana, bob, sam = caller("acme", "ana"), caller("acme", "bob"), caller("acme", "sam")
    admin.write_relations(desk, ana, "cleo", [Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")], [])
    kept = (
        {"scope": "user", "subject": "house/roof"},
        {"scope": "session", "session_id": "s1"},
        {"scope": "organization"},
    )
    made = [memories.remember(desk, bob, "cleo", ROOF.model_copy(update=fields)) for fields in kept]
    own = memories.remember(desk, bob, "cleo", ROOF.model_copy(update={"legal_hold": True}))
    memories.remember(desk, bob, "cleo", ROOF)  # which nobody holds
    theirs = memories.remember(desk, caller("globex", "zoe"), "cleo", ROOF.model_copy(update={"legal_hold": True}))
    assert standing.holds(desk, sam).holds[0].id == own.id
    for item in made:
        standing.hold(desk, sam, "cleo", item.id, SET)

    told = standing.holds(desk, sam)
    assert [one.id for one in told.holds] == sorted([own.id, *(item.id for item in made)]) and told.next_cursor is None
    assert "roof" not in told.model_dump_json().replace(SET.reason, "")
    by_id = {one.id: (one.engine, one.project, one.scope, one.owner, one.set_by, one.reason) for one in told.holds}
    assert by_id[made[0].id] == ("builtin", "shop", "user", "bob", "sam", SET.reason)
    assert by_id[made[1].id][:3] == ("builtin", "shop", "session") and by_id[made[1].id][3].startswith("s1.")
    assert by_id[made[2].id] == ("builtin", None, "organization", "", "sam", SET.reason)
    assert by_id[own.id][4:] == (None, None)

    one, seen = standing.holds(desk, sam, limit=1), []
    while one.next_cursor:
        seen += [held.id for held in one.holds]
        one = standing.holds(desk, sam, limit=1, cursor=one.next_cursor)
    assert [*seen, one.holds[0].id] == sorted(by_id)
    standing.hold(desk, sam, "cleo", made[0].id, RELEASE)
    assert made[0].id not in {one.id for one in standing.holds(desk, sam).holds}
    zoe = caller("globex", "zoe")
    assert [one.id for one in standing.holds(desk, zoe).holds] == [theirs.id]
    cursor = standing.holds(desk, sam, limit=1).next_cursor
    with pytest.raises(InvalidInput):
        standing.holds(desk, zoe, cursor=cursor)


@pytest.mark.parametrize(
    "who", [("acme", "ana"), ("acme", "ada"), ("acme", "ana", "cleo"), ("acme", "sam", "cleo"), (None, "root")]
)
def test_what_is_held_is_told_to_officers_only(desk: Desk, caller: Made, who: tuple[str, ...]) -> None:
    memories.remember(desk, caller("acme", "ana"), "cleo", ROOF.model_copy(update={"legal_hold": True}))
    with pytest.raises(Forbidden):
        standing.holds(desk, caller(*who))
    denied, _ = desk.audit.query(who[0], operation="list_holds", outcome="deny")
    assert len(denied) == 1


def test_a_policy_that_holds_all_does_not_keep_an_officer_from_releasing(desk: Desk, caller: Made) -> None:
    ana, sam = caller("acme", "ana"), caller("acme", "sam")
    policies.put_policy(desk, ana, "cleo", PolicyBody(policy=Policy(legal_hold=True)))
    item = memories.remember(desk, ana, "cleo", ROOF)
    assert item.legal_hold
    assert not standing.hold(desk, sam, "cleo", item.id, RELEASE).legal_hold
    assert memories.search(desk, ana, "cleo", ASKED).items[0].legal_hold is False
