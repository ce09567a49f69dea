"""`kill -9` and loss of power in an erasing: not yet erased, or erased at the next opening; nothing else is lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from home.erasing import blanks_of, places
from home.power import Disk, Moment, build
from home.steps import WRITE, Ending, watched
from home.tools import assert_sound, fresh_home, git, note, texts
from memoranda.context import Context
from memoranda.errors import Erased
from memoranda.home import background, log_state
from memoranda.home.erasing.erase import Eraser
from memoranda.home.keys import Keys
from memoranda.operations import reading
from memoranda.operations.journaling import Turn, append
from memoranda.operations.space import Space

TEXT = "Kowalskoff moved to the zebrafisch team.\n\nHer codeword is Plimsolquark."
RARE = ["kowalskoff", "zebrafisch", "plimsolquark"]
NAMED = (
    "survey", "decide", "position", "map", "refs", "reflogs", "files", "index", "leftovers", "log", "cache", "purging",
    "objects", "end", "search",
)  # fmt: skip


@dataclass(frozen=True)
class Ready:
    """A Home that is copied for every case: what has to go of it, and what must stay."""

    root: Path
    keys: Path
    secret: str
    path: str
    kept: dict[str, str]  # uri -> text


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Ready:
    folder = tmp_path_factory.mktemp("erase")
    keys, context = Keys(folder / "keys"), Context(user="dana", agent="cleo")
    root = fresh_home(folder / "home", keys, context)
    with Space(context, keys, root, None) as space:
        made = [note(context, space, "Acme renewed for 24 months."), note(context, space, TEXT)]
        made.append(note(context, space, "The weather team meets on Mondays.", subject="team/weather"))
        turn = append(context, space, Turn("It is warm outside.", speaker="dana"))
        space.one().repository.flush()
        uris = [made[0].uri, *made[0].sources, made[2].uri, *made[2].sources, turn.uri]
        kept = {uri: reading.read(context, space, uri).text for uri in uris}
    path = root / made[1].path
    path.write_bytes(path.read_bytes() + b"Put by.\n")
    git(root, "stash", "-q")
    git(root, "tag", "-a", "-m", "About Kowalskoff", "v1")
    git(root, "pack-refs", "--all")
    return Ready(root, folder / "keys", made[1].id, made[1].path, kept)


def copied(ready: Ready, to: Path) -> Path:
    shutil.copytree(ready.root, to, symlinks=True)
    return to


def erase(root: Path, keys: Path, note_id: str, step: Callable[[str], None]) -> None:
    context = Context(user="dana", agent="cleo")
    with Space(context, Keys(keys), root, None) as space:
        note(context, space, "The last word before it.")
        repository = space.one().repository
        blanks = blanks_of(space, context, note_id)
        Eraser(repository._pieces(), repository._repair, step).erase(context, blanks, "asked for")


def in_a_child(do: Callable[[], None]) -> tuple[int, str]:
    """(exit code, what went wrong) of a process of its own."""
    reading_end, writing_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading_end)
        code = 1
        try:
            background._SOON = background._QUIET = 1000.0
            do()
            code = 0
        except BaseException:  # noqa: BLE001 - told to the parent
            WRITE(writing_end, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(writing_end)
    with os.fdopen(reading_end, "rb") as pipe:
        said = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def check(root: Path, ready: Ready) -> bool:
    """Whether the text is erased; either way everything else is there, and the Home goes on."""
    context = Context(user="dana", agent="cleo")
    with Space(context, Keys(ready.keys), root, None) as space:
        assert space.one().repository.read_only is None
        assert not (root / ".git/memoranda/erasing").exists()
        assert {uri: reading.read(context, space, uri).text for uri in ready.kept} == ready.kept
        listed = texts(context, space)
        assert "The last word before it." in listed.values()
        rows = space.one().indexes.catalog.by_id(ready.secret)
        erased = not rows
        if erased:
            assert not (root / ready.path).exists()
            assert places(root, RARE) == []
            with pytest.raises(Erased):
                space.one().repository.at(ready.path, git(ready.root, "rev-parse", "main").strip())
        else:
            assert listed[ready.path] == TEXT
            assert reading.read(context, space, ready.secret).text.endswith("Plimsolquark.")
        note(context, space, "And on it goes.")
        assert space.one().repository.flush() is None
    assert git(root, "stash", "list").count("\n") == 1
    git(root, "stash", "show", "-p")
    assert_sound(root)
    return erased


@pytest.mark.parametrize("name", NAMED)
def test_killed_at_a_step(ready: Ready, tmp_path: Path, name: str) -> None:
    root = copied(ready, tmp_path / "home")

    def step(reached: str) -> None:
        if reached == name:
            os._exit(9)

    code, said = in_a_child(lambda: erase(root, ready.keys, ready.secret, step))
    assert code == 9, said
    assert check(root, ready) == (NAMED.index(name) > NAMED.index("decide"))


def test_killed_anywhere(ready: Ready, tmp_path: Path) -> None:
    """Before every change on the disk, a dozen of them each time; MEMORANDA_ALL_STEPS=1 tries them all."""
    root = copied(ready, tmp_path / "counted")
    ending = Ending(0)
    reading_end, writing_end = os.pipe()

    def counted() -> None:
        with watched(ending):
            erase(root, ready.keys, ready.secret, lambda _name: None)
        WRITE(writing_end, json.dumps(ending.count).encode())

    code, said = in_a_child(counted)
    os.close(writing_end)
    assert code == 0, said
    with os.fdopen(reading_end, "rb") as pipe:
        count = json.loads(pipe.read())
    assert count > 100
    every = range(1, count + 1)
    steps = every if os.environ.get("MEMORANDA_ALL_STEPS") else sorted(random.Random(count).sample(every, 12))
    states = set()
    for at in steps:
        place = copied(ready, tmp_path / f"at{at}")
        ending = Ending(at, half=at % 2 == 0)

        def killed(place: Path = place, ending: Ending = ending) -> None:
            with watched(ending):
                erase(place, ready.keys, ready.secret, lambda _name: None)

        code, said = in_a_child(killed)
        assert code in (0, 9), said
        try:
            committed = "The last word before it." in "".join(p.read_text() for p in place.rglob("memory/**/*.md"))
            states.add(check(place, ready) if committed else None)
        except BaseException:
            print(f"killed at step {at} of {count}")
            raise
        shutil.rmtree(place)
    assert {True, False} <= states or not os.environ.get("MEMORANDA_ALL_STEPS")


def test_a_loss_of_power_anywhere(ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a moment after each sync of ours: what no sync covers is dropped, torn or reordered."""
    monkeypatch.setattr(background, "_SOON", 1000.0)
    monkeypatch.setattr(background, "_QUIET", 1000.0)
    root = copied(ready, tmp_path / "home")
    replica = root / ".git/memoranda/replica.json"
    replica.write_text(json.dumps(json.loads(replica.read_bytes()) | {"inode": (root / ".git").stat().st_ino}))
    disk = Disk(root)
    with disk.noted():
        erase(root, ready.keys, ready.secret, lambda name: disk.moment(name))
        disk.moment("closed")
    monkeypatch.setattr(log_state, "boot_id", lambda: b"the next day".ljust(32, b"-"))
    labels = [moment.label for moment in disk.moments]
    begun = labels.index("survey")
    later = disk.moments[begun:]
    rng = random.Random(17)
    every = [(m, names, data) for m in later for names in ("none", "all", "until", "each") for data in ("lost", "any")]
    cases = every if os.environ.get("MEMORANDA_ALL_STEPS") else rng.sample(every, 24)
    place, states = tmp_path / "place", set()
    for number, (moment, names, data) in enumerate(cases):
        lose(moment, place, names, data, number)
        try:
            states.add((later.index(moment) > labels.index("position") - begun, check(place, ready)))
        except BaseException:
            shutil.copytree(place, tmp_path / "left", symlinks=True)
            print(f"at {moment.label!r}, names {names}, data {data}, case {number}")
            raise
    assert (True, False) not in states  # once it is decided, no crash leaves it undone


def lose(moment: Moment, place: Path, names: str, data: str, seed: int) -> None:
    build(moment, place, names, data, random.Random(seed), cache=seed % 2 == 0)
    replica = place / ".git/memoranda/replica.json"
    held = json.loads(replica.read_bytes() or b"{}")
    replica.write_text(json.dumps(held | {"inode": (place / ".git").stat().st_ino}))
