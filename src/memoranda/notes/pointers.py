"""`nas://<home>/<path>@<rev>#L<a>-L<b>`: where words stand, at which revision, on which lines."""

from __future__ import annotations

import re

from memoranda.errors import InvalidPath, InvalidPointer
from memoranda.notes.lazyre import lazy
from memoranda.notes.paths import check_path
from memoranda.values import dataclass

_SCHEME = "nas://"
_REV = lazy(r"[0-9a-f]{4,64}")
_LINES = lazy(r"L(\d{1,9})(?:-L?(\d{1,9}))?", re.ASCII)
_PERCENT = lazy(r"%(?![0-9A-Fa-f]{2})")
_PLAIN = lazy(r"[A-Za-z0-9._~/-]*")
_UNENCODED = "/!$&'()*+,;=:~"  # what RFC 3986 allows in a path, without the `@` that begins our revision


@dataclass(frozen=True, slots=True)
class Pointer:
    """A place in a Home. `str(pointer)` is its written form, which `parse_pointer` reads back to an equal one.

    `home` is the Home's name, `path` relative to it, `rev` a commit or the blob id of the file (4 to 64 hexadecimal
    digits) or None for the file as it is now, `start` and `end` lines counted from 1, both included, or both None.

    Raises:
        InvalidPointer: one of them is not possible.
    """

    home: str
    path: str
    rev: str | None = None
    start: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        if not self.home or "/" in self.home or "\x00" in self.home or self.home in (".", ".."):
            raise _refuse("It names no Home.")
        try:
            check_path(self.path)
        except InvalidPath as error:
            raise _refuse(f"Its path is not one inside a Home: {error.why}") from None
        if self.rev is not None and _REV.fullmatch(self.rev) is None:
            raise _refuse("What follows the @ is not a commit or a blob id.")
        if (self.start is None) != (self.end is None):
            raise _refuse("It has a first line without a last one, or the reverse.")
        if self.start is not None and self.end is not None and not 1 <= self.start <= self.end:
            raise _refuse("Lines are counted from 1 and the last is not before the first.")

    def __str__(self) -> str:
        text = f"{_SCHEME}{_encode(self.home)}/{_encode(self.path)}"
        if self.rev is not None:
            text += f"@{self.rev}"
        if self.start is not None:
            text += f"#L{self.start}-L{self.end}"
        return text


def written(home: str, path: str, blob: str, start: int | None = None, end: int | None = None) -> str:
    """The pointer to a place that we have made ourselves, without asking whether it is a possible one."""
    lines = "" if start is None else f"#L{start}-L{end}"
    return f"{_SCHEME}{_encode(home)}/{_encode(path)}@{blob}{lines}"


def _encode(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    from urllib.parse import quote  # 5 ms that a fresh process only pays for a path that needs it

    # A file name that is not UTF-8 reaches Python as escaped surrogates, and its bytes come back out here.
    return quote(text, safe=_UNENCODED, errors="surrogateescape")


def parse_pointer(text: str) -> Pointer:
    """The pointer that this text writes. `#L12` means `#L12-L12`.

    Raises:
        InvalidPointer: it does not have the form, or its path climbs out of the Home.
    """
    if not text.startswith(_SCHEME):
        raise _refuse("It does not begin with nas://.")
    place, hash_sign, lines = text[len(_SCHEME) :].partition("#")
    home, _, path = place.partition("/")
    rev: str | None = None
    if "@" in path:
        path, _, rev = path.rpartition("@")
        rev = rev.lower()
    start = end = None
    if hash_sign:
        match = _LINES.fullmatch(lines)
        if match is None:
            raise _refuse("What follows the # is not a range of lines.")
        start = int(match[1])
        end = int(match[2] or match[1])
    return Pointer(_decode(home), _decode(path), rev, start, end)


def _decode(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    if _PERCENT.search(text):
        raise _refuse("It holds a % that begins no two hexadecimal digits.")
    return unquote(text, errors="surrogateescape")


def _refuse(why: str) -> InvalidPointer:
    return InvalidPointer(
        "This is not a pointer into a Home.",
        why=why,
        remedy="Write nas://<home>/<path>@<revision>#L<first>-L<last>; an @ or # inside the path is %40 or %23.",
    )
