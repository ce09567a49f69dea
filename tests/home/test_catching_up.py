"""Who brings the catalog to the present may be killed, or overtaken: it says what a catalog made anew says."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from home.tools import fresh_home, git, note, opened, quiet, rows, texts
from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.home.repository import Repository
from memoranda.index import catalog
from memoranda.index.journal_mode import connect
from memoranda.operations.space import Space

MINE = "memory/notes/mine.md"
_WRITING = ("INSERT", "UPDATE", "DELETE", "COMMIT")


def _edit(root: Path, text: str) -> None:
    (root / MINE).parent.mkdir(exist_ok=True)
    (root / MINE).write_text(f"# Mine\n\n{text}\n")


def _agrees(context: Context, space: Space) -> dict[str, str]:
    """What is listed, after comparing the catalog with one made anew."""
    listed = texts(context, space)
    caught_up = rows(space)
    space.one().indexes.drop()
    assert texts(context, space) == listed
    assert rows(space) == caught_up
    return listed


def _read_until(root: Path, at: int) -> bool:
    """A process lists the notes, and is killed before the statement number `at` that writes; whether it was."""
    child = os.fork()
    if child == 0:
        code, count = 1, 0

        def killed(statement: str) -> None:
            nonlocal count
            count += statement.startswith(_WRITING)
            if count == at:
                os._exit(9)

        def traced(path: Path) -> sqlite3.Connection:
            db = connect(path)
            db.set_trace_callback(killed)
            return db

        try:
            catalog.connect = traced
            context = Context(user="dana", agent="cleo")
            with opened(root, context) as space:
                texts(context, space)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 9)
    return status != 0


@pytest.mark.parametrize("read", [True, False], ids=["the log told of it", "the commit tells of it"])
def test_a_reader_may_be_killed_at_every_statement(tmp_path: Path, live: Context, read: bool) -> None:
    before, template = tmp_path / "before", tmp_path / "template"
    root = fresh_home(before / "home", Keys(before / "keys"))
    with opened(root, live) as space:
        note(live, space, "the first")
        _edit(root, "one")
        texts(live, space)
        quiet(space)
        texts(live, space)
        _edit(root, "two")
        space.one().repository.look(live)
        note(live, space, "the second")
        if read:
            texts(live, space)
        quiet(space)
        shutil.copytree(before, template)  # who closes catches up
    at, killed = 0, True
    while killed:
        at += 1 if read else 5  # all of the other is one transaction
        shutil.copytree(template, tmp_path / str(at))
        killed = _read_until(tmp_path / str(at) / "home", at)
        with opened(tmp_path / str(at) / "home", live) as space:
            assert _agrees(live, space)[MINE].endswith("two")
    assert at > 2


def test_who_is_overtaken_between_its_look_and_its_word_takes_nothing_back(
    base: Path, live: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(base, live) as slow, opened(base, live) as fast:
        _edit(base, "one")
        texts(live, slow)
        assert slow.one().repository.flush() is None
        advanced, overtaken = Repository.advanced, False

        def and_then(repository: Repository, commit: str | None, committed: int, seq: int) -> str | None:
            nonlocal overtaken
            found = advanced(repository, commit, committed, seq)
            if repository is slow.one().repository and not overtaken:
                overtaken = True
                for text in ("two", "three"):
                    _edit(base, text)
                    texts(live, fast)
                quiet(fast)
                git(base, "commit", "-q", "--allow-empty", "-m", "a person's")
                texts(live, fast)
            return found

        monkeypatch.setattr(Repository, "advanced", and_then)
        texts(live, slow)
        assert overtaken
        assert _agrees(live, slow)[MINE].endswith("three")
