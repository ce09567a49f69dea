"""Tenants, users, teams, agents, freezes and sessions; and that none of them reaches into another tenant."""

from __future__ import annotations

import pytest

from memoranda.context import Context
from memoranda.errors import Conflict, InvalidInput, NotFound
from memoranda.governance.identity import Tokens
from memoranda.governance.registry import Agent, Registry
from memoranda.state.database import Database
from memoranda.state.opening import open_database


def test_an_agent_is_known_with_its_project_owner_and_organization(registry: Registry) -> None:
    assert registry.agent("acme", "cleo") == Agent("acme", "cleo", "cleo", "atlas", "ana", "acme-group", False)


def test_an_agent_of_another_tenant_is_not_found_like_one_that_is_not_there(
    registry: Registry, context: Context
) -> None:
    registry.add_agent(context, "globex", "nell", project="x", owner="ana")
    with pytest.raises(NotFound) as foreign:
        registry.agent("acme", "nell")
    with pytest.raises(NotFound) as missing:
        registry.agent("acme", "nobody")
    assert str(foreign.value) == str(missing.value)


def test_teams_are_those_of_the_tenant_only(registry: Registry, context: Context) -> None:
    registry.add_team(context, "globex", "board", ("ana",))
    assert registry.teams_of("acme", "ana") == {"sales"}
    assert registry.teams_of("globex", "ana") == {"board"}
    assert registry.teams_of("globex", "otto") == frozenset()


def test_who_leaves_a_team_is_out_at_once(registry: Registry, context: Context) -> None:
    assert registry.teams_of("acme", "otto") == {"sales"}
    registry.add_team(context, "acme", "sales", ("ana",))
    assert registry.teams_of("acme", "otto") == frozenset()
    assert registry.team("acme", "sales").members == {"ana"}
    registry.remove_team("acme", "sales")
    assert registry.teams_of("acme", "ana") == frozenset()


@pytest.mark.parametrize("name", ["", "..", "a/b", "é", "a" * 65, "-x", "a b", "a\n"])
def test_a_name_that_the_contract_does_not_know_is_refused(registry: Registry, context: Context, name: str) -> None:
    with pytest.raises(InvalidInput):
        registry.add_tenant(context, name)
    with pytest.raises(InvalidInput):
        registry.add_agent(context, "acme", name, project="atlas", owner="ana")
    with pytest.raises(InvalidInput):
        registry.add_user(context, "acme", name)


def test_two_tenants_never_differ_in_case_only(registry: Registry, context: Context) -> None:
    with pytest.raises(Conflict):
        registry.add_tenant(context, "ACME")


def test_a_tenants_user_cannot_be_made_a_platform_admin(registry: Registry, context: Context) -> None:
    with pytest.raises(InvalidInput, match="platform_admin"):
        registry.add_user(context, "acme", "ana", ("platform_admin",))


def test_an_agent_needs_an_owner_who_is_there_and_who_stays(registry: Registry, context: Context) -> None:
    with pytest.raises(NotFound):
        registry.add_agent(context, "acme", "nell", project="atlas", owner="root")
    with pytest.raises(Conflict):
        registry.remove_user("acme", "ana")


def test_a_tenant_that_is_removed_takes_its_own_with_it_and_nothing_else(
    registry: Registry, context: Context, state: Database
) -> None:
    tokens = Tokens(state)
    tokens.issue(context, "acme", "ana")
    tokens.issue(context, "globex", "ana")
    registry.remove_tenant("acme")
    with pytest.raises(NotFound):
        registry.tenant("acme")
    assert tokens.list("acme") == [] and registry.users("acme") == []
    assert len(tokens.list("globex")) == 1 and registry.agent("globex", "cleo").owner == "ana"


class TestFreezing:
    def test_stops_one_agent_until_it_is_thawed(self, registry: Registry, context: Context) -> None:
        registry.add_agent(context, "acme", "nell", project="atlas", owner="ana")
        registry.freeze(context, "acme", "cleo", by="sam")
        assert registry.agent("acme", "cleo").frozen and not registry.agent("acme", "nell").frozen
        assert not registry.agent("globex", "cleo").frozen
        assert [agent.frozen for agent in registry.agents("acme")] == [True, False]
        registry.thaw("acme", "cleo")
        assert not registry.agent("acme", "cleo").frozen

    def test_of_a_tenant_stops_all_its_agents(self, registry: Registry, context: Context) -> None:
        registry.freeze(context, "acme", by="sam")
        assert registry.tenant("acme").frozen and registry.agent("acme", "cleo").frozen
        assert not registry.agent("globex", "cleo").frozen
        assert [tenant.frozen for tenant in registry.tenants()] == [True, False]

    def test_by_another_process_counts_at_once(self, registry: Registry, context: Context, url: str) -> None:
        assert not registry.agent("acme", "cleo").frozen
        with open_database(url) as other:  # another engine, another watch: all that they share is the file
            Registry(other).freeze(context, "acme", "cleo", by="sam")
            assert registry.agent("acme", "cleo").frozen
            Registry(other).thaw("acme", "cleo")
            assert not registry.agent("acme", "cleo").frozen

    def test_outlives_the_agent(self, registry: Registry, context: Context) -> None:
        registry.freeze(context, "acme", "cleo", by="sam")
        registry.remove_agent("acme", "cleo")
        assert registry.add_agent(context, "acme", "cleo", project="atlas", owner="ana").frozen
