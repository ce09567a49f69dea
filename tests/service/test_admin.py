"""The registry from outside: who may do what, and that no agent's credential and no narrowed token gets further."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from memoranda.context import Context
from memoranda.engines.contract import RecallRequest
from memoranda.errors import ComponentUnavailable, Forbidden, InvalidInput, NotFound, Unauthenticated
from memoranda.governance.names import stamp
from memoranda.governance.policies import Floor
from memoranda.governance.relations import Relations, Tuple
from memoranda.service import admin, memories
from memoranda.service.caller import Caller, authenticate
from memoranda.service.desk import Desk

Made = Callable[..., Caller]


def test_no_agents_credential_administers(desk: Desk, caller: Made) -> None:
    agent = caller("acme", "ana", "cleo")
    calls: list[Callable[[], object]] = [
        lambda: admin.add_tenant(desk, agent, "new"),
        lambda: admin.add_user(desk, agent, "new"),
        lambda: admin.users(desk, agent),
        lambda: admin.add_team(desk, agent, "new"),
        lambda: admin.add_agent(desk, agent, "new", "shop"),
        lambda: admin.remove_agent(desk, agent, "cleo"),
        lambda: admin.issue_token(desk, agent, "ana"),
        lambda: admin.issue_token(desk, agent, agent="cleo"),
        lambda: admin.tokens(desk, agent),
        lambda: admin.write_relations(desk, agent, "cleo", [Tuple("user:acme/bob", "editor", "agent:acme/cleo")], []),
        lambda: admin.set_floor(desk, agent, Floor()),
        lambda: admin.freeze(desk, agent),
    ]
    for call in calls:
        with pytest.raises(Forbidden):
            call()


def test_the_platform_makes_tenants_and_reads_none(desk: Desk, caller: Made, context: Context) -> None:
    root = caller(None, "root")
    admin.add_tenant(desk, root, "initech")
    with pytest.raises(InvalidInput, match="no user yet"):
        admin.first_token(desk, root, "initech", "peter")
    admin.add_user(desk, root, "peter", ("tenant_admin", "developer"), tenant="initech")
    _, secret = admin.first_token(desk, root, "initech", "peter")
    with pytest.raises(Forbidden):
        admin.first_token(desk, root, "initech", "peter")
    with pytest.raises(Forbidden):
        admin.add_user(desk, root, "mole", ("tenant_admin",), tenant="initech")
    peter = authenticate(desk, context, secret)
    admin.add_agent(desk, peter, "milton", "stapler")
    assert memories.list_items(desk, peter, "milton").items == ()
    with pytest.raises(Forbidden):
        memories.list_items(desk, root, "milton")
    for call in (lambda: admin.users(desk, root), lambda: admin.agents(desk, root), lambda: admin.freeze(desk, root)):
        with pytest.raises(Forbidden):
            call()


def test_a_developer_adds_own_agents_only(desk: Desk, caller: Made) -> None:
    bob = caller("acme", "bob")
    assert admin.add_agent(desk, bob, "bee", "shop").owner == "bob"
    with pytest.raises(Forbidden):
        admin.add_agent(desk, bob, "cleo", "shop")  # ana's
    with pytest.raises(Forbidden):
        admin.add_agent(desk, bob, "wasp", "shop", owner="ana")
    with pytest.raises(Forbidden):
        admin.write_relations(desk, bob, "cleo", [Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")], [])
    with pytest.raises(Forbidden):  # a grant on another agent than the one that is named
        admin.write_relations(desk, bob, "bee", [Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")], [])
    with pytest.raises(Forbidden):  # ownership is not granted
        admin.write_relations(desk, bob, "bee", [Tuple("user:acme/ana", "owner", "agent:acme/bee")], [])
    with pytest.raises(InvalidInput):  # a person of another tenant
        admin.write_relations(desk, bob, "bee", [Tuple("user:globex/zoe", "can_invoke", "agent:acme/bee")], [])


def test_a_grant_counts_at_once_and_so_does_its_end(desk: Desk, caller: Made) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    grant = Tuple("user:acme/bob", "can_invoke", "agent:acme/cleo")
    admin.write_relations(desk, ana, "cleo", [grant], [])
    memories.recall(desk, bob, "cleo", RecallRequest(query="what?"))
    admin.write_relations(desk, ana, "cleo", [], [grant])
    with pytest.raises(Forbidden):
        memories.recall(desk, bob, "cleo", RecallRequest(query="what?"))


def test_teams_and_roles_carry_grants(desk: Desk, caller: Made) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    admin.add_team(desk, ana, "sales", ("bob",))
    admin.write_relations(desk, ana, "cleo", [Tuple("team:acme/sales#member", "can_invoke", "agent:acme/cleo")], [])
    memories.recall(desk, bob, "cleo", RecallRequest(query="what?"))
    admin.add_team(desk, ana, "sales", ())
    with pytest.raises(Forbidden):
        memories.recall(desk, bob, "cleo", RecallRequest(query="what?"))


def test_a_narrowed_token_makes_no_wider_one(desk: Desk, caller: Made, context: Context) -> None:
    sam = caller("acme", "sam")
    _, narrow = admin.issue_token(desk, sam, roles=())
    small = authenticate(desk, context, narrow)
    assert small.identity.roles == frozenset()
    _, again = admin.issue_token(desk, small)
    assert authenticate(desk, context, again).identity.roles == frozenset()
    with pytest.raises(Forbidden):
        admin.freeze(desk, small)


def test_a_token_makes_none_that_outlives_it(desk: Desk, caller: Made, context: Context) -> None:
    ends = context.now() + timedelta(hours=1)
    _, short = admin.issue_token(desk, caller("acme", "bob"), expires_at=ends)
    bob = authenticate(desk, context, short)
    sooner = ends - timedelta(minutes=30)
    made = {
        admin.issue_token(desk, bob, agent=agent, expires_at=wanted)[0]: min(wanted or ends, ends)
        for agent in (None, "max")
        for wanted in (None, ends + timedelta(days=900), sooner)
    }
    told = {token.id: token.expires_at for token in desk.tokens.list("acme")}
    assert {token: told[token] for token in made} == {token: stamp(at) for token, at in made.items()}


def test_a_revoked_token_is_nobodys(desk: Desk, caller: Made, context: Context) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    token_id, secret = admin.issue_token(desk, bob)
    authenticate(desk, context, secret)
    with pytest.raises(NotFound):
        admin.revoke_token(desk, caller("globex", "zoe"), token_id)
    admin.revoke_token(desk, ana, token_id)
    with pytest.raises(Unauthenticated):
        authenticate(desk, context, secret)
    with pytest.raises(Unauthenticated):
        authenticate(desk, context, None)


def test_who_leaves_has_no_relation_left(desk: Desk, caller: Made, context: Context) -> None:
    ana = caller("acme", "ana")
    admin.add_user(desk, ana, "kim", ("developer",))
    admin.write_relations(desk, ana, "cleo", [Tuple("user:acme/kim", "editor", "agent:acme/cleo")], [])
    admin.remove_user(desk, ana, "kim")
    assert desk.relations.read(user="user:acme/kim") == []
    admin.add_user(desk, ana, "kim")  # another person of the same name
    with pytest.raises(Forbidden):
        memories.recall(desk, caller("acme", "kim"), "cleo", RecallRequest(query="what?"))


class Failing:
    """Relations whose next writes fail, as an OpenFGA does that has just gone; everything else is the real thing."""

    def __init__(self, real: Relations) -> None:
        self.real, self.down = real, False

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def write(self, add: Sequence[Tuple] = (), remove: Sequence[Tuple] = ()) -> None:
        if self.down:
            raise ComponentUnavailable("It does not answer.")
        self.real.write(add, remove)


def test_after_a_failure_nobody_holds_more_and_the_same_call_completes_it(desk: Desk, caller: Made) -> None:
    relations = Failing(desk.relations)
    desk = replace(desk, relations=relations)  # type: ignore[arg-type]
    ana = caller("acme", "ana")
    admin.add_user(desk, ana, "kim", ("developer",))
    admin.write_relations(desk, ana, "cleo", [Tuple("user:acme/kim", "editor", "agent:acme/cleo")], [])
    kim = caller("acme", "kim")
    relations.down = True
    with pytest.raises(ComponentUnavailable):
        admin.remove_user(desk, ana, "kim")
    with pytest.raises(ComponentUnavailable):
        admin.add_team(desk, ana, "sales", ("kim",))
    relations.down = False
    admin.add_team(desk, ana, "sales", ("kim",))
    assert desk.relations.read(object="team:acme/sales") == [Tuple("user:acme/kim", "member", "team:acme/sales")]
    admin.add_team(desk, ana, "sales", ())
    admin.remove_user(desk, ana, "kim")
    assert desk.relations.read(user="user:acme/kim") == []
    with pytest.raises(Forbidden):
        memories.recall(desk, kim, "cleo", RecallRequest(query="what?"))
    outcomes = {(e.event.operation, e.event.outcome) for e in desk.audit.query("acme", limit=100)[0]}
    assert {("remove_user", "failure"), ("remove_user", "success")} <= outcomes


def test_a_team_that_goes_takes_its_grants_along(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    admin.add_team(desk, ana, "sales", ("bob",))
    admin.write_relations(desk, ana, "cleo", [Tuple("team:acme/sales#member", "can_invoke", "agent:acme/cleo")], [])
    admin.remove_team(desk, ana, "sales")
    admin.add_team(desk, ana, "sales", ("bob",))
    with pytest.raises(Forbidden):
        memories.recall(desk, caller("acme", "bob"), "cleo", RecallRequest(query="what?"))


def test_who_holds_more_than_goes_into_one_write_loses_all_of_it(desk: Desk, caller: Made) -> None:
    ana = caller("acme", "ana")
    admin.add_user(desk, ana, "kim", ("developer",))
    for n in range(130):
        desk.registry.add_agent(ana.context, "acme", f"a{n}", "shop", "ana")
        desk.relations.write(add=[Tuple("user:acme/kim", "viewer", f"agent:acme/a{n}")])
    admin.remove_user(desk, ana, "kim")
    assert desk.relations.read(user="user:acme/kim") == []


def test_with_another_owner_the_agent_acts_for_the_former_one_no_more(
    desk: Desk, caller: Made, context: Context
) -> None:
    ana, bob = caller("acme", "ana"), caller("acme", "bob")
    _, his = admin.issue_token(desk, bob, agent="max")
    _, hers = admin.issue_token(desk, ana, agent="max")
    admin.add_agent(desk, ana, "max", "shop", owner="bob")  # the same owner: nothing ends
    memories.list_items(desk, authenticate(desk, context, his), "max")
    admin.add_agent(desk, ana, "max", "shop", owner="ana")
    with pytest.raises(Unauthenticated):
        authenticate(desk, context, his)
    memories.list_items(desk, authenticate(desk, context, hers), "max")
    with pytest.raises(Forbidden):
        memories.list_items(desk, bob, "max")
