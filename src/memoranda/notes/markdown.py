"""What a Markdown text says about itself: headings, sections, links and tags. Code is not looked into.

Lines are separated by `\\n`, counted from 1, and ranges include both ends.
"""

from __future__ import annotations

from collections.abc import Iterator

from memoranda.notes.lazyre import lazy
from memoranda.values import dataclass

_FENCE = lazy(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_ATX = lazy(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_UNDERLINE = lazy(r" {0,3}(=+|-{2,})[ \t]*\r?")
_NO_PARAGRAPH = lazy(r"\s*(?:[#>|+*=~`-]|\d{1,9}[.)]\s|$)|    |\t")
_INLINE_CODE = lazy(r"(`{1,2})[^`\n]+\1")
_WIKI = lazy(r"\[\[([^\[\]\n]{1,500})\]\]")
_LINK = lazy(r"\]\((?:<([^<>\n]{1,500})>|([^()<>\s]{1,500}))(?:[ \t]+[\"'(][^\n()\"']{0,300}[\"')])?\)")
_URL = lazy(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#|\?")
_TAG = lazy(r"(?:^|(?<=[\s(,;]))#([\w/-]*[^\W\d][\w/-]*)")


@dataclass(frozen=True, slots=True)
class Heading:
    """One heading and its section: `start` is its own line, `end` the last line before the next of its rank."""

    level: int
    title: str
    start: int
    end: int


def outline(text: str) -> tuple[Heading, ...]:
    """All headings in order, each with the lines of its section, deeper sections included."""
    found = list(_headings(text))
    total = text.count("\n") + (0 if text.endswith("\n") else 1)
    ends = [total] * len(found)
    open_ones: list[int] = []
    for i, (level, _, start) in enumerate(found):
        while open_ones and found[open_ones[-1]][0] >= level:
            ends[open_ones.pop()] = start - 1
        open_ones.append(i)
    return tuple(Heading(level, name, start, end) for (level, name, start), end in zip(found, ends, strict=True))


def section(text: str, which: str | int) -> Heading | None:
    """The section with this title (exact, else without case), or the n-th heading of the outline, counted from 1."""
    headings = outline(text)
    if isinstance(which, str):
        for same in (str.strip, lambda title: title.strip().strip("#").strip().casefold()):
            wanted = same(which)
            for heading in headings:
                if same(heading.title) == wanted:
                    return heading
        if not (which.isascii() and which.isdigit() and len(which) < 9):
            return None
        which = int(which)
    return headings[which - 1] if 1 <= which <= len(headings) else None


def lines(text: str, start: int, end: int) -> str:
    """The lines from `start` to `end`, without the last line's end."""
    return "\n".join(text.split("\n")[max(start - 1, 0) : end])


def title(text: str) -> str | None:
    """The title of the first heading that has one, or None."""
    if "#" not in text and "\n=" not in text and "\n-" not in text and "\n " not in text:
        return None
    return next((name for _, name, _ in _headings(text) if name), None)


def links(text: str) -> tuple[str, ...]:
    """Where the text points inside a collection of notes: `[[target]]` and `[words](target)`, each once, in order.

    Without headings, aliases and brackets; addresses with a scheme are not links to notes and are left out.
    """
    if "[[" not in text and "](" not in text:
        return ()
    text = _without_code(text)
    found: list[tuple[int, str]] = []
    for match in _WIKI.finditer(text):
        found.append((match.start(), match[1].partition("|")[0].partition("#")[0].rstrip("\\").strip()))
    for match in _LINK.finditer(text):
        target = match[1] or match[2]
        if not _URL.match(target):
            found.append((match.start(), _unquote(target.partition("#")[0].partition("?")[0].strip())))
    return tuple(dict.fromkeys(target for _, target in sorted(found) if target))


def tags(text: str) -> tuple[str, ...]:
    """The `#tags` of the text without their `#`, each once, in order. A tag holds at least one letter."""
    if "#" not in text:
        return ()
    return tuple(dict.fromkeys(match.strip("/") for match in _TAG.findall(_without_code(text)) if match.strip("/")))


def _unquote(target: str) -> str:
    if "%" not in target:
        return target
    from urllib.parse import unquote  # 5 ms that most texts do not need

    return unquote(target)


def _lines_outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is neither in a fenced block nor a fence. An open fence runs to the end."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        match = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence:
            if match and match[1].startswith(fence) and not match[2].strip():
                fence = ""
            continue
        if match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            continue
        yield number, line


def _headings(text: str) -> Iterator[tuple[int, str, int]]:
    """Level, title and line of each heading."""
    before, at = "", -1  # the line above, when it could be the text of an underlined heading
    for number, line in _lines_outside_code(text):
        if "#" in line and (match := _ATX.fullmatch(line.rstrip("\r"))):
            name = (match[2] or "").strip()
            yield len(match[1]), _without_closing_hashes(name), number
            before = ""
            continue
        if before and at == number - 1 and line.lstrip(" ")[:1] in ("=", "-") and (m := _UNDERLINE.fullmatch(line)):
            yield (1 if m[1][0] == "=" else 2), before.strip(), at
            before = ""
            continue
        before, at = ("" if _NO_PARAGRAPH.match(line) else line), number


def _without_closing_hashes(name: str) -> str:
    bare = name.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else name


def _without_code(text: str) -> str:
    if "`" not in text and "~~~" not in text:
        return text
    if "```" in text or "~~~" in text:
        text = "\n".join(line for _, line in _lines_outside_code(text))
    return _INLINE_CODE.sub(" ", text)
