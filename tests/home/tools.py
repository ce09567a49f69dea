"""What the tests of storage share: Git as a person runs it, notes in one line, and a look at what a Home holds."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.notes.model import Note, write_note
from memoranda.operations import listing
from memoranda.operations.remembering import NewNote, Remembered, remember, update
from memoranda.operations.space import Space

PERSON = {
    "PATH": os.environ.get("PATH", os.defpath),
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Pat",
    "GIT_AUTHOR_EMAIL": "pat@example.org",
    "GIT_COMMITTER_NAME": "Pat",
    "GIT_COMMITTER_EMAIL": "pat@example.org",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
}


def git(root: Path, *words: str, accept: Sequence[int] = (0,), stdin: bytes | None = None, **more: str) -> str:
    """Runs Git as a person does, with the repository's own configuration; returns what it printed."""
    done = subprocess.run(
        ["git", *words], cwd=root, env={**PERSON, "HOME": str(root.parent), **more}, input=stdin, capture_output=True
    )
    assert done.returncode in accept, f"git {' '.join(words)}: {done.stdout.decode()}{done.stderr.decode()}"
    return done.stdout.decode("utf-8", "surrogateescape")


_CAME_BETWEEN = ("cannot lock ref", ".lock': File exists")


def insist(root: Path, *words: str, accept: Sequence[int] = (0,)) -> str:
    """As `git`, by a person who repeats what Git refused because a commit of ours came in between."""
    for _ in range(100):
        try:
            return git(root, *words, accept=accept)
        except AssertionError as error:
            if "repeat your command with --allow-empty" in str(error):
                words = (*words, "--allow-empty")
            elif not any(said in str(error) for said in _CAME_BETWEEN):
                raise
            time.sleep(0.02)
    return git(root, *words, accept=accept)


def status(root: Path) -> str:
    return git(root, "status", "--porcelain=v1", "--untracked-files=all")


def assert_sound(root: Path) -> None:
    """The repository is whole, `git status` is clean, and nothing half-written lies about."""
    said = git(root, "fsck", "--strict", "--full", "--no-dangling")
    assert said == "", said
    now = status(root)
    assert now == "", now
    pack = root / ".git" / "objects" / "pack"
    locks = [p for p in (root / ".git").rglob("*.lock") if p.parent.name != "memoranda"]
    kept = (root / ".git" / "memoranda", root / ".memoranda")  # of fixed names, or in a cache
    drafts = [p for p in root.rglob("*.tmp") if not any(p.is_relative_to(k) for k in kept)]
    left = [str(p) for p in (*pack.glob("*.keep"), *pack.glob("tmp_*"), *locks, *drafts)]
    assert left == [], left


def fresh_home(root: Path, keys: Keys, context: Context | None = None) -> Path:
    context = context or Context()
    made = create(root, context)
    finish(made.root, context, keys)
    return made.root


def note(context: Context, space: Space, text: str, subject: str | None = "customer/acme", **more: Any) -> Remembered:
    return remember(context, space, NewNote(text, subject=subject, **more))


def texts(context: Context, space: Space) -> dict[str, str]:
    """path -> body of every head, as `list` knows them."""
    found = {}
    for item in listing.list_notes(context, space):
        catalog = space.one().indexes.catalog
        row = catalog.by_path(item.path) or catalog.by_id(item.id)[0]  # the path of what is quarantined is not told
        found[row.path] = row.body
    return found


def fork(context: Context, space: Space, home: Path) -> tuple[str, str, str]:
    """A chain with two heads, as a merge of two clones makes it."""
    old = remember(context, space, NewNote("Pilot: Ole", subject="harbour"))
    new = update(context, space, old.id, "Pilot: Maud")
    other = Note("mem_other0head", kind="fact", subject="harbour", supersedes=(old.id,), body="Pilot: Eve")
    (home / "memory/notes/harbour/other.md").write_bytes(write_note(other))
    return old.id, new.id, other.id


CITED = ("https://example.org/x",)  # with a source of its own a note needs no entry in the journal


def opened(root: Path, context: Context) -> Space:
    """The Home at `root` with the keys that lie beside it."""
    return Space(context, Keys(root.parent / "keys"), root, None)


def bodies(context: Context, space: Space) -> set[str]:
    return set(texts(context, space).values())


def quiet(space: Space) -> None:
    """What the background does when nobody has written for a moment."""
    assert space.one().repository.flush() is None
    while not space.one().repository.tidy():
        time.sleep(0.01)


def head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD").strip()


def rows(space: Space) -> dict[str, list[tuple[object, ...]]]:
    """Everything that the catalog says, without what depends on the way it came to be (row numbers)."""
    home = space.one()
    db = home.indexes.catalog.db
    skip = {"row", "n"}
    found: dict[str, list[tuple[object, ...]]] = {}
    for table in ("files", "notes", "entries", "ledger"):
        names = [r[1] for r in db.execute(f"PRAGMA table_info({table})") if r[1] not in skip]
        found[table] = sorted(db.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall(), key=repr)
    edges = "SELECT e.old, e.new, n.path, n.blob, n.known_from FROM edges e JOIN notes n ON n.row = e.row"
    found["edges"] = sorted(db.execute(edges).fetchall(), key=repr)
    return found
