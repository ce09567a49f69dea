"""The taint that a note is stamped with: its session's at that moment, and that of every source, resolved now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.errors import MemorandaError
from memoranda.index.catalog import Catalog
from memoranda.index.testimony import Wrote
from memoranda.notes.ids import blob_id
from memoranda.notes.journal import Entry, day_of, entry_key, is_journal_path, parse_journal
from memoranda.notes.pointers import Pointer, parse_pointer
from memoranda.operations.open_home import OpenHome
from memoranda.trust.labels import CLEAN, Root, Taint, inherit, unresolved


def stamp_of(wrote: Wrote | None, source: str) -> Taint:
    """The taint in a line of the ledger; without one that is vouched for, nobody knows: it counts as external."""
    if wrote is None or not wrote.vouched:
        return unresolved(source)
    return Taint.read(wrote.taint)


def _of_former_entries(home: OpenHome, pointer: Pointer, source: str) -> Taint:
    """The same at another revision, where other words may have stood in these lines than stand in them now."""
    try:
        data = home.repository.at(pointer.path, pointer.rev)
    except MemorandaError:
        return unresolved(source)
    entries = _in_lines(data, pointer)
    if not _of_this_journal(home.indexes.catalog, pointer.path, entries):
        return unresolved(source)
    wrote = home.indexes.catalog.ledger.wrote(entry.id for entry in entries)
    if any((line := wrote.get(e.id)) is None or line.key not in (None, entry_key(e)) for e in entries):
        return unresolved(source)
    return inherit(CLEAN, [_of_entry(wrote.get(entry.id), source) for entry in entries])


def _in_lines(data: bytes, pointer: Pointer) -> list[Entry]:
    """The entries of a journal in the lines that a pointer names."""
    return [
        entry
        for entry in parse_journal(data, day_of(pointer.path))
        if pointer.start is None or (entry.start <= (pointer.end or 0) and pointer.start <= entry.end)
    ]


def _of_this_journal(catalog: Catalog, path: str, entries: Sequence[Entry]) -> bool:
    """Whether these entries are of the journal at this path: they stand there as they are, or stand there with other
    words, or nowhere any more, and the ledger tells that these were written."""
    rows = catalog.entries_of(path)
    keys, ids = {row.key for row in rows}, {row.id for row in rows}
    wrote = catalog.ledger.wrote(entry.id for entry in entries)

    def known(entry: Entry) -> bool:
        key, line = entry_key(entry), wrote.get(entry.id)
        if key in keys:
            return True
        return line is not None and line.key in (None, key) and (entry.id in ids or catalog.entry(entry.id) is None)

    return bool(entries) and all(map(known, entries))


def stood(home: OpenHome, pointer: Pointer, data: bytes) -> bool:
    """Whether `data`, as it is read at a pointer's revision, ever stood at its path, as far as this Home knows.

    A revision may be the id of any blob in Git, and a commit that no branch of ours has: who cites one would otherwise
    say by the path where words are from that never were there. What is neither a note nor a journal is believed.
    """
    if pointer.rev is None:
        return True
    blob = blob_id(data)
    home.indexes.catch_up()
    with home.indexes.lock:
        catalog = home.indexes.catalog
        if catalog.blob_of(pointer.path) == blob:
            return True
        if is_journal_path(pointer.path):
            return _of_this_journal(catalog, pointer.path, _in_lines(data, pointer))
        if not home.repository.ours.is_note(pointer.path):
            return True
        return any(row.blob == blob for row in catalog.at_path(pointer.path))


def _of_entry(wrote: Wrote | None, source: str) -> Taint:
    """Words that were put into a journal by other ways than ours are nobody's."""
    if wrote is None or wrote.kind != "entry":
        return unresolved(source)
    return stamp_of(wrote, source)


def taint_of_sources(homes: Sequence[OpenHome], sources: Iterable[str]) -> Taint:
    """The taint of these sources together. What leads to no Home that is open, or nowhere, is external."""
    return inherit(CLEAN, [_of_source(homes, source) for source in sources])


def _of_source(homes: Sequence[OpenHome], source: str) -> Taint:
    if not source.startswith("nas://"):
        return Taint.of(Root("tool", source, "a source outside every Home"))
    try:
        pointer = parse_pointer(source)
    except MemorandaError:
        return unresolved(source)
    for home in homes:
        if pointer.home not in home.repository.marker.names():
            continue
        if home.indexes.places is not None and is_journal_path(pointer.path):
            return unresolved(source)  # to a reader of some places no journal is there
        found = _inside(home, pointer, source)
        if found != unresolved(source):  # else another open Home of this name may have it
            return found
    return unresolved(source)


def _inside(home: OpenHome, pointer: Pointer, source: str) -> Taint:
    home.indexes.catch_up()
    with home.indexes.lock:
        catalog = home.indexes.catalog
        if is_journal_path(pointer.path):
            if pointer.rev not in (None, catalog.blob_of(pointer.path)):
                return _of_former_entries(home, pointer, source)
            return _of_entries(catalog, pointer, source)
        rows = [row for row in catalog.at_path(pointer.path) if pointer.rev in (None, row.blob)]
        row = next((row for row in reversed(rows) if row.live or pointer.rev), None)
        if row is None:
            return unresolved(source)
        if home.reviewed(row.blob):
            return CLEAN  # a reviewed note keeps its label and taints nobody
        return stamp_of(catalog.ledger.wrote([row.blob]).get(row.blob), source)


def _of_entries(catalog: Catalog, pointer: Pointer, source: str) -> Taint:
    """The taint of the entries in these lines of a journal as it is now."""
    entries = [
        entry
        for entry in catalog.entries_of(pointer.path)
        if pointer.start is None or (entry.first <= (pointer.end or 0) and pointer.start <= entry.last)
    ]
    if not entries:
        return unresolved(source)
    wrote = catalog.ledger.wrote(entry.about for entry in entries)
    return inherit(CLEAN, [_of_entry(wrote.get(entry.about), source) for entry in entries])
