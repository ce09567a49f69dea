"""Where outside edits may be: the kernel's events in a process that lives on, else a comparison that costs little."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from memoranda.context import Context
from memoranda.home.disk import DiskStore
from memoranda.home.draft import Snapshot
from memoranda.home.gitindex import GitIndex
from memoranda.home.layout import Layout
from memoranda.home.objects import TreeEditor
from memoranda.home.outside import Found, Ours, Outside
from memoranda.home.watch import Watch

_BETWEEN = 0.05  # seconds that Git is given between its index and its HEAD


class Looker:
    """Gathers the paths whose files may differ from what a snapshot says of them."""

    def __init__(
        self, store: DiskStore, index: GitIndex, outside: Outside, ours: Ours, layout: Layout,
        only_ours: Callable[[str, str], bool],
    ) -> None:  # fmt: skip
        """`only_ours` tells whether our own groups of commits, and nothing else, lead from one commit to another."""
        self._only_ours = only_ours
        self._store = store
        self._index = index
        self._outside = outside
        self._ours = ours
        self._layout = layout
        self._watch: Watch | None = None
        self._left: set[str] = set()  # what was named before and is not taken in yet
        # At the last look: the last record that was in Git, and the files that those behind it had changed.
        self._told: tuple[int, frozenset[str]] = (0, frozenset())
        self.watching = False
        self._events: set[str] | None = set()

    def candidates(self, context: Context, snapshot: Snapshot, tree: Callable[[], TreeEditor]) -> set[str]:
        """The paths to compare; `tree` gives that of the snapshot's commit. They are named again until `settle`."""
        touched = self._touched() if self._watch else None
        moved = self._moved(snapshot)
        if touched is not None and not any(path.endswith("/") for path in touched):
            self._left |= touched | moved
            return set(self._left)
        pending = self._told[1]
        listed = self._listed(tree, pending)
        found = pending | moved | self._different(context, listed, snapshot.commit)
        indexed = self._index.reflects()
        if indexed is not None and indexed != snapshot.commit:
            found |= self._between(indexed, snapshot.commit)
        if self.watching and self._watch is None:
            self._watch = Watch(self._layout.root)
            self._watch.add(self._outside.folders())
            self._watch.poll()
            found |= self._different(context, listed, snapshot.commit)  # what happened between comparison and watch
        self._left |= found
        return set(self._left)

    def quiet(self, snapshot: Snapshot) -> bool:
        """Whether nothing at all happened since the last look: then nobody has to ask what Git is doing either."""
        if self._watch is None or self._left or self._outside.last_commit() != snapshot.commit or self._lost(snapshot):
            return False
        if snapshot.tail:
            self._told = snapshot.committed, snapshot.told()
        self._events = self._touched()
        return self._events is not None and not self._events

    def _touched(self) -> set[str] | None:
        """What the kernel has told since the last time, what `quiet` has left included; None: compare everything."""
        before, self._events = self._events, set()
        now = self._watch.poll() if self._watch else None
        return None if before is None or now is None else before | now

    def _moved(self, snapshot: Snapshot) -> set[str]:
        """What is said otherwise than at the last look: after `git reset --soft` no file has changed."""
        commit, lost, told = snapshot.commit, self._lost(snapshot), self._told[1]
        last, self._outside.looked = self._outside.last_commit(), commit
        self._told = snapshot.committed, snapshot.told()
        if last is None or last == commit or (commit is not None and self._only_ours(last, commit)):
            return set(lost)
        return self._between(last, commit) | told

    def _lost(self, snapshot: Snapshot) -> frozenset[str]:
        """What the log told of the commit looked at last, if that is in Git by now and this commit still the one: a
        person has gone back to it, and left the commit with that."""
        committed, told = self._told
        here = self._outside.last_commit() == snapshot.commit
        return told if here and snapshot.committed > committed else frozenset()

    def follow(self, old: str | None, new: str | None) -> None:
        """Our own commits move the branch, and change nothing that would have to be looked for."""
        if self._outside.looked is not None and self._outside.looked == old:
            self._outside.looked, self._told = new, (0, frozenset())

    def _between(self, old: str, new: str | None) -> set[str]:
        if new is None:
            old, new = new or "", old  # no commit any more: everything that there was
        known = old if old and self._store.get(old) else None
        return {change.path for change in self._store.changes(known, new)}

    def _different(self, context: Context, listed: Callable[[str], set[str]], commit: str | None) -> set[str]:
        now_ns = int(context.now().timestamp() * 1e9)
        names = set(self._outside.new_names(listed, now_ns))
        differing = self._index.differing()
        if differing is None:
            return names | (self._between("", commit) if commit else set())
        return names | set(differing)

    def half_done(self, found: Iterable[Found]) -> bool:
        """Waits a moment when Git may be between its writing of files and its moving of HEAD; whether it waited.

        `git checkout`, `git pull` and `git reset --hard` write files, then the index, then HEAD, and hold no lock
        before the last step. An edit of a person's is later than the index; who deleted a file, nothing tells.
        """
        try:
            written = self._layout.index.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        for item in found:
            try:
                half_done = (self._layout.root / item.path).lstat().st_ctime_ns <= written
            except OSError:
                half_done = True
            if half_done:
                time.sleep(_BETWEEN)
                return True
        return False

    def settle(self, keep: Iterable[str]) -> None:
        """What was named is taken in, except `keep`."""
        self._left = set(keep)
        if self._watch is None:
            self._outside.save()

    def _listed(self, tree: Callable[[], TreeEditor], pending: Iterable[str]) -> Callable[[str], set[str]]:
        """A function that gives the names of the files that the Home knows in a folder."""
        fresh: dict[str, set[str]] = {}
        for path in pending:
            folder, _, name = path.rpartition("/")
            fresh.setdefault(folder or ".", set()).add(name)

        def listed(folder: str) -> set[str]:
            prefix = "" if folder == "." else f"{folder}/"
            return {n for n in tree().names(folder) if prefix + n in self._ours} | fresh.get(folder, set())

        return listed

    def close(self) -> None:
        self._outside.save()
        if self._watch:
            self._watch.close()
