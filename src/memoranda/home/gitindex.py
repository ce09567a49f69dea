"""Keeps Git's own index in step with what we commit, so that `git status` is clean; touches no entry but ours.

An entry is brought forward only from the state that our commit replaced: what a person has staged stays staged.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from memoranda.home.comparison import Comparison
from memoranda.home.durable import FileLock, lock_with, sync_path, unlock_dead
from memoranda.home.git import Git
from memoranda.home.indexfile import bring_forward, read_entries, write_entries
from memoranda.home.layout import Layout
from memoranda.home.store import ObjectStore
from memoranda.home.worktree import Worktree

_FEW = 200
_FRESH = "memoranda-index."
_GONE = "0" * 40
_NOTE = "indexed"


class GitIndex:
    """The file `index` of one repository."""

    def __init__(
        self,
        layout: Layout,
        git: Git,
        worktree: Worktree,
        was: Callable[[str, str | None], set[str | None]],
        begun: Comparison | None = None,
    ) -> None:
        """`was` gives the blobs that a path has had in commits, behind one of them or (None) in all.

        `begun` is a comparison that is under way already, for the first question about what differs.
        """
        self._begun = begun
        self._was = was
        self._layout = layout
        self._git = git
        self._worktree = worktree
        self._threads = threading.Lock()
        self._turn = FileLock(layout.own / "index-turn.lock")
        self._lock = layout.git_dir / "index.lock"
        # Beside the index, since the shared part of a split one is looked for there; a name of its own for each
        # process, since a Git that we started may outlive us.
        self._fresh = layout.git_dir / f"{_FRESH}{os.getpid()}"
        self._note = layout.own / _NOTE

    def reflects(self) -> str | None:
        """The commit up to which our entries were brought last; None when there is no index any more."""
        return next(iter(self._noted()), None)

    def tried(self) -> str | None:
        """The commit to which somebody was bringing them who may have been killed before or after."""
        return next(iter(self._noted()[1:]), None)

    def _noted(self) -> list[str]:
        return _noted(self._layout)

    def _write_note(self, *commits: str | None) -> None:
        _write_note(self._layout, *commits)

    def advance(self, old: str | None, touched: Mapping[str, tuple[str | None, str | None]], commit: str) -> bool:
        """Brings the entries of `touched` (path -> blob before, blob now) from a commit to another.

        False when Git is at work, or when somebody has brought them elsewhere meanwhile.

        The new index is made beside the old one and takes its place under Git's lock, if nobody has changed it
        meanwhile. Our own threads and processes take turns.
        """
        if not self._threads.acquire(blocking=False):
            return False
        try:
            if not self._turn.try_acquire():
                return False
            try:
                self._unlock()
                return self.reflects() == old and self._advance(touched, commit)
            finally:
                self._fresh.unlink(missing_ok=True)
                self._turn.release()
        finally:
            self._threads.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """None of our threads and processes touches the index meanwhile."""
        with self._threads:
            self._turn.acquire()
            try:
                self._unlock()
                yield
            finally:
                self._turn.release()

    def lead(self, moved: Callable[[str], str]) -> None:
        """Our entries reflect what stands in the place of the commits that they did (inside `alone`)."""
        if noted := self._noted():
            self._write_note(*map(moved, noted))
            sync_path(self._note)
            sync_path(self._note.parent)

    def paths(self) -> set[str]:
        """Everything that the index holds."""
        return set(self._entries([]) if self._layout.index.exists() else ())

    def unlock(self) -> None:
        """Removes Git's lock of the index when a killed process of ours left it."""
        left = any(self._layout.git_dir.glob(f"{_FRESH}*"))
        if left and self._threads.acquire(blocking=False):
            try:
                if self._turn.try_acquire():
                    self._unlock()
                    self._turn.release()
            finally:
                self._threads.release()

    def _unlock(self) -> None:
        for left in self._layout.git_dir.glob(f"{_FRESH}*"):
            unlock_dead(self._lock, left)

    def _advance(self, touched: Mapping[str, tuple[str | None, str | None]], commit: str) -> bool:
        if self._lock.exists():
            return False
        noted = self._noted()
        if touched:
            before = self._mark()
            if not (len(touched) > _FEW and self._by_ourselves(touched)) and not self._by_git(touched, before):
                return False
            if noted and noted[1:] != [commit]:
                self._write_note(noted[0], commit)
            if not self._put_in_place(before):
                return False
        if noted != [commit]:
            self._write_note(commit)
        return True

    def _by_ourselves(self, touched: Mapping[str, tuple[str | None, str | None]]) -> bool:
        entries = read_entries(self._layout.index)
        if entries is None:
            return False
        unknown = False

        def status(path: str, blob: str) -> os.stat_result | None:
            nonlocal unknown
            found = self._worktree.status_of_ours(path, blob)
            unknown = unknown or found is None
            return found

        bring_forward(entries, touched, self._ours, status, self._worktree.executable)
        write_entries(self._fresh, entries)
        if unknown:  # another process wrote them: Git learns their times, else every look would have to read them
            self._refresh()
        return True

    def _by_git(self, touched: Mapping[str, tuple[str | None, str | None]], before: tuple[int, int] | None) -> bool:
        """False when Git put another index in the place of this one at this very moment."""
        if before is not None:
            try:
                os.link(self._layout.index, self._fresh)  # Git never writes into an index, it replaces it
            except FileNotFoundError:
                return False
        staged = self._entries(list(touched)) if before is not None else {}
        rows = []
        for path, (old, new) in touched.items():
            found = staged.get(path)
            if found != new and self._ours(path, found, old):
                mode = "100755" if self._worktree.executable(path) else "100644"
                rows.append(f"{mode} {new}\t{path}" if new else f"0 {_GONE}\t{path}")
        if rows:
            stdin = "".join(row + "\0" for row in rows).encode("utf-8", "surrogateescape")
            self._git.call("update-index", "--no-split-index", "-z", "--index-info", stdin=stdin, index=self._fresh)
        self._refresh()
        return True

    def _refresh(self) -> None:
        self._git.call("update-index", "--no-split-index", "-q", "--refresh", accept=(0, 1), index=self._fresh)

    def _ours(self, path: str, staged: str | None, old: str | None) -> bool:
        """Whether what is staged is what we or a `git reset` of the person's left there, and not a person's work.

        Between the commit that the index reflects and the present one any state may be; after a loss of power nobody
        knows what it reflects, and any earlier state may be.
        """
        return staged == old or staged in self._was(path, self.reflects())

    def doubt(self) -> None:
        """The machine went down: what was noted of the index may be newer or older than the index."""
        self._note.unlink(missing_ok=True)

    def _put_in_place(self, before: tuple[int, int] | None) -> bool:
        if not self._fresh.exists() or (before is not None and self._fresh.samefile(self._layout.index)):
            return True  # nothing was to be changed
        if not lock_with(self._lock, self._fresh):
            return False  # taken between our look and this; the next quiet moment will do
        if self._mark() != before:
            self._lock.unlink()
            return False
        self._lock.replace(self._layout.index)
        return True

    def _mark(self) -> tuple[int, int] | None:
        """By what an index is known to be the same."""
        try:
            status = self._layout.index.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino

    def close(self) -> None:
        self._turn.close()

    def _entries(self, paths: list[str]) -> dict[str, str]:
        """path -> blob of what is staged now, for `paths` or for everything when they are many."""
        few = paths if len(paths) <= _FEW else []
        out = self._git.call("ls-files", "-s", "-z", "--", *few, index=self._layout.index).stdout
        found = {}
        for row in out.split(b"\0"):
            if row:
                head, _, path = row.partition(b"\t")
                found[path.decode("utf-8", "surrogateescape")] = head.split(b" ")[1].decode()
        return found

    def unmerged(self) -> list[str]:
        """The paths in which a merge or a `git stash pop` of a person's left a conflict."""
        if not self._layout.index.exists():
            return []
        out = self._git.call("ls-files", "-u", "-z", index=self._layout.index).stdout
        rows = (row.partition(b"\t")[2].decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row)
        return sorted(set(rows))

    def left_out(self, paths: Collection[str]) -> set[str]:
        """Those that Git was told to leave out of the working tree (`git sparse-checkout`): nobody has deleted them."""
        if not paths or not (self._layout.git_dir / "info" / "sparse-checkout").exists():
            return set()
        out = self._git.call("ls-files", "-t", "-z", index=self._layout.index).stdout
        told = (row[2:].decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row.startswith(b"S "))
        return set(told).intersection(paths)

    @property
    def comparing(self) -> bool:
        """Whether a comparison that was begun ahead is still running."""
        return self._begun is not None and self._begun.running

    def differing(self) -> list[str] | None:
        """The tracked files whose working-tree state is not what the index holds (a look at times and sizes).

        None when there is no index, or none that Git can read: then nothing is known of any file.
        """
        begun, self._begun = self._begun, None
        if begun is None and self._layout.index.exists():
            begun = Comparison(self._layout, self._git)
        return None if begun is None else begun.differing()


def went_back(layout: Layout, store: ObjectStore, commit: str) -> None:
    """A `git reset` has brought the index to `commit`: it reflects nothing that came afterwards."""
    noted = _noted(layout)
    if noted and not store.is_ancestor(noted[0], commit):
        _write_note(layout, commit)


def _noted(layout: Layout) -> list[str]:
    if not layout.index.exists():
        return []
    try:
        return (layout.own / _NOTE).read_text(encoding="ascii").split()
    except FileNotFoundError:
        return []


def _write_note(layout: Layout, *commits: str | None) -> None:
    fresh = (layout.own / _NOTE).with_suffix(".tmp")
    fresh.write_text("".join(f"{commit}\n" for commit in commits if commit), encoding="ascii")
    fresh.replace(layout.own / _NOTE)
