"""The example Home: whole, honest about its sources, and laid with its history."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from memoranda.home.marker import read_marker
from memoranda.notes.chains import Chains, Link
from memoranda.notes.ids import blob_id
from memoranda.notes.journal import Entry, is_journal_path, parse_journal
from memoranda.notes.model import KINDS, Note, check_draft, read_note, write_note
from memoranda.notes.paths import check_path, folder_for
from memoranda.notes.pointers import parse_pointer
from memoranda.notes.times import format_instant, parse_instant

EXAMPLES = Path(__file__).parent.parent / "examples"
TEMPLATE = EXAMPLES / "home"


def files() -> dict[str, bytes]:
    return {path.relative_to(TEMPLATE).as_posix(): path.read_bytes() for path in TEMPLATE.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def notes() -> dict[str, Note]:
    """The notes by path."""
    return {path: read_note(path, data) for path, data in files().items() if path.startswith("memory/notes/")}


@pytest.fixture(scope="module")
def journals() -> dict[str, tuple[Entry, ...]]:
    return {path: parse_journal(data) for path, data in files().items() if is_journal_path(path)}


@pytest.fixture(scope="module")
def chains(notes: dict[str, Note]) -> Chains:
    now = parse_instant("2026-11-01")
    return Chains([Link(n.id, n.supersedes, n.valid_from, n.valid_to, n.recorded_at or now) for n in notes.values()])


def test_there_is_enough_to_see(notes: dict[str, Note], journals: dict[str, tuple[Entry, ...]]) -> None:
    assert 38 <= len(notes) <= 50
    assert {note.kind for note in notes.values()} == set(KINDS)
    assert len({path.split("/")[1] for path in journals}) >= 3
    french = [note for note in notes.values() if re.search(r"\b(les|une|du|est|pour)\b", note.body)]
    assert len(french) >= 8
    assert any(note.taint == ("external",) and note.origin == "external" for note in notes.values())
    assert any(note.valid_to for note in notes.values())


def test_every_file_is_a_note_a_journal_or_known(
    notes: dict[str, Note], journals: dict[str, tuple[Entry, ...]]
) -> None:
    known = {
        *("memory/home.yaml", "memory/golden.yaml", "memory/.gitignore"),
        *("memory/.gitattributes", "agents/.gitattributes"),
    }
    assert set(files()) == known | set(notes) | set(journals)


def test_no_note_is_odd_and_each_could_be_written_again(notes: dict[str, Note]) -> None:
    written = files()
    for path, note in notes.items():
        assert note.problems == (), path
        check_draft(note)
        assert check_path(path) == path
        assert note.recorded_at is not None
        assert path.startswith(folder_for(note.subject, note.recorded_at) + "/")
        assert path.endswith(f"-{note.id[-6:]}.md")
        assert write_note(replace(note, tags=())) == written[path], path
        assert b"\r" not in written[path]


def test_ids_are_unique(notes: dict[str, Note], journals: dict[str, tuple[Entry, ...]]) -> None:
    ids = [note.id for note in notes.values()]
    assert len(ids) == len(set(ids))
    entries = [entry.id for file in journals.values() for entry in file]
    assert len(entries) == len(set(entries))


def test_journals_are_in_order_and_of_their_day(journals: dict[str, tuple[Entry, ...]]) -> None:
    for path, entries in journals.items():
        assert entries, path
        times = [entry.at for entry in entries]
        assert times == sorted(times), path
        assert {format_instant(at)[:10] for at in times} == {path[-13:-3]}, path


def test_every_source_is_there_word_for_word(notes: dict[str, Note], journals: dict[str, tuple[Entry, ...]]) -> None:
    written = files()
    cited = 0
    for path, note in notes.items():
        for source in note.sources:
            pointer = parse_pointer(source)
            assert str(pointer) == source
            assert pointer.home == read_marker(TEMPLATE).name
            assert pointer.rev == blob_id(written[pointer.path]), f"{path} cites other bytes of {pointer.path}"
            entries = journals[pointer.path]
            assert pointer.start in {entry.start for entry in entries}, f"{path}: no entry begins there"
            assert pointer.end in {entry.end for entry in entries}, f"{path}: no entry ends there"
            cited += 1
    assert cited >= 38


def test_chains_are_whole(notes: dict[str, Note], chains: Chains) -> None:
    assert not chains.cycles()
    assert not chains.unknown()
    first = [note.id for note in notes.values() if not note.supersedes]
    assert sum(1 for id in first if len(chains.heads_of(id)) > 1) == 1, "one contradiction"
    assert sum(1 for id in first if len(chains.heads_of(id)) == 1 and len(chains.members(id)) == 3) == 3


def test_golden_questions_name_notes_that_are_there(notes: dict[str, Note], chains: Chains) -> None:
    golden = yaml.safe_load((TEMPLATE / "memory/golden.yaml").read_text(encoding="utf-8"))
    assert set(golden) == {"k", "threshold", "questions"}
    assert golden["k"] >= 1
    assert set(golden["threshold"]) == {"hit", "mrr"}
    questions = golden["questions"]
    assert len(questions) == 10
    ids = {note.id for note in notes.values()}
    for question in questions:
        assert set(question) <= {"question", "expect", "as_of"}
        assert question["expect"] and set(question["expect"]) <= ids, question["question"]
        if "as_of" in question:
            parse_instant(question["as_of"], end_of_day=True)
        else:
            assert all(chains.is_head(id) for id in question["expect"]), question["question"]
    assert any("as_of" in question for question in questions)
    assert any(len(chains.members(id)) >= 3 for question in questions for id in question["expect"])
    assert sum(1 for question in questions if re.search(r"[éèàù«]| ?\?", question["question"])) >= 2


def lay_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lay", EXAMPLES / "lay.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lay"] = module
    spec.loader.exec_module(module)
    return module


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_laying_gives_the_template_with_a_history(tmp_path: Path, notes: dict[str, Note]) -> None:
    home = tmp_path / "home"
    lay_module().lay(home)
    laid = {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(home).parts
    }
    assert laid == files()
    assert git(home, "status", "--porcelain") == ""
    git(home, "fsck", "--strict")
    times = [int(line) for line in git(home, "log", "--reverse", "--format=%ct").split()]
    assert times == sorted(times)
    assert len(times) >= len(notes) + 20
    for path, note in notes.items():
        assert note.recorded_at is not None
        known = int(git(home, "log", "-1", "--format=%ct", "--", path))
        assert known - note.recorded_at.timestamp() < 3600, path


def test_laying_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError):
        lay_module().lay(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.md"]
