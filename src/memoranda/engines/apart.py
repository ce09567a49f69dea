"""What leaves is read where tenants are kept apart, and not from an index: an index is a cache of one node.

On a medium that keeps nobody apart, the folders of one tenant, there is nothing to ask.
"""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.index.rows import NoteRow
from memoranda.notes.model import read_note
from memoranda.notes.pointers import parse_pointer
from memoranda.operations import presenting
from memoranda.operations.open_home import OpenHome
from memoranda.values import replace


def rows_apart(home: OpenHome, rows: Sequence[NoteRow]) -> list[NoteRow]:
    """These notes with the words that the database gives for them; without those of which it gives none."""
    told = home.repository.guarded(row.blob for row in rows)
    if told is None:
        return list(rows)
    found = []
    for row in rows:
        if (data := told.get(row.blob)) is not None:
            note = read_note(row.path, data)
            found.append(replace(row, subject=note.subject, body=note.body, sources=note.sources))
    return found


def read_apart(home: OpenHome, items: Sequence[presenting.Item]) -> list[presenting.Item]:
    """What a recall found, as `rows_apart`; of an excerpt, the note that it is from is there and says so."""
    blobs = [parse_pointer(item.uri).rev or "" for item in items]
    told = home.repository.guarded(blobs)
    if told is None:
        return list(items)
    found = []
    for item, blob in zip(items, blobs, strict=True):
        if (data := told.get(blob)) is None:
            continue
        body = read_note(parse_pointer(item.uri).path, data).body
        if item.text is None or all(part.strip() in body for part in item.text.split("…")):
            found.append(item)
    return found
