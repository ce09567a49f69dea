"""Front matter: the lines between two `---` at the beginning of a Markdown file. Nothing here loses a byte.

`split` cuts a file into parts that `join` puts together to the same bytes; `read_fields` understands the part between
the fences; `render` makes a new file; `fieldedit.set_field` changes one field of one that somebody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from memoranda.notes import simplefields
from memoranda.notes.lazyre import lazy, lazy_bytes
from memoranda.notes.scalars import plain_data, write_item, write_text, write_value
from memoranda.values import dataclass

NOT_FIELDS = "front matter: not a list of fields"
NEVER_CLOSED = "front matter: never closed"
NOT_UTF8 = "front matter: not UTF-8"
TOO_LARGE = "front matter: too large, only its first 256 KiB are read"
HEAD_LIMIT = 262_144  # bytes; a file with more of it is not taken in

_BOM = b"\xef\xbb\xbf"
_OPEN = lazy_bytes(rb"---[ \t]*(\r?\n)")
_CLOSE = lazy_bytes(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.M)
_LOOKS_OPEN = lazy_bytes(rb"\s*[A-Za-z_][\w-]*[ \t]*:")
_SURROGATES = lazy("[\ud800-\udfff]")
_SHORT = 40  # characters up to which a text may come again
_LINE_LIMIT = 100  # characters of a list that is written in one line


@dataclass(frozen=True, slots=True)
class Parts:
    """A file, cut. `bom + opening + head + closing + body` is the file (without front matter: `bom + body`).

    `head` holds the lines between the fences, None without front matter; `newline` is what this file ends its lines
    with; `raw` the whole file; `problems` what was odd, in words that repeat no content.
    """

    bom: bytes
    head: bytes | None
    body: bytes
    newline: str
    raw: bytes
    problems: tuple[str, ...] = ()
    opening: bytes = b""
    closing: bytes = b""


def split(data: bytes) -> Parts:
    """Cuts any bytes into parts."""
    bom = _BOM if data.startswith(_BOM) else b""
    opened = _OPEN.match(data, len(bom))
    if opened is None:
        newline = "\r\n" if data.find(b"\n") > 0 and data[data.find(b"\n") - 1] == 13 else "\n"
        return Parts(bom, None, data[len(bom) :], newline, data)
    newline = opened[1].decode()
    closed = _CLOSE.search(data, opened.end())
    if closed is None:
        problems = (NEVER_CLOSED,) if _LOOKS_OPEN.match(data, opened.end()) else ()
        return Parts(bom, None, data[len(bom) :], newline, data, problems)
    head, body = data[opened.end() : closed.start()], data[closed.end() :]
    return Parts(bom, head, body, newline, data, (), opened[0], closed[0])


def join(parts: Parts) -> bytes:
    """The file again; `join(split(data)) == data` for any bytes."""
    if parts.head is None:
        return parts.bom + parts.body
    return parts.bom + parts.opening + parts.head + parts.closing + parts.body


def head_text(head: bytes) -> str:
    """The text between the fences, one character for each byte that is not UTF-8."""
    return head.decode("utf-8", "surrogateescape")


def without_surrogates(text: str) -> str:
    """The same number of characters, each a real one: what `head_text` could not decode is the replacement sign."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def read_fields(parts: Parts) -> tuple[dict[str, object], tuple[str, ...]]:
    """The fields in their order, and what was odd about them. Takes anything, raises nothing.

    Values are None, bool, int, float, text, lists and dicts of these; dates stay text, and so do `no`, `on` and
    `12:30`. Of a key that comes twice the first counts.
    """
    if parts.head is None:
        return {}, parts.problems
    if len(parts.head) > HEAD_LIMIT:
        begun = head_text(parts.head[:HEAD_LIMIT].rpartition(b"\n")[0])
        return simplefields.salvage(without_surrogates(begun)), (*parts.problems, TOO_LARGE)
    written = head_text(parts.head)
    text = without_surrogates(written)
    problems = parts.problems if text == written else (*parts.problems, NOT_UTF8)
    simple = simplefields.simple_fields(text)
    if simple is not None:
        return simple, problems
    from memoranda.notes import yamlread  # most processes never meet a file that needs it

    reading = yamlread.parse(text)
    problems = (*problems, *reading.problems)
    if reading.root == "other":
        return {}, (*problems, NOT_FIELDS)
    fields = {span.key: span.value for span in reading.spans}
    if reading.root == "broken":
        for key, value in simplefields.salvage(text).items():
            fields.setdefault(key, value)
    return fields, problems


class Plain(str):
    """A text under a plain name that is known to need no quotation marks: an id, an instant."""

    __slots__ = ()


def render(fields: Mapping[str, object], body: str) -> bytes:
    """A new file with these fields, in their order, and this body, which gets a final line end.

    Raises:
        InvalidNote: a value that front matter cannot hold, or text that is not Unicode.
    """
    lines = ["---"]
    for key, value in fields.items():
        if type(value) is Plain:
            lines.append(f"{key}: {value}")
            continue
        short = type(value) is str and len(value) <= _SHORT
        if short or value is None or value is True or value is False or value == ():
            lines.append(_short_line(key, value))
        elif type(value) is tuple and len(value) == 1 and type(text := value[0]) is str and len(text) > _LINE_LIMIT:
            lines += (f"{_name(key)}:", f"  - {write_text(text)}")  # a source: nearly every note has one
        else:
            lines += field_lines(key, plain_data(value))
    lines += ["---", body, ""]
    return "\n".join(lines).encode("utf-8")


def field_lines(key: str, value: object) -> list[str]:
    """The lines of one field: one, or for a list of longer texts one more for each."""
    name = _name(key)
    if isinstance(value, list) and value and not _fits_a_line(value):
        return [f"{name}:", *[f"  - {write_text(i) if isinstance(i, str) else write_value(i)}" for i in value]]
    return [f"{name}: {write_value(value)}"]


@lru_cache(maxsize=256, typed=True)  # most of what front matter says is the same from note to note
def _short_line(key: str, value: object) -> str:
    return f"{_name(key)}: {write_value(plain_data(value))}"


@lru_cache(maxsize=256)
def _name(key: str) -> str:
    return write_item(key)


def _fits_a_line(items: list[object]) -> bool:
    texts = [item for item in items if isinstance(item, str)]
    return sum(map(len, texts)) + 2 * len(texts) <= _LINE_LIMIT and all(write_item(text) == text for text in texts)
