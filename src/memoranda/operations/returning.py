"""What was erased here and is here again, with an old clone: in a file, or only among Git's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memoranda.home.erasing.blanking import erased_on
from memoranda.home.erasing.erase import Blank, Whole
from memoranda.home.erasing.erasures import Moved
from memoranda.home.erasing.plan import Lines
from memoranda.index.keepout import KeptOut, kept_out
from memoranda.notes.journal import parse_journal
from memoranda.operations.open_home import OpenHome


def returned(home: OpenHome) -> list[KeptOut]:
    """The forgotten notes that stand in a file again, and the journal entries that do although they were erased.

    An entry that was forgotten and not erased stands in its journal as before: it has not come back.
    """
    found = list(kept_out(home.indexes.catalog.db))
    erased = _erased_entries(home) if any(not item.blob for item in found) else frozenset()
    return [item for item in found if item.blob or item.about in erased]


def brought_back(home: OpenHome) -> list[Blank]:
    """What an erasing has taken and Git's objects hold again, whether a file shows it or not.

    Not a file that is a note here now: a person has remembered that again.
    """
    found: list[Blank] = []
    for item in _blanked(home):
        old = home.repository.store.get(item.old.hex())
        if old is None:
            continue
        new = None if item.new is None else home.repository.blob(item.new.hex())
        if new is not None:
            found += [Lines(old.oid, first, last) for first, last in _differing(old.data, new)]
        elif not _is_note(home, old.oid):
            found.append(Whole(old.oid))
    return found


def _blanked(home: OpenHome) -> Iterator[Moved]:
    for erasing in home.repository.erasures.maps():
        yield from (item for item in erasing if item.kind == "b")


def _erased_entries(home: OpenHome) -> frozenset[str]:
    new = {item.new for item in _blanked(home) if item.new is not None}
    held = (home.repository.blob(oid.hex()) for oid in new)
    return frozenset(
        entry.id for data in held if data is not None for entry in parse_journal(data) if erased_on(entry.text)
    )


def _is_note(home: OpenHome, blob: str) -> bool:
    found = home.indexes.catalog.db.execute("SELECT 1 FROM notes WHERE blob = ? AND live = 1", (blob,))
    return found.fetchone() is not None


def _differing(old: bytes, new: bytes) -> Iterable[tuple[int, int]]:
    """The ranges of lines (from 1, both included) in which two files differ: an erasing moves no line."""
    ranges: list[tuple[int, int]] = []
    for number, (before, after) in enumerate(zip(old.split(b"\n"), new.split(b"\n"), strict=False), 1):
        if before == after:
            continue
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges
