"""The vector index: which documents are about the same as a question, whatever their words.

Each document has a vector of signed bytes, and its signs as a code of one bit a dimension. A search compares the code
of the question with all codes, takes the nearest, and scores those exactly by the cosine of their vectors, in whole
numbers and ties by key: an answer depends on the set of documents and not on how the index came to be. There is no
approximate graph. What retrieves and what ranks is kept apart: a search names its nearest, and gives the likeness of
any document that is asked for.

A cache, as the lexical index: an SQLite file says which documents there are, and everything of one `apply` is one
transaction together with the state that it reached. The vectors lie in a file beside it that is mapped into memory,
written before the transaction ends and read only as far as it says; a loss of power in between shows as a vector
whose length is not the one recorded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import sqrt
from operator import mul
from pathlib import Path
from typing import TypeVar

from memoranda.errors import Unavailable
from memoranda.index import _chunks
from memoranda.index._chunks import View
from memoranda.index._vector_store import (
    DROPPED,
    FILE,
    FORMAT,
    LIVE,
    RETIRED,
    SCHEMA,
    WHAT,
    VectorStore,
    recorded,
    require,
    squared,
)
from memoranda.index.documents import FACETS_VERSION, KEY, Applied, Document, raw_key
from memoranda.index.embedding import Embedder, Passage
from memoranda.index.journal_mode import named_errors, open_cache
from memoranda.index.recipe import Recipe

_OPEN = 256  # documents up to which a chunk takes more
_CHUNK = 1024  # documents of a chunk when many come at once
_NEAREST = 256  # codes whose vectors are compared: holds 85 % of the thirty nearest of 6,000, all of them of 600
_FEW = 8  # vectors for which numpy is slower
_MOST_KNOWN = 20_000  # keys whose numbers are kept at hand: some 3 MB
_PLAIN = 100_000  # documents up to which plain Python takes less than importing numpy

K = TypeVar("K")


class Near:
    """What a search found; it asks the index further as long as that is open."""

    def __init__(self, vectors: VectorIndex, question: bytes, facets: Sequence[Sequence[str]], most: int) -> None:
        self._vectors = vectors
        self._question = question
        self._facets = facets
        self._most = most

    def nearest(self, n: int, *, passages: bool | None = None) -> list[tuple[str, float]]:
        """The n nearest that pass the facets with their cosines, nearest first, ties by key."""
        return self._vectors.nearest(self._question, n, self._facets, passages, self._most)

    def of(self, keys: Sequence[str]) -> dict[str, float]:
        """The cosines of these documents, whatever the facets; those that have no vector are left out."""
        return self._vectors.likeness(self._question, keys)


class VectorIndex(VectorStore):
    """An open vector index. Usable from several threads; several processes may hold it open."""

    @staticmethod
    def recipe(embedder: Embedder | type[Embedder]) -> Recipe:
        """What determines an answer: how vectors are made, and how many codes are looked at more closely."""
        ours = {"format": FORMAT, "nearest": _NEAREST, "facets": FACETS_VERSION}
        return Recipe("vectors", 1, {**ours, **dict(embedder.params)})  # type: ignore[arg-type]

    @staticmethod
    def open(
        directory: Path, embedder: Embedder, *, close: Callable[[], None] | None = None, calibrated: bool = False
    ) -> VectorIndex:
        """Opens the index of a directory; makes it when there is none.

        `close` is called when it is closed; `calibrated` says that its state tells from which likeness on something is
        shown (see `calibration`).

        Raises:
            IndexDamaged: the file is not an index that this version can read; remove it and build it anew.
        """
        db = open_cache(directory / FILE, SCHEMA, FORMAT, WHAT)
        with named_errors(WHAT):
            db.execute("PRAGMA secure_delete=ON")  # a code tells about its text: dropped, its bytes are overwritten
        return VectorIndex(db, directory, embedder, close, calibrated)

    # Changing

    def apply(
        self,
        add: Iterable[Document] = (),
        retire: Iterable[str] = (),
        revive: Iterable[str] = (),
        drop: Iterable[str] = (),
        *,
        state: Mapping[str, str] | None = None,
    ) -> Applied:
        """Adds, retires, revives and drops documents, in this order, and notes the state reached: all or nothing.

        Adding a known key revives it and embeds nothing. `add` is read once and never held whole.

        Raises:
            ValueError: a key is not 40 hex characters.
            IndexDamaged, Unavailable: the file cannot be read, or not be written now.
        """
        added, changed, missing = 0, [0, 0, 0], []
        with self._changing():
            source = iter(add)
            while batch := list(islice(source, _CHUNK)):
                fresh, known = self._add(batch)
                added, changed[1] = added + fresh, changed[1] + known
            for n, keys, status in ((0, retire, RETIRED), (1, revive, LIVE), (2, drop, DROPPED)):
                wanted = dict.fromkeys(raw_key(key) for key in keys)
                found = self._mark(list(wanted), status)
                changed[n] += len(found)
                missing += [key.hex() for key in wanted if key not in found]
            if state is not None:
                self._db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", list(state.items()))
            if added or any(changed):
                self._db.execute("UPDATE meta SET value = value + 1 WHERE name = 'generation'")
        return Applied(added, changed[0], changed[1], changed[2], tuple(missing))

    def _add(self, documents: Sequence[Document]) -> tuple[int, int]:
        """Embeds those that are new; returns how many, and how many were known."""
        by_key = {raw_key(document.key): document for document in documents}
        known = {key for key, _, _ in self._placed(list(by_key))}
        self._mark(list(known), LIVE)
        fresh = [(key, document) for key, document in by_key.items() if key not in known]
        passages = [Passage(document.title, " ".join((document.text, *document.tags))) for _, document in fresh]
        vectors = self.embedder.embed(passages)
        kinds = self._kinds([document.facets for _, document in fresh])
        last = self._db.execute("SELECT id, first, size FROM chunks ORDER BY id DESC LIMIT 1").fetchone() or (0, 0, 0)
        room = _OPEN - last[2] if last[0] and last[2] < _OPEN and len(fresh) <= _OPEN else 0
        rows = [(key, kind, vector) for (key, _), kind, vector in zip(fresh, kinds, vectors, strict=True)]
        number = last[1] + last[2]
        self._write(number, b"".join(vectors))
        self._append(last[0], number, rows[:room])
        for at in range(room, len(rows), _CHUNK):
            self._append(0, number + at, rows[at : at + _CHUNK])
        return len(fresh), len(known)

    def _append(self, chunk: int, number: int, rows: Sequence[tuple[bytes, int, bytes]]) -> None:
        """Puts documents, numbered from `number` on, behind those of a chunk; 0 makes a new one."""
        if not rows:
            return
        if not chunk:
            add = "INSERT INTO chunks VALUES (NULL, 0, ?, 0, x'', x'', x'', x'', x'') RETURNING id"
            chunk = self._db.execute(add, (number,)).fetchone()[0]
        read = "SELECT size, status, keys, kinds, norms, codes FROM chunks WHERE id = ?"
        size, status, keys, kinds, norms, codes = self._db.execute(read, (chunk,)).fetchone()
        self._db.execute(
            "UPDATE chunks SET version = version + 1, size = ?, status = ?, keys = ?, kinds = ?, norms = ?, codes = ?"
            " WHERE id = ?",
            (
                size + len(rows), status + bytes(len(rows)), keys + b"".join(key for key, _, _ in rows),
                kinds + b"".join(kind.to_bytes(4, "little") for _, kind, _ in rows),
                norms + _norms_of([vector for _, _, vector in rows]),
                codes + b"".join(code_of(vector) for _, _, vector in rows), chunk,
            ),
        )  # fmt: skip
        self._db.executemany(
            "INSERT INTO documents VALUES (?, ?, ?)",
            sorted((key, chunk, number + n) for n, (key, _, _) in enumerate(rows)),
        )

    def _write(self, number: int, data: bytes) -> None:
        """Puts vectors in their place in the file."""
        try:
            at = number * self.embedder.dimensions
            while data:
                written = os.pwrite(self._file, data, at)
                data, at = data[written:], at + written
        except OSError as error:
            raise Unavailable(f"{WHAT} cannot be written now.", why=str(error), remedy="Try again.") from error

    def _kinds(self, sets: Sequence[tuple[str, ...]]) -> list[int]:
        texts = ["\n".join(sorted(facets)) for facets in sets]
        known: dict[str, int] = {}
        for text in dict.fromkeys(texts):
            row = self._db.execute("SELECT id FROM kinds WHERE facets = ?", (text,)).fetchone()
            if row is None:
                row = self._db.execute("INSERT INTO kinds VALUES (NULL, ?) RETURNING id", (text,)).fetchone()
            known[text] = row[0]
        return [known[text] for text in texts]

    def _mark(self, keys: Sequence[bytes], status: int) -> set[bytes]:
        """Gives documents this status, dropped ones lose their vectors; returns those that there are."""
        places: dict[int, list[int]] = {}
        found = self._placed(keys)
        for _, chunk, number in found:
            places.setdefault(chunk, []).append(number)
        for chunk, numbers in places.items():
            read = "SELECT first, status, keys, norms, codes FROM chunks WHERE id = ?"
            first, *columns = self._db.execute(read, (chunk,)).fetchone()
            former, *rows = map(bytearray, columns)
            changed = bytearray(former)
            for number in numbers:
                changed[number - first] = status
            if changed == former:
                continue
            self._db.execute("UPDATE chunks SET version = version + 1, status = ? WHERE id = ?", (changed, chunk))
            if status == DROPPED:
                width = self.embedder.dimensions
                for number in numbers:
                    for row, size in zip(rows, (KEY, 4, width // 8), strict=True):
                        at = (number - first) * size
                        row[at : at + size] = bytes(size)
                    self._write(number, bytes(width))
                self._db.execute("UPDATE chunks SET keys = ?, norms = ?, codes = ? WHERE id = ?", (*rows, chunk))
        if status == DROPPED:
            self._db.executemany("DELETE FROM documents WHERE key = ?", [(key,) for key, _, _ in found])
        return {key for key, _, _ in found}

    # Searching

    def search(
        self, text: str, weigh: Callable[[str], float], facets: Sequence[Sequence[str]] = (), *,
        include_retired: bool = False,
    ) -> Near:  # fmt: skip
        """What is near a question; `weigh` tells how much each of its words counts, see `Embedder`.

        `facets` are groups: a document is among the nearest when it has at least one facet of each.
        """
        return Near(self, self.embedder.embed_question(text, weigh), facets, RETIRED if include_retired else LIVE)

    def nearest(
        self, question: bytes, n: int, facets: Sequence[Sequence[str]], passages: bool | None, most: int
    ) -> list[tuple[str, float]]:
        """See `Near.nearest`; `most` is the highest status that is shown."""
        if not any(question):
            return []
        groups = [*facets, *([] if passages is None else [["in:journal" if passages else "in:notes"]])]
        with self._reading() as view:
            allowed = _allowed(view, tuple(tuple(group) for group in groups))
            if 1 not in allowed:
                return []
            code, among = code_of(question), max(_NEAREST, n)
            if "numpy" in sys.modules or view.size > _PLAIN:
                from memoranda.index._near import alike

                asked = memoryview(question).cast("b").tolist()
                found = alike(view, asked, code, self._map, allowed, most, among, n)
            else:
                found = self._cosines(view, question, _chunks.nearest(view, code, allowed, most, among))
                found.sort(key=lambda item: (-item[1], item[0]))
        return [(key.hex(), cosine) for key, cosine in found[:n]]

    def likeness(self, question: bytes, keys: Sequence[str]) -> dict[str, float]:
        """See `Near.of`."""
        with self._reading() as view:
            return dict(self._cosines(view, question, self._numbered(keys)))

    def _numbered(self, keys: Sequence[str]) -> list[tuple[str, int]]:
        """(key, number) of those that there are; what was looked up is kept at hand."""
        known, without = self._numbers, self._without
        if missing := [key for key in keys if key not in known and key not in without]:
            if len(known) + len(without) > _MOST_KNOWN:
                known.clear()
                without.clear()
                missing = list(keys)
            found = {key.hex(): number for key, _, number in self._placed([raw_key(key) for key in missing])}
            known.update(found)
            without.update(key for key in missing if key not in found)
        return [(key, known[key]) for key in keys if key in known]

    def _cosines(self, view: View, question: bytes, named: Sequence[tuple[K, int]]) -> list[tuple[K, float]]:
        asked = memoryview(question).cast("b").tolist()
        numbers = [number for _, number in named]
        if "numpy" in sys.modules and len(numbers) > _FEW:
            from memoranda.index import _near

            rows = _near.rows_of(self._map(numbers), len(question), numbers)
            cosines = _near.cosines_of(asked, rows, _near.norms_of(view, len(question), numbers))
            return [(key, cosine) for (key, _), cosine in zip(named, cosines.tolist(), strict=True)]
        size = sum(map(mul, asked, asked))
        vectors, norms = self._vectors(numbers), recorded(view, numbers)
        for vector, norm in zip(vectors, norms, strict=True):
            require(len(vector) == len(question) and any(vector), norm > 0)
        products = _chunks.products(asked, vectors)
        return [
            (key, product / sqrt(size * norm) if size and norm else 0.0)
            for (key, _), norm, product in zip(named, norms, products, strict=True)
        ]


def code_of(vector: bytes) -> bytes:
    """The signs of a vector: bit 1 where a number is above zero, the first dimension in the highest bit."""
    return int(vector.translate(_SIGNS), 2).to_bytes(len(vector) // 8, "big")


_SIGNS = bytes(49 if 0 < number < 128 else 48 for number in range(256))


def _norms_of(vectors: Sequence[bytes]) -> bytes:
    """The scalar product of each vector with itself, as they are stored."""
    if "numpy" in sys.modules and len(vectors) > _FEW:
        from memoranda.index._near import norms

        return norms(vectors)
    return b"".join([squared(vector).to_bytes(4, "little") for vector in vectors])


def _allowed(view: View, groups: tuple[tuple[str, ...], ...]) -> bytes:
    """One byte a set of facets, by its number: 1 where every group has one of its facets in it."""
    known = view.derived.setdefault(groups, bytearray(1))
    assert isinstance(known, bytearray)
    fresh = view.kinds[len(known) - 1 :]
    passing = [True] * len(fresh)
    for group in groups:  # two thousand kinds are usual: no generator for each
        meets = [False] * len(fresh)
        for facet in group:
            line = f"\n{facet}\n"
            meets = [met or line in kind for met, kind in zip(meets, fresh, strict=True)]
        passing = [a and b for a, b in zip(passing, meets, strict=True)]
    known += bytes(passing)
    return bytes(known)
