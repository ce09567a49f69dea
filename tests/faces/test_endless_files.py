"""A pipe, a device or a file without end in a Home: it is named, and whoever works there goes on or is told why not."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import HomeDamaged, HomeNotFound
from memoranda.home.keys import Keys
from memoranda.home.layout import MARKER
from memoranda.home.marker import read_marker
from memoranda.notes.frontmatter import HEAD_LIMIT
from memoranda.operations.doctor import doctor
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space


@pytest.mark.disk
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize(
    "name",
    [
        ".memoranda/folders.json", ".git/memoranda/recipes.json", ".git/memoranda/git/config", ".git/HEAD",
        ".git/refs/heads/main", "memory/.gitattributes",
    ],
)  # fmt: skip
def test_a_pipe_in_the_place_of_a_file_stops_nobody(
    context: Context, home: Path, keys: Keys, name: str, kind: str
) -> None:
    with Space(context, keys, home, None) as space:
        remember(context, space, NewNote("The ferry leaves at six."))
    path = home / name
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    with pytest.raises(HomeDamaged, match=re.escape(name)), Space(context, keys, home, None) as space:
        doctor(context, space)
    path.unlink()


@pytest.mark.disk
def test_a_pipe_in_the_place_of_the_marker_stops_nobody(context: Context, home: Path, keys: Keys) -> None:
    (home / MARKER).unlink()
    os.mkfifo(home / MARKER)
    with pytest.raises(HomeNotFound), Space(context, keys, home, None) as space:
        doctor(context, space)
    with pytest.raises(HomeDamaged, match="pipe"):
        read_marker(home)
    (home / MARKER).unlink()


@pytest.mark.disk
def test_a_socket_of_git_is_no_pipe(context: Context, home: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home / ".git")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("fsmonitor--daemon.ipc")
        with Space(context, keys, home, None) as space:
            assert doctor(context, space).ok


@pytest.mark.disk
def test_endless_front_matter_holds_up_nothing(context: Context, home: Path, keys: Keys) -> None:
    with Space(context, keys, home, None) as space:
        remember(context, space, NewNote("The ferry leaves at six."))
        space.one().repository.flush()
    notes = home / "memory/notes"
    head = "a: b\n" * (HEAD_LIMIT // 5 + 1)
    (notes / "edited.md").write_text(f"---\n{head}---\nThe ferry sings.\n")
    (notes / "most.md").write_text(f"---\n{head[5:]}---\nThe ferry waits.\n")
    with Space(context, keys, home, None) as space:
        texts = [item.text for item in recall(context, space, "ferry").items]
        assert any("six" in text for text in texts) and any("waits" in text for text in texts)
        assert not any("sings" in text for text in texts)
        told = {f.where: f.what for f in doctor(context, space).findings if f.code == "file_refused"}
        assert "256 KiB" in told["memory/notes/edited.md"]
    git = ("git", "-C", str(home), "-c", "user.name=A", "-c", "user.email=a@b.example")
    subprocess.run([*git, "add", "memory/notes/edited.md"], check=True)
    subprocess.run([*git, "commit", "-qm", "by hand"], check=True)
    with Space(context, keys, home, None) as space:
        assert not any("sings" in item.text for item in recall(context, space, "ferry").items)
        assert any("256 KiB" in f.what and "edited" in f.where for f in doctor(context, space).findings)
