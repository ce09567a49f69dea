"""What a person's Git brings in past every operation: a secret in a commit is not shown, not indexed, and named."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.errors import MemorandaError
from memoranda.home.keys import Keys
from memoranda.operations.admission import Rules
from memoranda.operations.allowing import allow
from memoranda.operations.doctor import doctor
from memoranda.operations.listing import list_notes
from memoranda.operations.recalling import recall
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.reviewing import decide
from memoranda.operations.space import Space

SECRET = "Tr0ub4dor&3xKestrel"  # one that stands for itself: nobody's
NOTE = f"# The door\n\nThe password of the door is {SECRET} for the walnut room.\n"


def commit(home: Path, path: str, text: str) -> None:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    git = ["git", "-C", str(home), "-c", "user.name=nora", "-c", "user.email=nora@example.org"]
    subprocess.run([*git, "add", path], check=True)
    subprocess.run([*git, "commit", "-qm", "By hand"], check=True)


def held(home: Path) -> list[str]:
    """The files of the cache that hold the secret, or its last word."""
    files = [path for path in (home / ".memoranda").rglob("*") if path.is_file()]
    return [path.name for path in files if b"kestrel" in path.read_bytes().lower()]


def findings(context: Context, space: Space) -> list[str]:
    report = doctor(context, space)
    assert SECRET not in str(report.json())
    return [finding.code for finding in report.findings if finding.code == "secret_committed"]


@pytest.mark.parametrize("anew", [False, True])
def test_a_note_with_a_secret_that_a_commit_brings_is_neither_shown_nor_indexed(
    context: Context, keys: Keys, home: Path, anew: bool
) -> None:
    with Space(context, keys, home, None) as space:
        recall(context, space, "walnut")
        commit(home, "memory/notes/door.md", NOTE)
        if anew:
            space.one().indexes.drop()
        assert recall(context, space, "walnut door").items == ()
        assert list_notes(context, space) == []
        assert findings(context, space) == ["secret_committed"]
        with pytest.raises(MemorandaError):
            decide(replace(context, person=True), space, ["memory/notes/door.md"], "accept")
        assert held(home) == []
        commit(home, "memory/notes/door.md", "# The door\n\nAsk nora about the walnut room.\n")
        assert [item.text for item in recall(context, space, "walnut").items] == [
            "# The door\n\nAsk nora about the walnut room."
        ]
        assert findings(context, space) == [] and held(home) == []


def test_an_entry_of_a_journal_with_a_secret_is_blank(context: Context, keys: Keys, home: Path) -> None:
    entry = f"## 2026-10-02T09:00:00Z dana ^j_0123456789abcdef\n\nThe walnut password is {SECRET}\n"
    with Space(context, keys, home, None) as space:
        commit(home, "agents/cleo/journal/2026-10-02.md", entry)
        assert recall(context, space, "walnut").items == ()
        assert findings(context, space) == ["secret_committed"] and held(home) == []


def test_what_a_person_allows_is_shown_after_a_rebuild(context: Context, keys: Keys, home: Path) -> None:
    with Space(context, keys, home, None) as space:
        commit(home, "memory/notes/door.md", NOTE)
        assert recall(context, space, "walnut").items == ()
        mark = Rules(keys, space.one().repository.marker.id).mark(SECRET)
        allow(replace(context, person=True), keys, "text", mark, "an example")
        space.one().indexes.rebuild()
        assert len(recall(context, space, "walnut").items) == 1
        assert findings(context, space) == []


def test_what_was_refused_is_asked_again_only_after_something_was_settled(
    context: Context, keys: Keys, home: Path
) -> None:
    asked: list[str] = []
    with Space(context, keys, home, None) as space:
        commit(home, "memory/notes/door.md", NOTE)
        indexes = space.one().indexes
        admit = indexes.admit
        indexes.admit = lambda data, path: (asked.append(path), admit(data, path))[1]
        assert recall(context, space, "walnut").items == ()
        assert asked.count("memory/notes/door.md") == 1
        for number in range(3):
            commit(home, f"memory/notes/window{number}.md", "# Window\n\nIt is of oak.\n")
            assert recall(context, space, "walnut").items == ()
        assert asked.count("memory/notes/door.md") == 1 and asked.count("memory/notes/window2.md") == 1
        person = replace(context, person=True)
        allow(person, keys, "domain", "docs.example.org", "ours")
        commit(home, "memory/notes/roof.md", "# Roof\n\nIt is of slate.\n")
        assert recall(context, space, "walnut").items == ()
        assert asked.count("memory/notes/door.md") == 2
        allow(person, keys, "text", Rules(keys, space.one().repository.marker.id).mark(SECRET), "an example")
        commit(home, "memory/notes/cellar.md", "# Cellar\n\nIt is dry.\n")
        assert len(recall(context, space, "walnut").items) == 1
        assert findings(context, space) == []


def test_a_note_of_an_operation_that_plain_git_gives_a_secret_for_a_name(
    context: Context, keys: Keys, home: Path
) -> None:
    with Space(context, keys, home, None) as space:
        note = remember(context, space, NewNote("The walnut room is upstairs."))
        space.one().repository.flush(wait=True)
        named = f"memory/notes/the password is {SECRET}.md"
        git = ["git", "-C", str(home), "-c", "user.name=nora", "-c", "user.email=nora@example.org"]
        (home / note.path).rename(home / named)
        subprocess.run([*git, "add", "-A", "memory"], check=True)
        subprocess.run([*git, "commit", "-qm", "By hand"], check=True)
        for _ in range(2):
            assert SECRET not in str([item.json() for item in recall(context, space, "walnut").items])
            assert list_notes(context, space) == []
            assert findings(context, space) == ["secret_committed"]
            space.one().indexes.rebuild()
        subprocess.run([*git, "mv", named, "memory/notes/room.md"], check=True)
        subprocess.run([*git, "commit", "-qm", "By hand"], check=True)
        assert [row.path for row in list_notes(context, space)] == ["memory/notes/room.md"]
        assert findings(context, space) == []
