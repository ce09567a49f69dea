"""Reading front matter by its lines, without a YAML parser (whose import alone costs a fresh process 14 ms).

`simple_fields` takes the lines that we write ourselves and most that people write, and agrees with the parser on them.
`salvage` takes what can be understood of lines that are not YAML at all.
"""

from __future__ import annotations

import json

from memoranda.notes.lazyre import lazy
from memoranda.notes.scalars import resolve_plain

# What YAML refuses, takes for a line end, or lets begin a file: only the parser knows what becomes of it.
_NOT_SIMPLE = lazy("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_KEY = lazy(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_QUOTED = lazy(r'("(?:[^"\\]|\\["\\bfnrt]|\\u(?![dD][89abAB]|[dD][c-fC-F])[0-9a-fA-F]{4})*")(?: +#.*)?')
_SINGLE = lazy(r"'((?:[^']|'')*)'(?: +#.*)?")
_ITEM = r'(?:[A-Za-z0-9_][A-Za-z0-9_./-]*|"[^"\\]*")'
_FLOW = lazy(rf"\[ *((?:{_ITEM}(?: *, *{_ITEM})*)?) *\](?: +#.*)?")
_ITEMS = lazy(_ITEM)
_PLAIN_BEGIN = frozenset("_/(")
_SHORT, _MOST_LINES = 60, 4000  # of the lines that are remembered: characters, and how many
_UNKNOWN = object()  # what `_simple_value` says of a value that it does not understand


_known: dict[str, tuple[str, object]] = {}  # line -> key and value: thousands of files have the same lines


def _remember(line: str, key: str, value: object) -> None:
    if len(line) <= _SHORT:
        if len(_known) >= _MOST_LINES:
            _known.clear()
        _known[line] = key, value


def simple_fields(text: str) -> dict[str, object] | None:
    """The fields, or None as soon as one line is not of the simple kind. No yaml, a microsecond a line."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if _NOT_SIMPLE.search(text):
        return None
    return _scan_lines(text, tolerant=False)


def salvage(text: str) -> dict[str, object]:
    """What can be understood of text that is no YAML: the first word of each key at the beginning of a line."""
    return _scan_lines(text.replace("\r\n", "\n"), tolerant=True) or {}


def _scan_lines(text: str, *, tolerant: bool) -> dict[str, object] | None:
    fields: dict[str, object] = {}
    pending = ""  # the key whose list may follow
    items: list[object] = []
    indent = -1
    for line in text.split("\n"):
        known = _known.get(line)
        if known is not None and known[0] not in fields:
            fields[known[0]], pending, indent = known[1], "", -1
            continue
        bare = line.strip(" ")
        if not bare or bare[0] == "#":
            continue
        if bare[0] == "-" and pending and bare[1:2] == " ":
            at = line.index("-")
            value = _simple_value(bare[2:].lstrip(" "))
            if value is not _UNKNOWN and (indent in (-1, at)):
                if indent == -1:
                    items = []
                    fields[pending] = items
                indent = at
                items.append(value)
                continue
        key, colon, rest = line.partition(":")
        understood = colon and _KEY.fullmatch(key) and (not rest or rest[0] == " ") and key not in fields
        if understood:
            rest = rest.strip(" ")
            value = _simple_value(rest) if rest else None
            if value is _UNKNOWN and tolerant and rest[0] not in "[{\"'|>&*!%@`":
                value = rest
            if value is not _UNKNOWN:
                fields[key] = value
                if value is not None and not tolerant and not isinstance(value, list):
                    _remember(line, key, value)
                pending = key if value is None and (not rest or rest[0] == "#") else ""
                indent = -1
                continue
        if not tolerant:
            return None
        pending = ""
    return fields


def _simple_value(text: str) -> object:
    """The value of the rest of a line (no spaces around it, not empty), or `_UNKNOWN`."""
    first = text[0] if text else "-"
    if first.isalnum() or first in _PLAIN_BEGIN:
        if " #" in text:
            text = text[: text.index(" #")].rstrip(" ")
        if text[-1] == ":" or ": " in text:
            return _UNKNOWN
        return resolve_plain(text)
    if first == '"':
        match = _QUOTED.fullmatch(text)
        return json.loads(match[1], strict=False) if match else _UNKNOWN  # `salvage` meets control characters
    if first == "[":
        match = _FLOW.fullmatch(text)
        if not match:
            return _UNKNOWN
        return [i[1:-1] if i[0] == '"' else resolve_plain(i) for i in _ITEMS.findall(match[1])]
    if first == "'":
        match = _SINGLE.fullmatch(text)
        return match[1].replace("''", "'") if match else _UNKNOWN
    return None if first == "#" else _UNKNOWN
