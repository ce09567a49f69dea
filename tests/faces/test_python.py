"""The Python face."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date, datetime
from pathlib import Path

import pytest

import memoranda
from memoranda import Home, Item, Session, View, errors

from .conftest import Person, git
from .test_cli import ITEM


@pytest.fixture
def own(person: Person, monkeypatch: pytest.MonkeyPatch) -> Person:
    """This very process lives where the person does."""
    for name in [name for name in os.environ if name.startswith(("MEMORANDA", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_DATA_HOME", "USER", "LOGNAME"):
        monkeypatch.setenv(name, person.env[name])
    monkeypatch.chdir(person.work)
    return person


def test_a_program_takes_back_what_it_wrote_itself(own: Person) -> None:
    with Home.init(own.folder / "notes") as home, home.session(agent="cleo") as session:
        slip = session.remember("A slip about zebrafisch.", retention_days=30)
        other = home.session(agent="bob").remember("Bob's.")
        assert session.forget(slip.id, dry_run=True).removed[0].id == slip.id
        done = session.forget(slip.id, reason="a slip")
        assert done.removed[0].id == slip.id and done.remains and not done.erased
        assert session.recall("zebrafisch").items == ()
        with pytest.raises(errors.ConfirmationRequired):
            session.forget(other.id)


def test_the_public_names_are_these() -> None:
    assert memoranda.__all__ == [
        "Appended", "Budget", "Coverage", "Forgotten", "Home", "Item", "MemorandaError", "Reading", "Remembered",
        "Session", "View", "__version__", "errors",
    ]  # fmt: skip
    assert dir(memoranda) == sorted(memoranda.__all__)
    for name in memoranda.__all__:
        assert getattr(memoranda, name) is not None
        if name[0].isupper():
            assert getattr(memoranda, name).__doc__
    with pytest.raises(AttributeError):
        _ = memoranda.nothing  # type: ignore[attr-defined]
    assert issubclass(errors.UnknownNote, memoranda.MemorandaError)


def test_every_public_call_says_what_it_takes_and_raises() -> None:
    for cls in (Home, Session):
        for name in [name for name in dir(cls) if not name.startswith("_")]:
            doc = getattr(cls, name).__doc__
            assert doc, f"{cls.__name__}.{name}"
    for name in ("observe", "remember", "update", "recall", "read"):
        assert "Args:" in getattr(Home, name).__doc__ and "Raises:" in getattr(Home, name).__doc__


def test_a_session_observes_remembers_and_recalls(own: Person) -> None:
    with Home.init("box", name="Box") as home:
        assert home.name == "box" and home.path == own.work / "box"
        with home.session(agent="cleo") as session:
            assert session.id.startswith("ses_") and session.agent == "cleo"
            said = session.observe("We renew, but Luis decides now.", speaker="dana", at=datetime(2026, 10, 2, 9))
            note = session.remember(
                "Luis decides at Acme.", subject="customer/acme", kind="semantic", sources=[said.uri],
                valid_from=date(2026, 10, 2), confidence=0.9,
            )  # fmt: skip
            assert said.session == note.session == session.id
            assert note.sources == (said.uri,)
            view = session.recall("who decides at Acme?", budget=500, k=3, include=["notes"], kinds="semantic")
        assert isinstance(view, View)
        (item,) = view.items
        assert isinstance(item, Item)
        assert (item.id, item.text, item.sources) == (note.id, "Luis decides at Acme.", (said.uri,))
        assert home.read(item.sources[0]).text.endswith("We renew, but Luis decides now.")
        assert home.read(note.id, section=None, budget=5).truncated
    assert git(own.work / "box", "status", "--porcelain") == ""
    with home.session("cleo", "s-1") as named:
        assert named.id == "s-1"


def test_the_attributes_bear_the_names_of_the_json(own: Person) -> None:
    with Home.init("box") as home:
        home.remember("Luis decides.")
        view = home.recall("Luis")
    document = view.json()
    assert json.loads(json.dumps(document)) == document
    for name in document:
        assert hasattr(view, name)
    for name in ITEM:
        assert hasattr(view.items[0], name)
    assert {"notes", "journal", "commit", "indexes"} <= {n for n in dir(view.coverage) if n[0] != "_"}
    assert view.budget.limit == 2000 and 0 < view.budget.used <= 2000


def test_update_and_the_two_times(own: Person) -> None:
    with Home.init("box") as home:
        old = home.remember("The contact is Dana.", subject="acme", valid_from="2026-01-01")
        new = home.update(old.id, "The contact is Luis.", valid_from=date(2026, 5, 1), confidence=0.5)

        def ids(**times: object) -> list[str]:
            return [item.id for item in home.recall("contact", include="notes", **times).items]  # type: ignore[arg-type]

        assert ids() == [new.id]
        assert ids(as_of="2026-04-30") == ids(as_of=date(2026, 4, 30)) == [old.id]
        assert ids(as_of=datetime(2026, 5, 1)) == [new.id]
        assert ids(known_at="2020-01-01") == ids(at=date(2020, 1, 1)) == []
        assert set(ids(history=True)) == {old.id, new.id}
        with pytest.raises(TypeError, match="colour"):
            home.update(new.id, "x", colour="red")


def test_errors_are_ours_and_explain_themselves(own: Person) -> None:
    with pytest.raises(errors.HomeNotFound):
        Home.open("nowhere")
    with Home.init("box") as home:
        for call, error in (
            (lambda: home.remember(""), errors.InvalidNote),
            (lambda: home.remember("x", valid_from="soon"), errors.InvalidTime),
            (lambda: home.remember("x", supersedes="mem_unknown"), errors.UnknownNote),
            (lambda: home.recall("x", k=0), errors.InvalidInput),
            (lambda: home.recall("x", at="soon"), errors.InvalidTime),
            (lambda: home.read("mem_unknown"), errors.NotFound),
            (lambda: home.observe(" "), errors.InvalidNote),
            (lambda: home.session("a/b").remember("x"), errors.InvalidInput),
        ):
            with pytest.raises(error) as caught:
                call()
            assert caught.value.what and caught.value.remedy and caught.value.code.startswith("memory_")


def test_open_finds_what_the_command_line_finds(own: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    with Home.open() as home:
        assert home.recall("tea").items == ()
        assert home.remember("Dana drinks tea.").home == "personal"
    project = own.work / "project"
    Home.init(project).close()
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    with Home.open() as home:
        assert home.path == project
        assert [item.home for item in home.recall("tea", include="notes").items] == ["personal"]
    monkeypatch.setenv("MEMORANDA_HOME", str(project))
    with Home.open() as home:
        assert home.recall("tea").items == ()
    with Home.open(project) as home:
        assert home.name == "project"


def test_init_takes_a_folder_of_notes_as_it_is(own: Person) -> None:
    Path("vault").mkdir()
    Path("vault/a.md").write_text("Zeppelins leave at noon.")
    with Home.init("vault") as home:
        assert [item.text for item in home.recall("zeppelin").items] == ["Zeppelins leave at noon."]
    assert Path("vault/a.md").read_text() == "Zeppelins leave at noon."
    with Home.init("vault") as again:
        assert again.recall("zeppelin").items


HEAVY = {"yaml", "numpy", "mcp", "mcp_types", "pydantic", "rich", "anyio", "asyncio", "importlib.metadata", "httpx2"}
HEAVY |= {"wordllama", "tokenizers", "safetensors", "requests", "toml"}  # what vectors come with


def imported(code: str, person: Person, cwd: Path) -> set[str]:
    told = "; import sys; print(' '.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + told], cwd=cwd, env=person.env, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_importing_and_quick_commands_load_nothing_heavy(person: Person) -> None:
    home = person.home()
    person.json("remember", "Luis decides at Acme.", "--home", str(home))
    person.json("recall", "who decides", "--home", str(home))
    assert {n for n in imported("import memoranda", person, home) if n.startswith("memoranda")} == {"memoranda"}
    run = "from memoranda.faces.cli import main; main({})"
    for words in (["--help"], ["recall", "--help"], ["recall", "who decides", "--json"], ["remember", "Quick."]):
        loaded = imported(run.format(words), person, home)
        assert not loaded & HEAVY, words
    assert not {
        n for n in imported(run.format(["recall", "--help"]), person, home) if "index" in n and "memoranda" in n
    }
