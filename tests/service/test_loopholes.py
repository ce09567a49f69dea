"""Ways around: tokens that would last, first users of used tenants, roles in no tenant, replays, teams of many."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from memoranda.context import Context
from memoranda.engines.contract import RememberRequest, UpdateRequest
from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import Forbidden, InvalidInput, NotFound
from memoranda.faces.http.operator import operator
from memoranda.governance.identity import Identity
from memoranda.governance.openfga import OpenFga
from memoranda.notes.times import parse_instant
from memoranda.service import admin, memories
from memoranda.service.caller import Caller
from memoranda.service.desk import Desk
from memoranda.values import replace
from tests.engines.component import standing
from tests.governance.openfga_standin import MODEL, STORE, OpenFgaServer

Made = Callable[..., Caller]
ROOF = RememberRequest(content="The roof was mended in May.")


@pytest.fixture
def database(on_both: str) -> str:
    return on_both


def by_provider(context: Context, tenant: str | None, user: str, roles: tuple[str, ...], jti: str | None) -> Caller:
    """Who came by a token of an identity provider, which names it as it likes."""
    return Caller(context, Identity(tenant, "user", user, None, frozenset(roles), None, jti))


def ends(desk: Desk, tenant: str | None, token_id: str) -> str | None:
    return next(token.expires_at for token in desk.tokens.list(tenant) if token.id == token_id)


@pytest.mark.parametrize("jti", [None, "abc"])
def test_an_identity_of_the_provider_issues_no_token_without_an_end(
    desk: Desk, context: Context, jti: str | None
) -> None:
    desk = replace(desk, longest_token=timedelta(days=2))
    latest = context.now() + timedelta(days=2, minutes=1)
    ana = by_provider(context, "acme", "ana", ("tenant_admin",), jti)
    for wanted in (None, context.now() + timedelta(days=900), context.now() + timedelta(days=1)):
        for user, agent in ((None, None), (None, "cleo"), ("bob", None)):
            token_id, _ = admin.issue_token(desk, ana, user, agent, expires_at=wanted)
            told = ends(desk, "acme", token_id)
            assert told is not None and parse_instant(told, what="x") <= min(wanted or latest, latest)
    root = by_provider(context, None, "root", ("platform_admin",), jti)
    admin.add_tenant(desk, root, "initech")
    admin.add_user(desk, root, "bill", ("tenant_admin",), "initech")
    assert ends(desk, "initech", admin.first_token(desk, root, "initech", "bill")[0]) is not None


def test_a_token_of_ours_issues_as_before(desk: Desk, context: Context, caller: Made) -> None:
    ana = caller("acme", "ana")
    assert ends(desk, "acme", admin.issue_token(desk, ana)[0]) is None
    far = context.now() + timedelta(days=900)
    assert ends(desk, "acme", admin.issue_token(desk, ana, "bob", expires_at=far)[0]) is not None


def test_a_tenant_that_was_emptied_gets_no_first_user_over_its_memories(
    desk: Desk, context: Context, caller: Made
) -> None:
    root, ana = caller(None, "root"), caller("acme", "ana")
    memories.remember(desk, ana, "cleo", ROOF)
    for agent in ("cleo", "max"):
        admin.remove_agent(desk, ana, agent)
    for user in ("bob", "sam", "ada", "ana"):
        admin.remove_user(desk, ana, user)
    assert desk.registry.users("acme") == []
    with pytest.raises(Forbidden, match="was in use before"):
        admin.add_user(desk, root, "mole", ("tenant_admin",), "acme")
    desk.registry.add_user(context, "acme", "mole", ("tenant_admin",))  # it got there before this rule
    with pytest.raises(Forbidden, match="was in use before"):
        admin.first_token(desk, root, "acme", "mole")
    admin.add_user(desk, operator("acme"), "eve")  # who runs the service may, at the machine


def test_what_lies_in_an_engine_elsewhere_counts_as_use_too(desk: Desk, context: Context, caller: Made) -> None:
    """Nothing of it lies in a Home here; that somebody of the tenant was here is on record all the same."""
    root = caller(None, "root")
    admin.add_tenant(desk, root, "initech")
    admin.add_user(desk, root, "bill", ("tenant_admin",), "initech")
    _, secret = admin.first_token(desk, root, "initech", "bill")
    bill = Caller(context, desk.tokens.authenticate(context, secret))
    admin.users(desk, bill)
    admin.remove_user(desk, bill, "bill")
    with pytest.raises(Forbidden, match="was in use before"):
        admin.add_user(desk, root, "mole", ("tenant_admin",), "initech")


@pytest.mark.parametrize("role", ["tenant_admin", "developer", "security_officer"])
def test_nobody_has_a_tenants_role_in_no_tenant(desk: Desk, caller: Made, role: str) -> None:
    with pytest.raises(InvalidInput, match=role):
        admin.add_user(desk, caller(None, "root"), "other", (role,))
    admin.add_user(desk, caller(None, "root"), "other", ("platform_admin", "auditor"))


def test_a_repeated_write_is_answered_where_nothing_may_be_read(
    desk: Desk, caller: Made, set_policy: Callable[..., None]
) -> None:
    set_policy("acme", "cleo", write_scopes=("agent", "user"), read_scopes=("user",), default_scope="agent")
    ana = caller("acme", "ana")
    first = memories.remember(desk, ana, "cleo", ROOF, idempotency_key="k1")
    assert memories.remember(desk, ana, "cleo", ROOF, idempotency_key="k1").id == first.id
    with pytest.raises(NotFound):
        memories.get(desk, ana, "cleo", first.id)
    change = UpdateRequest(content="The roof was mended in June.")
    second = memories.update(desk, ana, "cleo", first.id, change, idempotency_key="k2")
    assert memories.update(desk, ana, "cleo", first.id, change, idempotency_key="k2").id == second.id

    set_policy("acme", "cleo", write_scopes=("user",))  # and not where the policy no longer lets anybody write
    for call in (
        lambda: memories.remember(desk, ana, "cleo", ROOF.model_copy(update={"scope": "agent"}), idempotency_key="k3"),
        lambda: memories.update(desk, ana, "cleo", first.id, change, idempotency_key="k2"),
    ):
        with pytest.raises((Forbidden, NotFound)):
            call()


def test_a_team_of_many_is_told_to_openfga_in_pieces(desk: Desk, context: Context, caller: Made) -> None:
    people = [f"user-{n:03}" for n in range(230)]
    for user in people:
        desk.registry.add_user(context, "acme", user)
    egress, answers = Egress(EgressSettings(environment="development")), OpenFgaServer()
    try:
        with standing(answers) as server:
            governed = replace(desk, relations=OpenFga(egress, server.url, STORE, MODEL))
            admin.add_team(governed, caller("acme", "ana"), "all", tuple(people))
            assert len(governed.relations.read(object="team:acme/all")) == 230
            admin.add_team(governed, caller("acme", "ana"), "all", tuple(people[:5]))
            assert len(governed.relations.read(object="team:acme/all")) == 5
        assert answers.wrong == []
    finally:
        egress.close()
