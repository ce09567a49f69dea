"""Where secrets lie between two starts: in a real OpenBao, or in a file that a key file opens."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.engines.egress import Egress, EgressSettings
from memoranda.errors import ComponentUnavailable, ConfigRefused, NotFound, Unavailable
from memoranda.governance.credentials import Credentials, OpenBao, Secret
from memoranda.manager.installing import install, remove, rotate
from memoranda.manager.place import Place
from memoranda.manager.sealing import BaoVault, FileVault
from tests.governance.openbao import POLICY, Bao, bao_server

from .conftest import cognee

MANAGER = """
path "secret/data/engines/*" { capabilities = ["create", "read", "update"] }
path "secret/destroy/engines/*" { capabilities = ["update"] }
path "secret/metadata/engines/*" { capabilities = ["delete"] }
"""
TOLD = {"admin_password": "first-value-1", "jwt_secret": "second-value-2"}


@pytest.fixture(scope="module")
def bao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bao]:
    with bao_server(tmp_path_factory.mktemp("bao")) as made:
        made.ask("PUT", "sys/policies/acl/memoranda", {"policy": POLICY + MANAGER})
        yield made


@pytest.fixture
def client(bao: Bao) -> Iterator[OpenBao]:
    egress = Egress(EgressSettings("development"))
    yield OpenBao(egress, bao.url, bao.role_id, Secret(bao.secret_id()))
    egress.close()


def test_in_openbao_the_newest_values_lie_and_no_other(bao: Bao, client: OpenBao) -> None:
    vault = BaoVault(client)
    with pytest.raises(NotFound):
        vault.get("one")
    vault.put("one", TOLD)
    vault.put("one", {**TOLD, "jwt_secret": "third-value-3"})
    assert vault.get("one") == {**TOLD, "jwt_secret": "third-value-3"}
    versions = bao.ask("GET", "secret/metadata/engines/one")["data"]["versions"]
    assert versions["1"]["destroyed"] and not versions["2"]["destroyed"]
    reference = vault.reference("one", "jwt_secret")
    assert Credentials(openbao=client, environ={}).resolve(reference, None).reveal() == "third-value-3"
    vault.remove("one")
    with pytest.raises(NotFound):
        vault.get("one")
    with pytest.raises(Exception, match="404"):
        bao.ask("GET", "secret/metadata/engines/one")
    vault.remove("one")


def test_where_openbao_forbids_it_nothing_is_kept_elsewhere(client: OpenBao, tmp_path: Path) -> None:
    with pytest.raises(ComponentUnavailable, match="does not let"):
        client.write("secret", "elsewhere/one", TOLD)
    with pytest.raises(ComponentUnavailable):
        client.fields("secret", "elsewhere/one")


def test_an_engine_whose_secrets_lie_in_openbao(client: OpenBao, tmp_path: Path, environment: Path) -> None:
    place = Place(tmp_path / "m", BaoVault(client), str, {}, os.urandom)
    install(place, cognee(), environment=environment)
    (entry,) = tomllib.loads(place.inventory.read_text())["instances"]
    assert entry["credential_ref"] == "openbao://secret/engines/cognee#service_api_key"
    before = place.vault.get("cognee")
    rotate(place, "cognee", ["service_api_key"])
    after = place.vault.get("cognee")
    assert after["service_api_key"] != before["service_api_key"]
    assert {name: value for name, value in after.items() if name != "service_api_key"} == {
        name: value for name, value in before.items() if name != "service_api_key"
    }
    assert not place.service_env.exists()
    for path in place.folder.rglob("*"):
        if path.is_file():
            assert not any(value.encode() in path.read_bytes() for value in (*before.values(), *after.values()))
    remove(place, "cognee")
    with pytest.raises(NotFound):
        place.vault.get("cognee")


def test_a_sealed_file_opens_with_its_key_and_for_its_own_names(tmp_path: Path) -> None:
    vault = FileVault(tmp_path / "sealed", tmp_path / "keys" / "key")
    vault.put("one", TOLD)
    assert FileVault(tmp_path / "sealed", tmp_path / "keys" / "key").get("one") == TOLD
    path = tmp_path / "sealed/one.sealed"
    assert path.stat().st_mode & 0o777 == 0o600
    sealed = json.loads(path.read_text())
    path.write_text(json.dumps({"admin_password": sealed["jwt_secret"], "jwt_secret": sealed["admin_password"]}))
    with pytest.raises(Unavailable, match="cannot be opened"):
        vault.get("one")
    path.write_text(json.dumps(sealed))
    path.rename(tmp_path / "sealed/other.sealed")
    with pytest.raises(Unavailable, match="cannot be opened"):
        vault.get("other")
    with pytest.raises(Unavailable, match="cannot be opened"):
        (tmp_path / "keys/key").write_bytes(b"k" * 32)
        vault.get("other")


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    vault = FileVault(tmp_path / "sealed", tmp_path / "key")
    vault.put("one", TOLD)
    (tmp_path / "key").chmod(0o640)
    for refused in (lambda: vault.get("one"), lambda: vault.put("one", TOLD)):
        with pytest.raises(ConfigRefused, match="read by others"):
            refused()
    (tmp_path / "key").unlink()
    with pytest.raises(Unavailable, match="cannot be read"):
        vault.get("one")
