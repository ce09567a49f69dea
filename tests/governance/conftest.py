"""A state with two tenants, their people and their agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.contract import InstanceDeclaration
from memoranda.governance.instances import Instances
from memoranda.governance.policies import Policies
from memoranda.governance.registry import Registry
from memoranda.state.database import Database
from memoranda.state.opening import open_database


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres").service  # type: ignore[no-any-return]
    return f"sqlite:///{tmp_path}/state/state.db"


@pytest.fixture
def state(url: str) -> Iterator[Database]:
    with open_database(url) as opened:
        yield opened


@pytest.fixture
def registry(state: Database, context: Context) -> Registry:
    made = Registry(state)
    made.add_user(context, None, "root", ("platform_admin",))
    for tenant in ("acme", "globex"):
        made.add_tenant(context, tenant, organization=f"{tenant}-group")
        made.add_user(context, tenant, "ana", ("developer", "tenant_admin"))
        made.add_user(context, tenant, "otto", ("auditor",))
        made.add_agent(context, tenant, "cleo", project="atlas", owner="ana")
    made.add_team(context, "acme", "sales", ("ana", "otto"))
    return made


@pytest.fixture
def instances(registry: Registry, state: Database) -> Instances:
    return Instances(
        state, rendered=[InstanceDeclaration(id="mem0-shared", provider="mem0", base_url="https://mem0:8000")]
    )


@pytest.fixture
def policies(instances: Instances, state: Database) -> Policies:
    return Policies(state, instances)
