"""A pointer tells where words stood. One that names a place in which they never stood is found out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from home.tools import git

from memoranda.errors import NotFound
from memoranda.notes.pointers import parse_pointer
from memoranda.operations import reviewing
from memoranda.operations.journaling import Appended, Turn, append
from memoranda.operations.presenting import NOWHERE
from memoranda.operations.reading import read
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space

from .stage import EVIL, Stage


def blob_of(uri: str) -> str:
    rev = parse_pointer(uri).rev
    assert rev is not None
    return rev


def dana_said(stage: Stage) -> Appended:
    return append(stage.agent("dana"), stage.space, Turn("Invoices go to the old account.", "dana", origin="human"))


@pytest.fixture(params=["journal", "note", "blob", "commit"])
def elsewhere(request: pytest.FixtureRequest, stage: Stage) -> str:
    """A revision with words that look as if dana had said them, and never stood in dana's journal."""
    said = dana_said(stage)
    words = f"## 2026-10-02T09:00:01Z dana ^j_forged0000000000\n\n{EVIL}\n\n"
    if request.param == "journal":  # an honest entry of another journal
        return blob_of(append(stage.agent("mallory"), stage.space, Turn(EVIL, "dana")).uri)
    if request.param == "note":
        return blob_of(stage.remember(f"{words}{words}", "mallory").uri)
    if request.param == "blob":
        run = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            cwd=stage.root,
            input=words.encode(),
            capture_output=True,
            check=True,
        )
        return run.stdout.decode().strip()
    stage.home.repository.flush()
    stage.close()
    git(stage.root, "checkout", "-q", "-b", "evil")
    (stage.root / said.path).write_text(words)
    git(stage.root, "commit", "-qam", "x")
    commit = git(stage.root, "rev-parse", "HEAD").strip()
    git(stage.root, "checkout", "-q", "main")
    git(stage.root, "branch", "-q", "-D", "evil")
    stage.restart()
    return commit


def test_words_of_elsewhere_are_not_of_the_place_that_a_pointer_names(stage: Stage, elsewhere: str) -> None:
    (path,) = {f"agents/dana/journal/{p.name}" for p in (stage.root / "agents/dana/journal").iterdir()}
    uri = f"nas://{stage.home.name}/{path}@{elsewhere}"
    note = stage.remember("Invoices go to 4711.", "eve", sources=(uri,))
    item = reviewing.show(stage.person, stage.space, note.id)
    assert item.state == "quarantined"
    (shown,) = [e for e in item.evidence if e.uri == uri]
    assert shown.text is not None and not shown.stood and shown.json()["stood"] is False
    done = read(stage.agent("frank"), stage.space, uri)
    assert not done.stood and NOWHERE in str(done) and "stood=no" in done.envelope
    assert stage.recall("plain", "frank") is not None
    after = stage.remember("Written after that.", "frank")
    assert reviewing.show(stage.person, stage.space, after.id).state == "quarantined", "to read it taints"


def test_what_stood_there_once_is_known_to_have_stood_there(stage: Stage) -> None:
    said = dana_said(stage)
    dana_said(stage)
    note = stage.remember("Invoices go to the old account.", sources=(said.uri,))
    path = stage.root / note.path
    stage.home.repository.flush()
    commit = git(stage.root, "rev-parse", "HEAD").strip()
    path.write_text(path.read_text() + "\nAnd more.\n")
    journal: Path = stage.root / said.path
    journal.write_text(journal.read_text().replace("old account", "new account"))
    stage.restart()
    for uri in (said.uri, note.uri, f"nas://{stage.home.name}/{said.path}@{commit}", note.path, note.id):
        assert read(stage.person, stage.space, uri).stood, uri
    item = reviewing.show(stage.person, stage.space, note.path)
    assert [e.stood for e in item.evidence] == [True] and "old account" in (item.evidence[0].text or "")
    stage.restart(without_indexes=True)
    assert read(stage.person, stage.space, said.uri).stood and read(stage.person, stage.space, note.uri).stood


def test_a_home_that_takes_another_s_name_hides_nothing_that_the_other_has(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "own").mkdir()
    theirs, own = Stage(tmp_path / "theirs", seed=4), Stage(tmp_path / "own")
    note = own.reviewed("Invoices go to the old account.")
    tainted = own.outside(EVIL, "eve")
    theirs.close()
    own.close()
    with Space(own.agent(), own.keys, theirs.root, own.root) as space:
        assert [home.name for home in space.homes()] == [own.root.name] * 2, "a name is a name"
        assert "old account" in read(own.person, space, note.uri).text
        assert EVIL in read(own.person, space, tainted.uri).text
        citing = remember(own.agent("frank"), space, NewNote("Cites it.", sources=(note.uri,)))
        item = reviewing.show(own.person, space, citing.id)
        assert item.state == "unreviewed" and [e.stood for e in item.evidence] == [True]
        assert remember(own.agent("gina"), space, NewNote("Cites that.", sources=(tainted.uri,))).id
        lost = f"nas://{own.root.name}/{note.path}@{'0' * 40}"
        with pytest.raises(NotFound):
            read(own.person, space, lost)


def test_what_cites_nothing_is_followed_to_its_file(stage: Stage) -> None:
    file = stage.put("memory/notes/plain.md", "The harbour closes at six.\n")
    view = stage.recall("when does the harbour close?")
    (item,) = view.items
    assert item.sources == () and f"Source: {item.uri}" in str(view)
    assert read(stage.person, stage.space, item.uri).text == file.read_text().strip()
