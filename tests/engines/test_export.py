"""What may be read of some places as a file, and what of the rest is not in it."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.engines.builtin import Builtin
from memoranda.engines.contract import Item, OperationContext, Place, RememberRequest, UpdateRequest
from memoranda.errors import Forbidden, RuleOfTwo
from memoranda.home.keys import Keys
from memoranda.operations.listing import list_notes
from memoranda.operations.recalling import recall
from memoranda.operations.space import Space
from memoranda.values import replace
from tests.conftest import Clock
from tests.engines.asking import asking


def _put(engine: Builtin, context: Context, where: OperationContext, text: str, **more: object) -> Item:
    return engine.remember(context, where, RememberRequest(content=text, **more))  # type: ignore[arg-type]


@pytest.fixture
def kept(engine: Builtin, context: Context) -> list[Item]:
    """Ana's notes: her own, the project's, the organization's; and beside them those of Bob."""
    mine = [
        _put(engine, context, asking(writes="user"), "Ana's word is elm.", subject="words"),
        _put(engine, context, asking(writes="project"), "The project's word is oak.", subject="words"),
        _put(engine, context, asking(writes="organization"), "The organization's word is ash.", subject="words"),
    ]
    mine.append(
        engine.update(context, asking(), mine[0].id, UpdateRequest(content="Ana's word is fir."), if_match=None)
    )
    _put(engine, context, asking("bob", writes="user"), "Bob's word is yew.", subject="words")
    return mine


@pytest.mark.requirement("P-115")
def test_a_zip_opens_as_a_home_with_what_may_be_read(
    engine: Builtin, context: Context, kept: list[Item], tmp_path: Path
) -> None:
    done = engine.export(context, asking(), (), "zip")
    with zipfile.ZipFile(io.BytesIO(done.data)) as file:
        assert b"yew" not in b"".join(file.read(name) for name in file.namelist())
        file.extractall(tmp_path / "out")
    told = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert told == done.manifest and told["count"] == len(kept)
    assert {note["id"] for note in told["notes"]} == {item.id for item in kept}
    with Space(context, Keys(tmp_path / "other"), tmp_path / "out", None) as space:
        assert {note.id for note in list_notes(context, space)} == {item.id for item in kept[1:]}
        found = recall(context, space, "What is the word of Ana?").items
        assert found[0].text == "Ana's word is fir." and found[0].trust == "unclaimed"
    for check in (["status", "--porcelain"], ["fsck", "--strict", "--no-dangling"]):
        said = subprocess.run(["git", *check], cwd=tmp_path / "out", capture_output=True, text=True, check=True)
        assert said.stdout == ""


def test_an_export_of_one_scope_holds_nothing_of_another(engine: Builtin, context: Context, kept: list[Item]) -> None:
    done = engine.export(context, asking(), ("project",), "ndjson")
    lines = [json.loads(line) for line in done.data.decode().splitlines()]
    assert [line["type"] for line in lines] == ["manifest", "memory"]
    assert Item.model_validate(lines[1]["item"]) == kept[1]
    assert lines[0]["manifest"]["places"] == [{"scope": "project", "owner": "web"}]
    assert b"elm" not in done.data and b"ash" not in done.data


@pytest.mark.usefixtures("kept")
def test_a_bundle_is_refused_to_who_may_not_read_all_that_there_ever_was(engine: Builtin, context: Context) -> None:
    whole = asking(beside=(Place(scope="user", owner="bob"),))
    with pytest.raises(Forbidden):
        engine.export(context, asking(), (), "bundle")
    assert engine.export(context, whole, (), "bundle").data
    engine.purge(context, asking("bob", writes="user"))
    with pytest.raises(Forbidden):  # the history has it still
        engine.export(context, asking(), (), "bundle")


@pytest.mark.usefixtures("kept")
def test_a_bundle_clones(engine: Builtin, context: Context, tmp_path: Path) -> None:
    done = engine.export(context, asking(beside=(Place(scope="user", owner="bob"),)), (), "bundle")
    (tmp_path / "a.bundle").write_bytes(done.data)
    subprocess.run(["git", "clone", "-q", "a.bundle", "cloned"], cwd=tmp_path, check=True)
    words = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "cloned/memory").rglob("*.md"))
    assert "fir" in words and "yew" in words
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path / "cloned", capture_output=True, text=True, check=True
    )
    assert head.stdout.strip() == done.manifest["commit"]


def test_what_is_gone_by_its_retention_is_in_no_export(
    engine: Builtin, context: Context, kept: list[Item], clock: Clock
) -> None:
    _put(engine, context, asking(writes="user"), "The code is 7431.", retention_days=1)
    clock.tick(days=3)
    assert engine.export(context, asking(), (), "zip").manifest["count"] == len(kept)


@pytest.mark.usefixtures("kept")
def test_a_session_that_has_met_too_much_exports_nothing(engine: Builtin, context: Context) -> None:
    _put(engine, context, asking(writes="user"), "The salary of Dana.", classification="confidential")
    for item in engine.list(context, asking(session="s1"), scope=None, limit=9, after=None).items:
        engine.get(context, asking(session="s1"), item.id)
    assert engine.taint(context, asking(session="s1"), "read a page") == ("external",)
    for refused in (
        lambda: engine.export(context, asking(session="s1"), (), "zip"),
        lambda: _put(engine, context, asking(session="s1", writes="project"), "For everybody."),
        lambda: engine.purge(context, asking(session="s1", writes="user")),
    ):
        with pytest.raises(RuleOfTwo) as told:
            refused()
        assert "terminal" not in str(told.value)
    assert _put(engine, context, asking(session="s1", writes="user"), "For Ana.").taint == ("external",)
    assert engine.purge(replace(context, person=True), asking(session="s1", writes="user")).removed
