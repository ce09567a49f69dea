"""The form of a journal: one heading an entry, its text below, nothing that a text could forge.

## 2026-10-02T09:12:33Z dana ^j_4kq2…

The text. A line that begins with # is written with a backslash before it.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, date, datetime
from functools import lru_cache

from memoranda.errors import InvalidPath, InvalidTime
from memoranda.notes.lazyre import lazy
from memoranda.notes.paths import slug
from memoranda.notes.times import format_instant, parse_instant
from memoranda.values import dataclass

_HEADING = lazy(r"^## (\d{4}-\d\d-\d\d[^ \t\r\n]*)([^\n]*)", re.M | re.ASCII)
_ENTRY_ID = lazy(r"j_[0-9a-z]{1,64}")
_TO_ESCAPE = lazy(r"^(?=\\*#)", re.M)
_ESCAPED = lazy(r"^\\(?=\\*#)", re.M)
_PATH = lazy(r"agents/([^/]+)/journal/(\d{4}-\d\d-\d\d)(?:~([^/.~]+))?(?:\.([1-9]\d{0,8}))?\.md", re.ASCII)
NOBODY = "unknown"  # the speaker of what nobody signed


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `id` (`j_…`), when (aware, UTC), who, what, and its lines in the file.

    Lines are counted from 1 and both included; `start` is the heading, `end` the last line of the text.
    """

    id: str
    at: datetime
    speaker: str
    text: str
    start: int
    end: int


def render_entry(id: str, at: datetime, speaker: str, text: str) -> bytes:
    """The bytes to append for one entry: heading, empty line, text, empty line.

    The speaker is brought to one line (white space to single spaces, what cannot be printed left out; empty becomes
    `unknown`); the text comes back from `parse_journal` exactly as it was given. Lone surrogates become `?`.
    """
    who = _speaker(speaker)
    body = _TO_ESCAPE.sub(r"\\", text) if "#" in text else text
    return f"## {format_instant(at)} {who} ^{id}\n\n{body}\n\n".encode("utf-8", "replace")


@lru_cache(maxsize=64)
def _speaker(speaker: str) -> str:
    return speaker if speaker.isidentifier() else _one_line(speaker)


def _one_line(speaker: str) -> str:
    return " ".join("".join(ch if ch.isprintable() else " " for ch in speaker).split()) or NOBODY


def parse_journal(data: bytes, day: date | None = None) -> tuple[Entry, ...]:
    """The entries of a journal file, in the order of the file. Takes any bytes.

    A heading without an id gets one from its content. Text that stands before the first heading, or in a file without
    any, was not written by us: with `day` it becomes an entry of its own at that day's first instant, without `day` it
    is left out.
    """
    source = data.decode("utf-8", "replace").removeprefix("\ufeff")
    heads = [(match, at) for match in _HEADING.finditer(source) if (at := _instant(match[1])) is not None]
    first = heads[0][0].start() if heads else len(source)
    stray = source[:first]
    entries: list[Entry] = []
    if day is not None and stray.strip():
        at = datetime(day.year, day.month, day.day, tzinfo=UTC)
        before = stray[: len(stray) - len(stray.lstrip())].count("\n")
        end = 1 + stray.rstrip().count("\n")
        entries.append(Entry(_id_of("", stray), at, NOBODY, stray.strip(), 1 + before, end))
    line = 1 + stray.count("\n")
    for i, (match, at) in enumerate(heads):
        stop = heads[i + 1][0].start() if i + 1 < len(heads) else len(source)
        block = source[match.end() + 1 : stop]
        lead, raw = _without_frame(block)
        text = _ESCAPED.sub("", raw) if "\\" in raw else raw
        who, entry_id = _who_and_id(match[2].strip())
        end = line + 1 + lead + raw.count("\n") if raw else line
        entries.append(Entry(entry_id or _id_of(match[0].rstrip(), text), at, who or NOBODY, text, line, end))
        line += 1 + block.count("\n")
    return tuple(entries)


def entry_key(entry: Entry) -> str:
    """What an entry says, and who said it when, as 40 hexadecimal digits."""
    return _key(entry.id, entry.at, entry.speaker, entry.text)


def key_of(id: str, at: datetime, speaker: str, text: str) -> str:
    """The key of the entry that `render_entry` makes of the same arguments, without reading it back."""
    if at.tzinfo is not UTC:
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return _key(id, at, _speaker(speaker), text)


def _key(id: str, at: datetime, speaker: str, text: str) -> str:
    told = f"{id}\n{at.isoformat()}\n{speaker}\n{text}"
    return hashlib.sha1(told.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def _instant(text: str) -> datetime | None:
    try:
        return parse_instant(text)
    except InvalidTime:
        return None  # a heading that only looks like ours is text


def _who_and_id(rest: str) -> tuple[str, str]:
    who, caret, last = rest.rpartition("^")
    if caret and _ENTRY_ID.fullmatch(last) and (not who or who[-1] in " \t"):
        return who.strip(), last
    return rest, ""


def _without_frame(block: str) -> tuple[int, str]:
    """The empty lines before the text (0 or 1), and the text without the empty lines that we write around it."""
    for newline in ("\n", "\r\n"):
        if block.startswith(newline):
            inner = block[len(newline) :]
            return 1, inner.removesuffix(newline).removesuffix(newline)
    return 0, block.rstrip("\r\n")


def _id_of(heading: str, text: str) -> str:
    return "j_" + hashlib.sha256(f"{heading}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


@lru_cache(maxsize=64)
def journal_path(agent: str, day: date, installation: str | None, part: int) -> str:
    """`agents/<agent>/journal/2026-10-02.md`; `…~<installation>.md` for a second one; `….2.md` from part 2 on."""
    name = f"{day.year:04}-{day.month:02}-{day.day:02}"
    if installation:
        name += "~" + slug(installation)
    if part > 1:
        name += f".{part}"
    return f"agents/{slug(agent)}/journal/{name}.md"


def is_journal_path(path: str) -> bool:
    """Whether a file at this path is a journal."""
    match = _PATH.fullmatch(path)
    return match is not None and _instant(match[2]) is not None


def agent_of(path: str) -> str:
    """The agent whose journal this path is.

    Raises:
        InvalidPath: it is none.
    """
    return _match(path)[1]


def day_of(path: str) -> date:
    """The day (UTC) of the journal at this path.

    Raises:
        InvalidPath: it is none.
    """
    return date.fromisoformat(_match(path)[2])


def _match(path: str) -> re.Match[str]:
    match = _PATH.fullmatch(path)
    if match is None or _instant(match[2]) is None:
        raise InvalidPath(
            "This is not the path of a journal.",
            why="It does not have the form of one.",
            remedy="A journal is at agents/<agent>/journal/<year-month-day>.md.",
        )
    return match
