"""What was forgotten does not come back, by whatever way, until a person remembers it again."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest
from home.erasing import places
from home.tools import git

from memoranda.context import Context
from memoranda.errors import ConfirmationRequired, Forgotten, InvalidInput
from memoranda.home.keys import Keys
from memoranda.index.withheld import tombstones
from memoranda.operations.doctor import doctor
from memoranda.operations.forgetting import Selection, forget
from memoranda.operations.importing import import_folder
from memoranda.operations.journal_import import import_journal
from memoranda.operations.journaling import Turn, append
from memoranda.operations.keyring import export_keys, import_keys
from memoranda.operations.listing import list_notes
from memoranda.operations.remembering import NewNote, remember, update
from memoranda.operations.space import Space
from tests.stores import Opening

from .forgetting import TEXT, one, shown


def test_the_same_content_is_refused_until_a_person_remembers_it(
    context: Context, person: Context, space: Space, home: Path, tmp_path: Path
) -> None:
    note = remember(context, space, NewNote(TEXT))
    forget(person, space, one(note))
    for text in (
        TEXT,
        "KOWALSKOFF  lives in\nZebrafisch Lane 12.",
        "Kowalskoff lives\u200b in \uff3aebrafisch Lane 12.",
    ):
        with pytest.raises(Forgotten, match="forgotten on 2026-10-02") as refused:
            remember(context, space, NewNote(text))
        assert (refused.value.code, refused.value.exit_code) == ("memory_forgotten", 3)
        with pytest.raises(Forgotten):
            remember(replace(context, agent="other"), space, NewNote(text, scope="project", origin="maintenance"))
        with pytest.raises(Forgotten):
            append(context, space, Turn(text))
    other = remember(context, space, NewNote("Berta lives there."))
    with pytest.raises(Forgotten):
        update(context, space, other.id, TEXT)
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "a.md").write_text(f"---\ntags: [x]\n---\n{TEXT}\n")
    (folder / "b.md").write_text("Something else.\n")
    done = import_folder(context, space, folder)
    assert done.taken == 1 and [path for path, _ in done.left] == ["a.md"]
    assert "forgotten on 2026-10-02" in done.left[0][1]
    (home / "memory/notes/typed.md").write_text(f"{TEXT}\n")
    assert shown(person, space) == []
    report = doctor(person, space)
    assert [f.where for f in report.findings if f.code == "file_refused"] == ["memory/notes/typed.md"]
    space.one().repository.flush()
    while not space.one().repository.tidy():  # Git, or another thread of ours, holds a lock for a moment
        sleep(0.01)
    assert "?? memory/notes/typed.md" in git(home, "status", "--porcelain")

    back = remember(person, space, NewNote(TEXT))
    assert back.id in shown(person, space)
    agent = remember(context, space, NewNote(TEXT))
    assert agent.id in shown(person, space)
    space.one().repository.flush()
    lines = b"".join(data for _, _, data in space.one().repository.ledger_segments()).decode().splitlines()
    assert sum('"event":"lift"' in line for line in lines) == 1, "on record"
    told = [line for line in lines if '"kind":"tombstone"' in line]
    assert told and not any("owalskoff" in line for line in told)


@pytest.mark.parametrize("erase", [False, True])
def test_a_process_that_has_the_home_open_learns_it_at_once(
    context: Context, opening: Opening, person: Context, space: Space, erase: bool
) -> None:
    with opening(context) as other:
        note = remember(context, space, NewNote(TEXT))
        remember(context, other, NewNote("Something before."))
        forget(person, space, one(note), erase=erase)
        with pytest.raises(Forgotten):
            remember(context, other, NewNote(TEXT))
        with pytest.raises(Forgotten):
            append(context, other, Turn(TEXT))
        remember(person, space, NewNote(TEXT))
        assert remember(context, other, NewNote(TEXT)).id


def test_an_import_of_a_conversation_passes_over_what_was_forgotten(
    context: Context, person: Context, space: Space, tmp_path: Path
) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(
        '{"text": "Kowalskoff lives in Zebrafisch Lane 12.", "speaker": "dana", "session": "ses_1"}\n'
        '{"text": "yes", "speaker": "dana", "session": "ses_1"}\n'
        '{"text": "yes", "speaker": "berta", "session": "ses_2"}\n'
    )
    import_journal(context, space, file)
    forget(person, space, Selection(sessions=("ses_1",)), erase=True)
    again = import_journal(context, space, file)
    assert again.written == 0
    moved = tmp_path / "moved.jsonl"
    moved.write_text(
        '{"text": "Kowalskoff lives in  zebrafisch lane 12.", "speaker": "eve", "session": "ses_3"}\n'
        '{"text": "yes", "speaker": "eve", "session": "ses_3"}\n'
    )
    done = import_journal(context, space, moved)
    assert (done.written, done.skipped) == (1, {"forgotten": 1}), "a short turn is everybody's"


def test_the_merge_of_an_old_clone_brings_nothing_back(
    context: Context, opening: Opening, person: Context, space: Space, home: Path, tmp_path: Path
) -> None:
    note = remember(context, space, NewNote(TEXT, subject="people/k"))
    plain = home / "memory/notes/plain.md"
    plain.write_text("Plimsolquark is the codeword.\n")
    space.one().refresh(context)
    own = space.one().indexes.catalog.by_path("memory/notes/plain.md")
    assert own is not None
    space.one().repository.flush()
    old = tmp_path / "old"
    git(tmp_path, "clone", "-q", str(home), str(old))
    path = old / note.path
    path.write_text(path.read_text() + "\nAnd he has a dog called Quuxifrage.\n")
    git(old, "commit", "-qam", "More of it")
    forget(person, space, Selection((note.id, own.id)), erase=True)
    assert places(home, ["kowalskoff", "plimsolquark"]) == []
    space.close()
    git(
        home,
        "pull",
        "-q",
        "--no-rebase",
        "--allow-unrelated-histories",
        "-X",
        "theirs",
        str(old),
        "HEAD",
        accept=(0, 1),
    )
    with opening(context) as again:
        found = [p for p in ("memory/notes/plain.md", note.path) if (home / p).exists()]
        assert found, "Git has brought the files back"
        again.one().refresh(context)
        assert shown(person, again, "kowalskoff plimsolquark codeword quuxifrage dog") == []
        assert list_notes(person, again) == []
        returned = [f for f in doctor(person, again).findings if f.code == "forgotten_returned"]
        assert {f.where for f in returned if not f.where.startswith("agents/")} == set(found)
        done = forget(person, again, Selection(returned=True), erase=True)
        assert done.found == () and places(home, ["kowalskoff", "plimsolquark", "quuxifrage"]) == []
        assert not [f for f in doctor(person, again).findings if f.code == "forgotten_returned"]


def test_erased_entries_that_a_merge_brings_back_are_named_and_erased_again(
    context: Context, opening: Opening, person: Context, space: Space, home: Path, tmp_path: Path
) -> None:
    """Of a journal the lines come back that an erasing took; those that were forgotten only have never been away."""
    gone = append(context, space, Turn(TEXT, session="ses_1"))
    kept = append(context, space, Turn("The harbour closes at six in the evening.", session="ses_2"))
    space.one().repository.flush()
    git(tmp_path, "clone", "-q", str(home), "old")
    git(tmp_path / "old", "commit", "-q", "--allow-empty", "-m", "Later")
    forget(person, space, Selection((gone.id,)), erase=True)
    forget(person, space, Selection((kept.id,)))
    assert [f for f in doctor(person, space).findings if f.code == "forgotten_returned"] == []
    space.close()
    git(home, "pull", "-q", "--no-rebase", "--allow-unrelated-histories", "-X", "theirs", str(tmp_path / "old"), "HEAD")
    assert places(home, ["kowalskoff"]) != []
    with opening(context) as again:
        again.one().refresh(context)
        assert shown(person, again) == []
        (named,) = [f for f in doctor(person, again).findings if f.code == "forgotten_returned"]
        assert gone.id in named.what and "--returned --erase" in named.remedy
        assert forget(person, again, Selection(returned=True)).removed == (), "from a journal nothing is only taken"
        done = forget(person, again, Selection(returned=True), erase=True)
        assert [item.id for item in done.removed] == [gone.id]
        assert done.found == () and places(home, ["kowalskoff"]) == []
        assert not [f for f in doctor(person, again).findings if f.code == "forgotten_returned"]
    assert places(home, ["harbour"]) != [], "what was forgotten only keeps its history"


def test_what_a_fetch_brought_back_among_git_s_objects_is_erased_again(
    context: Context, person: Context, space: Space, home: Path, tmp_path: Path
) -> None:
    entry = append(context, space, Turn("Plimsolquark is the codeword of the harbour."))
    note = remember(context, space, NewNote(TEXT, subject="people/k"))
    space.one().repository.flush()
    git(tmp_path, "clone", "-q", str(home), "old")
    forget(person, space, Selection((entry.id, note.id)), erase=True)
    git(home, "fetch", "-q", str(tmp_path / "old"), "HEAD:refs/remotes/old/main")
    assert places(home, ["kowalskoff"]) != [] and places(home, ["plimsolquark"]) != []
    told = forget(person, space, Selection(returned=True), erase=True, dry_run=True)
    assert any("Git's objects hold again" in line for line in told.also)
    assert places(home, ["kowalskoff"]) != [], "a dry run does nothing"
    done = forget(person, space, Selection(returned=True), erase=True)
    assert done.found == () and places(home, ["kowalskoff", "plimsolquark"]) == []
    again = remember(person, space, NewNote(TEXT))
    forget(person, space, Selection(returned=True), erase=True)
    assert again.id in shown(person, space) and note.id not in shown(person, space)


def test_what_took_the_place_of_erased_lines_is_none_of_them(
    context: Context, opening: Opening, person: Context, space: Space, home: Path, tmp_path: Path
) -> None:
    """A journal that Git has merged holds `erased on` beside the line that came back; only the latter is looked for."""
    note = remember(context, space, NewNote(TEXT))
    other = remember(context, space, NewNote("Plimsolquark is the codeword."))
    space.one().repository.flush()
    git(tmp_path, "clone", "-q", str(home), "old")
    git(tmp_path / "old", "commit", "-q", "--allow-empty", "-m", "Later")
    forget(person, space, Selection((note.id, other.id)), erase=True)
    space.close()
    git(home, "pull", "-q", "--no-rebase", "--allow-unrelated-histories", "-X", "ours", str(tmp_path / "old"), "HEAD")
    with opening(context) as again:
        done = forget(person, again, Selection(returned=True), erase=True)
        assert done.found == () and places(home, ["kowalskoff", "plimsolquark"]) == []
        assert not [item for item in done.remains if "stands there too" in item.why]


def test_without_the_key_doctor_says_that_it_cannot_check(
    context: Context, person: Context, space: Space, home: Path, tmp_path: Path, keys: Keys
) -> None:
    forget(person, space, one(remember(context, space, NewNote(TEXT))))
    export_keys(person, space, tmp_path / "exported.json")
    assert (tmp_path / "exported.json").stat().st_mode & 0o077 == 0
    with pytest.raises(ConfirmationRequired):
        export_keys(context, space, tmp_path / "other.json")
    with pytest.raises(InvalidInput):
        export_keys(person, space, home / "inside.json")
    space.close()
    with Space(context, Keys(tmp_path / "other-keys"), home, None) as other:
        unchecked = [f for f in doctor(person, other).findings if f.code == "forgotten_unchecked"]
        assert len(unchecked) == 1 and "cannot be known again here" in unchecked[0].what
        copy = remember(context, other, NewNote(TEXT))
        assert shown(person, other) == [copy.id], "nobody can tell without the key"
        done = import_keys(context, other, tmp_path / "exported.json")
        assert (done.keys, done.fresh) == (1, 1)
        assert import_keys(context, other, tmp_path / "exported.json").fresh == 0
        assert [f for f in doctor(person, other).findings if f.code == "forgotten_unchecked"] == []
        assert shown(person, other) == []
        with pytest.raises(Forgotten):
            remember(context, other, NewNote(TEXT))


def test_a_forged_tombstone_or_lift_does_nothing(context: Context, person: Context, space: Space, home: Path) -> None:
    """A line that this installation has not signed, pushed into the ledger under another replica's name."""
    import json

    note = remember(context, space, NewNote(TEXT))
    kept = remember(context, space, NewNote("Berta is here."))
    forget(person, space, one(note))
    space.one().repository.flush()
    tombs = tombstones(space.one().indexes.catalog.db)
    hashes = [tomb.mark for tomb in tombs if tomb.key]
    at = "2026-12-01T00:00:00+00:00"
    lines = [
        {"n": 1, "at": at, "kind": "tombstone", "event": "lift", "hashes": hashes, "mac": "0" * 32},
        {"n": 2, "at": at, "kind": "tombstone", "event": "lift", "ids": [note.id], "mac": "0" * 32},
        {"n": 3, "at": at, "kind": "hold", "event": "release", "id": kept.id, "mac": "0" * 32},
    ]
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    push_to_ledger(home, "forged", data)
    space.one().refresh(context)
    with pytest.raises(Forgotten):
        remember(context, space, NewNote(TEXT))


def test_nothing_that_is_written_in_the_home_takes_a_tombstone_away(
    context: Context, opening: Opening, person: Context, space: Space, home: Path
) -> None:
    """The cache, the ledger's ref and the whole of `.git/memoranda` are files that an agent could write."""
    note = remember(context, space, NewNote(TEXT))
    space.one().repository.flush()
    before = git(home, "rev-parse", "refs/memoranda/ledger").strip()
    data = (home / note.path).read_bytes()
    forget(person, space, one(note))
    space.one().refresh(context)
    catalog = space.one().indexes.catalog
    catalog.db.execute("UPDATE tombstones SET lifted = 1")
    space.one().tombs.renew()
    with pytest.raises(Forgotten):
        remember(context, space, NewNote(TEXT))
    space.close()
    git(home, "update-ref", "refs/memoranda/ledger", before)
    subprocess.run(["rm", "-rf", str(home / ".memoranda")], check=True)
    (home / note.path).parent.mkdir(parents=True, exist_ok=True)
    (home / note.path).write_bytes(data)
    git(home, "add", "-A")
    git(home, "commit", "-qm", "Back again")
    with opening(context) as again:
        assert shown(person, again, "Kowalskoff Zebrafisch") == []
        with pytest.raises(Forgotten):
            remember(context, again, NewNote(TEXT))
        assert remember(person, again, NewNote(TEXT)).id
        assert remember(context, again, NewNote(TEXT)).id, "and a person's lift is kept too"


@pytest.mark.parametrize("change", ["owner = 'user.nobody'", "owner = NULL", "stays = '[\"mem_back0000001\"]'"])
def test_a_tombstone_bent_in_the_catalog_keeps_its_content_out(
    context: Context, person: Context, space: Space, home: Path, change: str
) -> None:
    forget(person, space, one(remember(context, space, NewNote(TEXT))))
    space.one().refresh(context)
    with pytest.raises(Forgotten):
        remember(context, space, NewNote(TEXT))
    space.one().indexes.catalog.db.execute(f"UPDATE tombstones SET {change}")
    space.one().tombs.renew()
    with pytest.raises(Forgotten):
        remember(context, space, NewNote(TEXT))
    space.one().repository.flush()
    (home / "memory/notes/back.md").write_text(f"---\nid: mem_back0000001\n---\n{TEXT}\n", encoding="utf-8")
    git(home, "add", "-A")
    git(home, "commit", "-qm", "Back again")
    assert shown(person, space) == []


@pytest.mark.parametrize(
    "text", ["The tombstone hashes stay forgotten.", "Retention of replica objects; expire, erased."]
)
def test_words_that_the_program_says_itself_are_no_sign_of_the_text(
    context: Context, person: Context, space: Space, home: Path, text: str
) -> None:
    done = forget(person, space, one(remember(context, space, NewNote(text))), erase=True)
    assert done.erased and done.found == ()
    assert places(home, [text]) == []


def push_to_ledger(home: Path, replica: str, data: str) -> None:
    """Adds a replica's segment to the ledger, as another clone's would come."""
    blob = git(home, "hash-object", "-w", "--stdin", stdin=data.encode()).strip()
    inner = git(home, "mktree", stdin=f"100644 blob {blob}\t000001.jsonl\n".encode()).strip()
    rows = git(home, "ls-tree", "refs/memoranda/ledger") + f"040000 tree {inner}\t{replica}\n"
    tree = git(home, "mktree", stdin=rows.encode()).strip()
    tip = git(home, "rev-parse", "refs/memoranda/ledger").strip()
    commit = git(home, "commit-tree", tree, "-p", tip, "-m", "more").strip()
    git(home, "update-ref", "refs/memoranda/ledger", commit)
