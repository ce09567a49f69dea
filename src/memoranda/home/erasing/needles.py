"""What an erasing looks for: the words and lines of a text that has to go. Kept in memory only, written nowhere."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote

from memoranda.notes.ids import note_id_for_path
from memoranda.notes.model import read_note
from memoranda.values import dataclass

_WORD = re.compile(r"[^\W_]+")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_ENCODED = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")
_SHORTEST = 3  # characters of a word that says something; of a number one more
_LONG = 5  # characters from which a word is looked for inside longer ones too, where nothing separates words
LINE = "="  # before a line of the text among words, of which none has this
ENTRY_GOES, NOTE_GOES = 1, 2
_MEMO = 400_000  # lines
_REPEATED = 4096  # bytes; a longer line is not remembered
_LARGE = 64 << 10  # bytes; a larger binary file is looked through for words only
_RUN_OF_LETTERS = re.compile(rb"[0-9a-z\x80-\xff]{3,}")
_RUN = 3  # words in a row that are no accident


@dataclass(frozen=True, slots=True)
class Hit:
    """What one line holds of it: words, whole lines of the text, the heading of an entry, the id of a note."""

    words: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()
    entry: str | None = None
    note: str | None = None


NOTHING = Hit()


def text_of(data: bytes) -> str:
    """The text as it is compared: composed, without the difference of upper and lower case.

    What JSON and pointers write of other letters than ASCII's is read as the letters.
    """
    text = data.decode("utf-8", "replace")
    if "\\u" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    if "%" in text and _ENCODED.search(text):
        text += "\n" + unquote(text)
    return text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def words_of(text: str) -> set[str]:
    """The words that say something, of a text that `text_of` gave."""
    return {word for word in _WORD.findall(text) if len(word) >= _SHORTEST + word.isdigit()}


def runs_of(text: str) -> set[str]:
    """Every three words in a row."""
    words = _WORD.findall(text)
    return {" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def note_texts(data: bytes) -> tuple[list[bytes], str]:
    """What a file says, line by line, without the fields that only the program reads; and its note's id, or `""`."""
    if b"\0" in data:
        return [], ""
    note = read_note("x.md", data)
    given = "" if note.id == note_id_for_path("x.md") else note.id
    lines = [note.title.encode("utf-8", "replace")] if note.title != "x" else []
    lines += [(note.subject or "").replace("/", " ").encode("utf-8", "replace"), " ".join(note.tags).encode()]
    for value in (*note.extra.values(), *(s for s in note.sources if not s.startswith("nas://"))):
        lines.append(str(value).encode("utf-8", "replace"))
    return [*lines, *note.body.encode("utf-8", "replace").split(b"\n")], given


class Needles:
    """Looks lines up; remembers what it has seen, since one version of a file repeats the lines of another.

    Args:
        lines: the lines of what has to go.
        entries: ids of journal entries that have to go, `notes` ids of notes.
    """

    def __init__(self, lines: Iterable[bytes], entries: Iterable[str] = (), notes: Iterable[str] = ()) -> None:
        self.entries = frozenset(entry.encode() for entry in entries)
        self.notes = frozenset(note.encode() for note in notes)
        texts = [text for line in lines if (text := text_of(line).strip())]
        self.words: set[str] = set().union(*map(words_of, texts))
        self.runs: set[str] = set().union(*map(runs_of, texts))
        self._phrases: dict[str, set[str]] = {}  # the longest word of a line -> the lines
        for text in texts:
            self.add_phrase(text)
        self.rare: set[str] = set(self.words)  # words that stand in nothing that stays
        self.common: set[str] = set()  # lines that do stand there
        self._memo: dict[bytes, Hit] = {}

    def add_phrase(self, text: str) -> None:
        """Another text, as `text_of` gives it, that must stand nowhere; one that says too little is left out."""
        words = words_of(text)
        if len(words) >= 2 and len(text) >= 8:
            self._phrases.setdefault(max(words, key=lambda word: (len(word), word)), set()).add(text)
            self.words |= words
            self._memo = {}

    def words_in_order(self) -> list[str]:
        return sorted(self.words)

    def phrases_in_order(self) -> list[str]:
        return sorted(phrase for phrases in self._phrases.values() for phrase in phrases)

    def look(self, line: bytes) -> Hit:
        """What one line holds."""
        hit = self._memo.get(line)
        if hit is None:
            hit = self._look(line)
            if len(line) < _REPEATED:
                if len(self._memo) > _MEMO:
                    self._memo.clear()
                self._memo[line] = hit
        return hit

    def _look(self, line: bytes) -> Hit:
        text = text_of(line)
        words = frozenset(words_of(text) & self.words)
        entry = note = None
        if line.startswith(b"## ") and b"^" in line:
            last = line.rpartition(b"^")[2].strip()
            entry = last.decode() if last in self.entries else None
        elif line.startswith(b"id:"):
            value = line[3:].split(b"#")[0].strip().strip(b"\"'")
            note = value.decode() if value in self.notes else None
        phrases = frozenset(p for word in words for p in self._phrases.get(word, ()) if p in text)
        return Hit(words, phrases, entry, note) if words or entry or note else NOTHING

    def look_through(self, data: bytes) -> set[Hit]:
        """What the lines of a file hold, without those that hold nothing."""
        if len(data) > _LARGE and b"\0" in data[:_LARGE]:  # a picture, a recording: its lines are none
            words = {run.decode("utf-8", "ignore") for run in _RUN_OF_LETTERS.findall(data.lower())} & self.words
            return {Hit(frozenset(words))} if words else set()
        found: set[Hit] = set()
        memo = self._memo
        for line in data.split(b"\n"):
            hit = memo.get(line)
            if hit is None:
                hit = self.look(line)
            if hit is not NOTHING:
                found.add(hit)
        return found

    def gather(self, data: bytes) -> tuple[set[str], int]:
        """All words and (behind `LINE`) lines of the text in a file, and whether an entry or a note of it goes."""
        words: set[str] = set()
        about = 0
        for hit in self.look_through(data):
            words |= hit.words
            words.update(LINE + phrase for phrase in hit.phrases)
            about |= ENTRY_GOES * (hit.entry is not None) | NOTE_GOES * (hit.note is not None)
        return words, about

    def stands_in(self, line: bytes) -> bool:
        """Whether one line, or a name, holds it."""
        hit = self.look(line)
        return hit is not NOTHING and self._left(hit)

    def holds(self, data: bytes, *, apart: bool = False) -> bool:
        """Whether bytes hold a line of the text or a word of it, of which both stand in nothing that stays.

        In a binary file words are looked for inside longer ones too, unless its texts are known to stand `apart`.
        """
        if any(self._left(hit) for hit in self.look_through(data)):
            return True
        if apart or b"\0" not in data:
            return False
        low = data.lower()  # a binary file, in which nothing separates one text from the next
        long = (word for word in self.rare if len(word) >= _LONG)
        lines = (line for line in self.phrases_in_order() if line not in self.common)
        return any(text.encode("utf-8", "replace") in low for text in (*long, *lines))

    def _left(self, hit: Hit) -> bool:
        return not hit.words.isdisjoint(self.rare) or not hit.phrases <= self.common

    def told(self, line: str, *, near: bool) -> bool:
        """Whether a line of a message repeats the text: a rare word, a line of it.

        `near`: the message belongs to what has to go, and three of its words in a row are enough.
        """
        hit = self.look(line.encode("utf-8", "replace"))
        if hit is NOTHING:
            return False
        return self._left(hit) or (near and not runs_of(text_of(line.encode("utf-8", "replace"))).isdisjoint(self.runs))
