"""A transaction under way: the records that were built in it, and what they make of the files."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime

from memoranda.errors import MemorandaError
from memoranda.home.draft import Appending, Change, Draft
from memoranda.home.groups import Group, Position
from memoranda.home.ledger import Pen
from memoranda.home.objects import object_id
from memoranda.home.postgres.standing import BRANCH, State
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.postgres.transactions import Cursor
from memoranda.home.record import FileChange, Record
from memoranda.home.store import LEDGER_REF
from memoranda.home.writer import record_of
from memoranda.state.database import not_known, unavailable
from memoranda.values import dataclass, field


@dataclass(slots=True)
class Underway:
    """One transaction, which holds the Home in `state`; for the thread whose turn it is to write.

    `blob_of` gives the blob that a path had when it began, `read` the bytes of a blob. `journal` is the open one with
    its blob and bytes, where it is at hand. `done` is set when the transaction has ended, and `error` says how when it
    was not committed.
    """

    cursor: Cursor
    state: State
    stack: ExitStack
    blob_of: Callable[[str], str | None]
    read: Callable[[str], bytes | None]
    journal: tuple[str, str | None, bytes] | None = None
    coming: tuple[str, bytes, bytes, str] | None = None  # what `appending` foresaw: path, data, bytes before, blob
    records: list[Record] = field(default_factory=list)
    blobs: dict[str, str | None] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    def blob_now(self, path: str) -> str | None:
        """The blob that a path has at this moment of the transaction."""
        return self.blobs[path] if path in self.blobs else self.blob_of(path)

    def content(self, path: str) -> bytes:
        """The bytes of a file as they are at this moment of the transaction."""
        if path in self.contents:
            return self.contents[path]
        blob = self.blob_now(path)
        if self.journal is not None and self.journal[:2] == (path, blob):
            return self.journal[2]
        return (self.read(blob) or b"") if blob is not None else b""

    def appending(self, path: str, data: bytes) -> Appending:
        """As `Holding.appending`."""
        before = self.content(path)
        blob = object_id("blob", before + data)
        self.coming = (path, data, before, blob)
        return Appending(Change(path, data, appended=True), blob, before.count(b"\n") + 1)

    def record(self, draft: Draft, at: datetime, pen: Pen) -> Record:
        """The record of a draft, behind those that are there."""
        files: list[FileChange] = []
        blobs: dict[str, str | None] = {}
        for change in draft.changes:
            old, new = self._pair(change)
            blobs[change.path] = new
            appended = change.appended and old is not None
            files.append(FileChange(change.path, old, new, change.data or b"", appended))
        return record_of(draft, self.state.seq + len(self.records) + 1, at, files, blobs, pen)

    def _pair(self, change: Change) -> tuple[str | None, str | None]:
        """The blobs of a path before and after a change."""
        old = self.blob_now(change.path)
        if change.data is None:
            return old, None
        if not change.appended:
            return old, change.blob or object_id("blob", change.data)
        if self.coming is not None and self.coming[:2] == (change.path, change.data):
            return old, self.coming[3]
        return old, object_id("blob", self.content(change.path) + change.data)

    def take(self, record: Record) -> None:
        """This record is part of the transaction from now on."""
        coming = self.coming
        for change in record.changes:
            foreseen = coming[2] if coming is not None and coming[0] == change.path else None
            if change.appended or foreseen is not None:
                before = b"" if change.old is None else self.content(change.path) if foreseen is None else foreseen
                self.contents[change.path] = before + change.data
            self.blobs[change.path] = change.new
        self.records.append(record)
        self.coming = None

    def after(self, head: str | None, ledger: str) -> tuple[Group, State]:
        """What was made of the records, with the commits of the branch and the ledger, and what holds then."""
        before, last = self.state, self.records[-1]
        made = Group(
            Position(0, 0, before.seq), Position(0, 0, last.seq), BRANCH,
            (before.main, head if head != before.main else None), (before.ledger, ledger),
        )  # fmt: skip
        refs = {**before.refs, LEDGER_REF: ledger} | ({BRANCH: head} if head is not None else {})
        return made, before._replace(seq=last.seq, refs=refs)


class FilesNow:
    """The files of a Home that has none: what a path holds now.

    `building` gives the transaction in which the thread that asks builds a record; `blob_of` the blob of a path, and
    `read` the bytes of a blob, as they are committed.
    """

    def __init__(
        self,
        building: Callable[[], Underway | None],
        blob_of: Callable[[str], str | None],
        read: Callable[[str], bytes | None],
    ) -> None:
        self._building = building
        self._blob_of = blob_of
        self._read = read

    def _blob(self, name: str) -> str | None:
        group = self._building()
        return self._blob_of(name) if group is None else group.blob_now(name)

    def read(self, name: str) -> bytes | None:
        blob = self._blob(name)
        return None if blob is None else self._read(blob)

    def size(self, name: str) -> int:
        group = self._building()
        return len(self.read(name) or b"") if group is None else len(group.content(name))

    def exists(self, name: str) -> bool:
        return self._blob(name) is not None


def abandon(stack: ExitStack, error: BaseException) -> None:
    """Ends a transaction that shall not be committed."""
    try:
        stack.__exit__(type(error), error, error.__traceback__)
    except BaseException as other:
        if not isinstance(other, Exception):
            raise


def outcome(store: PostgresStore, error: BaseException, ledger: str | None) -> BaseException | None:
    """What became of a transaction whose end nobody told: None when it is committed after all.

    `ledger` is the commit that it made of the ledger, None when it did not come to its end. As long as it holds the
    Home it may yet be committed: the server may have the word already, and stand still.
    """
    if ledger is None or not isinstance(error, MemorandaError):
        return error
    try:
        with store.writing() as cursor:
            store.state(cursor, hold=True)
            with store.within(cursor):
                written = store.get_all([ledger])[0] is not None
                return None if written else unavailable(error.__cause__ or error)
    except MemorandaError:
        return not_known()
