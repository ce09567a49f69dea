"""API tokens: who holds one is known by it, nobody else is, and what is taken away is gone at once."""

from __future__ import annotations

import string
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.context import Context
from memoranda.errors import InvalidInput, NotFound, Unauthenticated
from memoranda.governance.identity import Identity, Tokens
from memoranda.governance.registry import Registry
from memoranda.state.database import Database
from memoranda.state.opening import open_database
from tests.conftest import Clock

from .meddling import everything_in


@pytest.fixture
def tokens(registry: Registry, state: Database) -> Tokens:
    return Tokens(state)


def test_a_users_token_gives_the_user_with_the_roles_of_the_registry(tokens: Tokens, context: Context) -> None:
    token_id, secret = tokens.issue(context, "acme", "ana")
    assert secret.startswith("mem_tok_") and token_id.startswith("tok_")
    assert tokens.authenticate(context, secret) == Identity(
        "acme", "user", "ana", None, frozenset({"developer", "tenant_admin"}), "acme-group", token_id
    )


def test_an_agents_token_gives_the_agent_and_for_whom_it_acts(tokens: Tokens, context: Context) -> None:
    token_id, secret = tokens.issue(context, "acme", "otto", agent="cleo")
    assert tokens.authenticate(context, secret) == Identity(
        "acme", "agent", "otto", "cleo", frozenset(), "acme-group", token_id
    )


def test_a_platform_token_belongs_to_no_tenant(tokens: Tokens, context: Context) -> None:
    _, secret = tokens.issue(context, None, "root")
    who = tokens.authenticate(context, secret)
    assert (who.tenant, who.roles, who.organization) == (None, {"platform_admin"}, None)


def test_a_token_may_narrow_the_roles_and_never_widen_them(
    tokens: Tokens, context: Context, registry: Registry
) -> None:
    _, secret = tokens.issue(context, "acme", "ana", roles=("developer",))
    assert tokens.authenticate(context, secret).roles == {"developer"}
    with pytest.raises(InvalidInput, match="auditor"):
        tokens.issue(context, "acme", "ana", roles=("auditor",))
    with pytest.raises(InvalidInput):
        tokens.issue(context, "acme", "ana", agent="cleo", roles=("developer",))
    registry.add_user(context, "acme", "ana", ("auditor",))
    assert tokens.authenticate(context, secret).roles == frozenset()


def test_a_token_is_for_somebody_who_is_there(tokens: Tokens, context: Context) -> None:
    for tenant, user, agent in (("acme", "nobody", None), ("nowhere", "ana", None), ("acme", "ana", "nobody")):
        with pytest.raises(NotFound):
            tokens.issue(context, tenant, user, agent=agent)


def test_an_expired_token_is_not_known(tokens: Tokens, context: Context, clock: Clock) -> None:
    _, secret = tokens.issue(context, "acme", "ana", expires_at=clock.now + timedelta(hours=1))
    tokens.authenticate(context, secret)
    clock.tick(hours=1)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(context, secret)


def test_a_revoked_token_is_not_known_from_then_on(tokens: Tokens, context: Context, url: str) -> None:
    token_id, secret = tokens.issue(context, "acme", "ana")
    tokens.authenticate(context, secret)
    tokens.revoke(context, "acme", token_id)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(context, secret)
    assert tokens.list("acme")[0].revoked_at is not None


def test_a_token_revoked_by_another_process_is_not_known_from_then_on(
    tokens: Tokens, context: Context, url: str
) -> None:
    token_id, secret = tokens.issue(context, "acme", "ana")
    tokens.authenticate(context, secret)
    code = (
        "from memoranda.context import Context; from memoranda.state.opening import open_database\n"
        "from memoranda.governance.identity import Tokens\n"
        f"with open_database({url!r}) as db: Tokens(db).revoke(Context(), 'acme', {token_id!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(context, secret)


def test_another_tenants_token_cannot_be_revoked_and_looks_like_none(tokens: Tokens, context: Context) -> None:
    token_id, secret = tokens.issue(context, "globex", "ana")
    with pytest.raises(NotFound) as foreign:
        tokens.revoke(context, "acme", token_id)
    with pytest.raises(NotFound) as missing:
        tokens.revoke(context, "acme", "tok_none")
    assert str(foreign.value) == str(missing.value)
    assert tokens.list("acme") == []
    tokens.authenticate(context, secret)


def test_what_goes_takes_its_tokens_with_it(tokens: Tokens, context: Context, registry: Registry) -> None:
    _, agent = tokens.issue(context, "acme", "otto", agent="cleo")
    _, user = tokens.issue(context, "acme", "otto")
    _, tenant = tokens.issue(context, "acme", "ana")
    registry.remove_agent("acme", "cleo")
    with pytest.raises(Unauthenticated):
        tokens.authenticate(context, agent)
    registry.remove_user("acme", "otto")
    with pytest.raises(Unauthenticated):
        tokens.authenticate(context, user)
    registry.remove_tenant("acme")
    with pytest.raises(Unauthenticated):
        tokens.authenticate(context, tenant)


def test_no_file_holds_the_secret(tokens: Tokens, context: Context, state: Database, tmp_path: Path) -> None:
    token_id, secret = tokens.issue(context, "acme", "ana")
    tokens.authenticate(context, secret)
    there = everything_in(state, tmp_path / "state")
    assert token_id.encode() in there and secret.rpartition("_")[2].encode() not in there
    assert secret not in repr(tokens.list("acme")) + repr(vars(tokens))


def test_the_same_secret_twice_has_two_hashes(tokens: Tokens, context: Context, state: Database) -> None:
    fixed = Context(clock=context.clock, random=lambda n: b"7" * n)
    _, secret = tokens.issue(fixed, "acme", "ana")
    with state.read("acme") as connection:
        row = connection.exec_driver_sql("SELECT salt, hash FROM tokens").one()
    from hashlib import sha256

    assert row.salt and row.hash != sha256(secret.encode()).hexdigest()


_LOOKALIKE = st.text(string.ascii_letters + string.digits + "_-. é\x00\ud800", max_size=80)


def test_nothing_else_is_a_token(tokens: Tokens, context: Context) -> None:
    token_id, secret = tokens.issue(context, "acme", "ana")
    near = [secret[:-1], secret + "x", secret.upper(), f" {secret}", secret.replace("mem_tok_", ""), token_id]
    near += [f"mem_tok_{token_id[4:]}_", f"mem_tok_{token_id[4:]}", "mem_tok_", "", "'; --"]

    @settings(deadline=None)  # a database is asked
    @given(_LOOKALIKE | _LOOKALIKE.map(lambda text: f"mem_tok_{token_id[4:]}_{text}") | st.sampled_from(near))
    def check(bearer: str) -> None:
        with pytest.raises(Unauthenticated) as refused:
            tokens.authenticate(context, bearer)
        assert not bearer.strip() or len(bearer) < 8 or bearer not in str(refused.value)

    check()


def test_the_last_use_is_written_now_and_then(tokens: Tokens, context: Context, clock: Clock, state: Database) -> None:
    _, secret = tokens.issue(context, "acme", "ana")
    assert tokens.list("acme")[0].used_at is None
    tokens.authenticate(context, secret)
    first = tokens.list("acme")[0].used_at
    mark = state.mark()
    tokens.authenticate(context, secret)
    assert first is not None and tokens.list("acme")[0].used_at == first
    clock.tick(minutes=6)
    tokens.authenticate(context, secret)
    assert (tokens.list("acme")[0].used_at or "") > first
    assert state.mark() == mark  # nobody has to read anything again for it


def test_threads_authenticate_while_tokens_come_and_go(tokens: Tokens, context: Context, url: str) -> None:
    made = [tokens.issue(context, "acme", "ana") for _ in range(8)]

    def use(n: int) -> bool:
        token_id, secret = made[n % 8]
        if n >= 40 and n % 8 == 3:
            tokens.revoke(context, "acme", token_id)
            with pytest.raises(Unauthenticated):
                tokens.authenticate(context, secret)
            return True
        return n % 8 == 3 or tokens.authenticate(context, secret).token_id == token_id

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(80)))
    with open_database(url) as other, pytest.raises(Unauthenticated):
        Tokens(other).authenticate(context, made[3][1])
