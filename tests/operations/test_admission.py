"""Secrets are refused on every way in; the refusal names kind and place and never the value, and nothing is written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import SecretRefused
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations import goldens
from memoranda.operations.admission import admit
from memoranda.operations.doctor import doctor
from memoranda.operations.importing import import_folder
from memoranda.operations.journal_import import import_journal
from memoranda.operations.journaling import Turn, append
from memoranda.operations.listing import list_notes
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.space import Space

VALUE = "kw7Zq2Lp" + "9XvT4mRs"  # in two pieces, so that no scanner of sources stumbles over it
SECRET = f"The password is {VALUE}!"


def nowhere(home: Path) -> None:
    """No file of the Home holds the value, compressed objects included."""
    for file in home.rglob("*"):
        if file.is_file() and not file.name.startswith("planted"):
            assert VALUE.encode() not in file.read_bytes(), file
    git = ["git", "-C", str(home)]
    names = subprocess.run(
        [*git, "cat-file", "--batch-check", "--batch-all-objects"], capture_output=True, text=True, check=True
    )
    for line in names.stdout.splitlines():
        kept = subprocess.run([*git, "cat-file", "-p", line.split()[0]], capture_output=True, check=True)
        assert VALUE.encode() not in kept.stdout


@pytest.mark.requirement("S-082")
def test_a_secret_is_refused_on_every_way_in(context: Context, space: Space, home: Path, tmp_path: Path) -> None:
    old = remember(context, space, NewNote("The safe stands in the office."))
    ways = [
        lambda: remember(context, space, NewNote(SECRET)),
        lambda: remember(context, space, NewNote("Fine.", subject=SECRET)),
        lambda: remember(context, space, NewNote("Fine.", sources=(f"https://x.example/?password={VALUE}",))),
        lambda: update(context, space, old.id, SECRET),
        lambda: append(context, space, Turn(SECRET, "dana")),
        lambda: goldens.golden_add(context, space, SECRET, [old.id]),
    ]
    for way in ways:
        with pytest.raises(SecretRefused) as caught:
            way()
        told = json.dumps(caught.value.problem())
        assert VALUE not in told and "at line 1, column" in told
        assert caught.value.code == "memory_secret_refused" and caught.value.status == 422
    assert [item.id for item in list_notes(context, space)] == [old.id]

    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "good.md").write_text("The buoy is green.\n")
    (folder / "bad.md").write_text(f"# Access\n\n{SECRET}\n")
    done = import_folder(context, space, folder)
    assert done.taken == 1 and [path for path, _ in done.left] == ["bad.md"] and VALUE not in str(done)

    lines = tmp_path / "talk.jsonl"
    lines.write_text(json.dumps({"text": SECRET}) + "\n" + json.dumps({"text": "Hello."}) + "\n")
    talk = import_journal(context, space, lines)
    assert talk.written == 1 and [number for number, _ in talk.damaged] == [1] and VALUE not in str(talk)
    space.close()
    nowhere(home)


def test_a_secret_typed_into_a_file_is_left_alone_and_named(context: Context, space: Space, home: Path) -> None:
    planted = home / "memory/notes/planted.md"
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(f"# Access\n\n{SECRET}\n")
    assert recall(context, space, "access password").items == ()
    report = doctor(context, space)
    found = [f for f in report.findings if f.code == "file_refused"]
    assert [f.where for f in found] == ["memory/notes/planted.md"] and VALUE not in str(found)
    assert planted.read_text().endswith(f"{SECRET}\n")
    planted.write_text("# Access\n\nIt lies in the safe.\n")
    assert [item.id for item in recall(context, space, "access safe").items]
    space.close()
    nowhere(home)


def test_a_vault_with_a_secret_becomes_a_home_without_it(context: Context, keys: Keys, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "planted.md").write_text(SECRET)
    (vault / "good.md").write_text("The buoy is green.\n")
    made = create(vault, context)
    finish(made.root, context, keys, admit=admit)
    with Space(context, keys, made.root, None) as space:
        assert [item.path for item in list_notes(context, space)] == ["good.md"]
    nowhere(vault)
