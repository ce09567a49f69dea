"""Loss of power: the writes of a real run are noted, those that no sync covers are dropped, and nothing is missing.

The model of the disk is told in `power.py`.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
from pathlib import Path

import pytest

from home.power import Disk, Moment, build
from home.steps import watched
from home.tools import assert_sound, fresh_home, git, note, rows, texts
from memoranda.context import Context
from memoranda.home import background, log, log_state
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.notes.ids import blob_id
from memoranda.operations import journaling
from memoranda.operations.remembering import update
from memoranda.operations.space import Space

NAMES = ("none", "all", "until", "each")
DATA = ("lost", "empty", "half", "zeros", "sectors", "kept", "any")
MINE = "memory/notes/mine.md"


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys")


@pytest.fixture
def live() -> Context:
    return Context(user="dana", agent="cleo")


@pytest.fixture(autouse=True)
def at_their_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens in the background: the story commits and tidies when it says so."""
    monkeypatch.setattr(background, "_SOON", 1000.0)
    monkeypatch.setattr(background, "_QUIET", 1000.0)
    monkeypatch.setattr(log, "ROTATE_AT", 1000)


def story(disk: Disk, space: Space, context: Context) -> None:
    """Notes, a chain, the journal, an edit by hand, commits, Git's index, a rotated log; promises are noted."""
    root, repository = disk.root, space.one().repository

    def kept(label: str, path: str) -> None:
        disk.promise(label, **{path: blob_id((root / path).read_bytes())})

    first = note(context, space, "first. — the end.")
    kept("remembered", first.path)
    kept("updated", update(context, space, first.id, "second. — the end.").path)
    entry = journaling.append(context, space, journaling.Turn("said. — the end.", "dana"))
    disk.promise("said", **{f"entry {entry.path}": entry.id})
    edit(root, "one")
    texts(context, space)
    kept("edited", MINE)
    assert repository.flush() is None
    disk.moment("committed")
    kept("remembered more", note(context, space, "third. — the end.", subject="other/thing").path)
    assert repository.flush() is None
    assert repository.tidy()
    assert repository._log.segment > 1
    disk.moment("tidied and rotated")
    kept("behind the rotation", note(context, space, "fourth. — the end.").path)
    assert repository.flush() is None
    disk.moment("committed again")


def edit(root: Path, text: str) -> None:
    """As an editor saves that syncs nothing; what was taken in is in the log all the same."""
    (root / MINE).parent.mkdir(exist_ok=True)
    fresh = root.parent / "fresh"
    fresh.write_text(f"# Mine\n\n{text}. — the end.\n")
    fresh.replace(root / MINE)


def check(root: Path, moment: Moment, context: Context, keys: Keys) -> None:
    with Space(context, keys, root, None) as space:
        assert space.one().repository._log.fresh_boot is False, "the machine was started anew, and all is mended"
        listed = texts(context, space)
        caught_up = rows(space)
    with Space(context, keys, root, None) as space:
        space.one().indexes.drop()
        assert texts(context, space) == listed
        assert rows(space)["notes"] == caught_up["notes"]
        assert rows(space)["entries"] == caught_up["entries"]
        note(context, space, "on it goes. — the end.")
    committed = {row.split("\t")[1]: row.split()[2] for row in git(root, "ls-tree", "-rz", "HEAD").split("\0") if row}
    for path, told in moment.promised.items():
        if path.startswith("entry "):
            assert f"^{told}\n" in (root / path.removeprefix("entry ")).read_text()
        else:
            assert blob_id((root / path).read_bytes()) == told, path
            assert committed[path] == told
    for file in root.rglob("*.md"):
        assert file.read_text().rstrip().endswith("— the end."), file
    assert_sound(root)


def crash(moment: Moment, root: Path, names: str, data: str, seed: int) -> None:
    build(moment, root, names, data, random.Random(seed), cache=seed % 2 == 0)
    replica = root / ".git" / "memoranda" / "replica.json"
    try:  # the same clone as before: the folder has another inode here, and nothing else is meant
        held = json.loads(replica.read_bytes())
        replica.write_text(json.dumps(held | {"inode": (root / ".git").stat().st_ino}))
    except (FileNotFoundError, ValueError):
        pass  # it is lost


def test_no_acknowledged_note_is_lost_with_the_power(
    tmp_path: Path, live: Context, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fresh_home(tmp_path / "home", keys, live)
    disk = Disk(root)
    with disk.noted():
        with Space(live, keys, root, None) as space:
            story(disk, space, live)
        disk.moment("closed")
    monkeypatch.setattr(log_state, "boot_id", lambda: b"the next day".ljust(32, b"-"))
    named = [m for m in disk.moments if not m.label[0].isdigit()]
    between = [m for m in disk.moments if m.label[0].isdigit()]
    assert len(named) >= 9
    assert len(between) > 30
    rng = random.Random(11)
    cases = [(m, names, data) for m in named for names, data in (("none", "lost"), ("all", "empty"), ("all", "zeros"))]
    wild = list(itertools.product(named + between, NAMES, DATA))
    cases += rng.sample(wild, 60)
    for number, (moment, names, data) in enumerate(cases):
        crash(moment, root, names, data, number)
        try:
            check(root, moment, live, keys)
        except Exception as error:
            shutil.copytree(root, tmp_path / "left", symlinks=True)
            raise AssertionError(f"at {moment.label!r}, names {names}, data {data}, case {number}") from error


def test_a_home_that_was_made_is_there_after_a_loss_of_power(
    tmp_path: Path, live: Context, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "home"
    root.mkdir()
    disk = Disk(root)
    with disk.noted():
        create(root, live)
        finish(root, live, keys)
        disk.moment("made")
        with Space(live, keys, root, None) as space:
            done = note(live, space, "first. — the end.")
            disk.promise("remembered", **{done.path: blob_id((root / done.path).read_bytes())})
    monkeypatch.setattr(log_state, "boot_id", lambda: b"the next day".ljust(32, b"-"))
    for number, (names, data) in enumerate(itertools.product(NAMES, DATA)):
        for moment in disk.moments:
            if moment.label in ("made", "remembered"):
                crash(moment, root, names, data, number)
                check(root, moment, live, keys)


def test_the_model_drops_what_is_not_synced(tmp_path: Path) -> None:
    """The disk of this test loses what a real one may lose, so that the others mean something."""
    root = tmp_path / "disk"
    root.mkdir()
    (root / "old").write_text("old")
    disk = Disk(root)
    with disk.noted():
        with (root / "unsynced").open("w") as file:
            file.write("x" * 2000)
        with (root / "synced").open("w") as file:
            file.write("kept")
            file.flush()
            os.fdatasync(file.fileno())
        (root / "folder").mkdir()
        (root / "old").replace(root / "new")
        disk.moment("before")
        descriptor = os.open(root, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        disk.moment("after")
    before, after = (next(m for m in disk.moments if m.label == label) for label in ("before", "after"))
    target = tmp_path / "target"

    def look(moment: Moment, names: str, data: str) -> dict[str, str]:
        build(moment, target, names, data, random.Random(1), cache=False)
        return {p.name: p.read_text() for p in target.iterdir() if p.is_file()}

    assert look(before, "none", "kept") == {"old": "old"}
    assert look(before, "all", "empty") == {"new": "old", "synced": "kept", "unsynced": ""}
    assert look(before, "all", "half")["unsynced"] == "x" * 1000
    assert look(before, "all", "zeros")["unsynced"] == "\0" * 2000
    assert look(after, "none", "kept") == {"new": "old", "synced": "kept", "unsynced": "x" * 2000}
    assert set(look(before, "each", "kept")) != set()
    with watched(lambda name, words: None):
        pass
