"""Takes the words of an erased text out of what tells of it: lines of the ledger, messages of commits and tags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from memoranda.home.erasing.needles import NOTHING, Needles
from memoranda.home.ledger import REDACTED, Pen

_OURS = b"\nMemoranda-Op: "
_SIGNED = re.compile(rb"^-----BEGIN (?:PGP|SSH) (?:SIGNATURE|MESSAGE)-----$", re.M)
_NAME = re.compile(rb"[0-9a-z_]+")


def is_segment(data: bytes) -> bool:
    """Whether a blob is a segment of a ledger: JSON objects, each with its MAC."""
    return data.startswith(b'{"') and b',"mac":"' in data.split(b"\n", 1)[0]


def names_any(line: bytes, ids: frozenset[bytes]) -> bool:
    """Whether a line of a ledger names one of these blobs, notes or entries."""
    return not ids.isdisjoint(_NAME.findall(line))


class LedgerLines:
    """Redacts segments of the ledger; a line keeps its length, its ids and times, and its MAC where it can have one.

    Args:
        needles: what has to go.
        about: ids of erased blobs, notes and entries; a line that names one belongs to what has to go.
        paths: where the erased files stood.
        pens: those of all replicas, to sign a line again that this installation had signed.
    """

    def __init__(self, needles: Needles, about: Iterable[str], paths: Iterable[str], pens: Sequence[Pen]) -> None:
        self._needles = needles
        self._about = frozenset(name.encode() for name in about)
        self._pens = pens
        self._paths = sorted({form for path in paths for form in (path, quote(path, safe="/"))}, key=len, reverse=True)
        self._memo: dict[bytes, bytes] = {}
        self.unsigned = 0  # lines of other installations, which nobody here can sign again

    def redact(self, data: bytes) -> bytes:
        """The segment without the text."""
        return b"\n".join(map(self._line, data.split(b"\n")))

    def _line(self, line: bytes) -> bytes:
        done = self._memo.get(line)
        if done is None:
            done = self._memo[line] = self._redacted(line)
        return done

    def _redacted(self, line: bytes) -> bytes:
        try:
            fields = json.loads(line)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            return line
        mac = fields.pop("mac", None)
        near = names_any(line, self._about)
        clean = self._clean(fields, near)
        if clean == fields:
            return line
        text = line.decode("utf-8", "replace")
        for pen in self._pens:
            if pen.vouches(text):
                return pen.line(clean).encode("ascii")
        self.unsigned += 1
        return json.dumps({**clean, "mac": mac}, separators=(",", ":")).encode("ascii")

    def _clean(self, value: Any, near: bool) -> Any:
        if isinstance(value, str):
            return self._text(value, near)
        if isinstance(value, list):
            return [self._clean(item, near) for item in value]
        if isinstance(value, dict):
            return {key: self._clean(item, near) for key, item in value.items()}
        return value

    def _text(self, text: str, near: bool) -> str:
        clean = text
        for path in self._paths:
            if path in clean:
                clean = clean.replace(path, _filler(path))
        if any(self._needles.told(line, near=near) for line in clean.split("\n")):
            return _filler(clean)
        return clean


def _filler(text: str) -> str:
    """As long as `text` is in the ledger, so that a segment keeps its length: other clones know how far they read."""
    return (REDACTED + "-" * len(json.dumps(text)))[: len(json.dumps(text)) - 2]


class Messages:
    """Redacts the messages of commits, tags and reflogs.

    `subjects` are first lines that were redacted: a stash, a revert or a reflog repeats them.
    """

    def __init__(self, needles: Needles, day: str) -> None:
        self._needles = needles
        self._mark = f"(erased on {day})"
        self.subjects: set[str] = set()

    def redact(self, message: bytes, *, touched: bool) -> bytes:
        """The message without the text; `touched`: its commit added, changed or removed what is erased."""
        if not self._needles.look_through(message):
            return message
        text = message.decode("utf-8", "surrogateescape")
        ours = _OURS in message
        lines = text.split("\n")
        if ours and touched and self._needles.look(lines[0].encode("utf-8", "replace")) is not NOTHING:
            self.subjects.add(lines[0])
            lines[0] = self._mark  # what we write there, we write from the text
        clean = [self.line(line, near=touched, repeats=touched or not ours) for line in lines]
        return "\n".join(clean).encode("utf-8", "surrogateescape")

    def line(self, line: str, *, near: bool = False, repeats: bool = True) -> str:
        """One line without the text; `repeats`: it may repeat the subject of a commit that was redacted."""
        for subject in self.subjects if repeats else ():
            if len(subject) > 3 and subject in line:
                line = line.replace(subject, self._mark)
        if not self._needles.told(line, near=near):
            return line
        self.subjects.add(line)
        return self._mark


def unsigned_message(message: bytes) -> bytes:
    """A tag's message without the signature, which no longer fits."""
    found = _SIGNED.search(message)
    return message if found is None else message[: found.start()]
