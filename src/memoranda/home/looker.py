"""Where outside edits may be: the kernel's events in a process that lives on, else a comparison that costs little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memoranda.context import Context
from memoranda.home.disk import DiskStore
from memoranda.home.draft import Snapshot
from memoranda.home.gitindex import GitIndex
from memoranda.home.objects import TreeEditor
from memoranda.home.outside import Ours, Outside
from memoranda.home.watch import Watch


class Looker:
    """Gathers the paths whose files may differ from what a snapshot says of them."""

    def __init__(self, store: DiskStore, index: GitIndex, outside: Outside, ours: Ours, root: Path) -> None:
        self._store = store
        self._index = index
        self._outside = outside
        self._ours = ours
        self._root = root
        self._watch: Watch | None = None
        self.watching = False

    def candidates(self, context: Context, snapshot: Snapshot, tree: TreeEditor) -> set[str]:
        """The paths to compare; `tree` is that of the snapshot's commit."""
        touched = self._watch.poll() if self._watch else None
        if touched is not None and not any(path.endswith("/") for path in touched):
            return touched
        pending = {change.path for record in snapshot.tail for change in record.changes}
        listed = self._listed(tree, pending)
        found = pending | self._different(context, listed)
        indexed = self._index.reflects()
        if indexed != snapshot.commit and snapshot.commit is not None:
            if indexed is not None and not self._store.get(indexed):
                indexed = None
            found |= {change.path for change in self._store.changes(indexed, snapshot.commit)}
        if self.watching and self._watch is None:
            self._watch = Watch(self._root)
            self._watch.add(self._outside.folders())
            self._watch.poll()
            found |= self._different(context, listed)  # what happened between the comparison and the watch
        return found

    def _different(self, context: Context, listed: Callable[[str], set[str]]) -> set[str]:
        now_ns = int(context.now().timestamp() * 1e9)
        return {*self._outside.new_names(listed, now_ns), *self._index.differing()}

    def _listed(self, tree: TreeEditor, pending: set[str]) -> Callable[[str], set[str]]:
        """A function that gives the names of the files that the Home knows in a folder."""
        fresh: dict[str, set[str]] = {}
        for path in pending:
            folder, _, name = path.rpartition("/")
            fresh.setdefault(folder or ".", set()).add(name)

        def listed(folder: str) -> set[str]:
            prefix = "" if folder == "." else f"{folder}/"
            return {n for n in tree.names(folder) if prefix + n in self._ours} | fresh.get(folder, set())

        return listed

    def close(self) -> None:
        if self._watch:
            self._watch.close()
