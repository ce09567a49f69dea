"""What this node has written in a Home, and what it learns of the others' writing: the newest records, and who wants to
be told of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from memoranda.home.objects import read_tree
from memoranda.home.postgres.standing import State
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.record import Record

_MOST = 256  # own records that are kept at hand
_MUCH = 4 << 20  # bytes of them
_NEVER = datetime.fromtimestamp(0, UTC)


class Tidings:
    """Of one open Home; its owner's lock stands before it."""

    def __init__(self, store: PostgresStore, replica: str) -> None:
        self._store = store
        self._replica = replica
        self._state: State | None = None
        self._records: deque[Record] = deque()
        self._size = 0
        self._listeners: list[tuple[str, Callable[[Record], None]]] = []
        self.missed = 0
        self.journal: tuple[str, str | None, bytes] | None = None  # path, blob and bytes of the open journal

    def listen(self, word: str, listener: Callable[[Record], None]) -> None:
        self._listeners.append((word, listener))

    def lose(self) -> None:
        """An erasing has changed what was written: nothing that is held is true, and nobody was told."""
        self._state = None
        self._records.clear()
        self._size = 0
        self.journal = None
        self.missed += 1

    def follow(self, state: State) -> None:
        """Tells of what others have written up to this state."""
        known = self._state
        if known is not None and state.seq <= known.seq:
            return
        self._state = state
        if known is None:
            return
        fresh = self._behind(state, known.seq)
        self._records.clear()
        self._size = 0
        if fresh:
            self._tell(Record(state.seq, _NEVER, "", "", "", {}, (), tuple(fresh)))

    def wrote(
        self, records: Sequence[Record], state: State, contents: Mapping[str, bytes], blobs: Mapping[str, str | None]
    ) -> None:
        """These records are committed, by this node; another of its threads may have met them already."""
        known = self._state
        if known is None or state.seq > known.seq:
            self._state = state
        if self._records and self._records[-1].seq + 1 != records[0].seq:
            self._records.clear()
            self._size = 0
        for record in records:
            self._records.append(record)
            self._size += sum(len(change.data) for change in record.changes)
        while len(self._records) > _MOST or self._size > _MUCH:
            self._size -= sum(len(change.data) for change in self._records.popleft().changes)
        for path, data in contents.items():
            self.journal = (path, blobs.get(path), data)
        for record in records:
            if known is None or record.seq > known.seq:
                self._tell(record)

    def ahead(self, seq: int, last: int) -> list[Record] | None:
        """The records behind `seq` up to the newest, `last`; None when some of them are not at hand."""
        if seq >= last:
            return []
        found = [record for record in self._records if record.seq > seq]
        return found if found and found[0].seq == seq + 1 and found[-1].seq == last else None

    def let_go(self, seq: int) -> None:
        while self._records and self._records[0].seq <= seq:
            self._size -= sum(len(change.data) for change in self._records.popleft().changes)

    def _tell(self, record: Record) -> None:
        told = "\n".join(record.ledger)
        for word, listener in self._listeners:
            if word in told:
                listener(record)

    def _behind(self, state: State, seq: int) -> list[str]:
        """The lines of the ledger that came with the records behind `seq`."""
        folder = self._store.get(f"{state.ledger}:{self._replica}") if state.ledger is not None else None
        lines: list[str] = []
        for _, _, blob in reversed(list(read_tree(folder.data)) if folder is not None else []):
            found = self._store.get(blob)
            texts = found.data.decode("utf-8", "replace").splitlines() if found is not None else []
            fresh = [text for text in texts if _number(text) > seq]
            lines[:0] = fresh
            if len(fresh) < len(texts):
                break
        return lines


def _number(line: str) -> int:
    """The number of the record that a line came with, which every line of ours begins with."""
    told = line[5:].partition(",")[0]
    return int(told) if line.startswith('{"n":') and told.isdigit() else 0
