"""Brings the branch of a Home together with another clone's, as `git merge` does, and loses no note.

Where both have changed one note, both stay: ours in its place, theirs beside it, with the same id, for a person to
decide. Git computes the tree; renames are not guessed, since two notes that resemble each other are two notes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from memoranda.errors import Conflict, GitFailed, HomeBusy
from memoranda.home.git import Git
from memoranda.home.layout import Layout
from memoranda.home.objects import GitObject, Signature, TreeEditor, commit_data, make_object
from memoranda.home.store import ObjectStore
from memoranda.values import dataclass


@dataclass(frozen=True, slots=True)
class Beside:
    """A file that both have changed: `path` is as it was here, `other` where theirs stands (None: it was not kept)."""

    path: str
    other: str | None

    def json(self) -> dict[str, object]:
        return {"path": self.path, "other": self.other}


@dataclass(frozen=True, slots=True)
class Merge:
    """The commit that holds both, the objects that it needs, and what both had changed."""

    commit: str
    objects: tuple[GitObject, ...] = ()
    conflicts: tuple[Beside, ...] = ()


def merge(
    git: Git,
    store: ObjectStore,
    ours: str,
    theirs: str,
    *,
    note: Callable[[str], bool],
    who: str,
    told: str,
    at: datetime,
) -> Merge:
    """What becomes of two commits; nothing is moved yet. `note` says whether a path is that of a note."""
    if store.is_ancestor(theirs, ours):
        return Merge(ours)
    if store.is_ancestor(ours, theirs):
        return Merge(theirs)
    call = ("-c", "merge.renames=false", "-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "-z")
    try:
        done = git.call(*call, "--no-messages", "--allow-unrelated-histories", ours, theirs, accept=(0, 1))
    except GitFailed as error:
        raise GitFailed(
            "This Git cannot bring the two together.", why=error.why,
            remedy="It takes Git 2.38; with an older one run `git pull --no-rebase` yourself.",
        ) from error  # fmt: skip
    tree, *rows = done.stdout.split(b"\0")
    stages: dict[str, dict[int, str]] = {}
    for row in filter(None, rows):
        head, _, path = row.partition(b"\t")
        _, oid, stage = head.decode("ascii").split(" ")
        stages.setdefault(path.decode("utf-8", "surrogateescape"), {})[int(stage)] = oid
    made: list[GitObject] = []
    root, conflicts = _settled(store, tree.decode("ascii"), stages, note, made)
    person = Signature(who, f"{who.replace(' ', '.')}@memoranda.local", at)
    by = Signature("Memoranda", "memoranda@localhost", at)
    commit = make_object("commit", commit_data(root, [ours, theirs], person, by, f"{told}\n\nMemoranda-Op: pull"))
    return Merge(commit.oid, (*made, commit), tuple(conflicts))


def _settled(
    store: ObjectStore, tree: str, stages: dict[str, dict[int, str]], note: Callable[[str], bool], made: list[GitObject]
) -> tuple[str, list[Beside]]:
    """The tree with both forms of what both have changed, instead of a text with marks of a conflict in it."""

    def data(oid: str) -> bytes:
        found = store.get(oid)
        if found is None:
            raise GitFailed("What Git has merged cannot be read.", remedy="Run `memoranda doctor`.")
        return found.data

    editor = TreeEditor(data, tree)
    conflicts: list[Beside] = []
    for path, found in sorted(stages.items()):
        mine, theirs = found.get(2), found.get(3)
        kept = mine or theirs
        if kept is None:
            continue
        editor.put(path, kept)
        other = None
        if mine is not None and theirs is not None and mine != theirs and note(path):
            stem = path.removesuffix(".md")
            other = f"{stem}~{theirs[:6]}.md"
            editor.put(other, theirs)
        conflicts.append(Beside(path, other))
    return editor.write(made.append), conflicts


def check_out(git: Git, layout: Layout, old: str | None, new: str) -> None:
    """Brings the working tree and Git's index from one commit to another; Conflict when somebody's work is in the way.

    Files come first and the branch afterwards, as Git does it: who is killed between leaves edits, and no reverts.
    """
    if (layout.git_dir / "index.lock").exists():
        raise HomeBusy("Git is busy in this Home (index.lock).", remedy="Try again when it is done.")
    if old is not None:
        git.call("update-index", "-q", "--refresh", accept=(0, 1), index=layout.index)
    trees = [commit for commit in (old, new) if commit is not None]
    try:
        git.call("read-tree", "-m", "-u", *trees, index=layout.index)
    except GitFailed as error:
        raise Conflict(
            "What was pulled would overwrite a file that is not committed.", why=error.why,
            remedy="Commit it or move it away, and pull again.",
        ) from error  # fmt: skip
