"""The second half of an erasing: everything is led to the new objects, and the old ones go.

Every step can be done again after a crash, and finds what it needs in the plan and in the old objects; these go last.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from memoranda.errors import HomeBusy, RefMoved
from memoranda.home.durable import sync_path, write_durably
from memoranda.home.erasing import plan as plans
from memoranda.home.erasing.blanking import mark_of
from memoranda.home.erasing.erasures import write_map
from memoranda.home.erasing.leftovers import Tree, sweep_git_dir
from memoranda.home.erasing.needles import Needles
from memoranda.home.erasing.plan import Plan
from memoranda.home.erasing.prepare import Texts
from memoranda.home.erasing.purge import still_there
from memoranda.home.erasing.redact import Messages
from memoranda.home.erasing.rerefs import (
    all_refs,
    git_dirs,
    move_refs,
    named_in_reflogs,
    rewrite_pseudo_refs,
    rewrite_reflogs,
)
from memoranda.home.layout import CACHE
from memoranda.home.pieces import Pieces
from memoranda.home.store import TreeChange
from memoranda.values import dataclass, field

PURGING = "purging"  # from when on this stands beside the plan, old objects may be missing
_TRIES = 50
_STEP = 0.02
_PACKINGS = 3
_GENERATED = "memory/MEMORY.md"


@dataclass(slots=True)
class Outcome:
    """What was done beside the objects: `removed` in words, `left` with the reason."""

    moved_refs: tuple[str, ...] = ()
    deleted_refs: tuple[str, ...] = ()
    removed: list[str] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)

    def joined(self, other: Outcome) -> Outcome:
        """What two runs did together."""
        return Outcome(
            tuple(sorted({*self.moved_refs, *other.moved_refs})),
            tuple(sorted({*self.deleted_refs, *other.deleted_refs})),
            list(dict.fromkeys([*self.removed, *other.removed])),
            list(dict.fromkeys([*self.left, *other.left])),
        )


class Finisher:
    """Finishes one plan, inside the locks.

    Args:
        texts: what goes, None when the old objects are gone already and only their last traces have to follow.
        messages: redacts what tells of it; None: made again from the old commits.
        step: told of each step before it is done.
    """

    def __init__(
        self, pieces: Pieces, plan: Plan, texts: Texts | None, messages: Messages | None, step: Callable[[str], None]
    ) -> None:
        self._p = pieces
        self._plan = plan
        self._texts = texts
        self._messages = messages
        self._step = step
        self._needed: set[bytes] = set()
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """All steps, in the order in which each relies on those before it."""
        steps = (
            ("position", self._position), ("map", self._map), ("refs", self._refs), ("reflogs", self._reflogs),
            ("files", self._files), ("index", self._index), ("leftovers", self._leftovers), ("log", self._log),
            ("cache", self._cache),
        )  # fmt: skip
        for name, do in steps:
            self._step(name)
            do()
        return self.outcome

    def needed(self) -> set[bytes]:
        """The old objects that a ref or a reflog still needs, since a person's Git has come between."""
        tips = set(all_refs(self._p.layout.common_dir).values())
        tips |= {oid.hex() for place in git_dirs(self._p.layout) for oid in named_in_reflogs(place)}
        stdin = "".join(f"{tip}\n" for tip in sorted(tips)).encode("ascii")
        options = ("--objects", "--no-object-names", "--ignore-missing", "--stdin")
        out = self._p.git.run("rev-list", *options, stdin=stdin, accept=(0, 128))
        return self._drop().intersection(bytes.fromhex(row) for row in out.decode("ascii").split())

    def purge(self, needed: set[bytes] | None = None) -> None:
        """The old objects go, except what is needed; from here on nothing can be done again from them."""
        self._needed = needed or set()
        for name, do in (("purging", self._purging), ("objects", self._objects), ("end", self._end)):
            self._step(name)
            do()

    def _position(self) -> None:
        """The committer's note would name commits that go; both of its positions say that everything is in Git."""
        self._p.committer.settle_on(self._plan.branch, self._plan.ledger)

    def _map(self) -> None:
        erasures = self._p.erasures
        header = {k: v for k, v in self._plan.header.items() if k != plans.TESTIMONY}
        write_map(erasures.path_of(header["erasure"]), header, self._plan.records("bcg"))

    def _refs(self) -> None:
        twin = self._p.folder / "packed-refs"
        for attempt in range(_TRIES):
            try:
                done = move_refs(self._p.layout, self._p.store.refs, self._plan.moved, self._plan.tips, twin)
            except RefMoved as error:
                if attempt == _TRIES - 1:
                    raise HomeBusy(
                        "A ref of this Home is locked.", why=str(error),
                        remedy="The erasing is finished when the Home is opened next; no Git may hold a lock then.",
                    ) from error  # fmt: skip
                time.sleep(_STEP)
            else:
                self.outcome.moved_refs, self.outcome.deleted_refs = done.moved, done.deleted
                self._p.tip.lead(self._in_its_place)
                return

    def _in_its_place(self, commit: str) -> str | None:
        """Where the ledger stands that stood on this commit."""
        old, new = self._plan.ledger
        moved = self._plan.moved.get(bytes.fromhex(commit))
        return new if commit == old else moved.hex() if moved is not None else None

    def _reflogs(self) -> None:
        messages = self._messages or self._messages_again()

        def clean(message: str, silent: bool) -> str:
            return messages.line(message, near=silent)

        for place in git_dirs(self._p.layout):
            gone = rewrite_reflogs(place, self._plan.moved, clean, self._plan.silent)
            if gone:
                self.outcome.removed.append(f"{gone} line(s) of reflogs")
            for name in rewrite_pseudo_refs(place, self._plan.moved):
                self.outcome.removed.append(f"{place.name}/{name}")

    def _messages_again(self) -> Messages:
        """After a crash: the lines that were taken out of messages are those that the new ones do not have."""
        needles = self._texts.needles if self._texts else Needles(())
        messages = Messages(needles, self._plan.day)
        store = self._p.store
        for oid in self._plan.silent:
            old, new = store.get(oid.hex()), store.get((self._plan.moved[oid] or oid).hex())
            if old is not None and new is not None:
                kept = set(new.data.split(b"\n"))
                gone = (line for line in old.data.split(b"\n") if line not in kept and not line.startswith(b"parent "))
                messages.subjects.update(line.decode("utf-8", "surrogateescape") for line in gone)
        return messages

    # Files

    def _changes(self) -> list[TreeChange]:
        """What differs between the old and the new commit; nothing when the old one is gone, since all is done then."""
        old, new = self._plan.heads
        return self._p.store.changes(old, new) if self._p.store.get(old) is not None else []

    def _tree(self) -> Tree:
        p, parts = self._p, self._texts.parts if self._texts else ()
        return Tree(p.layout, p.git, p.worktree, parts, mark_of(self._plan.day), self._new_blob)

    def _new_blob(self, oid: str) -> bytes:
        found = self._p.store.get(oid)
        assert found is not None
        return found.data

    def _files(self) -> None:
        if self._texts is not None:
            changes = self._changes()
            self.outcome.left += self._tree().bring(changes, self._texts.needles)
            self._p.worktree.sync([change.path for change in changes])

    def _index(self) -> None:
        tree = self._tree()
        for place in git_dirs(self._p.layout):
            tree.rewrite_index(place / "index", self._plan.moved)
        moved = self._plan.moved
        self._p.git_index.lead(lambda commit: (moved.get(bytes.fromhex(commit)) or bytes.fromhex(commit)).hex())

    def _leftovers(self) -> None:
        if self._texts is None:
            return
        needles = self._texts.needles
        for place in git_dirs(self._p.layout):
            removed, left = sweep_git_dir(place, needles)
            self.outcome.removed += [f"{place.name}/{name}" for name in removed]
            self.outcome.left += [(f"{place.name}/{name}", "it is a setting or a tool's own file") for name in left]
        paths = [change.path for change in self._changes()]
        removed, left = self._tree().beside(paths, needles)
        generated = self._p.layout.root / _GENERATED
        if generated.is_file() and needles.holds(generated.read_bytes()):
            generated.unlink()
            sync_path(generated.parent)
            removed.append(_GENERATED)
        self.outcome.removed += removed + self._tree().empty_folders(needles)
        self.outcome.left += [(name, "it bears the name of an erased file and holds none of its text") for name in left]

    def _log(self) -> None:
        """Everything in the log is in Git, and its files were synced before the erasing was decided."""
        self._p.log.scrub()

    def _cache(self) -> None:
        """Catalog and indexes hold the text; they are made again from what is left."""
        cache = self._p.layout.root / CACHE
        for path in cache.iterdir() if cache.is_dir() else ():
            if path.name != ".gitignore":
                _remove(path)
        if cache.is_dir():
            sync_path(cache)

    def _drop(self) -> set[bytes]:
        return set(self._plan.moved) - {new for new in self._plan.moved.values() if new is not None}

    def _purging(self) -> None:
        write_durably(self._p.folder / PURGING, b"")

    def _objects(self) -> None:
        p, drop = self._p, self._drop() - self._needed
        with p.store.packing():
            for _ in range(_PACKINGS):
                p.store.erase(drop, hints=self._plan.hints, merge=self._plan.packs)
                if not still_there(p.git, p.layout.objects, drop):  # else a Git was joining packs meanwhile
                    break

    def _end(self) -> None:
        for name in (plans.PLAN, plans.OBJECTS, PURGING):
            (self._p.folder / name).unlink(missing_ok=True)
        sync_path(self._p.folder)
        self._p.erasures.finished()


def _remove(path: Path) -> None:
    """Removes a file or folder; another process may be writing into it."""
    for _ in range(_TRIES):
        if not path.is_dir():
            path.unlink(missing_ok=True)
            return
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_STEP)
