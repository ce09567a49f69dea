"""`scan` finds what an older Home holds already, wherever it lies, and never shows it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.operations.allowing import allow
from memoranda.operations.journaling import Turn, append
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.scanning import Scan, scan
from memoranda.operations.space import Space

VALUE = "kw7Zq2Lp" + "9XvT4mRs"
TOKEN = "ghp_" + "q1W2e3R4t5Y6u7I8o9P0a1S2d3F4g5H6j7K8"
SECRET = f"The password is {VALUE}!"


def git(home: Path, *words: str) -> None:
    name = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", "-C", str(home), *name, *words], check=True, capture_output=True)


@pytest.fixture
def older(context: Context, keys: Keys, home: Path) -> Iterator[Path]:
    """A Home in which a version without these rules, or plain Git, has kept things."""
    with Space(context, keys, home, None) as space:
        append(context, space, Turn("We met at the harbour.", "dana"))
        for number in range(20):
            remember(context, space, NewNote(f"Buoy {number} is green."))
    yield home


def plant(home: Path, path: str, text: str, message: str = "Write") -> None:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    git(home, "add", "-f", path)
    git(home, "commit", "-qm", message)


def looked(context: Context, keys: Keys, home: Path, *, history: bool = False, personal: bool = False) -> Scan:
    with Space(context, keys, home, None) as space:
        found = scan(context, space, history=history, personal=personal)
    assert VALUE not in str(found.json()) and TOKEN not in str(found.json())
    return found


def places(found: Scan) -> set[tuple[str, str, int, int]]:
    return {(spot.where, spot.kind, spot.line, spot.column) for spot in found.found}


def test_a_home_without_secrets_has_none(context: Context, keys: Keys, older: Path) -> None:
    for history in (False, True):
        found = looked(context, keys, older, history=history)
        assert found.found == () and found.texts > 20, found.found


def test_what_lies_in_files_and_their_names(context: Context, keys: Keys, older: Path) -> None:
    plant(older, "memory/notes/old.md", f"# Access\n\nSee below.\n{SECRET}\n")
    plant(older, "agents/cleo/journal/2025-01-01.md", f"## 2025-01-01T00:00:00Z cleo ^j_1\n\n{SECRET}\n")
    plant(older, f"memory/notes/key {TOKEN}.md", "Nothing else.\n")
    (older / "memory/notes/typed.md").write_text(SECRET)  # refused and left alone
    found = looked(context, keys, older)
    assert places(found) == {
        ("file", "password", 4, 17), ("file", "password", 3, 17), ("file", "password", 1, 17),
        ("name", "github_token", 1, 18),
    }  # fmt: skip
    paths = {spot.path for spot in found.found}
    assert paths >= {"memory/notes/old.md", "memory/notes/typed.md", "agents/cleo/journal/2025-01-01.md"}
    assert "memory/notes/key [github_token].md" in paths


def test_what_history_keeps(context: Context, keys: Keys, older: Path) -> None:
    plant(older, "memory/notes/old.md", f"# Access\n\n{SECRET}\n")
    plant(older, "memory/notes/old.md", "# Access\n\nIt lies in the safe.\n")
    plant(older, f"memory/notes/{TOKEN}.md", "Nothing else.\n")
    git(older, "mv", f"memory/notes/{TOKEN}.md", "memory/notes/renamed.md")
    git(older, "commit", "-qm", f"Rename it\n\nThe password was {VALUE}.")
    git(older, "checkout", "-qb", "side")
    plant(older, "memory/notes/side.md", SECRET)
    git(older, "checkout", "-q", "main")
    git(older, "branch", "-qD", "side")  # unreachable, and in the log of HEAD only
    git(older, "tag", "-a", "v1", "-m", f"Token: {TOKEN}")
    assert looked(context, keys, older).found == ()
    found = looked(context, keys, older, history=True)
    assert {(spot.where, spot.kind) for spot in found.found} == {
        ("history", "password"), ("name", "github_token"), ("commit", "password"), ("tag", "github_token"),
    }  # fmt: skip
    assert {spot.path for spot in found.found if spot.where == "history"} == {
        "memory/notes/old.md",
        "memory/notes/side.md",
    }
    for spot in found.found:
        if spot.where == "history":
            shown = subprocess.run(
                ["git", "-C", older, "cat-file", "-p", str(spot.rev)], capture_output=True, text=True
            )
            assert shown.stdout.splitlines()[spot.line - 1][spot.column - 1 :].startswith(VALUE)


def test_what_a_person_allows_is_counted_and_found_no_more(context: Context, keys: Keys, older: Path) -> None:
    plant(older, "memory/notes/old.md", SECRET)
    (spot,) = looked(context, keys, older).found
    allow(replace(context, person=True), keys, "text", spot.hash, "an example")
    found = looked(context, keys, older)
    assert found.found == () and found.allowed == 1


def test_personal_data_is_found_when_asked_for(context: Context, keys: Keys, older: Path) -> None:
    plant(
        older,
        "memory/notes/old.md",
        "Call 06 12 34 56 78 or mail dana@example.org.\nIBAN FR7630006000011234567890189\n",
    )
    assert {spot.kind for spot in looked(context, keys, older).found} == {"iban"}
    found = looked(context, keys, older, personal=True, history=True)
    assert {(spot.kind, spot.personal) for spot in found.found} == {("iban", False), ("phone", True), ("email", True)}
