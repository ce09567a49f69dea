"""`memoranda move` from the command line: what a service kept in folders is what it has in PostgreSQL, and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import RememberRequest
from memoranda.engines.homes import Homes
from memoranda.faces.cli import main
from memoranda.faces.http.assembling import assemble
from memoranda.faces.http.config import load
from tests.engines.asking import asking
from tests.postgres import Urls

pytestmark = pytest.mark.postgres
WHERE = asking(writes="project")


def test_what_lay_in_folders_lies_in_postgresql_and_back(
    postgres: Urls,
    tmp_path: Path,
    context: Context,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, url = tmp_path / "data", make_url(postgres.service)
    monkeypatch.setenv("EAI_CRED_DATABASE", str(url.password))
    monkeypatch.setenv("EAI_CRED_HOMES", "0123456789abcdef0123456789abcdef")
    without = url.set(password="").render_as_string(hide_password=False).replace(":@", "@")
    file = tmp_path / "memoranda.toml"
    database = f'[database]\nurl = "{without}"\ncredential = "env://EAI_CRED_DATABASE"\n'
    file.write_text(f'data = "{data}"\n{database}[homes]\nsecret = "env://EAI_CRED_HOMES"\n')
    with Homes(data / "homes", context) as homes:
        note = Builtin(homes).remember(context, WHERE, RememberRequest(content="The mill turns.")).id
        told = Builtin(homes).get(context, WHERE, note)
    move = ["move", "--tenant", "acme", "--project", "web", "--config", str(file)]
    assert main([*move, "--to", "folders"]) == 2, "there is nothing in PostgreSQL yet"
    assert "no such Home" in capsys.readouterr().err
    assert main(["--json", *move, "--to", "postgresql"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["written"] == done["objects"] > 0
    assert main(["--json", *move, "--to", "postgresql"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == 0

    desk = assemble(load(file, {"EAI_CRED_DATABASE": str(url.password),
                                "EAI_CRED_HOMES": "0123456789abcdef0123456789abcdef"}))  # fmt: skip
    try:
        assert desk.builtin.isolation("acme") == "backend"
        assert desk.builtin.get(context, WHERE, note) == told
        second = desk.builtin.remember(context, WHERE, RememberRequest(content="It stands still.")).id
    finally:
        desk.close()
    assert main([*move, "--to", "folders"]) == 5, "the old one lies there still"
    shutil.rmtree(data / "homes/homes")
    assert main([*move, "--to", "folders"]) == 0
    with Homes(data / "homes", context) as homes:
        assert {note, second} == {
            item.id for item in Builtin(homes).list(context, WHERE, scope=None, limit=9, after=None).items
        }
        assert Builtin(homes).get(context, WHERE, note) == told
    assert main(["move", "--tenant", "acme", "--project", "none", "--to", "postgresql", "--config", str(file)]) != 0

    file.write_text(f'data = "{data}"\n{database}')
    assert main([*move, "--to", "postgresql"]) == 2
    assert "homes.secret" in capsys.readouterr().err
