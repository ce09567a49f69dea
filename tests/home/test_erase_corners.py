"""Erasing where Homes differ: vaults, odd names, worktrees, shallow clones, other installations, reviews, the log."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from home.erasing import blanks_of, lines_of, places
from home.tools import assert_sound, git, note, rows
from memoranda.context import Context
from memoranda.errors import Erased
from memoranda.home.create import create, finish
from memoranda.home.draft import Change, Draft
from memoranda.home.erasing.erase import Lines, Whole
from memoranda.home.keys import Keys
from memoranda.home.repository import Repository
from memoranda.operations import listing, reading
from memoranda.operations.remembering import Remembered
from memoranda.operations.space import Space

TEXT = "Kowalskoff moved to the zebrafisch team.\n\nHer codeword is Plimsolquark."
RARE = ["kowalskoff", "zebrafisch", "plimsolquark"]


def blob_of(made: Remembered) -> str:
    return made.uri.rpartition("@")[2]


@pytest.mark.parametrize(
    "name", ["Kowalskoff – été.md", "Zebrafisch/deep/one.md", "%41 Plimsolquark #1.md", "zebrafisch.sh.md"]
)
def test_a_vault_of_a_person_s_own_notes(tmp_path: Path, context: Context, keys: Keys, name: str) -> None:
    vault = tmp_path / "vault"
    (vault / name).parent.mkdir(parents=True)
    (vault / "Plain.md").write_text("# Plain\n\nAbout [[Other]] things.\n")
    git(vault, "init", "-q", "-b", "main")
    (vault / name).write_text("Her codeword is Plimsolquark.\n")
    git(vault, "add", "-A")
    git(vault, "commit", "-q", "-m", "First")
    (vault / name).write_text("Her codeword is Plimsolquark!\r\nKowalskoff moved to the zebrafisch team.\r\n")
    (vault / name).chmod(0o755)
    git(vault, "commit", "-q", "-a", "-m", f"Edit {name}")
    made = create(vault, context)
    finish(made.root, context, keys)
    with Space(context, keys, vault, None) as space:
        home = space.one()
        home.refresh(context)
        versions = {c.new for step in home.repository.history(None, git(vault, "rev-parse", "HEAD").strip())
                    for c in step.changes if c.path == name and c.new}  # fmt: skip
        assert len(versions) == 2
        done = home.repository.erase(context, [Whole(blob) for blob in versions], "asked for")
        assert done.found == () and done.files == 2
        assert places(vault, RARE) == []
        assert [item.path for item in listing.list_notes(context, space)] == ["Plain.md"]
    assert_sound(vault)
    assert git(vault, "log", "--format=%s", "-1", "HEAD~1").strip() == "(erased on 2026-10-02)"


def test_lines_of_any_file(space: Space, context: Context, home: Path) -> None:
    line = "Call Kowalskoff, zebrafisch desk."
    made = note(context, space, f"# Plan\n\nFirst.\n{line}\n{line}")
    path = home / made.path
    data = path.read_text()
    path.write_text(data + "Last.\n")
    repository = space.one().repository
    repository.look(context)
    repository.flush()
    first = data.splitlines().index(line) + 1
    source = lines_of(made.sources[0])
    done = repository.erase(context, [Lines(blob_of(made), first, first + 1), source], "asked for")
    assert done.found == ()
    assert places(home, RARE[:2]) == []
    wanted = data.replace(line, "erased on 2026-10-02", 1).replace(line, "", 1)
    assert path.read_text() == wanted + "Last.\n"
    assert repository.at(made.path, blob_of(made)).decode() == wanted
    with pytest.raises(Erased):
        reading.read(context, space, f"{made.uri}#L{first}")
    space.close()
    assert_sound(home)


def test_reviews_of_other_notes_count_and_words_about_this_one_go(space: Space, context: Context, home: Path) -> None:
    kept, secret = note(context, space, "Acme renewed for 24 months."), note(context, space, TEXT)
    repository = space.one().repository

    def draft(_at: datetime) -> Draft:
        def review(made: Remembered, comment: str) -> dict[str, str]:
            whose = {"id": made.id, "blob": blob_of(made), "reviewer": "dana"}
            return {"kind": "review", "verdict": "accept", "comment": comment, **whose}

        tainted = {"kind": "session", "session": "ses_x", "event": "taint", "reason": "read it", "source": secret.uri}
        return Draft(
            "review", "Accept two notes", (),
            [review(kept, "as they said"), review(secret, "Kowalskoff told me so"), tainted],
        )  # fmt: skip

    repository.write(context, draft)
    space.one().refresh(context)
    before = rows(space)
    done = repository.erase(context, blanks_of(space, context, secret.id), "asked for")
    assert done.found == ()
    assert places(home, RARE) == []
    space.one().refresh(context)
    ledger = space.one().indexes.catalog.ledger
    assert [r.comment for r in ledger.reviews(blobs=[blob_of(kept)])] == ["as they said"]
    (other,) = ledger.reviews(blobs=[blob_of(secret)])
    assert (other.verdict, other.comment) == ("accept", "erased---------------")
    (event,) = ledger.session_events("ses_x")
    assert (event.event, event.reason, event.vouched) == ("taint", "read it", True)
    assert event.source is not None and event.source.endswith(f"@{blob_of(secret)}")
    assert rows(space)["ledger"] == before["ledger"]


def test_a_ledger_of_another_installation(space: Space, context: Context, home: Path, tmp_path: Path) -> None:
    """Its lines lose the words too; that nobody can sign them again is told."""
    space.close()
    with Space(context, Keys(tmp_path / "other keys"), home, None) as other:
        secret = note(context, other, TEXT)
        kept = note(context, other, "Acme renewed for 24 months.")
    with Space(context, Keys(tmp_path / "keys"), home, None) as mine:
        done = mine.one().repository.erase(context, blanks_of(mine, context, secret.id), "asked for")
        assert done.found == ()
        assert "1 line(s) of the ledger" in dict(done.remains)
        assert reading.read(context, mine, kept.uri).text.endswith("24 months.")
    assert places(home, RARE) == []
    assert_sound(home)


def test_a_home_in_a_linked_worktree(space: Space, context: Context, home: Path, keys: Keys, tmp_path: Path) -> None:
    kept = note(context, space, "Acme renewed for 24 months.")
    space.close()
    git(home, "worktree", "add", "-q", "-b", "second", str(tmp_path / "second"))
    with Space(context, keys, tmp_path / "second", None) as second:
        secret = note(context, second, TEXT)
        second.one().repository.flush()
        done = second.one().repository.erase(context, blanks_of(second, context, secret.id), "asked for")
        assert done.found == ()
        assert reading.read(context, second, kept.uri).text.endswith("24 months.")
    assert places(home, RARE) == [] == places(tmp_path / "second", RARE)
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""
    assert git(tmp_path / "second", "status", "--porcelain") == ""


def test_a_shallow_clone(space: Space, context: Context, home: Path, keys: Keys, tmp_path: Path) -> None:
    for n in range(3):
        note(context, space, f"Number {n}.")
    secret = note(context, space, TEXT)
    last = note(context, space, "The last one.")
    space.one().repository.flush()
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{home}", "shallow")
    with Space(context, keys, shallow, None) as other:
        assert len(listing.list_notes(context, other)) == 5
        done = other.one().repository.erase(context, blanks_of(other, context, secret.id), "asked for")
        assert done.found == ()
        assert reading.read(context, other, last.uri).text.endswith("The last one.")
    assert places(shallow, RARE) == []
    assert_sound(shallow)


def test_an_edit_that_nobody_looked_for_yet(space: Space, context: Context, home: Path) -> None:
    """What was edited a moment before is a version of the note, and goes with it."""
    secret = note(context, space, TEXT)
    repository = space.one().repository
    repository.flush()
    blanks = blanks_of(space, context, secret.id)
    path = home / secret.path
    path.write_bytes(path.read_bytes() + b"And more of Plimsolquark.\n")
    assert repository.erase(context, blanks, "asked for").found == ()
    assert places(home, RARE) == []
    assert listing.list_notes(context, space) == []
    space.close()
    assert_sound(home)


def test_what_is_still_in_the_log_is_committed_first(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    kept = [note(context, space, f"Number {n}.") for n in range(30)]
    done = space.one().repository.erase(context, blanks_of(space, context, secret.id), "asked for")
    assert done.found == ()
    segments = list((home / ".git/memoranda").glob("*.log"))
    assert len(segments) == 1 and not any(segments[0].read_bytes()[100:])
    for made in kept:
        assert "Number" in reading.read(context, space, made.uri).text
    assert len(git(home, "log", "--format=%H").split()) == 32


def test_nothing_else_of_the_index_changes(space: Space, context: Context, home: Path) -> None:
    """What a person has staged stays staged."""
    secret, kept = note(context, space, TEXT), note(context, space, "Acme renewed for 24 months.")
    repository = space.one().repository
    repository.flush()
    while not repository.tidy():
        pass
    blanks = blanks_of(space, context, secret.id)
    (home / "staged.txt").write_text("staged\n")
    git(home, "add", "staged.txt")
    (home / "staged.txt").write_text("staged, and changed\n")
    before = git(home, "ls-files", "-s", "staged.txt", kept.path)
    assert repository.erase(context, blanks, "asked for").found == ()
    assert git(home, "ls-files", "-s", "staged.txt", kept.path) == before
    assert git(home, "status", "--porcelain") == "AM staged.txt\n"


def test_a_home_that_is_read_only_or_was_never_written(tmp_path: Path, context: Context, keys: Keys) -> None:
    made = create(tmp_path / "home", context)
    finish(made.root, context, keys)
    with Repository(made.root, context, keys) as repository:
        assert repository.erase(context, [], "nothing").id == ""

        def draft(_at: datetime) -> Draft:
            return Draft("write", "Write a file", [Change("memory/notes/a.md", b"Kowalskoff\n")])

        record = repository.write(context, draft)
        blob = record.changes[0].new
        assert blob is not None
        assert repository.erase(context, [Whole(blob)], "asked for").found == ()
    assert places(made.root, RARE) == []
    assert os.listdir(made.root / "memory") != []  # noqa: PTH208


def test_an_edit_of_another_text_at_its_place_is_left(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    repository = space.one().repository
    repository.flush()
    blanks = blanks_of(space, context, secret.id)
    (home / secret.path).write_text("Something else altogether.\n")
    done = repository.erase(context, blanks, "asked for")
    assert (secret.path, "it was edited and holds another text") in done.remains
    assert [item.path for item in listing.list_notes(context, space)] == [secret.path]


def test_a_signature_that_no_longer_fits_is_left_out(space: Space, context: Context, home: Path) -> None:
    secret = note(context, space, TEXT)
    space.one().repository.flush()
    data = git(home, "cat-file", "commit", "HEAD")
    signed = data.replace("\n\n", "\ngpgsig -----BEGIN SSH SIGNATURE-----\n abc\n -----END SSH SIGNATURE-----\n\n", 1)
    made = git(home, "hash-object", "-t", "commit", "-w", "--stdin", stdin=signed.encode()).strip()
    git(home, "update-ref", "refs/heads/main", made)
    done = space.one().repository.erase(context, blanks_of(space, context, secret.id), "asked for")
    assert "gpgsig" not in git(home, "cat-file", "commit", "HEAD")
    assert "1 signature(s)" in dict(done.remains)
