"""The records of the current segment that were read and are not in Git yet, as one process holds them."""

from __future__ import annotations

import json

from memoranda.home.record import FileChange, Record, Unread


class Held:
    """Records without a gap, up to number `last`. The log's own lock stands before it."""

    def __init__(self) -> None:
        self.last = 0
        self._items: list[Record | Unread] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._items)

    def begin(self, last: int | None = None) -> None:
        """Lets go of all; the next record is the one behind `last`, when that is told."""
        self._items, self._ends = [], []
        if last is not None:
            self.last = last

    def add(self, item: Record | Unread, end: int) -> None:
        """The next record, which ends at the offset `end` of the segment."""
        self._items.append(item)
        self._ends.append(end)
        self.last = item.seq

    def forget(self, seq: int) -> None:
        behind = self._behind(seq)
        del self._items[:behind], self._ends[:behind]

    def after(self, seq: int) -> list[tuple[Record, int]]:
        """The records behind `seq` that are held, each with the offset of its end."""
        behind = self._behind(seq)
        found = [item if isinstance(item, Record) else item.record() for item in self._items[behind:]]
        self._items[behind:] = found
        return list(zip(found, self._ends[behind:], strict=True))

    def any_after(self, seq: int) -> bool:
        return self._behind(seq) < len(self._items)

    def newest_change(self, path: str, seq: int) -> tuple[bool, FileChange | None]:
        """(whether every record behind `seq` is held, what the newest held one behind it did to the file if any)."""
        behind = self._behind(seq)
        complete = self.last - len(self._items) + behind == seq
        word = json.dumps(path).encode("ascii")
        for item in reversed(self._items[behind:]):
            if isinstance(item, Record):
                changes = item.changes
            elif item.says(word):
                changes = item.changes()
            else:
                continue
            for change in changes:
                if change.path == path:
                    return complete, change
        return complete, None

    def _behind(self, seq: int) -> int:
        """Where the records behind `seq` begin."""
        return min(max(seq - self.last + len(self._items), 0), len(self._items))
