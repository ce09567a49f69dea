"""Makes the commits of some records, one a record, and that of the ledger: the objects that a store has to keep.

It holds the trees that it made last, so that the next record costs a slice of each folder above its files and nothing
is read back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from memoranda.errors import HomeDamaged
from memoranda.home.ledger import LedgerTail, last_segment
from memoranda.home.objects import FILE_MODE, PROGRAM_MODE, GitObject, Signature, TreeEditor, commit_data, make_object
from memoranda.home.record import FileChange, Record
from memoranda.home.store import ObjectStore

_OPEN = 16  # journals that are kept at hand: so many processes may write at the same time


class Making:
    """What turns records into objects, for one replica of a Home. Not for several threads at once.

    Args:
        store: where the objects lie that the new ones stand on.
        replica: whose folder of the ledger is written.
        executable: whether a file that was found in a working tree may be run as a program.
    """

    def __init__(self, store: ObjectStore, replica: str, executable: Callable[[str], bool]) -> None:
        self._store = store
        self._replica = replica
        self._executable = executable
        self._tree: tuple[str | None, TreeEditor] | None = None
        self._ledger_tree: tuple[str | None, TreeEditor, int] | None = None
        self._tail = LedgerTail(replica, self._blob)
        self._contents: dict[str, tuple[str, bytes]] = {}
        self._fresh: dict[str, GitObject] = {}  # the objects of the group under way, not in the store yet

    def begin(self) -> dict[str, GitObject]:
        """A new group: its objects come into what is returned, by id, each after what it resembles."""
        self._fresh = {}
        return self._fresh

    def end(self) -> None:
        """The objects of the group are in the store, and the refs have moved to them."""
        self._fresh = {}

    def forget_trees(self) -> None:
        """The refs did not move, or somebody else has moved them: what is held of their trees is void."""
        self._tree = self._ledger_tree = None

    def forget(self) -> None:
        """As `forget_trees`, and what is held of an open journal is void too."""
        self.forget_trees()
        self._contents = {}

    def _emit(self, item: GitObject) -> None:
        self._fresh.setdefault(item.oid, item)

    def commits(self, main: str | None, records: Sequence[Record]) -> str | None:
        """Makes one commit a record on `main`; returns the last one."""
        editor = self._editor(main)
        self._tree = None  # until the branch has really moved
        head = main
        for record in records:
            changed = False
            for change in record.changes:
                before = editor.get(change.path)
                after = self._change(editor, change, before)
                changed = changed or after != before
            if changed or head is None:
                tree = editor.write(self._emit)
                who = Signature(record.author, f"{record.author.replace(' ', '.')}@memoranda.local", record.at)
                by = Signature("Memoranda", "memoranda@localhost", record.at)
                commit = make_object("commit", commit_data(tree, [head] if head else [], who, by, message(record)))
                self._emit(commit)
                head = commit.oid
            if threading.active_count() > 1:
                time.sleep(0)  # lets a waiting writer have the interpreter: nobody waits for commits
        self._tree = (head, editor)
        return head

    def _change(self, editor: TreeEditor, change: FileChange, before: str | None) -> str | None:
        if change.new == before:
            return before
        if change.new is None:
            editor.remove(change.path)
            return None
        if change.appended and change.old is not None:
            # What it was appended to, wherever the branch stands by now: the entry is cited by the blob that it made.
            held = self._contents.get(change.path)
            if held and held[0] == change.old:
                blob = GitObject("blob", held[1] + change.data, change.new, before)  # hashed by the writer already
            else:
                blob = make_object("blob", self._base(change.old, before) + change.data, before)
        else:
            blob = GitObject("blob", change.data, change.new, before)
        self._emit(blob)
        mode = None
        if change.outside:
            mode = PROGRAM_MODE if self._executable(change.path) else FILE_MODE
        editor.put(change.path, blob.oid, mode)
        if change.appended:
            self._contents.pop(change.path, None)
            self._contents[change.path] = blob.oid, blob.data
            if len(self._contents) > _OPEN:
                del self._contents[next(iter(self._contents))]
        return blob.oid

    def ledger(self, old: str | None, records: Sequence[Record]) -> str:
        """Makes the commit of the ledger that has the lines of these records on top of `old`."""
        lines = [line for record in records for line in record.ledger]
        held = self._ledger_tree
        if held is not None and held[0] == old:
            _, editor, number = held
        else:
            editor = TreeEditor(self._tree_data, self._tree_of(old))
            folder = self._store.get(f"{old}:{self._replica}") if old else None
            number = last_segment(folder.data) if folder else 1
        self._ledger_tree = None
        number = self._tail.extend(editor, lines, self._emit, number)
        tree = editor.write(self._emit)
        by = Signature("Memoranda", "memoranda@localhost", records[-1].at)
        commit = make_object("commit", commit_data(tree, [old] if old else [], by, by, f"{len(lines)} line(s)"))
        self._emit(commit)
        self._ledger_tree = (commit.oid, editor, number)
        return commit.oid

    def _editor(self, main: str | None) -> TreeEditor:
        if self._tree is not None and self._tree[0] == main:
            return self._tree[1]
        return TreeEditor(self._tree_data, self._tree_of(main))

    def _tree_of(self, commit: str | None) -> str | None:
        if commit is None:
            return None
        found = self._store.get(commit)
        if found is None or found.kind != "commit":
            raise HomeDamaged(f"The commit {commit[:12]} is missing.", remedy="Run `git fsck`, restore from a clone.")
        return found.data[5:45].decode()

    def _tree_data(self, oid: str) -> bytes:
        found = self._store.get(oid)
        if found is None:
            raise HomeDamaged(f"The tree {oid[:12]} is missing.", remedy="Run `git fsck`, restore from a clone.")
        return found.data

    def _blob(self, oid: str) -> bytes | None:
        found = self._fresh.get(oid) or self._store.get(oid)
        return found.data if found else None

    def _base(self, old: str, before: str | None) -> bytes:
        data = self._blob(old)  # gone with a commit that a person dropped and pruned: then what stands there now
        return data if data is not None else self._content(before) if before is not None else b""

    def _content(self, oid: str) -> bytes:
        data = self._blob(oid)
        if data is None:
            raise HomeDamaged(f"The file {oid[:12]} is missing.", remedy="Run `git fsck`, restore from a clone.")
        return data


def message(record: Record) -> str:
    """What `git log` shows of a record: the reason, then who did it in which session."""
    subject = " ".join(record.reason.split()) or record.op
    trailers = [f"Memoranda-{key}: {value}" for key, value in record.trailers.items() if value]
    head = subject if len(subject) <= 100 else subject[:97].rstrip() + "…"
    return "\n".join([head, "", f"Memoranda-Op: {record.op}", *trailers])
