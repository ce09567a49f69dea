"""The texts that a peer is given: Markdown files with front matter, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Document(NamedTuple):
    """A file's name without its suffix, its words, and what its front matter says of session and date, if anything."""

    name: str
    words: str
    session: str
    date: str


def documents(folder: Path) -> Iterator[Document]:
    for path in sorted(folder.rglob("*.md")):
        _, front, words = path.read_text(encoding="utf-8").split("---\n", 2)
        fields = dict(line.split(": ", 1) for line in front.splitlines() if ": " in line)
        yield Document(path.stem, words.strip(), fields.get("session", ""), fields.get("date", ""))
