"""Ids: of notes and journal entries, of paths without one, and of Git blobs."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable

from memoranda.notes.lazyre import lazy

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base32, lower-case: no i, l, o, u
_MADE_OF = frozenset(_ALPHABET)
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
_NOTE_ID = lazy(r"mem_[0-9a-z]{4,64}")


def _base32(ten: bytes) -> str:
    """16 characters for 10 bytes."""
    n = int.from_bytes(ten, "big")
    pairs = _PAIRS
    return (
        pairs[n >> 70]
        + pairs[n >> 60 & 1023]
        + pairs[n >> 50 & 1023]
        + pairs[n >> 40 & 1023]
        + pairs[n >> 30 & 1023]
        + pairs[n >> 20 & 1023]
        + pairs[n >> 10 & 1023]
        + pairs[n & 1023]
    )


def new_id(prefix: str, random: Callable[[int], bytes]) -> str:
    """A new id such as `mem_` and 16 characters (80 bits). `random(n)` gives n random bytes."""
    return f"{prefix}_{_base32(random(10))}"


def told_id(name: str) -> str:
    """The id to tell where no word of an unknown author may stand: one that is not of the form made here says what its
    author wanted, and is told as a hash of it."""
    prefix, _, rest = name.partition("_")
    if len(rest) == 16 and not set(rest) - _MADE_OF:
        return name
    return f"{prefix}_{_base32(hashlib.sha256(name.encode('utf-8', 'surrogatepass')).digest()[:10])}"


def is_note_id(text: str) -> bool:
    """Whether this has the form of a note's id: `mem_[0-9a-z]{4,64}`."""
    return _NOTE_ID.fullmatch(text) is not None


def note_id_for_path(path: str) -> str:
    """The id of a note that carries none: from the SHA-256 of its path in Unicode's composed form (NFC).

    macOS hands out decomposed names; composing them first gives one file one id on every machine.
    """
    name = path if path.isascii() else unicodedata.normalize("NFC", path)
    return f"mem_{_base32(hashlib.sha256(name.encode('utf-8', 'surrogatepass')).digest()[:10])}"


def blob_id(data: bytes) -> str:
    """The id that Git gives these bytes as a blob: 40 hexadecimal digits of a SHA-1."""
    return hashlib.sha1(b"blob %d\x00" % len(data) + data, usedforsecurity=False).hexdigest()
