"""Erasing: afterwards nothing in the Home holds the text, and everything else is where it was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import sleep

import pytest

from home.erasing import blanks_of, lines_of, objects, places
from home.tools import assert_sound, git, note, rows
from memoranda.context import Context
from memoranda.errors import Erased, HomeBusy, InvalidInput, NotFound
from memoranda.home.erasing.erase import Erasure, Whole
from memoranda.home.keys import Keys
from memoranda.home.ledger import Pen, read_lines
from memoranda.home.store import LEDGER_REF
from memoranda.operations import listing, reading
from memoranda.operations.journaling import Turn, append
from memoranda.operations.remembering import Remembered, update
from memoranda.operations.space import Space

TEXT = "Kowalskoff moved to the zebrafisch team.\n\nHer codeword is Plimsolquark, naïvetéx included."
RARE = ["kowalskoff", "zebrafisch", "plimsolquark", "naïvetéx", "na\\u00efvet\\u00e9x", "na%c3%afvet%c3%a9x"]


def erase(space: Space, context: Context, *ids: str, reason: str = "asked for") -> Erasure:
    return space.one().repository.erase(context, blanks_of(space, context, *ids), reason)


@pytest.fixture
def secret(space: Space, context: Context) -> Remembered:
    """One note that has to go, among others."""
    note(context, space, "Acme renewed for 24 months.")
    made = note(context, space, TEXT)
    note(context, space, "The weather team meets on Mondays.", subject="team/weather")
    return made


def test_nothing_holds_the_text_any_more(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    append(context, space, Turn("It is warm outside.", speaker="dana"))
    space.one().repository.flush()
    assert {place.split(":")[0].split()[0] for place in places(home, RARE)} >= {"blob", "tree", "commit"}
    done = erase(space, context, secret.id)
    assert done.found == ()
    assert (done.files, done.blanked) == (1, 3)
    assert places(home, RARE) == []
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""
    space.one().refresh(context)
    assert places(home, RARE) == []
    space.close()
    assert places(home, RARE) == []
    assert_sound(home)
    said = git(home, "log", "-p", "--all")
    assert "Remember customer/acme: Acme renewed" in said
    assert "(erased on 2026-10-02)" in said


def test_everything_else_reads_as_before(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    kept = note(context, space, "Luis decides at Acme.")
    turn = append(context, space, Turn("Nothing about it.", speaker="dana"))
    uris = [kept.uri, *kept.sources, turn.uri]
    before = [reading.read(context, space, uri).text for uri in uris]
    erase(space, context, secret.id)
    assert [reading.read(context, space, uri).text for uri in uris] == before
    with pytest.raises(Erased, match="Erased on 2026-10-02") as caught:
        reading.read(context, space, secret.uri)
    assert (caught.value.code, caught.value.exit_code, caught.value.status) == ("memory_erased", 4, 410)
    with pytest.raises(Erased):
        reading.read(context, space, secret.sources[0])
    journal = secret.sources[0].partition("#")[0]
    assert "\n\nerased on 2026-10-02\n" in reading.read(context, space, journal).text


def test_a_commit_leads_on(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    repository = space.one().repository
    repository.flush()
    old = git(home, "log", "--format=%H").split()
    marker = (home / "memory/home.yaml").read_bytes()
    erase(space, context, secret.id)
    for rev in (old[0], old[0][:9], old[-1]):
        assert repository.at("memory/home.yaml", rev) == marker
    with pytest.raises(Erased):
        repository.at(secret.path, old[0])
    with pytest.raises(NotFound, match="does not exist"):
        repository.at(secret.path.replace("kowal", "other"), old[0])
    assert repository.blob(blob_of(secret)) is None


def blob_of(made: Remembered) -> str:
    return made.uri.rpartition("@")[2]


def test_the_catalog_answers_the_same_for_everything_else(
    space: Space, context: Context, home: Path, secret: Remembered
) -> None:
    update(context, space, note(context, space, "The plan costs 10.").id, "The plan costs 12.")
    space.one().refresh(context)
    before = rows(space)
    erase(space, context, secret.id)
    space.one().refresh(context)
    after = rows(space)
    assert secret.path not in {row[0] for row in after["notes"]}
    assert after["notes"] == [row for row in before["notes"] if row[0] != secret.path]
    assert after["edges"] == before["edges"]
    entries = [row for row in before["entries"] if "kowalskoff" not in repr(row).lower()]
    assert [row for row in after["entries"] if "erased on" not in repr(row)] == entries
    assert len(after["entries"]) == len(before["entries"])
    about = {row[0]: row for row in before["ledger"]}
    assert {row[0]: row for row in after["ledger"]} == about


def test_the_ledger_keeps_its_lines_and_its_signatures(
    space: Space, context: Context, home: Path, keys: Keys, secret: Remembered
) -> None:
    repository = space.one().repository
    repository.flush()
    before = list(repository.ledger_segments())
    done = erase(space, context, secret.id)
    after = list(repository.ledger_segments())
    assert [(path, len(data)) for path, _, data in before] == [
        (path, len(data[: len(old)])) for (path, _, data), (_, _, old) in zip(after, before, strict=True)
    ]
    lines = [line for _, _, data in after for line in data.decode().splitlines()]
    pen = Pen(keys, repository.marker.id, repository.replica.id)
    assert all(pen.vouches(line) for line in lines)
    fields = next(iter(read_lines(lines[-1].encode())))
    assert (fields["kind"], fields["erasure"], fields["reason"]) == ("erased", done.id, "asked for")
    assert fields["objects"][blob_of(secret)] is None
    write = next(f for f in read_lines("\n".join(lines).encode()) if f.get("id") == secret.id)
    assert write["path"].startswith("erased---") and write["blob"] == blob_of(secret)


def test_lines_go_from_every_version_of_a_journal_and_the_others_stay(
    space: Space, context: Context, home: Path
) -> None:
    turns = [append(context, space, Turn(text, speaker="dana")) for text in ("One.", "Zwyx\n# two\n\nthree.", "Four.")]
    repository = space.one().repository
    repository.flush()
    path = turns[1].path
    revs = git(home, "log", "--format=%H", "--", path).split()
    old = [git(home, "rev-parse", f"{rev}:{path}").strip() for rev in revs]
    texts = {blob: repository.blob(blob) for blob in old}
    done = repository.erase(context, [lines_of(turns[1].uri)], "asked for")
    assert done.found == () and done.blanked == 2
    assert places(home, ["zwyx"]) == []
    for blob, was in texts.items():
        now = repository.at(path, blob)
        assert was is not None and now.count(b"\n") == was.count(b"\n")
        differing = [(a, b) for a, b in zip(was.split(b"\n"), now.split(b"\n"), strict=True) if a != b]
        want = [(b"Zwyx", b"erased on 2026-10-02"), (b"\\# two", b""), (b"three.", b"")] if b"Zwyx" in was else []
        assert differing == want
    for turn, text in ((turns[0], "One."), (turns[2], "Four.")):
        assert reading.read(context, space, turn.uri).text.endswith(text)
    for gone in (turns[1].id, turns[1].uri):
        with pytest.raises(Erased):
            reading.read(context, space, gone)
    space.close()
    assert_sound(home)


def test_the_same_words_elsewhere_are_told_and_stay(space: Space, context: Context, home: Path) -> None:
    text = "The budget of Zwyxmuth is nine thousand."
    first, second = note(context, space, text), note(context, space, f"I was told:\n{text}", subject="other/place")
    done = erase(space, context, first.id)
    assert done.found == ()
    assert {what for what, why in done.remains if "was not named" in why} >= {second.path}
    assert text in reading.read(context, space, second.uri).text
    assert erase(space, context, second.id).found == ()
    assert places(home, ["zwyxmuth"]) == []


def test_erased_twice_is_nothing_the_second_time(space: Space, context: Context, secret: Remembered) -> None:
    blanks = blanks_of(space, context, secret.id)
    repository = space.one().repository
    assert repository.erase(context, blanks, "asked for").id
    assert repository.erase(context, blanks, "asked again").id == ""
    with pytest.raises(NotFound):
        repository.erase(context, [Whole("0" * 40)], "never there")


def test_a_second_erasing_keeps_the_first_one_s_pointers(
    space: Space, context: Context, home: Path, secret: Remembered
) -> None:
    repository = space.one().repository
    other = note(context, space, "Quuxifrage left the company.")
    last = note(context, space, "Berta came.")
    repository.flush()
    head = git(home, "rev-parse", "HEAD").strip()
    journal = repository.at(last.sources[0].split("/", 3)[3].partition("@")[0], head)
    erase(space, context, other.id)
    erase(space, context, secret.id)
    assert places(home, [*RARE, "quuxifrage"]) == []
    path = last.sources[0].split("/", 3)[3].partition("@")[0]
    now = repository.at(path, head)
    assert now.count(b"\n") == journal.count(b"\n") and b"Berta came." in now and now.count(b"erased on") == 2
    assert reading.read(context, space, last.sources[0]).text.endswith("Berta came.")
    for made in (secret, other):
        with pytest.raises(Erased):
            reading.read(context, space, made.uri)


def test_what_is_typed_again_is_a_new_note(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    data = (home / secret.path).read_bytes()
    erase(space, context, secret.id)
    again = note(context, space, TEXT)
    assert reading.read(context, space, again.uri).text.endswith("naïvetéx included.")
    (home / "memory/notes/typed.md").write_bytes(data)  # the very same bytes, by a person
    assert {item.path for item in listing.list_notes(context, space)} >= {again.path, "memory/notes/typed.md"}
    assert space.one().repository.at("memory/notes/typed.md", blob_of(secret)) == data
    space.close()
    assert_sound(home)


def test_a_clone_keeps_its_own(space: Space, context: Context, home: Path, tmp_path: Path, secret: Remembered) -> None:
    space.one().repository.flush()
    git(home.parent, "clone", "-q", str(home), str(tmp_path / "clone"))
    before = objects(tmp_path / "clone")
    done = erase(space, context, secret.id)
    assert "clones and remotes" in dict(done.remains)
    assert objects(tmp_path / "clone") == before
    git(tmp_path / "clone", "fsck", "--strict")
    git(tmp_path / "clone", "pull", "-q", "--no-rebase", "--allow-unrelated-histories", "-X", "ours")


def test_refused_while_a_person_is_at_work(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    space.one().repository.flush()
    blanks = blanks_of(space, context, secret.id)
    before = objects(home)
    traces = ("MERGE_HEAD", "index.lock", "refs/tags/v1.lock", "packed-refs.lock", "gc.pid", "worktrees/a/REVERT_HEAD")
    for path in (f".git/{trace}" for trace in traces):
        (home / path).parent.mkdir(exist_ok=True, parents=True)
        (home / path).write_text(f"{os.getpid()} here" if "gc" in path else git(home, "rev-parse", "HEAD"))
        with pytest.raises(HomeBusy) as caught:
            space.one().repository.erase(context, blanks, "asked for")
        assert caught.value.code == "memory_home_busy"
        (home / path).unlink()
    assert objects(home) == before
    assert not (home / ".git/memoranda/erasing").exists()
    assert erase(space, context, secret.id).found == ()


def test_what_was_deleted_before(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    blanks = blanks_of(space, context, secret.id)
    space.one().repository.flush()
    (home / secret.path).unlink()
    assert secret.path not in {item.path for item in listing.list_notes(context, space)}
    assert space.one().repository.erase(context, blanks, "asked for").found == ()
    assert space.one().repository.erasures.erased_blobs() == {blob_of(secret)}
    space.close()
    assert places(home, RARE) == []
    assert_sound(home)


def test_a_reason_may_not_repeat_it(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    space.one().repository.flush()
    before = objects(home)
    with pytest.raises(InvalidInput, match="reason"):
        erase(space, context, secret.id, reason="Kowalskoff asked for it")
    assert objects(home) == before
    assert not (home / ".git/memoranda/erasing").exists()
    assert erase(space, context, secret.id, reason="she asked for it").found == ()


def test_leftovers_of_editors_and_of_git(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    space.one().repository.flush()
    path = home / secret.path
    folder, name = path.parent, path.name
    text = path.read_bytes()
    (folder / f".{name}.swp").write_bytes(b"b0VIM 8.2\0" + bytes(40) + text.replace(b"\n", b"\0"))
    (folder / f"{name}~").write_bytes(text)
    (folder / f"#{name}#").write_bytes(b"nothing of it\n")
    (home / "memory/MEMORY.md").write_bytes(b"# Memory\n\n" + text)
    dot = home / ".git"
    for left in ("COMMIT_EDITMSG", "MERGE_MSG", "lost-found/other/0123", "rr-cache/ab/preimage", "description"):
        (dot / left).parent.mkdir(parents=True, exist_ok=True)
        (dot / left).write_bytes(text)
    os.utime(dot / "COMMIT_EDITMSG", (1, 1))  # else somebody seems to be writing it
    (dot / "objects/pack/tmp_pack_x").write_bytes(b"PACK half")
    (dot / "objects/ab").mkdir(exist_ok=True)
    (dot / "objects/ab/tmp_obj_x").write_bytes(b"half")
    done = erase(space, context, secret.id)
    remains = dict(done.remains)
    assert remains[".git/description"] == "it is a setting or a tool's own file"
    assert f"{Path(secret.path).parent}/#{name}#" in remains
    assert done.found == (f"{Path(secret.path).parent}/#{name}#", ".git/description")[::-1]
    (folder / f"#{name}#").unlink()
    (dot / "description").unlink()
    assert places(home, RARE) == []
    assert not list(dot.rglob("tmp_*"))


def test_what_others_left_in_git_s_directory_goes_or_is_named(
    space: Space, context: Context, home: Path, secret: Remembered
) -> None:
    """Git's own notes, hooks, settings, files of tools and strangers, also where no object of Git's lies beside it."""
    space.one().repository.flush()
    text, dot = (home / secret.path).read_bytes().rpartition(b"---\n")[2], home / ".git"
    git(home, "notes", "add", "-m", "Before.\n" + text.decode() + "After.", "HEAD")
    git(home, "notes", "--ref", "other", "add", "-m", "Quite another thing that stays.", "HEAD")
    strangers = [
        "description",
        "hooks/pre-commit",
        "info/exclude",
        "a-tool/state.txt",
        "objects/info/left",
        "logs/left",
    ]
    for left in ("FETCH_HEAD", *strangers):
        (dot / left).parent.mkdir(parents=True, exist_ok=True)
        (dot / left).write_bytes(text)
    done = erase(space, context, secret.id)
    assert set(done.found) == {f".git/{name}" for name in strangers}
    named = {what for what, _ in done.remains}
    assert {f".git/{name}" for name in strangers[:4]} <= named and not (dot / "FETCH_HEAD").exists()
    for name in strangers:
        (dot / name).unlink()
    assert places(home, RARE) == []
    assert "stays" in git(home, "notes", "--ref", "other", "show", "HEAD")
    assert git(home, "fsck", "--strict") == ""


def test_everything_that_git_can_hold(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    """Branches, tags, stashes, notes, remotes, reflogs, packed refs, a commit-graph, bitmaps, a split index."""
    repository = space.one().repository
    repository.flush()
    while not repository.tidy():  # Git, or another thread of ours, holds a lock for a moment
        sleep(0.01)
    path = home / secret.path
    git(home, "tag", "light")
    git(home, "tag", "-a", "-m", "About Kowalskoff", "heavy")
    git(home, "tag", "-a", "-m", "Harmless", "fine", "HEAD~1")
    git(home, "branch", "other", "HEAD~1")
    git(home, "notes", "add", "-m", "a note about this commit", "HEAD")
    git(home, "update-ref", "refs/remotes/origin/main", "HEAD")
    path.write_bytes(path.read_bytes() + b"Edited: Plimsolquark twice.\n")
    git(home, "stash")
    path.write_bytes(path.read_bytes() + b"Staged: Plimsolquark.\n")
    git(home, "add", secret.path)
    git(home, "stash")
    git(home, "commit", "-q", "--allow-empty", "-m", "Lost: the zebrafisch team")
    git(home, "reset", "-q", "--hard", "HEAD~1")
    git(home, "pack-refs", "--all")
    git(home, "gc", "-q")
    git(home, "commit-graph", "write", "--reachable")
    git(home, "update-index", "--split-index")
    about = git(home, "log", "-1", "--format=%s", "HEAD")
    stashes = git(home, "stash", "list").count("\n")
    done = erase(space, context, secret.id)
    assert done.found == ()
    assert places(home, RARE) == []
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""
    assert git(home, "tag").split() == ["fine", "heavy", "light"]
    assert git(home, "tag", "-l", "--format=%(contents)", "fine").strip() == "Harmless"
    assert git(home, "tag", "-l", "--format=%(contents)", "heavy").strip() == "(erased on 2026-10-02)"
    assert git(home, "rev-parse", "light^{commit}") == git(home, "rev-parse", "heavy^{commit}")
    assert git(home, "notes", "show", "light").strip() == "a note about this commit"
    assert git(home, "for-each-ref", "refs/remotes") == ""
    assert git(home, "stash", "list").count("\n") == stashes == 2
    assert git(home, "log", "-1", "--format=%s", "HEAD") == about
    assert git(home, "reflog").count("\n") > 3
    space.close()
    assert_sound(home)


def test_other_unreachable_objects_survive(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    space.one().repository.flush()
    blob = git(home, "hash-object", "-w", "--stdin", stdin=b"a dropped idea\n").strip()
    held = git(home, "hash-object", "-w", "--stdin", stdin=b"of Plimsolquark\n").strip()
    commit = git(home, "commit-tree", "-m", "dropped", "-p", "HEAD", "HEAD^{tree}").strip()
    erase(space, context, secret.id)
    assert git(home, "cat-file", "-p", blob) == "a dropped idea\n"
    git(home, "cat-file", "-e", held, accept=(1,))
    git(home, "cat-file", "-e", commit, accept=(1,))
    assert space.one().repository.at("memory/home.yaml", commit) == (home / "memory/home.yaml").read_bytes()
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""


def test_another_worktree_is_named_and_stays_whole(
    space: Space, context: Context, home: Path, tmp_path: Path, secret: Remembered
) -> None:
    space.one().repository.flush()
    git(home, "worktree", "add", "-q", "--detach", str(tmp_path / "second"), "HEAD")
    done = erase(space, context, secret.id)
    assert str(tmp_path / "second") in dict(done.remains)
    assert (tmp_path / "second" / secret.path).exists()
    assert places(home, RARE) == []
    git(tmp_path / "second", "log", "-1", "--format=%H")
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""


def test_objects_that_are_borrowed_are_named(
    space: Space, context: Context, home: Path, tmp_path: Path, secret: Remembered
) -> None:
    space.one().repository.flush()
    git(tmp_path, "clone", "-q", "--bare", str(home), "lender.git")
    lent = tmp_path / "lender.git/objects"
    (home / ".git/objects/info").mkdir(exist_ok=True)
    (home / ".git/objects/info/alternates").write_text(f"{lent}\n")
    done = erase(space, context, secret.id)
    assert str(lent) in dict(done.remains)
    (home / ".git/objects/info/alternates").unlink()
    assert places(home, RARE) == []
    assert git(home, "fsck", "--strict", "--full", "--no-dangling") == ""


def test_the_record_on_disk_holds_no_text(space: Space, context: Context, home: Path, secret: Remembered) -> None:
    erase(space, context, secret.id)
    own = home / ".git/memoranda"
    assert not (own / "erasing").exists()
    head = (own / "erased/000001.map").read_bytes().partition(b"\n")[0]
    assert set(json.loads(head)) == {"erasure", "at", "day", "reason", "user", "paths"}
    held = b"".join(path.read_bytes().lower() for path in own.rglob("*") if path.is_file())
    assert not any(word.encode() in held for word in RARE)


def test_the_ledger_of_a_home_leads_a_clone_with_its_keys(
    space: Space, context: Context, home: Path, tmp_path: Path, keys: Keys, secret: Remembered
) -> None:
    kept = note(context, space, "Luis decides at Acme.")
    erase(space, context, secret.id)
    space.one().repository.flush()
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", str(home), "copy")
    git(copy, "fetch", "-q", "origin", f"{LEDGER_REF}:{LEDGER_REF}")
    with Space(context, keys, copy, None) as other:
        assert reading.read(context, other, kept.sources[0]).text.endswith("Luis decides at Acme.")
        with pytest.raises(Erased):
            reading.read(context, other, secret.uri)
    with Space(context, Keys(tmp_path / "other-keys"), copy, None) as stranger:
        with pytest.raises(Erased):
            reading.read(context, stranger, kept.sources[0])
