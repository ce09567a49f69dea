"""Many documents at once: the same rows as one document after the other."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.index import _bulk, _store
from memoranda.index._bulk import Bulk, Vocabulary
from memoranda.index._segments import Builder
from memoranda.index._write import row_of
from memoranda.index.analysis import analyze_query
from memoranda.index.documents import Document
from memoranda.index.lexical import LexicalIndex

_WORDS = (
    "the US and don't d'accord l'école Le le été camelCase EAI_CRED_X 2026 last week (see IT AI 日本語 foo.bar"
    " well-being, C++ c# 1,234 ? Élodie [shown] is Σας ΟΔΟΣ İstanbul ß d'or hier monday two the(he and/or it."
)
_words = st.sampled_from([*_WORDS.split(), "\u00a0", "\n", "\t", "x" * 50])
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.lists(_words, max_size=30).map(" ".join),
    st.lists(_words, max_size=10).map("".join),
)
facets = st.lists(st.sampled_from(["in:journal", "in:notes", "kind:x"]), max_size=3).map(tuple)
documents = st.lists(st.tuples(texts, texts, texts, st.lists(texts, max_size=2).map(tuple), facets), max_size=5)
_vocabulary = Vocabulary()


def key(n: int) -> str:
    return hashlib.sha1(str(n).encode()).hexdigest()


def numbered(values: Iterable[tuple[str, str, str, tuple[str, ...], tuple[str, ...]]]) -> list[Document]:
    return [Document(key(n), *value) for n, value in enumerate(values)]


def rows(builder: Builder | Bulk) -> list[list[object]]:
    db = sqlite3.connect(":memory:")
    db.executescript(_store.SCHEMA)
    builder.write(db, 1, 1)
    tables = ("postings ORDER BY term", "segments", "status")
    return [db.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


def one_by_one(given: Sequence[Document]) -> list[list[object]]:
    builder = Builder()
    for document in given:
        builder.add(row_of(document))
    return rows(builder)


@given(documents)
@settings(deadline=None)
def test_a_bulk_writes_what_single_documents_would_become(
    values: list[tuple[str, str, str, tuple[str, ...], tuple[str, ...]]],
) -> None:
    made = numbered(values)
    bulk = Bulk(_vocabulary)
    for document in made:
        bulk.add(document)
    assert rows(bulk) == one_by_one(made)


@given(documents, st.sets(st.integers(0, 4)))
@settings(max_examples=40, deadline=None)
def test_documents_that_are_left_out_leave_nothing(
    values: list[tuple[str, str, str, tuple[str, ...], tuple[str, ...]]], out: set[int]
) -> None:
    made = numbered(values)
    bulk = Bulk(_vocabulary)
    for document in made:
        bulk.add(document)
    bulk.leave_out({n for n in out if n < len(made)})
    kept = [document for n, document in enumerate(made) if n not in out]
    if kept:
        assert rows(bulk) == one_by_one(kept)


def test_many_blocks_and_the_same_word_thousands_of_times() -> None:
    made = numbered(
        ("US and them " * (n % 7) + f"word{n % 11} item{n}", "", f"a/b{n % 5}", (), ()) for n in range(5000)
    )
    made.append(Document(key(-2), "US he IT", "US us IT", "US it IT AI", ("IT US ok or",)))  # at the bounds of a shout
    made.append(Document(key(-1), "", "", "again " * 70_000))
    bulk = Bulk(Vocabulary())
    for document in made:
        bulk.add(document)
    assert rows(bulk) == one_by_one(made)


def test_a_bulk_meets_documents_that_are_there(tmp_path: Path) -> None:
    """Another process had added and retired them: they are revived as by any adding, and there is one of each."""
    index = LexicalIndex.open(tmp_path / "lexical")
    index.apply([Document(key(n), text="acme") for n in range(200)])
    index.apply(retire=[key(3), key(150)])
    bulk = Bulk(Vocabulary())
    for n in (3, 150, 199, 1000, 1001, 1000):
        bulk.add(Document(key(n), text="acme"))
    assert index.apply(bulk=bulk, state={"feed": "7"}).added == 2
    found = [item for batch in index.search(analyze_query("acme")).ranked() for item in batch]
    assert sorted(name for name, _ in found) == sorted(key(n) for n in (*range(200), 1000, 1001))
    assert index.state() == {"feed": "7"}
    index.close()


def test_a_bulk_is_full_of_words_as_well_as_of_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of long files must not be held in memory by the thousand."""
    monkeypatch.setattr(_bulk, "MOST_RUNS", 300)
    bulk = Bulk(Vocabulary())
    bulk.add(Document(key(1), text="acme " * 5000))
    assert not bulk.full
    bulk.add(Document(key(2), text=" ".join(f"word{n}" for n in range(1000))))
    assert bulk.full
    monkeypatch.setattr(_bulk, "BUILD_POSTINGS", 2000)
    monkeypatch.setattr(_bulk, "_BLOCK_RUNS", 1000)
    other = Bulk(Vocabulary())
    other.add(Document(key(1), text="acme " * 1500))
    assert not other.full
    other.add(Document(key(2), text="acme " * 1500))
    assert other.full


def test_few_documents_take_no_segment_and_no_numpy(tmp_path: Path) -> None:
    """Importing a handful of files must not make a segment each time, nor wait for numpy in a fresh process."""
    told = """
import sys
from pathlib import Path
from memoranda.context import Context
from memoranda.home.create import create, finish
from memoranda.home.keys import Keys
from memoranda.operations.importing import import_folder
from memoranda.operations.space import Space
folder = Path(sys.argv[1])
(folder / "vault").mkdir()
context, keys = Context(user="dana", agent="cleo"), Keys(folder / "keys")
finish(create(folder / "home", context).root, context, keys)
with Space(context, keys, folder / "home", None) as space:
    for n in range(5):
        (folder / f"vault/{n}.md").write_text(f"The buoy {n} is green.")
        assert import_folder(context, space, folder / "vault").taken == 1
    db = space.one().indexes.lexical._db
    print(*[db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("segments", "tail")])
print("numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", told, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "5", "False"], done.stderr
