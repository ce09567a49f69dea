"""Paths inside a Home: built for people, checked for attacks. A path is relative and separated by `/`."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from functools import lru_cache

from memoranda.errors import InvalidPath
from memoranda.notes.lazyre import lazy

TITLE_WORDS = 9
SEGMENT_LIMIT = 60  # bytes of UTF-8 in one segment that we make
_DEPTH_LIMIT = 8  # folders that a subject may open below memory/notes
_LEAD = lazy(r"^[#>*\-\s]+")
_NOT_PLAIN = lazy(r"[^0-9a-z]+")
_ID_END = 6  # characters of the id that a file's name ends with
_WINDOWS_NAMES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))],
)
# What file systems drop or ignore inside a name: HFS+ the joiners and direction marks, NTFS trailing dots and spaces.
_IGNORED = lazy("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")


def slug(text: str, limit: int = SEGMENT_LIMIT) -> str:
    """A name for a file or folder: lower-case letters and digits of any script, joined by `-`; never empty.

    At most `limit` bytes of UTF-8, cut between words where that is possible. Two slugs that differ still differ on a
    file system that ignores case, and none is a name that Windows keeps for itself.
    """
    if text.isascii():
        name = _NOT_PLAIN.sub("-", text.lower()).strip("-")
    else:
        name = _slug_of_any_script(text)
    name = _cut(name, limit) or "note"
    return name + "_" if name in _WINDOWS_NAMES else name


def _slug_of_any_script(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _IGNORED.sub("", text)).casefold())
    out: list[str] = []
    for ch in folded:
        if ch.isalnum():
            out.append(ch)
        elif out and out[-1] != "-":
            # Vowel signs and accents are no letters of their own, and belong to the letter before them.
            out.append(ch if unicodedata.category(ch)[0] == "M" else "-")
    return unicodedata.normalize("NFC", "".join(out)).strip("-")


def _cut(name: str, limit: int) -> str:
    if len(name) * 4 <= limit:
        return name
    data = name.encode("utf-8")
    if len(data) <= limit:
        return name
    cut = data[:limit].decode("utf-8", "ignore")
    word_end = cut.rfind("-") if name[len(cut)] != "-" else len(cut)
    if word_end > len(cut) // 2:
        cut = cut[:word_end]
    return cut.rstrip("-")


def folder_for(subject: str | None, when: datetime) -> str:
    """The folder of a note: `memory/notes/customer/acme` for `customer/acme`, else `memory/notes/unsorted/2026-10`."""
    folder = _folder_of(subject) if subject else ""
    return folder or f"memory/notes/unsorted/{when.year:04}-{when.month:02}"


@lru_cache(maxsize=256)  # notes come in rows about the same things
def _folder_of(subject: str) -> str:
    parts = [slug(part) for part in subject.split("/") if part.strip()]
    return "memory/notes/" + "/".join(parts[:_DEPTH_LIMIT]) if parts else ""


def file_name(title: str, note_id: str) -> str:
    """`<slug of the title>-<last 6 of the id>.md`, at most 60 bytes."""
    end = note_id.rpartition("_")[2][-_ID_END:]
    return f"{slug(title, SEGMENT_LIMIT - len(end) - 4)}-{end}.md"


def check_path(path: str) -> str:
    """The path itself, when it stays inside the Home and outside of Git's own folder.

    Raises:
        InvalidPath: empty, absolute, with a `.`, `..` or empty segment, a NUL, a backslash, or any spelling of `.git`
            that some file system takes for it; or longer than file systems allow.
    """
    if not path:
        raise _refuse("It is empty.")
    if "\x00" in path or "\\" in path:
        raise _refuse("It holds a NUL or a backslash.")
    if path[0] == "/" or (path[1:2] == ":" and path[2:3] in ("", "/")):
        raise _refuse("It is absolute.")
    if len(path) > 1000 and len(path.encode("utf-8", "surrogatepass")) > 4000:
        raise _refuse("It is longer than file systems allow.")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise _refuse("It has a segment that is empty, `.` or `..`.")
        if len(segment) > 63 and len(segment.encode("utf-8", "surrogatepass")) > 255:
            raise _refuse("It has a segment of more than 255 bytes.")
    if ("git" in path.lower() or not path.isascii()) and any(map(_is_git, path.split("/"))):
        raise _refuse("It leads into Git's own folder.")
    return path


def _is_git(segment: str) -> bool:
    name = segment if segment.isascii() else unicodedata.normalize("NFKC", _IGNORED.sub("", segment))
    name = name.partition(":")[0].rstrip(". ").lower()
    return name == ".git" or re.fullmatch(r"git~\d+", name) is not None


def _refuse(why: str) -> InvalidPath:
    return InvalidPath(
        "This is not a path inside the Home.",
        why=why,
        remedy="Give a path relative to the Home, such as memory/notes/customer/acme.md.",
    )


def title_of(text: str) -> str:
    """A few words for a file name and a commit: the first heading or line, cut at a word."""
    for line in text.splitlines():
        words = _LEAD.sub("", line).split(maxsplit=TITLE_WORDS)
        if words:
            return " ".join(words[:TITLE_WORDS])
    return "note"
