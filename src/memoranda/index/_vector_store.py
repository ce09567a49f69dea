"""What a vector index has stored: a file of vectors, an SQLite file that says which documents there are, and
the view of both that a search works on."""

from __future__ import annotations

import mmap
import os
import sqlite3
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import mul
from pathlib import Path

from memoranda.index._chunks import Chunk, View
from memoranda.index.among import among
from memoranda.index.documents import KEY, raw_key
from memoranda.index.embedding import Embedder
from memoranda.index.journal_mode import damaged, named_errors, transaction
from memoranda.index.lexical import Counts

FILE = "vectors.sqlite"
VECTORS = "vectors.bin"
WHAT = "The vector index"
FORMAT = 2
LIVE, RETIRED, DROPPED = 0, 1, 2
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, version INTEGER NOT NULL, first INTEGER NOT NULL, size INTEGER NOT NULL, status BLOB NOT NULL,
  keys BLOB NOT NULL, kinds BLOB NOT NULL, norms BLOB NOT NULL, codes BLOB NOT NULL);
CREATE TABLE kinds (id INTEGER PRIMARY KEY, facets TEXT NOT NULL UNIQUE);
CREATE TABLE documents (key BLOB PRIMARY KEY, chunk INTEGER NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('generation', 0);
"""


class VectorStore:
    """An open vector index as it is stored. Usable from several threads; several processes may hold it open."""

    def __init__(
        self, connection: sqlite3.Connection, directory: Path, embedder: Embedder, close: Callable[[], None] | None,
        calibrated: bool,
    ) -> None:  # fmt: skip
        self.directory = directory
        self.embedder = embedder
        self.calibrated = calibrated
        self._closes = close
        self._db = connection
        self._lock = threading.RLock()
        self._view: View | None = None
        self._mapped: mmap.mmap | None = None
        self._numbers: dict[str, int] = {}  # by key, of those that were looked up, until one of them goes
        self._without: set[str] = set()  # those that have no vector in the present generation
        # Held open: when `.memoranda/` is deleted under our hands, nothing is written into what takes its place.
        self._file = os.open(directory / VECTORS, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        with self._lock:
            self._db.close()
            self._view = None
            if self._mapped is not None:
                self._mapped.close()
                self._mapped = None
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
                if self._closes is not None:
                    self._closes()

    def rest(self) -> None:
        """Gives back what is held in memory and read again by whoever asks next; it stays open."""
        with self._lock, named_errors(WHAT):
            self._view = None
            self._numbers.clear()
            self._without.clear()
            self._db.execute("PRAGMA shrink_memory")

    # What is in it

    def mark(self) -> tuple[int, int]:
        """Another one after every change, by this process or another."""
        with self._lock, named_errors(WHAT):
            return self._db.execute("PRAGMA data_version").fetchone()[0], self._db.total_changes

    def state(self) -> dict[str, str]:
        """What the last `apply` said that it reached."""
        with self._reading():
            return dict(self._db.execute("SELECT name, value FROM state"))

    def counts(self) -> Counts:
        """How many documents have a vector, and how many of them are kept for history only."""
        with self._reading() as view:
            return Counts(
                sum(chunk.status.count(LIVE) for chunk in view.chunks),
                sum(chunk.status.count(RETIRED) for chunk in view.chunks),
            )

    def known(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that it holds, retired ones included."""
        with self._reading():
            return {key.hex() for key, _, _ in self._placed([bytes.fromhex(key) for key in keys])}

    def keys(self) -> set[str]:
        """The keys of all documents, retired ones included."""
        with self._reading():
            return {key.hex() for (key,) in self._db.execute("SELECT key FROM documents")}

    def check(self) -> None:
        """Reads everything. Raises IndexDamaged when the file or what it says does not hold together."""
        with self._reading() as view:
            problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            held = self._db.execute("SELECT count(*) FROM documents").fetchone()[0]
            code = self.embedder.dimensions // 8
            whole = all(
                (len(c.status), len(c.keys), len(c.kinds), len(c.norms), len(c.codes))
                == (n, n * KEY, n * 4, n * 4, n * code)
                for c in view.chunks
                for n in (c.size,)
            )
            present = sum(chunk.size - chunk.status.count(DROPPED) for chunk in view.chunks)
            if problem != "ok" or not whole or held != present:
                raise damaged(WHAT, problem if problem != "ok" else "what it counts differs")
            for chunk in view.chunks:
                numbers = [chunk.first + n for n, status in enumerate(chunk.status) if status != DROPPED]
                for vector, norm in zip(self._vectors(numbers), recorded(view, numbers), strict=True):
                    require(squared(vector), norm)

    def vectors_of(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The vectors of these documents; those that have none are left out."""
        with self._reading():
            placed = self._placed([raw_key(key) for key in keys])
            vectors = self._vectors([number for _, _, number in placed])
            return {key.hex(): vector for (key, _, _), vector in zip(placed, vectors, strict=True)}

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One change, in a transaction; a view that was read inside it is not kept when it fails."""
        with self._lock, named_errors(WHAT):
            try:
                with transaction(self._db):
                    yield
            except BaseException:
                self._view = None
                raise

    def _vectors(self, numbers: Sequence[int]) -> list[bytes]:
        """The vectors with these numbers; shorter where the file ends."""
        width, mapped = self.embedder.dimensions, self._map(numbers)
        return [mapped[number * width : number * width + width] for number in numbers]

    def _map(self, numbers: Sequence[int]) -> mmap.mmap | bytes:
        """The file as far as these numbers, or as far as it goes."""
        if not numbers:
            return b""
        if self._mapped is None or len(self._mapped) < (max(numbers) + 1) * self.embedder.dimensions:
            if self._mapped is not None:
                self._mapped.close()
                self._mapped = None
            try:
                self._mapped = mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError) as error:
                raise damaged(WHAT, str(error)) from error
        return self._mapped

    def _placed(self, keys: Sequence[bytes]) -> list[tuple[bytes, int, int]]:
        """(key, chunk, number) of those that there are."""
        return list(among(self._db, "SELECT key, chunk, number FROM documents WHERE key IN (?*)", keys))

    @contextmanager
    def _reading(self) -> Iterator[View]:
        """The present view, and one snapshot of the file for whatever else is read meanwhile."""
        with self._lock, named_errors(WHAT):
            inside = self._db.in_transaction
            if not inside:
                self._db.execute("BEGIN")
            try:
                yield self._refreshed()
            finally:
                if not inside:
                    self._db.execute("COMMIT")

    def _refreshed(self) -> View:
        (generation,) = self._db.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
        former = self._view
        if former is None or former.generation != generation:
            held = {chunk.id: chunk for chunk in former.chunks} if former else {}
            chunks = []
            for number, version in self._db.execute("SELECT id, version FROM chunks ORDER BY id").fetchall():
                chunk = held.get(number)
                if chunk is None or chunk.version != version:
                    read = "SELECT id, version, first, size, status, keys, kinds, norms, codes FROM chunks WHERE id = ?"
                    chunk = Chunk(*self._db.execute(read, (number,)).fetchone())
                chunks.append(chunk)
            kinds = former.kinds if former else []  # they only ever become more
            for (facets,) in self._db.execute("SELECT facets FROM kinds WHERE id > ? ORDER BY id", (len(kinds),)):
                kinds.append(f"\n{facets}\n")
            self._without.clear()
            if former is None or not _only_grown(former.chunks, chunks):
                self._numbers.clear()
            self._view = View(generation, tuple(chunks), kinds, {} if former is None else former.derived)
        assert self._view is not None
        return self._view


def _only_grown(former: Sequence[Chunk], chunks: Sequence[Chunk]) -> bool:
    """Whether all documents that there were have kept their status, so that none of them went."""
    pairs = zip(former, chunks, strict=False)
    return len(chunks) >= len(former) and all(
        old is new or (old.id == new.id and new.status.startswith(old.status)) for old, new in pairs
    )


def squared(vector: bytes) -> int:
    """The scalar product of a vector with itself."""
    numbers = memoryview(vector).cast("b").tolist()
    return sum(map(mul, numbers, numbers))


def recorded(view: View, numbers: Sequence[int]) -> list[int]:
    """The same as it was recorded of the vectors with these numbers."""
    firsts = [chunk.first for chunk in view.chunks]
    found = []
    for number in numbers:
        chunk = view.chunks[bisect_right(firsts, number) - 1]
        at = (number - chunk.first) * 4
        found.append(int.from_bytes(chunk.norms[at : at + 4], "little"))
    return found


def require(seen: object, told: object) -> None:
    """IndexDamaged when they differ."""
    if seen != told:
        raise damaged(WHAT, "a vector is not the one that was written")
