"""French: how often the passage that answers is among the first five that are recalled.

The questions of citizens to a French authority (`../shared/data/fr`, MIT), each with the passage that answers it. A
passage is a note, and every question a whole `recall`; the yardstick holds the same passages in a bare FTS5 table
(`unicode61`, the words joined by OR). Passages of one text count as one. A weight of notes was fitted on every other
question, so the others are told apart.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench._common import CACHE, DATA, Line, Options, context, discard, new_home, opened
from memoranda.operations.importing import import_folder
from memoranda.operations.recalling import recall

TITLE = "French: the right passage in the first five"
FILE = DATA.parent / "fr" / "cnil_faq.json"


def questions_and_passages() -> tuple[list[tuple[str, int]], list[str]]:
    """(question, number of its passage), and the passages, each text once."""
    passages: dict[str, int] = {}
    asked = []
    for entry in json.loads(FILE.read_text(encoding="utf-8"))["data"]:
        for paragraph in entry["paragraphs"]:
            number = passages.setdefault(paragraph["context"], len(passages))
            asked += [(question["question"], number) for question in paragraph["qas"]]
    return asked, list(passages)


def home_of_passages(passages: Sequence[str]) -> Any:
    """The root of a Home with these notes; the last line of each is its number."""
    source = CACHE / "french"
    discard(source)
    source.mkdir(parents=True)
    for n, text in enumerate(passages):
        (source / f"{n}.md").write_text(f"---\nid: mem_{n:016d}\nkind: fact\n---\n{text}\n", encoding="utf-8")
    root = new_home("french-home")
    with opened(root) as (space, _):
        import_folder(context(), space, source)
    return root


def share(asked: Sequence[tuple[str, int]], found: Callable[[str], Sequence[int]]) -> float:
    return 100 * sum(number in found(question)[:5] for question, number in asked) / len(asked)


def run(_: Options) -> Iterator[Line]:
    if not FILE.is_file():
        yield Line("French", 0, "%", note="not measured: shared/data/fr is not there")
        return
    asked, passages = questions_and_passages()
    with opened(home_of_passages(passages)) as (space, _):
        space.watch()

        def ours(question: str) -> list[int]:
            items = recall(context(), space, question, k=5, budget=1_000_000).items
            return [int(item.id.removeprefix("mem_")) for item in items]

        mine = [share(part, ours) for part in (asked, asked[1::2])]
    bare = _fts(passages)
    theirs = [share(part, bare) for part in (asked, asked[1::2])]
    for what, one, other in zip((f"all {len(asked)} questions", "those not fitted on"), mine, theirs, strict=True):
        bound = "at least 73 %" if what.startswith("all") else ""
        yield Line(what, one, "%", "FTS5 unicode61", other, one / other, bound, one >= 73 if bound else None)


def _fts(passages: Sequence[str]) -> Callable[[str], list[int]]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize = 'unicode61')")
    db.executemany("INSERT INTO t (rowid, text) VALUES (?, ?)", enumerate(passages))

    def found(question: str) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", question.lower())))
        return [row for (row,) in db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT 5", (query,))]

    return found
