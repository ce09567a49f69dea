"""Many documents at once into one segment, with numpy. Gives the same rows as `row_of` and `_segments.Builder`.

No token holds white space, so what a run of characters between white space means is looked up once and kept; then a
document is a list of numbers, and counting and turning round is done for thousands of them in one go.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from memoranda.index import _stopwords as stop
from memoranda.index import analysis
from memoranda.index._facets import facet_term
from memoranda.index._segments import (
    BUILD_DOCUMENTS,
    BUILD_POSTINGS,
    INSERT_POSTINGS,
    pack_facet,
    write_documents,
)
from memoranda.index._store import LIVE, MOST_FREQUENCY, MOST_LENGTH
from memoranda.index.analysis import SUBJECT_WEIGHT, TAG_WEIGHT, TITLE_WEIGHT, Language
from memoranda.index.documents import JOURNAL, Document, raw_key
from memoranda.index.traits import MEANT, PASSAGE, shape_of, signs_of, traits_of_signs

Numbers = npt.NDArray[np.uint32]
Small = npt.NDArray[np.uint8]
_BLOCK, _BLOCK_RUNS = 2048, 500_000  # documents, and runs in them, that are turned into postings in one go
MOST_RUNS = 120_000  # different runs kept in memory from one segment to the next, some 40 MB; more are forgotten
_LANGUAGES: tuple[Language, Language] = ("en", "fr")
_DOCUMENT_BITS = np.uint64(16)  # the lower bits of a posting: the document; above them the term
_SIGNS = {word: n for n, word in enumerate([*sorted(stop.ENGLISH_SIGNS), *sorted(analysis.FRENCH_SIGNS)])}
_ENGLISH = len(stop.ENGLISH_SIGNS)
_SIGN_BITS = 9
_WEIGHTS = sorted({1, TITLE_WEIGHT, SUBJECT_WEIGHT, TAG_WEIGHT})
_FRENCH_LOOK = 128  # among the signs of a run


class _Ragged:
    """Lists of numbers of different lengths, by number; what is not known yet has the length -1."""

    def __init__(self) -> None:
        self.values = array("I")
        self.starts = array("I")
        self.sizes = array("i")

    def grow(self, size: int) -> None:
        more = size - len(self.starts)
        self.starts.extend([0] * more)
        self.sizes.extend([-1] * more)

    def append(self, values: Sequence[int]) -> None:
        self.starts.append(len(self.values))
        self.sizes.append(len(values))
        self.values.extend(values)

    def set(self, number: int, values: Sequence[int]) -> None:
        self.starts[number], self.sizes[number] = len(self.values), len(values)
        self.values.extend(values)

    def spread(self, numbers: Numbers, owners: Numbers) -> tuple[Numbers, Numbers]:
        """Every value of each of these lists, and the owner of the list it came from."""
        sizes = np.frombuffer(self.sizes, np.int32)[numbers]
        starts = np.frombuffer(self.starts, np.uint32)[numbers]
        most = int(sizes.max(initial=0))
        if most <= 1:
            here = sizes == 1
            return np.frombuffer(self.values, np.uint32)[starts[here]], owners[here]
        ends = np.cumsum(sizes)
        places = np.arange(int(ends[-1]), dtype=np.int64) + np.repeat(starts - (ends - sizes), sizes)
        return np.frombuffer(self.values, np.uint32)[places], np.repeat(owners, sizes)


class Vocabulary(dict[str, int]):
    """Numbers the runs in the order in which they are first asked for, and knows what each means."""

    def __init__(self) -> None:
        self.tokens: list[tuple[str, ...]] = []
        self.counts = array("I")  # tokens
        self.capitals = array("I")
        self.named = array("I")  # the number of what the capitals of a run mean, when they are names; 0: nothing
        self.flags = bytearray()
        self.signs = _Ragged()
        self.terms: dict[Language, _Ragged] = {language: _Ragged() for language in _LANGUAGES}
        self.term_numbers: dict[str, int] = {}
        self.term_texts: list[str] = []
        self._new("", (), 0, 0)  # number 0: an empty text

    def __missing__(self, run: str) -> int:
        named, shouted = 0, []
        if run.isascii() and run.isalnum() and run.lower() == run:
            tokens: tuple[str, ...] = (run,)  # what most are
        else:
            tokens, shouted = tuple(analysis.tokens_of_run(run)), analysis.capitals_of(run)
            if meant := analysis.marked(shouted):
                named = self._new("", tuple(meant), 0, 0)
        number = self._new(run, tokens, len(shouted), named)
        self[run] = number
        return number

    def _new(self, run: str, tokens: tuple[str, ...], capitals: int, named: int) -> int:
        number = len(self.tokens)
        self.tokens.append(tokens)
        self.counts.append(len(tokens))
        self.capitals.append(capitals)
        self.named.append(named)
        flags = 0 if run.isalpha() and MEANT.isdisjoint(tokens) else signs_of(run, frozenset(tokens))
        if (not run.isascii() or "'" in run) and analysis.looks_french(run):
            flags |= _FRENCH_LOOK
        self.flags.append(flags)
        self.signs.append([_SIGNS[token] for token in tokens if token in _SIGNS])
        return number

    def know(self, numbers: Numbers, language: Language) -> _Ragged:
        """The terms of these runs in this language, by run."""
        known = self.terms[language]
        known.grow(len(self.tokens))
        wanted = np.zeros(len(self.tokens), np.bool_)
        wanted[numbers] = True
        cache, number_of, texts = analysis.caches[language], self.term_numbers, self.term_texts
        for run in np.flatnonzero(wanted & (np.frombuffer(known.sizes, np.int32) < 0)).tolist():
            found = []
            for token in self.tokens[run]:
                for term in cache[token]:
                    number = number_of.get(term)
                    if number is None:
                        number = number_of[term] = len(texts)
                        texts.append(term)
                    found.append(number)
            known.set(run, found)
        return known


class Bulk:
    """Collects documents in memory, as runs; `write` makes one segment of them. At most 65,536 documents."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._keys: list[bytes] = []
        self._status = bytearray()
        self._traits = bytearray()
        self._lengths = array("H")
        self._facets: dict[str, array[int]] = {}
        self._done: list[npt.NDArray[np.uint64]] = []  # postings, unordered, as often as the term counts
        self._postings = 0
        self._begin_block()

    def _begin_block(self) -> None:
        self._first = len(self._keys)
        self._runs = array("I")
        self._sizes = array("I")  # runs of each piece: a text, a title, a subject, a tag
        self._owners = array("I")  # the document of a piece, counted from the first of the block
        self._weights = bytearray()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, document: Document) -> None:
        key, title, subject, text, tags, facets = document
        number = len(self._keys)
        text = analysis.normal(text)
        self._piece(text, 1)
        if title:
            self._piece(analysis.normal(title), TITLE_WEIGHT)
        if subject:
            self._piece(analysis.normal(subject), SUBJECT_WEIGHT)
        for tag in tags:
            self._piece(analysis.normal(tag), TAG_WEIGHT)
        self._keys.append(raw_key(key))
        self._status.append(LIVE)
        self._traits.append(shape_of(text) | (PASSAGE if JOURNAL in facets else 0))
        self._lengths.append(0)
        for facet in dict.fromkeys(map(facet_term, facets)):
            self._hold(facet, number)
        if len(self._keys) - self._first >= _BLOCK or len(self._runs) >= _BLOCK_RUNS:
            self._settle()

    def _piece(self, text: str, weight: int) -> None:
        runs = text.split()
        self._runs.extend(map(self._vocabulary.__getitem__, runs))
        self._sizes.append(len(runs))
        self._owners.append(len(self._keys) - self._first)
        self._weights.append(weight)

    def _hold(self, facet: str, number: int) -> None:
        held = self._facets.get(facet)
        if held is None:
            held = self._facets[facet] = array("H")
        held.append(number)

    def _settle(self) -> None:
        """Turns the documents of the block into postings, and finds their lengths and traits."""
        first, count = self._first, len(self._keys) - self._first
        if not count:
            return
        words = self._vocabulary
        sizes, weights = np.frombuffer(self._sizes, np.uint32), np.frombuffer(self._weights, np.uint8)
        of_piece = np.frombuffer(self._owners, np.uint32)
        runs = np.frombuffer(self._runs, np.uint32)
        pieces = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)
        runs, pieces = self._with_names(runs, pieces, len(sizes))
        owners, weight = of_piece[pieces], weights[pieces]
        french = self._french(runs[weight == 1], owners[weight == 1], runs, owners, weight, count)
        found = []
        for number, language in enumerate(_LANGUAGES):
            here = french[owners] == number
            if not here.any():
                continue
            mine, whose, heavy = runs[here], owners[here], weight[here]
            known = words.know(mine, language)
            for times in _WEIGHTS:
                same = heavy == times
                if not same.any():
                    continue
                terms, documents = known.spread(mine[same], whose[same])
                postings = terms.astype(np.uint64) << _DOCUMENT_BITS | (documents + np.uint32(first))
                found += [postings] * times
        done = np.concatenate(found) if found else np.zeros(0, np.uint64)
        lengths = np.bincount((done & np.uint64(0xFFFF)).astype(np.int64) - first, minlength=count)
        self._lengths[first:] = array("H", np.minimum(lengths, MOST_LENGTH).astype(np.uint16).tobytes())
        self._done.append(done)
        self._postings += len(done)
        self._begin_block()

    def _with_names(self, runs: Numbers, pieces: Numbers, count: int) -> tuple[Numbers, Numbers]:
        """The runs, and what their capitals mean in pieces that do not shout."""
        words = self._vocabulary
        named = np.frombuffer(words.named, np.uint32)[runs]
        if not named.any():
            return runs, pieces
        capitals = np.bincount(pieces, np.frombuffer(words.capitals, np.uint32)[runs], minlength=count)
        tokens = np.bincount(pieces, np.frombuffer(words.counts, np.uint32)[runs], minlength=count)
        here = (named > 0) & (3 * capitals <= tokens + 3)[pieces]
        return np.concatenate((runs, named[here])), np.concatenate((pieces, pieces[here]))

    def _french(
        self, texts: Numbers, in_text: Numbers, runs: Numbers, owners: Numbers, weight: Small, count: int
    ) -> Small:
        """1 for each document of the block that is French, 0 for one that is English; notes their traits too."""
        words, first = self._vocabulary, self._first
        flags = np.frombuffer(words.flags, np.uint8)[texts]
        signs = np.zeros(count, np.uint8)
        for bit in (1, 2, 4, 8, _FRENCH_LOOK):
            signs[in_text[(flags & bit) != 0]] |= bit
        for number, held in enumerate(signs.tolist(), first):
            self._traits[number] |= traits_of_signs(held)
        titled = (weight == 1) | (weight == TITLE_WEIGHT)
        found, whose = words.signs.spread(runs[titled], owners[titled])
        different = _different(whose << np.uint32(_SIGN_BITS) | found)
        whose, english = different >> np.uint32(_SIGN_BITS), (different & np.uint32((1 << _SIGN_BITS) - 1)) < _ENGLISH
        of_english = np.bincount(whose[english], minlength=count)
        of_french = np.bincount(whose[~english], minlength=count)
        looks = (signs & _FRENCH_LOOK) != 0
        french: Small = ((of_french > of_english) | ((of_french == of_english) & looks)).astype(np.uint8)
        return french

    @property
    def keys(self) -> Sequence[bytes]:
        return self._keys

    @property
    def full(self) -> bool:
        """Whether it is time to write it."""
        many = len(self._keys) >= BUILD_DOCUMENTS or self._postings >= BUILD_POSTINGS
        return many or len(self._vocabulary) >= 3 * MOST_RUNS

    def leave_out(self, numbers: set[int]) -> None:
        """Forgets these documents; the others move up."""
        self._settle()
        kept = np.ones(len(self._keys), np.bool_)
        kept[list(numbers)] = False
        places = (np.cumsum(kept) - 1).astype(np.uint64)
        for at, postings in enumerate(self._done):
            documents = (postings & np.uint64(0xFFFF)).astype(np.int64)
            here = kept[documents]
            terms = postings[here] >> _DOCUMENT_BITS << _DOCUMENT_BITS
            self._done[at] = terms | places[documents[here]]
        for facet, held in self._facets.items():
            self._facets[facet] = array("H", [int(places[n]) for n in held if kept[n]])
        self._facets = {facet: held for facet, held in self._facets.items() if held}
        stay = np.flatnonzero(kept).tolist()
        self._keys = [self._keys[n] for n in stay]
        self._status, self._traits = bytearray(self._status[n] for n in stay), bytearray(self._traits[n] for n in stay)
        self._lengths = array("H", [self._lengths[n] for n in stay])
        self._begin_block()

    def write(self, db: sqlite3.Connection, number: int, version: int) -> None:
        """Writes the segment `number`; its terms in order, so that the table grows at its end."""
        self._settle()
        size = len(self._keys)
        rows = [(number, facet, pack_facet(held, size)) for facet, held in self._facets.items()]
        rows += [(number, term, data) for term, data in self._inverted()]
        rows.sort(key=itemgetter(1))
        db.executemany(INSERT_POSTINGS, rows)
        write_documents(db, number, version, self._keys, self._lengths, self._traits, self._status)

    def _inverted(self) -> list[tuple[str, bytes]]:
        """Every term with its documents and frequencies, as they are stored."""
        postings = np.concatenate(self._done) if self._done else np.zeros(0, np.uint64)
        self._done = []
        if not len(postings):
            return []
        postings.sort()
        first = np.ones(len(postings), np.bool_)
        np.not_equal(postings[1:], postings[:-1], out=first[1:])
        terms = postings[first]
        starts = np.flatnonzero(first)
        counts = np.minimum(np.diff(starts, append=len(postings)), MOST_FREQUENCY).astype(np.uint8).tobytes()
        del postings, first, starts  # tens of megabytes each
        documents = (terms & np.uint64(0xFFFF)).astype("<u2").tobytes()
        terms >>= _DOCUMENT_BITS
        begins = np.flatnonzero(np.concatenate(([True], terms[1:] != terms[:-1])))
        texts = self._vocabulary.term_texts
        places = zip(terms[begins].tolist(), begins.tolist(), [*begins[1:].tolist(), len(terms)], strict=True)
        return [(texts[term], documents[2 * a : 2 * b] + counts[a:b]) for term, a, b in places]


def _different(numbers: Numbers) -> Numbers:
    """Each of the numbers once, in order."""
    ordered = np.sort(numbers)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
