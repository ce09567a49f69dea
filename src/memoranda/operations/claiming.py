"""What came into a Home by other ways than an operation: files that were edited, commits of Git.

Its author is unknown. It takes the taint of the sessions that are open when it is found, since one of them may have
written it, and of what it was before and what it cites. The stamp is a line of the ledger, like that of a write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from memoranda.context import Context
from memoranda.home.draft import Draft
from memoranda.home.outside import Found
from memoranda.index.rows import NoteRow
from memoranda.notes.journal import day_of, entry_key, is_journal_path, parse_journal
from memoranda.notes.model import read_note
from memoranda.operations.open_home import OpenHome
from memoranda.operations.stamping import taint_of_sources
from memoranda.trust.labels import CLEAN, Taint, inherit
from memoranda.trust.reviews import reviewed_blobs
from memoranda.trust.standing import stamped


def stamp_found(home: OpenHome, found: Sequence[Found]) -> Mapping[str, Mapping[str, object]]:
    """path -> the fields of the ledger's line about edited files beside their blobs; only inside a write."""
    home.indexes.catch_up()
    opened = home.sessions.open_taint()
    told: dict[str, Mapping[str, object]] = {}
    with home.indexes.lock:
        for item in found:
            if item.data is None:
                continue
            fields: dict[str, object] = {}
            if is_journal_path(item.path):
                taint, keys = _of_journal(home, item.path, item.data)
                fields = {"keys": keys} if keys else {}
            else:
                note = read_note(item.path, item.data)
                taint = _inherited(home, note.id, item.path) | _cited(home, note.sources)
            if taint := taint | opened:
                fields["taint"] = taint.records()
            elif home.trusts_edits and not is_journal_path(item.path) and item.blob is not None:
                home.edits |= typed_here(home, item.path, item.blob)
            told[item.path] = fields
    return told


def typed_here(home: OpenHome, path: str, blob: str) -> dict[str, str]:
    """blob -> path of an edit that a person can have made with an editor: Git has never seen these bytes.

    What a merge, a squash, a checkout or a stash laid into the files lies among its objects before.
    """
    if home.repository.blob(blob) is not None or (home.repository.layout.git_dir / "SQUASH_MSG").exists():
        return {}
    return {blob: path}


def _of_journal(home: OpenHome, path: str, data: bytes) -> tuple[Taint, list[str]]:
    """What a journal holds that nobody has written: the taint of the entries under the same ids, and the keys."""
    entries = parse_journal(data, day_of(path))
    wrote = home.indexes.catalog.ledger.wrote(entry.id for entry in entries)
    keys, taint = [], CLEAN
    for entry in entries:
        line, key = wrote.get(entry.id), entry_key(entry)
        if line is None or (line.key is not None and line.key != key):
            keys.append(key)
            taint = taint | (Taint.read(line.taint) if line is not None else CLEAN)
    return taint, keys


def _inherited(home: OpenHome, note_id: str, path: str) -> Taint:
    """The taint of everything that this note was before, by its id or its place; what was reviewed taints nobody."""
    catalog = home.indexes.catalog
    here = catalog.by_path(path)
    rows = [*catalog.all_states(note_id), *([here] if here is not None else [])]
    if not rows:
        return CLEAN
    wrote = catalog.ledger.wrote(row.blob for row in rows)
    reviewed = reviewed_blobs(catalog, (row.blob for row in rows)) if catalog.ledger.has_reviews() else set()
    return inherit(CLEAN, [stamped(wrote.get(row.blob), row.taint, row.id) for row in rows if row.blob not in reviewed])


def _cited(home: OpenHome, sources: Iterable[str]) -> Taint:
    """The taint of what a file cites. Who claims nothing by an edit need not prove where it comes from either."""
    roots = taint_of_sources([home], sources).roots
    return Taint(frozenset(root for root in roots if root.kind != "unresolved"))


def claim(context: Context, home: OpenHome) -> None:
    """Stamps what commits of Git brought in since the last time; durable before a word of it is given to anybody."""
    if home.repository.read_only is not None:
        return
    with home.indexes.lock:
        catalog = home.indexes.catalog
        upto = catalog.claimable()
        notes, entries = catalog.without_word()
        lines: list[dict[str, Any]] = []
        if notes or entries:
            catalog.known_by_key(row for row, *_ in entries)
            lines += _lines_about(home, notes, entries)
    if lines:  # without the lock: a writer waits for the indexes
        _write(context, home, lines)
    with home.indexes.lock:
        home.indexes.claimed(upto)


def _lines_about(
    home: OpenHome, notes: Sequence[NoteRow], entries: Sequence[tuple[int, str, str, str]]
) -> Iterator[dict[str, Any]]:
    """The lines about those that take a taint; of the others there is nothing to say."""
    catalog = home.indexes.catalog
    opened, lost = home.sessions.open_taint(), home.sessions.lost
    # When the catalog was made anew everything looks new; then the time of the commit has to do.
    anew = catalog.state("claimed") is None
    since = home.sessions.tainted_since() if anew else None
    if anew and not opened and not catalog.ledger.has_taint():
        return
    for row in notes:
        taint = _inherited(home, row.id, row.path) | lost
        if not anew:
            taint = taint | opened | _cited(home, row.sources)
        elif since is not None and row.known_from >= since.replace(microsecond=0):
            taint = taint | opened
        if taint:
            yield {"kind": "found", "path": row.path, "blob": row.blob, "taint": taint.records()}
    for _, _, key, said in entries:
        taint = Taint.read(json.loads(said)) | (lost if anew else opened)
        if taint:
            yield {"kind": "found", "keys": [key], "taint": taint.records()}


def _write(context: Context, home: OpenHome, lines: Sequence[Mapping[str, Any]]) -> None:
    def build(_at: datetime) -> Draft:
        return Draft("found", "Stamp what came in by other ways", (), lines, {}, context.user)

    home.repository.write(context, build)
    home.indexes.catch_up()
