"""Takes lines out of a file so that everything else of it stays where it is: line 12 remains line 12.

The first blanked line says `erased on <date>`, the others are empty; the heading of a journal entry stays. A range is
known again in every version of the file: by the id of its entry, or else by its own words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from memoranda.errors import InvalidTime
from memoranda.notes.lazyre import lazy, lazy_bytes
from memoranda.notes.times import parse_instant
from memoranda.values import dataclass

_HEADING = lazy_bytes(rb"## (\d{4}-\d\d-\d\d[^ \t\r]*)")
_ENTRY_ID = lazy_bytes(rb"\^(j_[0-9a-z]{1,64})[ \t\r]*$")
_MARK = lazy(r"erased on (\d{4}-\d\d-\d\d)")
_MARK_LINE = lazy_bytes(rb"erased on \d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that have to go: all of the entry `entry`, or with `at` the lines `lines` from its line `at` on.

    Without `entry` the lines `lines` that begin at line `at` of the file, counted from 0.
    """

    entry: str | None
    lines: tuple[bytes, ...]
    at: int | None = None


def mark_of(day: str) -> bytes:
    return f"erased on {day}".encode("ascii")


def erased_on(text: str) -> str | None:
    """The day on which the words of `text` were erased, when nothing else than that stands in it."""
    day = None
    for line in text.splitlines():
        bare = line.strip()
        found = _MARK.fullmatch(bare)
        if found is None and bare and _HEADING.match(line.encode("utf-8", "replace")) is None:
            return None
        day = found[1] if found else day
    return day


@lru_cache(maxsize=65536)  # the versions of a journal repeat their headings
def _is_heading(line: bytes) -> bool:
    found = _HEADING.match(line)
    if found is None:
        return False
    try:
        parse_instant(found[1].decode("ascii", "replace"))
    except InvalidTime:
        return False
    return True


def parts_of(data: bytes, first: int, last: int) -> list[Part]:
    """The parts that lines `first` to `last` (from 1, both included) of a file are; empty when they do not exist."""
    lines = data.split(b"\n")
    if not 1 <= first <= last or first > len(lines):
        return []
    begin, end = first - 1, min(last, len(lines))
    found: list[Part] = []
    heads = {n for n, line in enumerate(lines) if line.startswith(b"## ") and _is_heading(line)}
    bounds = sorted({0, *heads})
    for start, stop in pairwise([*bounds, len(lines)]):
        low, high = max(begin, start), min(end, stop)
        if low >= high:
            continue
        name = _ENTRY_ID.search(lines[start]) if start in heads else None
        if name is None:
            found.append(Part(None, tuple(lines[low:high]), low))
        elif all(not line.strip() for line in [*lines[start + 1 : low], *lines[high:stop]]):
            found.append(Part(name[1].decode(), tuple(lines[start + 1 : stop])))
        else:
            found.append(Part(name[1].decode(), tuple(lines[low:high]), low - start))
    return [part for part in found if any(line.strip() for line in part.lines)]


def blank(data: bytes, parts: Sequence[Part], mark: bytes) -> bytes:
    """The file with these parts blanked where it holds them."""
    lines = data.split(b"\n")
    by_entry: dict[str, list[Part]] = {}
    for part in parts:
        if part.entry is None:
            _blank_block(lines, 0, len(lines), part, mark)
        else:
            by_entry.setdefault(part.entry, []).append(part)
    for name, start, stop in list(_entries(lines, by_entry)):
        for part in by_entry[name]:
            if part.at is None:
                _clear(lines, range(start + 1, stop), mark)
            else:
                _blank_block(lines, start, stop, part, mark)
    return b"\n".join(lines)


def _entries(lines: Sequence[bytes], wanted: Iterable[str]) -> Iterable[tuple[str, int, int]]:
    """(id, line of the heading, line behind the entry) of the entries that are wanted."""
    names = {name.encode(): name for name in wanted}
    heads = [n for n, line in enumerate(lines) if line.startswith(b"## ") and _is_heading(line)]
    for start, stop in pairwise([*heads, len(lines)]):
        found = _ENTRY_ID.search(lines[start])
        if found and found[1] in names:
            yield names[found[1]], start, stop


def _blank_block(lines: list[bytes], start: int, stop: int, part: Part, mark: bytes) -> None:
    """Blanks a block where it stood, or else wherever the range holds it."""
    size = len(part.lines)
    bare = [line.rstrip(b"\r") for line in part.lines]

    def here(at: int) -> bool:
        return at + size <= stop and [line.rstrip(b"\r") for line in lines[at : at + size]] == bare

    usual = start + (part.at or 0)
    places = [usual] if here(usual) else [at for at in range(start, stop - size + 1) if here(at)]
    for at in places:
        _clear(lines, range(at, at + size), mark)


def _clear(lines: list[bytes], span: Iterable[int], mark: bytes) -> None:
    said = False
    for at in span:
        line = lines[at]
        if not line.strip() or _is_heading(line):
            continue
        if _MARK_LINE.fullmatch(line.strip()):
            said = True  # an earlier erasing was here
            continue
        end = b"\r" if line.endswith(b"\r") else b""
        lines[at] = end if said else mark + end
        said = True
