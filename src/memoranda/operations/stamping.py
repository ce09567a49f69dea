"""The taint that a note is stamped with: its session's at that moment, and that of every source, resolved now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.errors import MemorandaError
from memoranda.index.catalog import Catalog
from memoranda.index.testimony import Wrote
from memoranda.notes.journal import day_of, entry_key, is_journal_path, parse_journal
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
    entries = [
        entry
        for entry in parse_journal(data, day_of(pointer.path))
        if pointer.start is None or (entry.start <= (pointer.end or 0) and pointer.start <= entry.end)
    ]
    wrote = home.indexes.catalog.ledger.wrote(entry.id for entry in entries)
    if not entries or any((line := wrote.get(e.id)) is None or line.key not in (None, entry_key(e)) for e in entries):
        return unresolved(source)
    return inherit(CLEAN, [_of_entry(wrote.get(entry.id), source) for entry in entries])


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
        if pointer.home in home.repository.marker.names():
            if home.indexes.places is not None and is_journal_path(pointer.path):
                return unresolved(source)  # to a reader of some places no journal is there
            return _inside(home, pointer, source)
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
