"""What the Manager renders: seen when it changes, and what makes an instance one tenant's alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.contract import InstanceDeclaration
from memoranda.errors import ConfigRefused, Conflict, NotFound
from memoranda.governance.instances import Instances
from memoranda.governance.inventory import Inventory
from memoranda.governance.registry import Registry
from memoranda.state.database import Database
from memoranda.state.opening import open_database

ONE = '[[instances]]\nid = "{id}"\nprovider = "mem0"\nbase_url = "https://{host}:8000"\n'
DEDICATED = ONE + 'tenant_id = "acme"\nmanager_cluster = "c1"\nmanager_service = "mem0-acme"\n'
OWN = {"tenant_id": "acme", "manager_cluster": "c1", "manager_service": "mem0-acme"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "inventory.toml"


@pytest.fixture
def database(url: str, context: Context) -> Iterator[Database]:
    with open_database(url) as database:
        for tenant in ("acme", "globex"):
            Registry(database).add_tenant(context, tenant)
        yield database


def declared(id: str, host: str, **more: object) -> InstanceDeclaration:
    told = {"id": id, "provider": "mem0", "base_url": f"https://{host}:8000/x", **more}
    return InstanceDeclaration.model_validate(told)


@pytest.mark.requirement("P-050")
def test_the_file_is_watched_and_may_be_made_later(database: Database, file: Path) -> None:
    instances = Instances(database, Inventory((), file))
    assert [one.id for one in instances.list_for("acme")] == ["builtin"]
    file.write_text(ONE.format(id="mem0", host="a"))
    assert [(one.id, one.origin) for one in instances.list_for("acme")] == [
        ("builtin", "builtin"),
        ("mem0", "rendered"),
    ]
    assert instances.get_for("acme", "mem0").base_url == "https://a:8000"
    file.write_text(ONE.format(id="mem0", host="another"))
    assert instances.get_for("acme", "mem0").base_url == "https://another:8000"
    file.unlink()
    with pytest.raises(NotFound):
        instances.get_for("acme", "mem0")


@pytest.mark.parametrize(
    "wrong",
    ["[[instances", ONE.format(id="b", host="b") * 2, ONE.format(id="builtin", host="b"), '[[instances]]\nid = "x"',
     "instances = 3", "\x00"],
)  # fmt: skip
def test_a_file_that_cannot_be_used_changes_nothing_and_starts_nothing(
    file: Path, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(ONE.format(id="mem0", host="a"))
    inventory = Inventory((), file)
    file.write_text(wrong)
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert [one.id for one in inventory.now()[1]] == ["mem0"]
    assert len(caplog.records) == 1 and "is not used" in caplog.text
    with pytest.raises(ConfigRefused):
        Inventory((), file)
    file.write_text(ONE.format(id="c", host="c"))
    assert [one.id for one in inventory.now()[1]] == ["c"]


@pytest.mark.requirement("S-061")
def test_dedicated_is_what_the_manager_installed_for_the_tenant(
    database: Database, file: Path, context: Context
) -> None:
    instances = Instances(database, Inventory((), file))
    alone = instances.declare(context, declared("alone", "m", tenant_id="acme"), by="root")
    named = instances.declare(context, declared("named", "own", **OWN), by="root")
    assert not instances.dedicated(alone) and not instances.dedicated(named)  # a declared URL alone never counts
    file.write_text(DEDICATED.format(id="rendered", host="own") + ONE.format(id="shared", host="s"))
    assert instances.dedicated(named) and not instances.dedicated(alone)
    assert instances.dedicated(instances.get_for("acme", "rendered"))
    assert not instances.dedicated(instances.get_for("acme", "shared"))
    file.write_text(DEDICATED.format(id="rendered", host="elsewhere"))
    assert not instances.dedicated(named)
    for other in ('tenant_id = "globex"', 'manager_service = "x"', 'manager_cluster = "x"'):
        name = other.partition(" ")[0]
        lines = [line for line in DEDICATED.format(id="rendered", host="own").splitlines() if not line.startswith(name)]
        file.write_text("\n".join([*lines, other, ""]))
        assert not instances.dedicated(named), other
    file.write_text(DEDICATED.format(id="rendered", host="own") + ONE.format(id="open", host="own"))
    assert not instances.dedicated(named)  # somebody else's instance lies there


def test_no_place_is_dedicated_twice(database: Database, context: Context) -> None:
    instances = Instances(database)
    instances.declare(context, declared("first", "own", **OWN), by="root")
    for other in ({"tenant_id": "globex"}, {}):
        for host in ("own", "OWN", "own."):
            with pytest.raises(Conflict, match=r"^base_url"):
                instances.declare(context, declared("second", host, **other), by="root")
    instances.declare(context, declared("third", "other"), by="root")
    with pytest.raises(Conflict, match=r"^base_url"):
        instances.declare(context, declared("fourth", "other", **OWN), by="root")
