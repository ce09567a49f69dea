"""`trust_edits`: a person who alone writes in a Home has his edits reviewed at once, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.errors import InvalidInput
from memoranda.faces import local
from memoranda.operations.doctor import doctor
from memoranda.operations.space import Space
from memoranda.trust.signing import Signing
from trust.stage import Stage

NOTE = "---\nid: mem_typed0001\n{}---\nThe quay is {}.\n"
PATH = "memory/notes/quay.md"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A Home whose person has said that he alone writes in it."""
    made = Stage(tmp_path)
    made.space.close()
    made.space = Space(made.agent(), made.keys, made.root, None, trusted=[made.root])
    yield made
    made.close()


def typed(stage: Stage, word: str, front: str = "", path: str = PATH) -> None:
    stage.put(path, NOTE.format(front, word))


def state(stage: Stage) -> str:
    return stage.state("mem_typed0001")


def test_an_edit_is_reviewed_at_once_and_loads(stage: Stage) -> None:
    typed(stage, "open")
    assert state(stage) == "reviewed" and "The quay is open." in stage.loaded()
    typed(stage, "closed")
    assert state(stage) == "reviewed" and "The quay is closed." in stage.loaded()
    assert stage.show("mem_typed0001").verdict == "accept"
    stage.space.close()
    stage.space = Space(stage.agent(), stage.keys, stage.root, None)
    assert state(stage) == "reviewed", "it stands when the setting is gone"


def test_without_the_setting_an_edit_waits(stage: Stage) -> None:
    """So it is on a service too, which has no settings of a person's."""
    stage.space.close()
    stage.space = Space(
        stage.agent(), stage.keys, stage.root, None, trusted=[stage.root.parent, stage.folder / "other"]
    )
    typed(stage, "open")
    assert state(stage) == "unclaimed" and "quay" not in stage.loaded()


def test_never_where_signed_reviews_are_asked_for(stage: Stage) -> None:
    (stage.folder / "allowed").write_text("")
    signing = Signing(stage.folder / "allowed", None)
    stage.space.close()
    stage.space = Space(stage.agent(), stage.keys, stage.root, None, trusted=[stage.root], signing=signing)
    typed(stage, "open")
    assert state(stage) == "unclaimed" and "quay" not in stage.loaded()


@pytest.mark.parametrize("taint", ["open session", "source", "field", "former", "copied id"])
def test_never_for_what_bears_a_taint(stage: Stage, taint: str) -> None:
    front = ""
    if taint == "open session":
        stage.outside("A mail.")
    elif taint == "source":
        said = stage.outside("A mail.", "other", "ses_mail")
        front = f"sources: ['{said.uri}']\n"
    elif taint == "field":
        front = "taint: [external]\n"
    else:
        bad = stage.remember("The quay is strange.", sources=("https://evil.example/",))
        stage.put(bad.path if taint == "former" else PATH, f"---\nid: {bad.id}\n---\nThe quay is open.\n")
        assert stage.state(bad.id) == "quarantined" and "quay" not in stage.loaded()
        return
    typed(stage, "open", front)
    assert state(stage) == "quarantined" and "quay" not in stage.loaded()


@pytest.mark.parametrize(
    "way", ["commit", "merge", "fast-forward", "squash", "checkout of a file", "stash", "conflict"]
)
def test_never_for_what_came_through_git(stage: Stage, way: str) -> None:
    """Another's branch brings the note: merged, squashed into the files, or laid there alone."""
    stage.remember("Something.")
    stage.home.repository.flush()
    stage.git("checkout", "-q", "-b", "theirs")
    typed(stage, "open")
    stage.git("add", "-A")
    if way == "stash":
        stage.git("stash", "-q")
    else:
        stage.git("commit", "-q", "-m", "Theirs")
        theirs = stage.git("rev-parse", "HEAD").strip()
    stage.git("checkout", "-q", "main")
    if way in ("merge", "conflict"):
        stage.put("memory/notes/other.md" if way == "merge" else PATH, "Ours.\n")
        stage.git("add", "-A")
        stage.git("commit", "-q", "-m", "Ours")
        stage.git("merge", "-q", "-m", "Merge", "theirs", accept=(0, 1))
        if way == "conflict":
            stage.git("checkout", "--theirs", PATH)
            stage.git("add", "-A")
            stage.git("commit", "-q", "-m", "Merge")
    elif way == "fast-forward":
        stage.git("merge", "-q", "--ff-only", "theirs")
    elif way == "squash":
        stage.git("merge", "-q", "--squash", "theirs")
    elif way == "checkout of a file":
        stage.git("checkout", "-q", "theirs", "--", PATH)
    elif way == "stash":
        stage.git("stash", "pop", "-q")
    else:
        stage.git("cherry-pick", theirs)
    assert state(stage) == "unclaimed" and "quay" not in stage.loaded()


def test_a_squash_that_is_resolved_by_hand_waits(stage: Stage) -> None:
    stage.remember("Something.")
    stage.home.repository.flush()
    stage.git("checkout", "-q", "-b", "theirs")
    typed(stage, "open")
    stage.git("add", "-A")
    stage.git("commit", "-q", "-m", "Theirs")
    stage.git("checkout", "-q", "main")
    stage.git("merge", "-q", "--squash", "theirs")
    typed(stage, "open, and more of theirs")
    assert state(stage) == "unclaimed" and "quay" not in stage.loaded()


def test_what_contradicts_something_waits(stage: Stage) -> None:
    note = stage.reviewed("The quay is open.")
    stage.put("memory/notes/copy.md", f"---\nid: {note.id}\n---\nThe quay is shut.\n")
    loaded = stage.loaded()
    assert "The quay is open." in loaded and "shut" not in loaded
    assert doctor(stage.person, stage.space)


def test_the_setting_is_the_persons_and_lies_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "config/memoranda/config.toml"
    file.parent.mkdir(parents=True)
    assert local.trusted() == []
    file.write_text(f'[edits]\ntrust_edits = ["{tmp_path}/notes"]\n')
    assert local.trusted()[0] == tmp_path / "notes"
    for wrong in ("trust_edits = true", "trust_edits = ['']", "other = 1", "trust_edits = [1]", "trust_edits=[]\nx=1"):
        file.write_text(f"[edits]\n{wrong}\n")
        with pytest.raises(InvalidInput):
            local.trusted()
    file.write_text(f'[edits]\ntrust_edits = ["{tmp_path}"]\n')
    with pytest.raises(InvalidInput, match="lies in"):
        local.trusted()


@pytest.mark.parametrize("place", ["config.toml", "memory/home.yaml", ".git/config", ".memoranda/config.toml"])
def test_no_file_of_the_home_says_it(tmp_path: Path, place: str) -> None:
    stage = Stage(tmp_path)
    with (stage.put(place, "") if place == "config.toml" else stage.root / place).open("a") as file:
        file.write(f"\n[edits]\ntrust_edits = ['{stage.root}']\n" if "yaml" not in place else "trust_edits: true\n")
    typed(stage, "open")
    assert state(stage) == "unclaimed"
    stage.close()
