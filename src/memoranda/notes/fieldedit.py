"""Changing one field of a file that somebody wrote by hand, and nothing else in it."""

from __future__ import annotations

import re

from memoranda.errors import InvalidNote
from memoranda.notes import frontmatter, yamlread
from memoranda.notes.frontmatter import Parts
from memoranda.notes.lazyre import lazy
from memoranda.notes.scalars import plain_data, write_item, write_text, write_value

_TAG = lazy(r"(!\S*)(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*")


def set_field(data: bytes, key: str, value: object) -> bytes:
    """The file with this field changed, or added below the others; every other line stays as it was.

    A value in one line stays in one line, a comment behind it stays; of a list spread over lines only the entries that
    change are touched. A file without front matter gets one.

    Raises:
        InvalidNote: front matter cannot hold the value, or this front matter is too odd to be changed line by line.
    """
    value = plain_data(value)
    parts = frontmatter.split(data)
    before, odd = frontmatter.read_fields(parts)
    newline = parts.newline
    if parts.head is None or frontmatter.NOT_FIELDS in odd:
        line = _line(key, value)
        fence = "---" + newline
        changed = parts.bom + f"{fence}{line}{newline}{fence}".encode() + data[len(parts.bom) :]
        before = {}
    else:
        head = _edited(frontmatter.head_text(parts.head), key, value, newline)
        changed = parts.bom + parts.opening + head.encode("utf-8", "surrogateescape") + parts.closing + parts.body
    _verify(frontmatter.split(changed), before, key, value, was_yaml=not _broken(odd))
    return changed


def _line(key: str, value: object, *, inside: bool = False) -> str:
    return f"{write_item(key)}: {write_value(value, inside=inside)}"


def _edited(text: str, key: str, value: object, newline: str) -> str:
    reading = yamlread.parse(frontmatter.without_surrogates(text))
    span = next((span for span in reading.spans if span.key == key), None)
    if span is not None and span.block:
        return _with_block(text, span, value, newline)
    if span is not None:
        return _with_scalar(text, span, write_value(value, inside=reading.root == "flow"))
    if reading.root == "flow":
        comma = ", " if reading.spans else ""
        return f"{text[: reading.end].rstrip()}{comma}{_line(key, value, inside=True)}{text[reading.end :]}"
    if reading.root == "broken":
        match = re.search(rf"^{re.escape(key)}:(?=[ \r\n]|\Z)[^\r\n]*", text, re.M)
        if match:
            return text[: match.start()] + _line(key, value) + text[match.end() :]
    ended = text if not text or text.endswith("\n") else text + newline
    return f"{ended}{_line(key, value)}{newline}"


def _with_scalar(text: str, span: yamlread.Span, written: str) -> str:
    """The value replaced where it stands, be it in one line or in several."""
    start, end = span.value_start, span.value_end
    if start == end:
        start = end = text.index(":", span.key_end) + 1
    elif "\n" in text[(colon := text.index(":", span.key_end) + 1) : start]:  # it begins below its key
        return f"{text[:colon]} {written}{_to_line_end(text, colon)}{text[_line_end(text, end) :]}"
    old = text[start:end]
    kept = old[len(old.rstrip()) :] if "\n" in old else ""  # a block of text owns the line end after it
    gap = "" if text[start - 1 : start] in (" ", "\t") else " "
    rest = text[end:]
    if rest.startswith("#"):  # a comment may touch a quotation mark, and nothing else
        rest = " " + rest
    return f"{text[:start]}{gap}{written}{kept}{rest}"


def _with_block(text: str, span: yamlread.Span, value: object, newline: str) -> str:
    """A list or mapping spread over lines, replaced; a list stays one and keeps the lines of entries that stay."""
    # An entry without a value ends, for the parser, where the next thing begins.
    stop = _line_end(text, max(len(text[: span.value_end].rstrip()), span.value_start))
    colon = text.index(":", span.key_end) + 1
    begin, behind = _begin(text, span.value_start)
    first = _line_start(text, begin)
    if not (isinstance(value, list) and value and span.items and first > colon):
        kept = behind if behind <= _line_end(text, colon) else colon  # a comment stays, a tag was the former value's
        return f"{text[:colon]} {write_value(value)}{_to_line_end(text, kept)}{text[stop:]}"
    starts = [_line_start(text, start) for _, start in span.items]
    chunks = [text[a:b] for a, b in zip(starts, [*starts[1:], stop], strict=True)]
    chunks[-1] += newline
    old = [item for item, _ in span.items]
    head = _common(old, value)
    tail = _common(old[head:][::-1], value[head:][::-1])
    indent = text[first:begin]
    new = [f"{indent}- {_entry(item)}{newline}" for item in value[head : len(value) - tail]]
    lines = "".join([*chunks[:head], *new, *chunks[len(chunks) - tail :]])
    return text[:first] + lines.removesuffix(newline) + text[stop:]


def _begin(text: str, start: int) -> tuple[int, int]:
    """(where a block itself begins, where the tag before it ends, if one stands there)."""
    tag = _TAG.match(text, start)
    return (start, start) if tag is None else (tag.end(), tag.end(1))


def _entry(item: object) -> str:
    return write_text(item) if isinstance(item, str) else write_value(item)


def _common(a: list[object], b: list[object]) -> int:
    """How many entries at the beginning are the same, in type too."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n] and type(a[n]) is type(b[n]):
        n += 1
    return n


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_end(text: str, at: int) -> int:
    """Where the line of this position ends, before its line end."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if end > at and text[end - 1] == "\r" else end


def _to_line_end(text: str, at: int) -> str:
    return text[at : _line_end(text, at)]


def _broken(problems: tuple[str, ...]) -> bool:
    return any(problem.startswith(yamlread.NOT_YAML) for problem in problems)


def _verify(after: Parts, before: dict[str, object], key: str, value: object, *, was_yaml: bool) -> None:
    """Reads the result back: an edit that would say anything else than was asked for is not made."""
    fields, odd = frontmatter.read_fields(after)
    if fields != {**before, key: value} or (was_yaml and _broken(odd)):
        raise InvalidNote(
            "This field cannot be changed without touching others.",
            why="The front matter is written in a way that does not allow a change by lines.",
            remedy="Change it by hand in an editor.",
        )
