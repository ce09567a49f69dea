"""The state on PostgreSQL from the command line: refused until its owner has made the tables, then used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from memoranda.faces.cli import main
from tests.postgres import Urls

pytestmark = pytest.mark.postgres


@pytest.fixture
def config(empty_postgres: Urls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    url = make_url(empty_postgres.service)
    monkeypatch.setenv("EAI_CRED_DATABASE", str(url.password))
    without = url.set(password="").render_as_string(hide_password=False).replace(":@", "@")
    file = tmp_path / "memoranda.toml"
    file.write_text(
        f'data = "{tmp_path}/data"\n[database]\nurl = "{without}"\ncredential = "env://EAI_CRED_DATABASE"\n'
    )
    return file


def test_the_owner_makes_the_tables_and_the_service_uses_them(
    config: Path, empty_postgres: Urls, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--config", str(config)]
    assert main(["config", "check", str(config)]) == 0
    assert main(["admin", "tenant", "add", "acme", *where]) == 2
    assert "memoranda db upgrade" in capsys.readouterr().err
    assert main(["db", "upgrade", *where]) == 2
    assert "MEMORANDA_DATABASE_OWNER" in capsys.readouterr().err
    monkeypatch.setenv("MEMORANDA_DATABASE_OWNER", empty_postgres.owner)
    assert main(["--json", "db", "upgrade", *where]) == 0
    assert json.loads(capsys.readouterr().out)["version"] >= "0002"
    monkeypatch.delenv("MEMORANDA_DATABASE_OWNER")
    assert main(["admin", "tenant", "add", "acme", *where]) == 0
    assert main(["admin", "tenant", "list", *where]) == 0
    assert "acme" in capsys.readouterr().out
    assert main(["audit", "verify", *where]) == 0


@pytest.mark.parametrize(
    ("line", "setting"),
    [
        ('url = "postgresql+psycopg://role:secret@/name"', "database.url"),
        ('url = "postgresql+psycopg://role@/name?password=secret"', "database.url"),
        ('url = "postgresql+psycopg://db.example.com/name"', "database.url"),
        ('url = "postgresql+psycopg://role@/name?host=/tmp"', "database.credential"),
        ('url = "sqlite:////tmp/x.db"\ncredential = "env://EAI_CRED_DATABASE"', "database.credential"),
        (
            'url = "postgresql+psycopg://role@db.example.com/name"\ncredential = "env://EAI_CRED_DATABASE"',
            "database.url",
        ),
        (
            'url = "postgresql+psycopg://role@db.example.com/name?sslmode=require"\n'
            'credential = "env://EAI_CRED_DATABASE"',
            "database.url",
        ),
    ],
)
def test_what_is_not_safe_is_refused_by_its_name(
    tmp_path: Path, line: str, setting: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EAI_CRED_DATABASE", "a-password")
    file = tmp_path / "memoranda.toml"
    file.write_text(f"[database]\n{line}\n")
    assert main(["config", "check", str(file)]) == 2
    told = capsys.readouterr().err
    assert setting in told and "secret@" not in told and "password=secret" not in told
