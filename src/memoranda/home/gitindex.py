"""Keeps Git's own index in step with what we commit, so that `git status` is clean; touches no entry but ours.

An entry is brought forward only from the state that our commit replaced: what a person has staged stays staged.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from memoranda.errors import GitFailed
from memoranda.home.durable import FileLock
from memoranda.home.git import Git
from memoranda.home.indexfile import bring_forward
from memoranda.home.layout import Layout
from memoranda.home.worktree import Worktree

_FEW = 200
_GONE = "0" * 40


class GitIndex:
    """The file `index` of one repository."""

    def __init__(self, layout: Layout, git: Git, worktree: Worktree) -> None:
        self._layout = layout
        self._git = git
        self._worktree = worktree
        self._threads = threading.Lock()
        self._turn = FileLock(layout.own / "index-turn.lock")
        self._note = layout.own / "indexed"

    def reflects(self) -> str | None:
        """The commit up to which our entries were brought last; None when there is no index any more."""
        if not self._layout.index.exists():
            return None
        try:
            return self._note.read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def advance(self, touched: Mapping[str, tuple[str | None, str | None]], commit: str | None) -> bool:
        """Brings the entries of `touched` (path -> blob before, blob now) to `commit`; False when Git is at work.

        Our own threads and processes take turns, so that `index.lock` is only ever met in a person's hands.
        """
        if not self._threads.acquire(blocking=False):
            return False
        try:
            if not self._turn.try_acquire():
                return False
            try:
                return self._advance(touched, commit)
            finally:
                self._turn.release()
        finally:
            self._threads.release()

    def _advance(self, touched: Mapping[str, tuple[str | None, str | None]], commit: str | None) -> bool:
        if (self._layout.git_dir / "index.lock").exists():
            return False
        done = None
        if len(touched) > _FEW:
            done = bring_forward(self._layout.index, touched, self._worktree.status_of_ours)
            if done is False:
                return False
        if touched and done is None:
            staged = self._entries(list(touched))
            rows = []
            for path, (old, new) in touched.items():
                found = staged.get(path)
                if found == new or (found is not None and found != old):
                    continue
                rows.append(f"100644 {new}\t{path}" if new else f"0 {_GONE}\t{path}")
            if rows:
                stdin = "".join(row + "\0" for row in rows).encode("utf-8", "surrogateescape")
                if not self._update("-z", "--index-info", stdin=stdin):
                    return False
            if not self._update("-q", "--refresh"):
                return False
        if commit is not None and commit != self.reflects():
            fresh = self._note.with_suffix(".tmp")
            fresh.write_text(commit + "\n", encoding="ascii")
            fresh.replace(self._note)
        return True

    def _update(self, *arguments: str, stdin: bytes = b"") -> bool:
        """Runs `git update-index`; False when a person's Git took the lock between our look and this."""
        done = self._git.call("update-index", *arguments, stdin=stdin, accept=(0, 1, 128), index=True)
        if done.returncode == 128 and b"index.lock" in done.stderr:
            return False
        if done.returncode == 128:
            why = done.stderr.decode("utf-8", "replace").strip()
            raise GitFailed("Git's index cannot be brought forward.", why=why, remedy="Run `memoranda doctor`.")
        return True

    def close(self) -> None:
        self._turn.close()

    def _entries(self, paths: list[str]) -> dict[str, str]:
        """path -> blob of what is staged now, for `paths` or for everything when they are many."""
        if not self._layout.index.exists():
            return {}
        few = paths if len(paths) <= _FEW else []
        out = self._git.call("ls-files", "-s", "-z", "--", *few, index=True).stdout
        found = {}
        for row in out.split(b"\0"):
            if row:
                head, _, path = row.partition(b"\t")
                found[path.decode("utf-8", "surrogateescape")] = head.split(b" ")[1].decode()
        return found

    def differing(self) -> list[str] | None:
        """The tracked files whose working-tree state is not what the index holds (a look at times and sizes).

        None when there is no index, or none that Git can read: then nothing is known of any file.
        """
        if not self._layout.index.exists():
            return None
        done = self._git.call("diff-files", "--name-only", "-z", accept=(0, 128), index=True)
        if done.returncode:
            return None
        return [row.decode("utf-8", "surrogateescape") for row in done.stdout.split(b"\0") if row]
