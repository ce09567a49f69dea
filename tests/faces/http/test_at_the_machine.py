"""The commands of the service as somebody types them."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.contract import OperationContext, Place, RememberRequest
from memoranda.faces.cli import main
from memoranda.service.opening import open_desk


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("MEMORANDA_", "EAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_settings_are_checked_without_a_file_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["config", "check"]) == 0
    assert "right for production" in capsys.readouterr().out
    monkeypatch.setenv("EAI_ENVIRONMENT", "development")
    assert main(["config", "check"]) == 0
    assert "right for development" in capsys.readouterr().out
    monkeypatch.setenv("MEMORANDA_THREADS", "many")
    assert main(["config", "check"]) == 2
    assert "MEMORANDA_THREADS" in capsys.readouterr().err


def test_a_variable_that_nothing_reads_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMORANDA_BOGUS", "EAI_MEMORY_BOGUS", "EAI_ENVIROMENT"):
        monkeypatch.setenv(name, "staging")
    for name in ("MEMORANDA_SERVICE_HOST", "MEMORANDA_PORT_8080_TCP", "EAI_OTHER_PRODUCT", "EAI_CRED_X"):
        monkeypatch.setenv(name, "10.0.0.1")
    assert main(["config", "check"]) == 0
    told = capsys.readouterr()
    named = [line.split()[2] for line in told.err.splitlines() if line.startswith("The variable")]
    assert named == ["EAI_ENVIROMENT", "EAI_MEMORY_BOGUS", "MEMORANDA_BOGUS"]
    assert "staging" not in told.err


def test_an_id_may_stand_before_and_after_the_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = str(tmp_path / "service")

    def admin(*words: str) -> str:
        assert main(["admin", *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    admin("tenant", "add", "--data", data, "acme", "--name", "Acme")
    admin("user", "add", "ana", "--tenant", "acme", "--data", data, "--role", "tenant_admin")
    for order in ("before", "after"):
        token = admin("token", "add", "--tenant", "acme", "--user", "ana", "--data", data).split()[0]
        where = ["--tenant", "acme", "--data", data]
        admin("token", "revoke", *([token, *where] if order == "before" else [*where, token]))
        assert f"{token}" in (told := admin("token", "list", *where)) and "revoked_at" in told
    assert main(["admin", "token", "revoke", "--tenant", "acme", "--data", data]) == 2
    assert main(["admin", "token", "revoke", "one", "two", "--tenant", "acme", "--data", data]) == 2


def test_what_is_held_in_a_tenant_is_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "service"
    for words in (
        ("tenant", "add", "acme"), ("user", "add", "ana", "--tenant", "acme"),
        ("agent", "add", "cleo", "--tenant", "acme", "--project", "shop", "--owner", "ana"),
    ):  # fmt: skip
        assert main(["admin", *words, "--data", str(data)]) == 0
    with closing(open_desk(Context(), data)) as desk:
        place = Place(scope="user", owner="ana")
        where = OperationContext(tenant="acme", project="shop", user="ana", agent="cleo", writes=place)
        held = desk.builtin.remember(Context(), where, RememberRequest(content="A zebra.", legal_hold=True)).id
        desk.builtin.remember(Context(), where, RememberRequest(content="A gnu."))
    capsys.readouterr()
    assert main(["admin", "hold", "list", "--tenant", "acme", "--data", str(data)]) == 0
    assert capsys.readouterr().out.split() == [held, "engine=builtin", "project=shop", "scope=user", "owner=ana"]
    assert main(["admin", "hold", "list", "--data", str(data)]) == 2
    assert "--tenant" in capsys.readouterr().err
