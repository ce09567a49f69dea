"""An open Home as everything above it sees it, whatever keeps its objects: a folder with Git, or a database.

What is the same for both is written here; what is not, both have to say. It knows bytes and paths; what a note means,
and whether it may be written, is decided above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memoranda.context import Context
from memoranda.errors import Erased, NotFound
from memoranda.home.draft import Appending, Draft, Snapshot
from memoranda.home.erasing.erasures import Erasures, Leads, find_in_ledger
from memoranda.home.groups import Group
from memoranda.home.keys import Keys
from memoranda.home.layout import Layout
from memoranda.home.ledger import Pen
from memoranda.home.marker import FORMAT, Marker, Replica
from memoranda.home.objects import GitObject, TreeEditor, read_tree
from memoranda.home.outside import Found, Ours
from memoranda.home.record import Record
from memoranda.home.store import LEDGER_REF, ObjectStore, TreeChange
from memoranda.home.streak import Streak

if TYPE_CHECKING:
    from memoranda.home.erasing.erase import Blank, Erasure
    from memoranda.home.history import Step
    from memoranda.home.inventory import Text

Stamp = Callable[[Sequence[Found]], Mapping[str, Mapping[str, object]]]


class Files(Protocol):
    """The files of a Home as they are now, by their paths."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, None when there is none."""

    def size(self, name: str) -> int:
        """The bytes that a file has; 0 when there is none."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""


class Holding(ABC):
    """An open Home. Threads may share it.

    `layout` names the folders of this process: with a Home on disk those of the Home itself, else of what may be lost.
    """

    root: Path
    layout: Layout
    marker: Marker
    keys: Keys
    ours: Ours
    replica: Replica
    store: ObjectStore
    worktree: Files
    erasures: Erasures
    look_every: timedelta | None  # where people edit seldom: how long a look at the files is good for
    stamp: Stamp  # path -> what the ledger says of found bytes beside their blob
    refused: dict[str, str]
    _pen: Pen
    _trees: dict[str, TreeEditor]

    # What it is

    @property
    def read_only(self) -> str | None:
        """Why this Home cannot be written, None when it can."""
        if self.marker.format != FORMAT:
            return f"its format is {self.marker.format} and this program knows {FORMAT}"
        return None

    @property
    def name(self) -> str:
        return self.marker.name

    @property
    @abstractmethod
    def comparing(self) -> bool:
        """Whether files are still being compared for the first look."""

    @abstractmethod
    def head(self) -> str | None:
        """The commit that holds now, None before the first."""

    @abstractmethod
    def branch(self) -> str | None:
        """The name of the ref that it stands on, None for none."""

    # What holds now

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """A commit and the records that are not in it, consistent with each other."""

    @property
    @abstractmethod
    def sequence(self) -> int:
        """The number of the newest record that this process knows of."""

    @abstractmethod
    def settled(self) -> bool:
        """Whether everything that was written in this Home is in Git."""

    @abstractmethod
    def subscribe(self, word: str, listener: Callable[[Record], None]) -> None:
        """`listener` is told of every record in whose ledger lines `word` stands, written or read from now on."""

    @abstractmethod
    def hear(self) -> int:
        """Takes in what other processes have written since; how often records went by that nobody here was told of."""

    @abstractmethod
    def make_durable(self) -> None:
        """Returns when every record read so far survives a loss of power, other processes' records too."""

    def advanced(self, commit: str | None, committed: int, seq: int) -> str | None:
        """The commit that holds exactly `commit`, which holds the records up to `committed`, and those up to `seq`.

        None when our own groups do not say so: somebody's commits may lie between, records that are not known yet, or
        a person may have gone back to `commit` and left those on which some of the records are.
        """
        group = self.last_group()
        if group is None or seq < group.after.seq:
            return None
        streak = self.streak
        if streak.leads(group, commit):
            held = streak.held(commit, committed)
        else:
            held = (commit, committed) == (group.main[0], group.before.seq)
        return (group.main[1] or group.main[0]) if held else None

    def told_by_log(self, ledger: tuple[str | None, str | None], seq: int) -> bool:
        """Whether the ledger came from one commit to the other by our own groups, with records up to `seq`."""
        group = self.last_group()
        if group is None or ledger[1] != group.ledger[1] or seq < group.after.seq:
            return False
        return ledger[0] == group.ledger[0] or self.streak.continues(group, ledger[0])

    @property
    @abstractmethod
    def streak(self) -> Streak:
        """Our own groups in a row."""

    @abstractmethod
    def last_group(self) -> Group | None:
        """The newest group of commits that this clone made."""

    @abstractmethod
    def ahead(self, seq: int) -> list[Record] | None:
        """The records behind `seq`, committed or not, as far as they have been read here; None when some are missing.

        For a process that follows the log: what it has been given before is let go.
        """

    @abstractmethod
    def let_go(self, seq: int) -> None:
        """Forgets the records up to `seq` that were read; only for a process that commits nothing."""

    # The files now

    def known(self, snapshot: Snapshot) -> Callable[[str], str | None]:
        """A function that gives the blob id of a path in a snapshot."""
        overlay = {change.path: change.new for record in snapshot.tail for change in record.changes}

        def blob_of(path: str) -> str | None:  # what was just written needs no object of Git
            return overlay[path] if path in overlay else self._tree(snapshot.commit).get(path)

        return blob_of

    def blob_at(self, commit: str, path: str) -> str | None:
        """The blob id of `path` at a commit."""
        return self._tree(commit).get(path)

    @abstractmethod
    def entries(self, folder: str) -> int:
        """How many files and folders lie in a folder now."""

    def _tree(self, commit: str | None) -> TreeEditor:
        if commit is None:
            return TreeEditor(lambda _oid: b"", None)
        tree = self._trees.get(commit)
        if tree is None:
            found = self.store.get(f"{commit}^{{tree}}")
            tree = TreeEditor(self._tree_data, found.oid if found else None)
            self._trees = {commit: tree}  # one is enough: reads ask about now
        return tree

    def _tree_data(self, oid: str) -> bytes:
        found = self.store.get(oid)
        return found.data if found else b""

    # What it holds and held

    def blob(self, oid: str) -> bytes | None:
        """The bytes of a blob, also of one that is still in the log only."""
        found = self._object(oid)
        if found is None and (leads := self.erasures.find(oid)) is not None and leads.name is not None:
            found = self.store.get(leads.name)
        return found.data if found is not None and found.kind == "blob" else None

    def _object(self, name: str) -> GitObject | None:
        """An object of Git, or a blob that is not there yet."""
        return self.store.get(name)

    def guarded(self, blobs: Iterable[str]) -> Mapping[str, bytes] | None:  # noqa: ARG002 see there
        """blob -> bytes of these, as far as the medium itself lets this tenant read them: what an index has kept of
        another's is not among them. None where the medium keeps nobody apart, and indexes may be believed."""
        return None

    def at(self, path: str, rev: str | None) -> bytes:
        """The bytes of `path` now, at a commit, or (for a blob id) of that very blob; NotFound, Erased.

        Commits and blobs that an erasing replaced lead to what stands in their place.
        """
        if rev is None:
            blob = self.known(self.snapshot())(path)
            data = self.blob(blob) if blob else None
        else:
            data = self._at_rev(path, rev) if "\n" not in rev + path else None
        if data is None:
            raise NotFound(
                f"{path} does not exist{f' at {rev}' if rev else ''} in this Home.",
                remedy="Look for its history with `memoranda log`, or fetch the commit from the clone that has it.",
            )
        return data

    def _at_rev(self, path: str, rev: str) -> bytes | None:
        found = self._object(rev)
        if found is None:
            leads = self.erasures.find(rev) or self._told_by_ledger(rev)
            if leads is not None and leads.name is None:
                raise Erased(leads.day)
            found = self.store.get(leads.name) if leads is not None and leads.name is not None else None
        if found is None or found.kind == "blob":
            return found.data if found else None
        inside = self.store.get(f"{found.oid}:{path}")
        if inside is None and (day := self.erasures.lost(path)) is not None:
            raise Erased(day)
        return inside.data if inside else None

    def _told_by_ledger(self, rev: str) -> Leads | None:
        """What another clone's erasing says of an id that this one does not know."""
        segments = ((replica, data) for _, replica, data in self.ledger_segments())
        return find_in_ledger(segments, lambda replica, line: self.pen(replica).vouches(line), rev)

    @abstractmethod
    def history(self, old: str | None, new: str, *, newest: int | None = None) -> Iterator[Step]:
        """The commits from behind `old` to `new`, parents before children, each with what it changed."""

    @abstractmethod
    def told(self, new: str) -> Iterator[Step | TreeChange]:
        """The whole history of a commit, parents before children: each commit, then what it changed, read as one
        goes."""

    @abstractmethod
    def texts(self, *, history: bool = False) -> Iterator[Text]:
        """Every text that the files and the ledger hold, and with `history` all that Git keeps."""

    @abstractmethod
    def verify(self) -> list[str]:
        """What Git's own check says is damaged."""

    @abstractmethod
    def whole(self) -> AbstractContextManager[Path]:
        """A folder with a Git repository that has the branch with its history, for as long as it is needed."""

    # The ledger

    def pen(self, replica: str) -> Pen:
        """What tells whether a line of that replica's ledger was written by this installation."""
        return Pen(self.keys, self.marker.id, replica)

    def ledger_segments(self) -> Iterator[tuple[str, str, bytes]]:
        """(path, replica, data) of every committed segment of the ledger."""
        root = self.store.get(f"{self.store.ref(LEDGER_REF)}^{{tree}}")
        for _, folder, tree in read_tree(root.data if root else b""):
            for _, name, blob in read_tree(self._tree_data(tree)):
                yield f"{folder.decode()}/{name.decode()}", folder.decode(), self._tree_data(blob)

    @abstractmethod
    def keep_ledger(self) -> str | None:
        """Takes in the ledgers of other clones that were fetched, and puts back what was cut from this one.

        Returns, as `ledger_lost`, the commit whose lines are lost, None when none are.
        """

    @property
    @abstractmethod
    def ledger_lost(self) -> str | None:
        """The commit whose lines the ledger has lost for good, so that nobody knows what sessions had met."""

    # Writing

    @abstractmethod
    def write(self, context: Context, build: Callable[[datetime], Draft]) -> Record:
        """One write: `build` is called with its known time while nobody else writes; durable when this returns.

        It may be called again when somebody else's write came first after all.
        """

    def many(self) -> AbstractContextManager[None]:
        """For a time in which one write follows the other: what costs as much as there is, is done once, afterwards."""
        return nullcontext()

    @abstractmethod
    def may_append(self, path: str) -> bool:
        """False for a file of the branch while a person has a merge, a rebase or the like under way."""

    @abstractmethod
    def is_being_written(self, path: str) -> bool:
        """Whether another process has just written to this file, so that an append had to read that back first."""

    @abstractmethod
    def appending(self, path: str, data: bytes) -> Appending:
        """What appending `data` to `path` will make of it; only inside the `build` of a `write`."""

    @abstractmethod
    def look(self, context: Context) -> list[Found]:
        """Takes in what was edited outside the program; returns it. Does nothing while Git is busy here."""

    @abstractmethod
    def sight(self, context: Context) -> tuple[list[Found], Snapshot | None]:
        """Looks as `look` does; gives what was taken in, and the snapshot that was compared with when nothing was."""

    @abstractmethod
    def watch(self) -> None:
        """From the next look on, learns of edits from the kernel instead of comparing files each time."""

    @abstractmethod
    def flush(self, *, wait: bool = True) -> str | None:
        """Commits what is not committed; returns why something remains."""

    @abstractmethod
    def erase(
        self, context: Context, blanks: Sequence[Blank], reason: str, testimony: Sequence[Mapping[str, Any]] = ()
    ) -> Erasure:
        """Takes texts out of this Home with their history; afterwards nothing in it holds them.

        `blanks` are `erase.Whole` (all of a blob) and `erase.Lines` (lines of a file, in every version). `reason` stays
        on record, and so does `testimony`, lines of the ledger that come with the erasing or not at all. Other pointers
        go on leading to the same words.

        Raises:
            HomeBusy: a merge, a rebase or a lock is in the way; nothing was changed.
            NotFound: a blob never was in this Home.
            InvalidInput: the reason repeats the text, or a blob is no file.
        """

    def as_written(self) -> AbstractContextManager[None]:
        """For who has just written: until the end this thread goes by what it knows, its own record included, and asks
        nobody whether there is more."""
        return nullcontext()

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next."""
        return

    @abstractmethod
    def close(self) -> None:
        """Commits what is left and lets go of everything."""
