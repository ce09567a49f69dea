"""The identifiers that engines are given: nobody's but one place's, and not to be guessed."""

from __future__ import annotations

import hmac
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.naming import Naming
from memoranda.home.keys import Keys

NAMES = st.sampled_from(["a", "b", "ab", "a.b", "a-b", "1"])


def where(tenant: str = "acme", project: str = "shop", user: str = "ana") -> OperationContext:
    return OperationContext(tenant=tenant, project=project, user=user, agent="cleo", organization="group")


@pytest.fixture
def naming(keys: Keys) -> Naming:
    return Naming(keys)


@pytest.mark.requirement("S-055", "S-056")
def test_a_prefix_follows_from_the_key_the_instance_the_tenant_and_the_project(naming: Naming, tmp_path: Path) -> None:
    parts = list(itertools.product(("m1", "m2"), ("acme", "globex"), ("shop", "bank", None)))
    prefixes = {naming.prefix(*of) for of in parts} | {Naming(Keys(tmp_path / "other")).prefix(*parts[0])}
    assert len(prefixes) == len(parts) + 1
    assert all(re.fullmatch("[0-9a-f]{32}", prefix) for prefix in prefixes)
    assert naming.prefix(*parts[0]) == naming.prefix(*parts[0])


@pytest.mark.requirement("S-056")
def test_a_prefix_is_an_hmac_under_the_services_key(naming: Naming, keys: Keys) -> None:
    told = b"memoranda namespace 1" + b"".join(
        b"+" + len(part).to_bytes(4, "big") + part for part in (b"m1", b"acme", b"shop")
    )
    expected = hmac.digest(keys.get("namespace", "engines"), told, "sha256").hex()[:32]
    assert naming.prefix("m1", "acme", "shop") == expected


@given(st.lists(st.tuples(NAMES, NAMES, st.none() | NAMES), min_size=2, max_size=2, unique=True))
@settings(max_examples=50, deadline=None)
def test_no_two_have_the_same_prefix(pair: list[tuple[str, str, str | None]]) -> None:
    naming = _ONE
    assert naming.prefix(*pair[0]) != naming.prefix(*pair[1])


class _Fixed(Keys):
    def __init__(self) -> None: ...

    def get(self, purpose: str, owner: str) -> bytes:
        return b"k" * 32


_ONE = Naming(_Fixed())


@pytest.mark.requirement("S-055")
def test_every_identifier_begins_with_the_prefix_and_names_one_place(naming: Naming) -> None:
    places = [
        Place(scope="user", owner="ana"), Place(scope="agent", owner="ana"), Place(scope="team", owner="ana"),
        Place(scope="global", owner=""), Place(scope="user", owner="bob"),
    ]  # fmt: skip
    named = [naming.place("m1", where(), place) for place in places]
    told = [name for one in named for name in (one.place, one.agent("cleo"), one.item("mem_1"))]
    assert all(name.startswith(f"{one.namespace}:") for one in named for name in (one.place, one.item("x")))
    assert len({one.place for one in named}) == len(places)
    assert all(len(name) > 32 for name in told)


def test_what_is_the_tenants_is_the_same_from_every_project_and_what_is_a_projects_is_not(naming: Naming) -> None:
    team, user = Place(scope="team", owner="sales"), Place(scope="user", owner="ana")
    assert naming.place("m1", where(), team) == naming.place("m1", where(project="bank"), team)
    assert naming.place("m1", where(), user) != naming.place("m1", where(project="bank"), user)
    assert naming.place("m1", where(), team) != naming.place("m1", where(tenant="globex"), team)


def test_after_a_renewal_what_was_written_before_is_still_found(naming: Naming, keys: Keys) -> None:
    place = Place(scope="user", owner="ana")
    before = naming.place("m1", where(), place)
    assert list(naming.places("m1", where(), place)) == [before]
    keys.renew("namespace", "engines")
    after = naming.place("m1", where(), place)
    assert after != before
    for found in (naming, Naming(Keys(keys.folder))):
        assert list(found.places("m1", where(), place)) == [after, before]
    keys.renew("namespace", "engines")
    assert {after, before} < set(naming.places("m1", where(), place))
