"""A person works in the same Git: nothing of theirs is disturbed, and what is remembered meanwhile is kept."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from home.tools import PERSON, assert_sound, fresh_home, git, note, rows, status, texts
from memoranda.context import Context
from memoranda.home import background
from memoranda.home.keys import Keys
from memoranda.operations import journaling, listing
from memoranda.operations.reading import read
from memoranda.operations.remembering import update
from memoranda.operations.space import Space


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_SOON", 0.005)
    monkeypatch.setattr(background, "_QUIET", 0.02)
    monkeypatch.setattr(background, "_LATER", 0.05)


@pytest.fixture
def live() -> Context:
    return Context(user="dana", agent="cleo")


@pytest.fixture
def base(tmp_path: Path, live: Context) -> Path:
    """A Home with four notes, each committed."""
    root = fresh_home(tmp_path / "home", Keys(tmp_path / "keys"), live)
    with Space(live, Keys(tmp_path / "keys"), root, None) as space:
        for n in range(4):
            note(live, space, f"base {n}", valid_from=None)
            assert space.one().repository.flush() is None
    assert_sound(root)
    return root


def opened(root: Path, live: Context) -> Space:
    return Space(live, Keys(root.parent / "keys"), root, None)


def bodies(live: Context, space: Space) -> set[str]:
    return set(texts(live, space).values())


def quiet(space: Space) -> None:
    """What the background does when nobody has written for a moment."""
    assert space.one().repository.flush() is None
    while not space.one().repository.tidy():
        time.sleep(0.01)


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD").strip()


# After anything that we do


def test_git_status_is_clean_after_any_sequence_of_operations(base: Path, live: Context) -> None:
    rng = random.Random(4)
    for _ in range(6):
        with opened(base, live) as space:
            for _ in range(rng.randrange(1, 6)):
                what = rng.randrange(6)
                if what == 0:
                    note(live, space, f"n {rng.random()}", subject=rng.choice(["été/日本", None, "a/b/c"]))
                elif what == 1:
                    journaling.append(live, space, journaling.Turn("# said\n\n- x", "Dana ^ # |"))
                elif what == 2:
                    first = note(live, space, f"old {rng.random()}")
                    update(live, space, first.id, f"new {rng.random()}")
                elif what == 3:
                    (base / "memory" / "notes" / f"by hand {rng.randrange(3)}.md").write_text(f"# X {rng.random()}\r\n")
                    listing.list_notes(live, space)
                elif what == 4:
                    for path in sorted((base / "memory" / "notes").glob("by hand*"))[:1]:
                        path.unlink()
                    listing.list_notes(live, space)
                else:
                    listing.log(live, space)
        assert_sound(base)
    story = git(base, "log", "-p", "--format=%s", "memory/")
    assert "Remember" in story
    assert "Update customer/acme: new" in story


@pytest.mark.requirement("A-001")
def test_the_log_of_a_file_tells_who_wrote_it_and_why(base: Path, live: Context) -> None:
    with opened(base, live) as space:
        done = (
            note(live, space, "Acme renewed for 24 months", session="s") if False else note(live, space, "Acme renewed")
        )
    said = git(base, "log", "-1", "--format=%an|%s|%(trailers:key=Memoranda-Id,valueonly)", "--", done.path).strip()
    assert said == f"cleo|Remember customer/acme: Acme renewed|{done.id}"


# While the person is at it


class Busy:
    """Something of the person's that is under way: what begins it, and what ends it."""

    def __init__(self, begin: Callable[[Path], object], end: Callable[[Path], object], *, edits: bool = True) -> None:
        self.begin = begin
        self.end = end
        self.edits = edits


def branch_with_conflict(root: Path) -> None:
    """`side` and the current branch both change a file of the person's."""
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\nfirst\n")
    git(root, "add", "memory/notes/plan.md")
    git(root, "commit", "-qm", "plan")
    git(root, "checkout", "-qb", "side")
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\ntheirs\n")
    git(root, "commit", "-qam", "theirs")
    git(root, "checkout", "-q", "main")
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\nours\n")
    git(root, "commit", "-qam", "ours")


def resolved(root: Path, *words: str) -> None:
    (root / "memory" / "notes" / "plan.md").write_text("# Plan\n\nboth\n")
    git(root, "add", "memory/notes/plan.md")
    git(root, *words)


def start(*words: str) -> Callable[[Path], object]:
    def begin(root: Path) -> None:
        branch_with_conflict(root)
        git(root, *words, accept=(1,))

    return begin


BUSY = {
    "merge": Busy(start("merge", "side"), lambda r: resolved(r, "commit", "-qm", "merged")),
    "merge aborted": Busy(start("merge", "side"), lambda r: git(r, "merge", "--abort")),
    "rebase": Busy(start("rebase", "side"), lambda r: resolved(r, "rebase", "--continue")),
    "rebase aborted": Busy(start("rebase", "side"), lambda r: git(r, "rebase", "--abort")),
    "cherry-pick": Busy(start("cherry-pick", "side"), lambda r: resolved(r, "cherry-pick", "--continue")),
    "revert": Busy(
        lambda r: (branch_with_conflict(r), git(r, "revert", "--no-edit", "HEAD~1", accept=(1,))),
        lambda r: resolved(r, "revert", "--continue"),
    ),
    "bisect": Busy(
        lambda r: git(r, "bisect", "start", "HEAD", "HEAD~3"), lambda r: git(r, "bisect", "reset"), edits=False
    ),
    "detached HEAD": Busy(lambda r: git(r, "checkout", "-q", "--detach"), lambda r: git(r, "checkout", "-q", "main")),
    "index.lock": Busy(lambda r: (r / ".git/index.lock").touch(), lambda r: (r / ".git/index.lock").unlink()),
    "HEAD.lock": Busy(lambda r: (r / ".git/HEAD.lock").touch(), lambda r: (r / ".git/HEAD.lock").unlink()),
    "a lock of the branch": Busy(
        lambda r: (r / ".git/refs/heads/main.lock").touch(), lambda r: (r / ".git/refs/heads/main.lock").unlink()
    ),
}


@pytest.mark.parametrize("what", BUSY)
def test_what_the_person_has_under_way_is_left_alone(base: Path, live: Context, what: str) -> None:
    busy = BUSY[what]
    busy.begin(base)
    before = (head(base), git(base, "for-each-ref"), status(base) if "lock" not in what else "")
    with opened(base, live) as space:
        done = note(live, space, "remembered meanwhile")
        assert "remembered meanwhile" in bodies(live, space)
        time.sleep(0.1)
        assert "remembered meanwhile" in bodies(live, space)
        assert git(base, "for-each-ref") == before[1]
    with opened(base, live) as space:
        assert "remembered meanwhile" in bodies(live, space)
        entry = read(live, space, done.sources[0])
        assert "remembered meanwhile" in entry.text
    assert (head(base), git(base, "for-each-ref")) == before[:2]
    if "lock" not in what:
        ours = {f"?? {done.path}", *(line for line in status(base).splitlines() if "agents/" in line)}
        assert set(status(base).splitlines()) - ours == set(before[2].splitlines())
    busy.end(base)
    with opened(base, live) as space:
        assert "remembered meanwhile" in bodies(live, space)
        caught_up = rows(space)
        space.one().indexes.drop()
        assert "remembered meanwhile" in bodies(live, space)
        assert rows(space) == caught_up
    assert_sound(base)
    assert done.path in git(base, "ls-tree", "-r", "--name-only", "HEAD")


def test_staged_work_stays_staged(base: Path, live: Context) -> None:
    (base / "todo.txt").write_text("call Luis\n")
    git(base, "add", "todo.txt")
    (base / "memory" / "notes" / "mine.md").write_text("# Mine\n\nas staged\n")
    git(base, "add", "memory/notes/mine.md")
    (base / "memory" / "notes" / "mine.md").write_text("# Mine\n\nas saved later\n")
    staged = git(base, "ls-files", "-s", "todo.txt", "memory/notes/mine.md")
    with opened(base, live) as space:
        note(live, space, "meanwhile")
        assert "# Mine\n\nas saved later" in bodies(live, space)
    assert git(base, "ls-files", "-s", "todo.txt", "memory/notes/mine.md") == staged
    assert status(base).splitlines() == ["MM memory/notes/mine.md", "A  todo.txt"]
    git(base, "commit", "-qm", "the person's commit")
    assert git(base, "show", "HEAD:todo.txt") == "call Luis\n"
    assert git(base, "show", "HEAD:memory/notes/mine.md") == "# Mine\n\nas staged\n"
    with opened(base, live) as space:
        assert "# Mine\n\nas saved later" in bodies(live, space)
    assert_sound(base)


def test_a_commit_with_an_open_editor_succeeds(base: Path, live: Context, tmp_path: Path) -> None:
    """`git commit` fails when the branch moves while the message is written; it must not move."""
    (base / "todo.txt").write_text("call Luis\n")
    git(base, "add", "todo.txt")
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\ntouch {tmp_path}/open\nwhile [ ! -e {tmp_path}/close ]; do sleep 0.01; done\n"
                      'echo "a message" > "$1"\n')  # fmt: skip
    editor.chmod(0o755)
    with opened(base, live) as space:
        commit = subprocess.Popen(
            ["git", "commit", "-q"], cwd=base, env={**PERSON, "HOME": str(tmp_path), "GIT_EDITOR": str(editor)}
        )
        while not (tmp_path / "open").exists():
            time.sleep(0.01)
        before = head(base)
        note(live, space, "meanwhile")
        time.sleep(0.2)
        assert head(base) == before
        assert "meanwhile" in bodies(live, space)
        (tmp_path / "close").touch()
        assert commit.wait() == 0
        assert git(base, "log", "-1", "--format=%s").strip() == "a message"
    assert_sound(base)
    assert "meanwhile" in git(base, "log", "-1", "--format=%s")


def test_an_abandoned_message_holds_nothing_up_for_good(base: Path, live: Context) -> None:
    editor = base / ".git" / "COMMIT_EDITMSG"
    editor.write_text("an abandoned message")
    os.utime(editor, (time.time() - 7200, time.time() - 7200))
    os.utime(base / ".git/logs/HEAD", (time.time() - 9000, time.time() - 9000))
    os.utime(base / ".git/refs/heads/main", (time.time() - 9000, time.time() - 9000))
    with opened(base, live) as space:
        note(live, space, "meanwhile")
    assert_sound(base)


# Between two of our looks

CITED = ("https://example.org/x",)  # with a source of its own a note needs no entry in the journal


def test_stash_and_pop(base: Path, live: Context) -> None:
    (base / "todo.txt").write_text("call Luis\n")
    git(base, "add", "todo.txt")
    with opened(base, live) as space:
        note(live, space, "before the stash")
        quiet(space)
        git(base, "stash", "-q")
        note(live, space, "stashed away", sources=CITED)
        assert {"before the stash", "stashed away"} <= bodies(live, space)
        quiet(space)
        git(base, "stash", "pop", "-q", "--index")
    assert status(base) == "A  todo.txt\n"
    with opened(base, live) as space:
        assert {"before the stash", "stashed away"} <= bodies(live, space)


@pytest.mark.parametrize("watching", [False, True])
def test_branches_come_and_go(base: Path, live: Context, watching: bool) -> None:
    with opened(base, live) as space:
        if watching:
            space.watch()
        on_main = bodies(live, space)
        git(base, "checkout", "-qb", "side", "HEAD~2")
        assert bodies(live, space) < on_main
        note(live, space, "on the side", sources=CITED)
        assert "on the side" in bodies(live, space)
        quiet(space)
        git(base, "checkout", "-q", "main")
        assert bodies(live, space) == on_main
        note(live, space, "on main", sources=CITED)
        quiet(space)
        git(base, "merge", "-q", "--no-edit", "side")
        assert bodies(live, space) == on_main | {"on the side", "on main"}
        caught_up = rows(space)
        space.one().indexes.drop()
        assert bodies(live, space) == on_main | {"on the side", "on main"}
        assert rows(space) == caught_up
    assert_sound(base)


@pytest.mark.parametrize("watching", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("commit", "--amend", "-qm", "amended"), ("gc", "-q"), ("gc", "-q", "--prune=now"), ("pack-refs", "--all"),
        ("reset", "-q", "--hard", "HEAD~3"), ("reset", "-q", "--soft", "HEAD~2"), ("reset", "-q", "HEAD~2"),
        ("repack", "-adq"), ("rm", "-q", "--cached", "memory/home.yaml"), ("update-index", "--refresh"),
        ("update-index", "--index-version", "4"), ("update-index", "--split-index"), ("read-tree", "HEAD"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_between_two_looks(base: Path, live: Context, words: tuple[str, ...], watching: bool) -> None:
    """What a command dropped on purpose stays dropped; all else is there, in the file and in the list."""
    with opened(base, live) as space:
        if watching:
            space.watch()
        note(live, space, "before")
        quiet(space)
        bodies(live, space)
        pending = note(live, space, "pending")
        git(base, *words, accept=(0, 1) if "--refresh" in words else (0,))
        after = note(live, space, "after")
        listed = texts(live, space)
        assert {"pending", "after"} <= set(listed.values())
        for path in listed:
            assert (base / path).exists()
        files = {p.relative_to(base).as_posix() for p in (base / "memory" / "notes").rglob("*.md")}
        assert files == set(listed)
        for item in (pending, after):
            assert item.id.removeprefix("mem_") in read(live, space, item.sources[0]).text
    with opened(base, live) as space:
        assert texts(live, space) == listed
        caught_up = rows(space)
        space.one().indexes.drop()
        assert texts(live, space) == listed
        assert rows(space) == caught_up
    if "--cached" not in words:
        assert_sound(base)


def test_the_objects_of_a_commit_under_way_survive_a_pruning(base: Path, live: Context) -> None:
    with opened(base, live) as space:
        repository = space.one().repository
        store = repository.store
        release = store.release

        def prune(handle: object) -> None:
            release(handle)

        store.release = prune  # type: ignore[method-assign]
        move = store.move

        def moved(*words: object) -> None:
            git(base, "gc", "-q", "--prune=now")
            move(*words)  # type: ignore[arg-type]

        store.move = moved  # type: ignore[method-assign]
        note(live, space, "under way")
        assert repository.flush() is None
    assert_sound(base)


def test_git_between_its_index_and_its_head_is_waited_for(base: Path, live: Context, tmp_path: Path) -> None:
    """`git checkout` has written the other branch's files and not yet moved HEAD: this is no mass edit."""
    git(base, "branch", "other", "HEAD~2")
    hook = base / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/written\nsleep 0.03\n")
    hook.chmod(0o755)
    main = head(base)
    with opened(base, live) as space:
        bodies(live, space)
        checkout = subprocess.Popen(["git", "checkout", "-q", "other"], cwd=base, env={**PERSON, "HOME": str(tmp_path)})
        while not (tmp_path / "written").exists():
            time.sleep(0.001)
        seen = bodies(live, space)
        assert checkout.wait() == 0
        hook.unlink()
        assert bodies(live, space) == {"base 0", "base 1"}
    assert "base 0" in seen
    assert git(base, "rev-parse", "main").strip() == main
    assert git(base, "log", "-1", "--format=%s", "other").strip() == "Remember customer/acme: base 1"


def test_a_linked_worktree_is_a_home_of_its_own_branch(base: Path, live: Context, tmp_path: Path) -> None:
    git(base, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = tmp_path / "side"
    with opened(base, live) as one, opened(side, live) as two:
        for n in range(3):
            note(live, one, f"main {n}")
            note(live, two, f"side {n}")
            assert one.one().repository.flush() is None
            assert two.one().repository.flush() is None
        assert {f"main {n}" for n in range(3)} <= bodies(live, one)
        assert {f"side {n}" for n in range(3)} <= bodies(live, two)
        assert not {f"side {n}" for n in range(3)} & bodies(live, one)
    assert status(side) == ""
    assert_sound(base)


# Clones


def test_a_clone_of_a_home_is_a_home(base: Path, live: Context, tmp_path: Path) -> None:
    for name, words in {"clone": (), "shallow": ("--depth", "1"), "bare-ish": ("--no-hardlinks",)}.items():
        git(tmp_path, "clone", "-q", *words, f"file://{base}", name)
        clone = tmp_path / name
        with opened(clone, live) as space:
            assert bodies(live, space) == {f"base {n}" for n in range(4)}
            note(live, space, "in the clone")
            assert "in the clone" in bodies(live, space)
            assert space.one().repository.replica.suffix is not None
        assert_sound(clone)


def test_clones_that_both_wrote_merge_with_plain_git(base: Path, live: Context, tmp_path: Path) -> None:
    """Rounds of `git pull --no-rebase` and `git push`: no conflict, nothing lost, journals and ledgers untouched."""
    git(tmp_path, "clone", "-q", "--bare", str(base), "hub.git")
    clones = []
    for name in ("one", "two"):
        git(tmp_path, "clone", "-q", "hub.git", name)
        clones.append(tmp_path / name)
    written: set[str] = {f"base {n}" for n in range(4)}
    entries: list[str] = []
    for turn in range(3):
        for clone in clones:
            with opened(clone, live) as space:
                for n in range(2):
                    note(live, space, f"{clone.name} {turn} {n}", subject="customer/acme")
                    written.add(f"{clone.name} {turn} {n}")
                entries.append(journaling.append(live, space, journaling.Turn(f"said {turn}", "dana")).id)
                (clone / "memory" / "notes" / f"by {clone.name} {turn}.md").write_text(f"by hand {clone.name} {turn}\n")
                bodies(live, space)
                written.add(f"by hand {clone.name} {turn}")
        for clone in (*clones, clones[0]):
            git(clone, "pull", "-q", "--no-rebase", "--no-edit")
            git(clone, "push", "-q")
    for clone in clones:
        with opened(clone, live) as space:
            assert bodies(live, space) == written
            for entry in entries:
                assert space.one().indexes.catalog.entry(entry) is not None
            caught_up = rows(space)
            space.one().indexes.drop()
            assert bodies(live, space) == written
            assert rows(space) == caught_up
            mine = set(git(clone, "ls-tree", "--name-only", "refs/memoranda/ledger").split())
            assert mine == {space.one().repository.replica.id}
        assert_sound(clone)


def test_a_pull_while_the_home_is_open(base: Path, live: Context, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(base), "other")
    with opened(tmp_path / "other", live) as space:
        note(live, space, "from afar")
    for watching in (False, True):
        with opened(base, live) as space:
            if watching:
                space.watch()
            before = bodies(live, space)
            pending = note(live, space, f"pending {watching}")
            git(base, "pull", "-q", "--no-rebase", "--no-edit", str(tmp_path / "other"), "main", accept=(0, 1, 128))
            quiet(space)
            git(base, "pull", "-q", "--no-rebase", "--no-edit", str(tmp_path / "other"), "main")
            assert bodies(live, space) == before | {f"pending {watching}", "from afar"}
            assert space.one().repository.known(space.one().repository.snapshot())(pending.path)
        with opened(tmp_path / "other", live) as space:
            note(live, space, "from afar")
    assert_sound(base)


def test_a_moved_or_copied_home_is_still_one(base: Path, live: Context, tmp_path: Path) -> None:
    shutil.copytree(base, tmp_path / "copy", symlinks=True)
    base.rename(tmp_path / "moved")
    for name in ("moved", "copy"):
        with opened(tmp_path / name, live) as space:
            note(live, space, name)
            assert bodies(live, space) == {*(f"base {n}" for n in range(4)), name}
        assert_sound(tmp_path / name)


# Hostile configuration


@contextmanager
def canary(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Gives a command that leaves a file when it runs; at the end none may have."""
    script = tmp_path / "canary"
    script.write_text(f'#!/bin/sh\necho "$0 $@" >> {tmp_path}/sang\ncat\n')
    script.chmod(0o755)
    yield lambda name: f"{script} {name}"
    assert not (tmp_path / "sang").exists(), (tmp_path / "sang").read_text()


HOSTILE = [
    ("core.fsmonitor", "{}"), ("core.pager", "{}"), ("core.editor", "{}"), ("core.sshCommand", "{}"),
    ("core.askPass", "{}"), ("core.gitProxy", "{}"), ("alias.status", "!{}"), ("alias.diff-files", "!{}"),
    ("alias.cat-file", "!{}"), ("alias.update-index", "!{}"), ("diff.external", "{}"), ("diff.evil.textconv", "{}"),
    ("diff.evil.command", "{}"), ("filter.evil.clean", "{}"), ("filter.evil.smudge", "{}"),
    ("filter.evil.process", "{}"), ("filter.evil.required", "true"), ("merge.evil.driver", "{}"),
    ("credential.helper", "!{}"), ("gpg.program", "{}"), ("commit.gpgSign", "true"),
    ("uploadpack.packObjectsHook", "{}"),
    ("core.attributesFile", "{root}/attributes"), ("include.path", "{root}/included"), ("core.untrackedCache", "true"),
    ("core.worktree", "/tmp"), ("core.bare", "true"), ("core.ignoreCase", "true"), ("core.autocrlf", "true"),
    ("core.eol", "crlf"), ("core.safecrlf", "true"), ("core.symlinks", "false"), ("core.fileMode", "false"),
    ("core.commitGraph", "false"), ("core.preloadIndex", "true"), ("extensions.worktreeConfig", "true"),
    ("log.showSignature", "true"), ("gc.auto", "1"), ("gc.autoDetach", "false"), ("core.logAllRefUpdates", "false"),
    ("core.abbrev", "4"), ("core.quotePath", "true"), ("diff.renames", "copies"), ("diff.noprefix", "true"),
    ("i18n.commitEncoding", "latin1"), ("i18n.logOutputEncoding", "utf-16"), ("log.date", "relative"),
    ("log.decorate", "full"), ("format.pretty", "oneline"), ("core.hooksPath", "{root}/hooks"), ("color.ui", "always"),
]  # fmt: skip


def test_hostile_configuration_runs_nothing_and_breaks_nothing(base: Path, live: Context, tmp_path: Path) -> None:
    with canary(tmp_path) as command:
        (tmp_path / "hooks").mkdir()
        names = "post-index-change pre-commit post-commit reference-transaction post-checkout pre-auto-gc post-rewrite"
        for folder in (base / ".git" / "hooks", tmp_path / "hooks"):
            folder.mkdir(exist_ok=True)
            for name in [*names.split(), "fsmonitor-watchman", "pre-push", "post-merge", "prepare-commit-msg"]:
                (folder / name).write_text(f"#!/bin/sh\n{command('hook')}\n")
                (folder / name).chmod(0o755)
        (tmp_path / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
        (tmp_path / "included").write_text(f"[core]\n\tfsmonitor = {command('included')}\n")
        for key, value in HOSTILE:
            filled = value.replace("{root}", str(tmp_path)).replace("{}", command(key))
            git(base, "config", "--file", str(base / ".git/config"), key, filled)
        (base / ".gitattributes").write_text("* filter=evil diff=evil merge=evil text eol=crlf ident\n")
        (base / ".git/info").mkdir(exist_ok=True)
        (base / ".git/info/attributes").write_text("* filter=evil diff=evil text=auto eol=crlf\n")
        (base / ".git/info/grafts").write_text(f"{'0' * 40}\n")
        (base / ".git/objects/info").mkdir(exist_ok=True)
        (base / ".git/objects/info/alternates").write_text("/nonexistent/objects\n# x\n../../../../..\n")
        (base / ".git/config.worktree").write_text(f"[core]\n\tfsmonitor = {command('worktree')}\n")
        with opened(base, live) as space:
            for n in range(3):
                done = note(live, space, f"hostile {n}")
            journaling.append(live, space, journaling.Turn("said", "dana"))
            update(live, space, done.id, "hostile update")
            (base / "memory/notes/crlf.md").write_bytes(b"# CRLF\r\n\r\n$Id$ line\r\n")
            assert "hostile update" in bodies(live, space)
            assert len(listing.log(live, space)) > 5
            space.one().indexes.drop()
            assert "hostile 1" in bodies(live, space)
            assert not [line for line in space.one().repository.verify() if "alternate" not in line]
            quiet(space)
        with opened(base, live) as space:
            assert "hostile update" in bodies(live, space)
    (base / ".git/config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    for path in (".gitattributes", ".git/info/attributes", ".git/info/grafts", ".git/objects/info/alternates"):
        (base / path).unlink()
    shutil.rmtree(base / ".git/hooks")
    assert git(base, "show", "HEAD:memory/notes/crlf.md", accept=(0,)).startswith("# CRLF\r\n")
    assert_sound(base)


def test_replaced_objects_are_not_taken_for_the_truth(base: Path, live: Context) -> None:
    """`git replace` shows another content under an id; what we read are the objects themselves."""
    with opened(base, live) as space:
        path = next(iter(texts(live, space)))
    blob = git(base, "rev-parse", f"HEAD:{path}").strip()
    other = git(base, "hash-object", "-w", "--stdin", stdin=b"forged\n").strip()
    git(base, "replace", blob, other)
    git(base, "replace", "--graft", "HEAD", accept=(0,))
    with opened(base, live) as space:
        space.one().indexes.drop()
        assert bodies(live, space) == {f"base {n}" for n in range(4)}
        assert len(listing.log(live, space, limit=50)) > 4


def test_the_environment_of_the_caller_changes_nothing(base: Path, live: Context, tmp_path: Path) -> None:
    """Called from a hook of another repository, GIT_DIR and its like point elsewhere."""
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    code = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2].split(':')\n"
        "from memoranda.context import Context; from memoranda.home.keys import Keys\n"
        "from memoranda.operations.space import Space; from memoranda.operations.remembering import NewNote, remember\n"
        "root = Path(sys.argv[1]); ctx = Context()\n"
        "with Space(ctx, Keys(root.parent / 'keys'), root, None) as space:\n"
        "    remember(ctx, space, NewNote('from a hook'))\n"
    )
    lies = {
        "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git/objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/nonexistent",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": f"touch {tmp_path}/sang",
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor=touch {tmp_path}/sang'", "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_NAMESPACE": "x", "GIT_PREFIX": "y/", "GIT_EXTERNAL_DIFF": f"touch {tmp_path}/sang",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code, str(base), ":".join(sys.path)],
        env={**os.environ, **lies},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sang").exists()
    assert not (other / "index").exists()
    assert "from a hook" in git(base, "log", "-1", "--format=%s")
    assert_sound(base)
