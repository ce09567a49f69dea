"""The bundled embedder: a table with a vector for each of 32,000 pieces of words, made for English, from `wordllama`.

The vector of a text is the sum of the pieces of its words, small words left out; in a question each word counts as
much as it is rare. That weighting is ours and is what makes the table useful: alone it finds half as much again.
Only the two data files of the package are read, none of its code is imported. Everything is done in whole numbers, so
that a text has the same vector on every machine, with numpy and without it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.machinery import PathFinder
from itertools import chain, repeat
from operator import add, mul
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.errors import IndexDamaged, Unavailable
from memoranda.index._at_hand import numpy_at_hand
from memoranda.index._stopwords import ENGLISH, ENGLISH_ONLY, FRENCH, FRENCH_ONLY
from memoranda.index.analysis import fold
from memoranda.index.embedding import Passage, Weigh, scaled
from memoranda.notes.lazyre import lazy

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIMENSIONS = 256
_PIECES = 32_000
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_WEIGHTS_SHA256 = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
_VOCABULARY = "tokenizers/l2_supercat_tokenizer_config.json"
_VERSION = 1  # of how words are found, cut into pieces and summed
_SCALE = 2048  # of the table's numbers, of which the largest is 8.02, to 16-bit integers
_LONGEST = 24  # characters of a piece
_ALONE = 1  # of a piece with two characters that no longer one begins with
_START = "\u2581"  # before the first piece of a word
_FEW = 24  # texts for which numpy is not imported, nor the whole table read
_BATCH = 512
_BLOCK = 1024
_MANY_PIECES = 5_000  # looked for one by one; then all are read, which takes as long as that did
_MOST_WORDS = 200_000  # whose pieces are kept
_MOST_ASKED = 4_000  # 4 MB
_WIDE = 100_000  # pieces of a text from which each is counted first; their sum may need more than 32 bits
_LONG_WORD = 2_000  # characters; of a longer run of letters, which nobody asks for, no more than these count
_ROW = f"<{DIMENSIONS}e"
_WORD = lazy(r"[^\W_]+")
_SMALL = ENGLISH | ENGLISH_ONLY | FRENCH | FRENCH_ONLY
_FILE = f"{_WEIGHTS_SHA256[:12]}.pieces"
_CHECKED = f"{_WEIGHTS_SHA256[:12]}.checked"


def installed() -> Path | None:
    """The folder of the package with the table, if it is installed; nothing of it is imported."""
    found = PathFinder.find_spec("wordllama", sys.path)
    places = found.submodule_search_locations if found else None
    folder = Path(next(iter(places))) if places else None
    return folder if folder is not None and (folder / _WEIGHTS).is_file() else None


class StaticEmbedder:
    """Vectors of 256 dimensions from the table.

    Args:
        folder: the package's, see `installed`.
        directory: where the list of pieces is kept in a form that is quickly opened, and that the table was checked;
            both are made when they are missing.
    """

    dimensions = DIMENSIONS
    params: Mapping[str, object] = {"model": "wordllama-256", "weights": _WEIGHTS_SHA256, "words": _VERSION}

    def __init__(self, folder: Path, directory: Path) -> None:
        self._folder = folder
        self._directory = directory
        self._words = _Words(self._pieces_of)
        self._asked: dict[str, array[int]] = {}  # word of a question -> its vector

    def embed(self, passages: Sequence[Passage]) -> list[bytes]:
        if len(passages) <= _FEW and numpy_at_hand() is None:
            return [self._one(passage) for passage in passages]
        found: list[bytes] = []
        for at in range(0, len(passages), _BATCH):
            found += self._many(passages[at : at + _BATCH])
        return found

    def embed_question(self, text: str, weigh: Weigh) -> bytes:
        if np := numpy_at_hand():  # the same sums in the same order, and so the same bits
            total = np.zeros(DIMENSIONS)
            for weight, vector in self._weighed(text, weigh):
                total += np.frombuffer(vector, np.intc) * weight
            numbers = np.rint(total * 64).astype(np.int64)
            most = int(np.abs(numbers).max())  # as `scaled`
            return ((254 * numbers + most) // (2 * most)).astype(np.int8).tobytes() if most else bytes(DIMENSIONS)
        plain: Sequence[float] = [0.0] * DIMENSIONS
        for weight, vector in self._weighed(text, weigh):
            plain = list(map(add, plain, map(mul, vector, repeat(weight))))
        return scaled([round(number * 64) for number in plain])

    def _weighed(self, text: str, weigh: Weigh) -> Iterator[tuple[float, array[int]]]:
        """The words of a question that are known, each with its weight."""
        for word in _WORD.findall(text):
            pieces = self._words[word]
            weight = weigh(word) if pieces else 0.0
            if weight:
                vector = self._asked.get(word)
                if vector is None:
                    if len(self._asked) >= _MOST_ASKED:
                        self._asked.clear()
                    vector = self._asked[word] = self._summed(pieces)
                yield weight, vector

    def check(self) -> None:
        """Raises Unavailable when the table's bytes are not those that the recipe names: another version of the
        package never continues what this one began. The same file is read for it once."""
        file = (self._folder / _WEIGHTS).stat()
        seen = f"{file.st_size} {file.st_mtime_ns} {file.st_ino}"
        note = self._directory / _CHECKED
        try:
            if note.read_text(encoding="ascii") == seen:
                return
        except (FileNotFoundError, UnicodeDecodeError):
            pass
        if hashlib.sha256((self._folder / _WEIGHTS).read_bytes()).hexdigest() != _WEIGHTS_SHA256:
            raise Unavailable(
                "The table of the package wordllama is not the one that vectors are made with.",
                remedy="Install a version that pyproject.toml allows; meanwhile recall goes by the words alone.",
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        draft = self._directory / f"{_CHECKED}.{os.getpid()}"
        draft.write_text(seen, encoding="ascii")
        draft.replace(note)

    def close(self) -> None:
        """Lets go of the table; it is mapped again for whoever asks once more."""
        self.__dict__.pop("_mapped_matrix", None)
        mapped = self.__dict__.pop("_table", None)
        if mapped is not None:
            with suppress(BufferError):  # a thread is reading it at this moment, and lets go of it with its answer
                mapped[0].close()

    def _one(self, passage: Passage) -> bytes:
        return scaled(self._sum(self._all_pieces(passage)))

    def _many(self, passages: Sequence[Passage]) -> list[bytes]:
        import numpy as np

        much = len(passages) > _FEW
        if much and not self._lookup.longest:
            self._lookup.load()
        if len(self._words) > _MOST_WORDS:
            self._words.clear()
        sums = np.zeros((len(passages), DIMENSIONS), np.int64)
        for n, passage in enumerate(passages):
            pieces = self._all_pieces(passage)
            if len(pieces) > _WIDE:
                sums[n] = self._sum_of_many(pieces, much=much)
            elif pieces:
                rows = self._matrix[pieces] if much else _whole(self._mapped_matrix[pieces])
                sums[n] = rows.sum(axis=0, dtype=np.int32)
        # In whole numbers: (254 * sums + most) // (2 * most). Numbers of this size are exact as floats, and a quotient
        # that is no whole number is further from one than rounding reaches; dividing floats is much faster.
        exact = sums.astype(np.float64)
        most = np.maximum(np.abs(exact).max(axis=1, keepdims=True), 1)
        raw = np.floor((254 * exact + most) / (2 * most)).astype(np.int8).tobytes()
        return [raw[at : at + DIMENSIONS] for at in range(0, len(raw), DIMENSIONS)]

    def _sum_of_many(self, pieces: Sequence[int], *, much: bool) -> npt.NDArray[np.int64]:
        """The same of a long text, each piece of the table once: memory and time are bounded by the table."""
        import numpy as np

        which, times = np.unique(np.asarray(pieces), return_counts=True)
        total = np.zeros(DIMENSIONS, np.int64)
        for at in range(0, len(which), _BLOCK):
            part = which[at : at + _BLOCK]
            rows = self._matrix[part] if much else _whole(self._mapped_matrix[part])
            total += times[at : at + _BLOCK].astype(np.int64) @ rows.astype(np.int64)
        return total

    def _all_pieces(self, passage: Passage) -> list[int]:
        words = _WORD.findall(f"{passage.title}\n{passage.text}")
        return list(chain.from_iterable(map(self._words.__getitem__, words)))

    def _summed(self, pieces: Sequence[int]) -> array[int]:
        if np := numpy_at_hand():
            found = array("i")
            found.frombytes(_whole(self._mapped_matrix[list(pieces)]).sum(axis=0, dtype=np.intc).tobytes())
            return found
        return array("i", self._sum(pieces))

    def _sum(self, pieces: Sequence[int]) -> Sequence[int]:
        table, start = self._table
        total: Sequence[int] = [0] * DIMENSIONS
        for piece, times in Counter(pieces).items():  # a text of any length has no more pieces than the table
            numbers = struct.unpack_from(_ROW, table, start + 2 * DIMENSIONS * piece)
            total = list(map(add, total, [times * round(number * _SCALE) for number in numbers]))
        return total

    def _pieces_of(self, word: str) -> Iterator[int]:
        """The longest piece that a word begins with, then the longest that follows; what is no piece is passed over."""
        lookup = self._lookup
        find, longest = lookup.__getitem__, lookup.longest
        at = 0
        while at < len(word):
            most = longest.get(word[at : at + 2], _ALONE) if longest else _LONGEST
            for end in range(min(len(word), at + most), at, -1):
                piece = find(word[at:end])
                if piece is not None:
                    if word[at:end] != _START:
                        yield piece
                    at = end
                    break
            else:
                at += 1

    @cached_property
    def _matrix(self) -> npt.NDArray[np.int16]:
        """The table as whole numbers: (pieces, dimensions)."""
        import numpy as np

        matrix = np.empty((_PIECES, DIMENSIONS), np.int16)
        for first in range(0, _PIECES, _BLOCK):  # all at once would take 100 MB for a moment
            matrix[first : first + _BLOCK] = _whole(self._mapped_matrix[first : first + _BLOCK])
        return matrix

    @cached_property
    def _mapped_matrix(self) -> npt.NDArray[np.float16]:
        """The table as it lies in the file: a process that embeds a text now and then holds no other."""
        import numpy as np

        table, start = self._table
        return np.frombuffer(table, "<f2", _PIECES * DIMENSIONS, start).reshape(_PIECES, DIMENSIONS)

    @cached_property
    def _table(self) -> tuple[mmap.mmap, int]:
        """The mapped file, and where its first vector begins: a length, a header in JSON, 16-bit floats."""
        with (self._folder / _WEIGHTS).open("rb") as file:
            table = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (header,) = struct.unpack_from("<Q", table)
        start = 8 + header
        if len(table) != start + 2 * DIMENSIONS * _PIECES:
            self.check()
        return table, start

    @cached_property
    def _lookup(self) -> _Pieces:
        path = self._directory / _FILE
        if not path.is_file():
            self.check()
            _write_pieces(self._folder / _VOCABULARY, path)
        return _Pieces(path.read_bytes())


def _whole(floats: npt.NDArray[np.float16]) -> npt.NDArray[np.int16]:
    import numpy as np

    found: npt.NDArray[np.int16] = np.rint(floats.astype(np.float32) * np.float32(_SCALE)).astype(np.int16)
    return found


class _Words(dict[str, tuple[int, ...]]):
    """Word -> its pieces; none for a small one."""

    def __init__(self, pieces_of: Callable[[str], Iterable[int]]) -> None:
        super().__init__()
        self._pieces_of = pieces_of

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONG_WORD:  # is not kept either, with megabytes for a key
            return tuple(self._pieces_of(_START + word[:_LONG_WORD]))
        found = self[word] = () if fold(word) in _SMALL else tuple(self._pieces_of(_START + word))
        return found


class _Pieces(dict[str, "int | None"]):
    """Piece -> its place in the table. In a file, sorted, since reading the package's own list takes 25 ms.

    When all of them are loaded, `longest` says how long a piece with these first two characters can be.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__()
        count, size = struct.unpack_from("<II", data)
        self._ends = array("I", data[8 : 8 + 4 * count])
        self._places = array("I", data[8 + 4 * count : 8 + 8 * count])
        self._bytes = data[8 + 8 * count :]
        self._missed = 0
        self._whole = False
        self.longest: dict[str, int] = {}
        if len(self._bytes) != size or len(self._ends) != count:
            raise IndexDamaged("The list of pieces is damaged.", remedy="Run `memoranda index rebuild`.")

    def __missing__(self, piece: str) -> int | None:
        if self._whole:
            return None
        self._missed += 1
        if self._missed > _MANY_PIECES:  # a process that lives long and is told of ever new words
            self.load()
            return self.get(piece)
        found = self[piece] = self._found(piece.encode("utf-8", "replace"))
        return found

    def load(self) -> None:
        """All of them at once, for many words; a miss is a miss from then on."""
        starts, longest = [0, *self._ends[:-1]], dict[str, int]()
        for start, end, place in zip(starts, self._ends, self._places, strict=True):
            piece = self._bytes[start:end].decode()
            self[piece] = place
            longest[piece[:2]] = max(longest.get(piece[:2], 0), len(piece))
        self.longest, self._whole = longest, True  # at once, for another thread

    def _found(self, piece: bytes) -> int | None:
        at = bisect_left(range(len(self._ends)), piece, key=self._piece)
        if at < len(self._ends) and self._piece(at) == piece:
            return self._places[at]
        return None

    def _piece(self, at: int) -> bytes:
        return self._bytes[self._ends[at - 1] if at else 0 : self._ends[at]]


def _write_pieces(source: Path, target: Path) -> None:
    vocabulary: dict[str, int] = json.loads(source.read_text(encoding="utf-8"))["model"]["vocab"]
    pieces = sorted((piece.encode(), place) for piece, place in vocabulary.items() if place < _PIECES)
    ends, at = array("I"), 0
    for piece, _ in pieces:
        at += len(piece)
        ends.append(at)
    places = array("I", [place for _, place in pieces])
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    head = struct.pack("<II", len(pieces), at)
    draft.write_bytes(b"".join([head, ends.tobytes(), places.tobytes(), *(piece for piece, _ in pieces)]))
    draft.replace(target)
