"""What the shipped relation model grants, what it never grants, and what cannot be stored or asked."""

from __future__ import annotations

import pytest

from memoranda.errors import ConfigRefused, InvalidInput
from memoranda.governance.relation_model import DEPTH, evaluate, parse
from memoranda.governance.relations import (
    EmbeddedRelations,
    Tuple,
    shipped_text,
    tuple_of_member,
    tuples_of_agent,
    tuples_of_roles,
    tuples_of_tenant,
)
from tests.governance.tuple_store import Tuples

CLEO = "agent:acme/cleo"
NAMES = ("viewer", "editor", "can_invoke")


@pytest.fixture
def relations() -> EmbeddedRelations:
    made = EmbeddedRelations(Tuples())
    for tenant in ("acme", "globex"):
        made.write(tuples_of_tenant(tenant) + tuples_of_agent(tenant, "cleo", "ana"))
    return made


def held(relations: EmbeddedRelations, user: str, object: str = CLEO) -> list[str]:
    return [name for name in NAMES if relations.check(user, name, object)]


@pytest.mark.requirement("S-067")
def test_an_owner_has_every_relation_and_a_stranger_none(relations: EmbeddedRelations) -> None:
    assert held(relations, "user:acme/ana") == ["viewer", "editor", "can_invoke"]
    assert held(relations, "user:acme/eve") == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("through", ["user:acme/bob", "team:acme/sales#member", "role:acme/developer#assignee"])
def test_a_grant_to_a_person_a_team_or_a_role_is_that_relation_and_what_follows(
    relations: EmbeddedRelations, name: str, through: str
) -> None:
    relations.write(
        [
            Tuple(through, name, CLEO),
            tuple_of_member("acme", "sales", "bob"),
            *tuples_of_roles("acme", "bob", ["developer"]),
        ]
    )
    expected = ["viewer", "editor"] if name == "editor" else [name]
    assert held(relations, "user:acme/bob") == expected
    assert held(relations, "user:acme/eve") == []


def test_a_team_in_a_team_counts_and_teams_that_hold_each_other_end(relations: EmbeddedRelations) -> None:
    relations.write(
        [
            Tuple("team:acme/sales#member", "can_invoke", CLEO),
            Tuple("team:acme/north#member", "member", "team:acme/sales"),
            Tuple("team:acme/sales#member", "member", "team:acme/north"),
            tuple_of_member("acme", "north", "bob"),
        ]
    )
    assert held(relations, "user:acme/bob") == ["can_invoke"]
    assert held(relations, "user:acme/eve") == []


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("tenant_admin", ["viewer", "editor"]),
        ("security_officer", ["viewer"]),
        ("auditor", ["viewer"]),
        ("developer", []),
        ("platform_admin", []),
    ],
)
def test_what_a_role_is_to_the_agents_of_its_tenant(
    relations: EmbeddedRelations, role: str, expected: list[str]
) -> None:
    relations.write(tuples_of_roles("acme", "bob", [role]))
    assert held(relations, "user:acme/bob") == expected
    assert held(relations, "user:acme/bob", "agent:globex/cleo") == []
    assert held(relations, "user:globex/bob", "agent:globex/cleo") == []


def test_roles_that_came_with_a_token_count_for_the_question_only(relations: EmbeddedRelations) -> None:
    roles = tuples_of_roles("acme", "bob", ["tenant_admin"])
    assert relations.check("user:acme/bob", "editor", CLEO, roles)
    assert not relations.check("user:acme/bob", "editor", CLEO)
    assert not relations.check("user:acme/eve", "editor", CLEO, roles)
    assert relations.read(user="user:acme/bob") == []


@pytest.mark.parametrize(
    "one",
    [
        Tuple("user:globex/ana", "viewer", CLEO),
        Tuple("team:globex/sales#member", "can_invoke", CLEO),
        Tuple("tenant:globex", "tenant", CLEO),
        Tuple("role:acme/platform_admin#assignee", "can_invoke", CLEO),
        Tuple("user:acme/bob", "assignee", "role:acme/platform_admin"),
        Tuple("role:acme/anything#assignee", "can_invoke", CLEO),
        Tuple("user:*", "viewer", CLEO),
        Tuple("user:ana", "viewer", CLEO),
        Tuple("user:acme/", "viewer", CLEO),
        Tuple("agent:acme/other", "can_invoke", CLEO),
        Tuple("team:acme/sales#assignee", "viewer", CLEO),
        Tuple("user:acme/ana", "admin", CLEO),
        Tuple("user:acme/ana\nx", "viewer", CLEO),
    ],
)
def test_what_joins_tenants_or_is_not_in_the_model_is_not_stored(relations: EmbeddedRelations, one: Tuple) -> None:
    before = relations.read(object=CLEO)
    with pytest.raises(InvalidInput):
        relations.write([Tuple("user:acme/bob", "viewer", CLEO), one])
    assert relations.read(object=CLEO) == before


def test_a_tuple_of_another_tenant_that_got_into_the_store_all_the_same_grants_nothing() -> None:
    store = Tuples([Tuple("user:globex/ana", "can_invoke", CLEO)])
    assert evaluate(parse(shipped_text()), store.relevant, "user:globex/ana", "can_invoke", CLEO)
    assert not EmbeddedRelations(store).check("user:globex/ana", "can_invoke", CLEO)


def test_a_relation_taken_away_is_gone_at_once_and_taking_it_twice_is_no_error(relations: EmbeddedRelations) -> None:
    grant = Tuple("user:acme/bob", "viewer", CLEO)
    relations.write([grant])
    relations.write([grant])
    assert relations.check("user:acme/bob", "viewer", CLEO)
    relations.write(remove=[grant])
    relations.write(remove=[grant])
    assert not relations.check("user:acme/bob", "viewer", CLEO)


def test_what_the_model_does_not_know_is_refused_and_not_answered(relations: EmbeddedRelations) -> None:
    for user, relation, object in (
        ("user:acme/ana", "owns", CLEO),
        ("person:acme/ana", "viewer", CLEO),
        ("user:acme/ana", "viewer", "note:acme/n"),
    ):
        with pytest.raises(InvalidInput):
            relations.check(user, relation, object)
    with pytest.raises(InvalidInput):
        relations.read()


def test_what_leads_deeper_than_the_limit_does_not_hold_and_a_shorter_way_does() -> None:
    deep = DEPTH + 2
    chain = [Tuple(f"team:acme/t{n + 1}#member", "member", f"team:acme/t{n}") for n in range(deep)]
    store = Tuples([*chain, tuple_of_member("acme", f"t{deep}", "bob")])
    relations = EmbeddedRelations(store)
    assert not relations.check("user:acme/bob", "member", "team:acme/t0")
    assert relations.check("user:acme/bob", "member", "team:acme/t5")
    store.write([Tuple(f"team:acme/t{deep - 1}#member", "member", "team:acme/t0")], [])
    assert relations.check("user:acme/bob", "member", "team:acme/t0")


@pytest.mark.parametrize(
    "line",
    [
        "define x: [user with office_hours]",
        "define x: [user] or owner and editor",
        "define x: nobody",
        "define x: viewer from nowhere",
        "define x: [martian]",
        "define x: ([user] or owner",
        "define x: [user] but not owner but not editor",
        "define owner: [user]",
        "condition office_hours(hour: int) {",
    ],
)
def test_a_model_that_says_what_is_not_evaluated_here_is_refused(line: str) -> None:
    with pytest.raises(ConfigRefused):
        parse(f"{shipped_text()}    {line}\n")
