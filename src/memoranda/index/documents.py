"""What an index takes in and what it says of it: documents, and the count of one change."""

from __future__ import annotations

from typing import NamedTuple

KEY = 20  # bytes of a key
FACETS_VERSION = 2  # which facets documents have, see `feeding.documents`
JOURNAL = "in:journal"
OF = "of:"  # before the place of a note, see `notes.belonging`


class Document(NamedTuple):
    """One immutable text: `key` is 40 hex characters of its content, `facets` exact strings to filter by.

    A document with the facet `in:journal` is a journal passage.
    """

    key: str
    title: str = ""
    subject: str = ""
    text: str = ""
    tags: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()


class Applied(NamedTuple):
    """What one `apply` did; `missing` are keys to retire, revive or drop that the index does not know."""

    added: int
    retired: int
    revived: int
    dropped: int
    missing: tuple[str, ...]


def raw_key(key: str) -> bytes:
    """The bytes of a key. Raises ValueError when it is not 40 hex characters."""
    raw = bytes.fromhex(key)
    if len(raw) != KEY:
        raise ValueError(f"a key has {KEY * 2} hex characters: {key!r}")
    return raw
