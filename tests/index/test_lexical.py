"""The lexical index: an answer depends on the documents, and on nothing else."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import IndexDamaged
from memoranda.index import _fast, _plain, _segments, _store, _write
from memoranda.index import lexical as module
from memoranda.index._best import candidates
from memoranda.index._scoring import Scoring, Shares, weights
from memoranda.index._words import word_of
from memoranda.index.analysis import analyze_query
from memoranda.index.documents import Document
from memoranda.index.lexical import LexicalIndex

WORDS = ["acme", "renewal", "dana", "luis", "contract", "running", "ran", "été", "chevaux", "foo.bar", "2026", "tokyo"]


def key(n: int) -> str:
    return hashlib.sha1(str(n).encode()).hexdigest()


def document(n: int, text: str, *facets: str, title: str = "") -> Document:
    return Document(key(n), title, "", text, (), facets)


def answers(index: LexicalIndex, question: str, facets: Iterable[Iterable[str]] = (), **how: bool) -> list[object]:
    scores = index.search(analyze_query(question), [list(group) for group in facets], **how)
    return [item for batch in scores.ranked() for item in batch]


@pytest.fixture
def index(tmp_path: Path) -> Iterable[LexicalIndex]:
    opened = LexicalIndex.open(tmp_path / "lexical")
    yield opened
    opened.close()


def test_finds_the_better_match_first(index: LexicalIndex) -> None:
    index.apply([document(1, "Acme renewed the contract"), document(2, "Dana likes running"), document(3, "Acme")])
    found = [k for k, _ in index.search(analyze_query("the contract of Acme")).top(5)]
    assert found == [key(1), key(3)]


def test_a_title_counts_more_than_a_text(index: LexicalIndex) -> None:
    index.apply([document(1, "renewal dana", title="contract"), document(2, "contract dana", title="renewal")])
    assert [k for k, _ in index.search(analyze_query("renewal")).top(1)] == [key(2)]


@pytest.mark.parametrize("question", ['" OR NEAR(', "the of and", "", "   ", "le la les", "***", "\0", "?!"])
def test_a_question_without_words_finds_nothing(index: LexicalIndex, question: str) -> None:
    index.apply([document(1, "The near and the far, or the other of them")])
    assert answers(index, question) == []


def test_a_group_counts_once_with_the_most_frequent_of_its_alternatives(index: LexicalIndex) -> None:
    """`running` is `run` in English and stays in French: a French text that has both holds one word of the question."""
    index.apply([document(1, "Le running, le running et le run de la semaine"), document(2, "le chat de la semaine")])
    found = []
    for kernel in (_plain.run, _fast.run):
        index._kernel = lambda work, kernel=kernel: kernel  # type: ignore[method-assign,misc]
        scores = index.search(analyze_query("running"))
        assert scores.df == (1,)
        found.append(answers(index, "running"))
    idf, length, average = scores.idf[0], 4, 3
    norm = 1.2 * (1 - 0.75 + 0.75 * length / average)
    assert found[0] == found[1]
    assert found[0] == [(key(1), pytest.approx(idf * 2 * 2.2 / (2 + norm)))]


def test_facets_are_applied_before_ranking(index: LexicalIndex) -> None:
    index.apply([document(n, "acme contract", "in:notes", f"kind:{n % 3}") for n in range(300)])
    index.apply([document(1000, "acme word word word word word", "in:notes", "kind:rare", "subject:x")])
    assert [k for k, _ in index.search(analyze_query("acme"), [["kind:rare"]]).top(5)] == [key(1000)]
    assert len(answers(index, "acme", [["kind:0", "kind:rare"], ["in:notes"]])) == 101
    assert answers(index, "acme", [["kind:0"], ["subject:x"]]) == []
    assert answers(index, "acme", [[]]) == []


def test_a_predicate_never_empties_a_page(index: LexicalIndex) -> None:
    index.apply([document(n, "acme " * (1 + n % 7)) for n in range(2000)])
    allowed = {key(n) for n in range(0, 2000, 400)}
    calls = []

    def accept(keys: Iterable[str]) -> set[str]:
        calls.append(len(list(keys)))
        return allowed & set(keys)

    found = index.search(analyze_query("acme")).top(5, accept)
    assert {k for k, _ in found} == allowed
    assert len(calls) < 40
    assert [k for k, _ in answers(index, "acme") if k in allowed] == [k for k, _ in found]


def test_retired_documents_count_for_nothing_and_can_be_asked_for(index: LexicalIndex, tmp_path: Path) -> None:
    index.apply([document(n, f"acme {WORDS[n % 5]}") for n in range(20)])
    index.apply(retire=[key(n) for n in range(10)])
    other = LexicalIndex.open(tmp_path / "other")
    other.apply([document(n, f"acme {WORDS[n % 5]}") for n in range(10, 20)])
    assert answers(index, "acme dana") == answers(other, "acme dana")
    assert len(answers(index, "acme", include_retired=True)) == 20
    asked = [key(n) for n in range(8, 12)]
    assert set(index.search(analyze_query("acme")).held(asked)) == {key(10), key(11)}
    assert set(index.search(analyze_query("acme"), include_retired=True).held(asked)) == set(asked)
    index.apply(revive=[key(3)])
    other.apply([document(3, f"acme {WORDS[3]}")])
    assert answers(index, "acme dana") == answers(other, "acme dana")
    other.close()


def test_dropped_documents_are_gone(index: LexicalIndex) -> None:
    index.apply([document(n, "acme") for n in range(300)])
    applied = index.apply(drop=[key(n) for n in range(299)] + ["f" * 40])
    assert (applied.dropped, applied.missing) == (299, ("f" * 40,))
    assert index.keys() == {key(299)} == index.known(key(n) for n in range(300))
    assert [k for k, _ in answers(index, "acme", include_retired=True)] == [key(299)]
    index.compact()
    assert [k for k, _ in answers(index, "acme", include_retired=True)] == [key(299)]
    index.apply(add=[document(5, "acme")])
    assert len(answers(index, "acme")) == 2


def test_the_state_is_kept_with_what_it_describes(small: None, tmp_path: Path) -> None:
    index = LexicalIndex.open(tmp_path)
    index.apply([document(1, "acme")], state={"commit": "a", "feed": "1"})

    def broken() -> Iterable[Document]:
        yield from (document(n, "acme") for n in range(2, 30))  # segments are written meanwhile
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        index.apply(broken(), state={"commit": "b"})
    assert index.state() == {"commit": "a", "feed": "1"}
    assert len(answers(index, "acme")) == 1
    index.close()
    again = LexicalIndex.open(tmp_path)
    assert again.state() == {"commit": "a", "feed": "1"}
    assert again.counts().live == 1
    again.check()
    again.close()


_WRITER = """
import sys
from pathlib import Path
from memoranda.index import _write, _segments
from memoranda.index.documents import Document
from memoranda.index.lexical import LexicalIndex
_write.TAIL_MOST = _segments.TAIL_MOST = 3
_segments.FAN = 2
index = LexicalIndex.open(Path(sys.argv[1]))
n = int(index.state().get("n", "0"))
print("ready", flush=True)
while True:
    added = [Document(f"{k:040x}", text=f"acme word{k}") for k in range(n, n + 1 + n % 5)]
    n += len(added)
    index.apply(added, retire=[f"{n // 2:040x}"], drop=[f"{n // 3:040x}"], state={"n": str(n)})
"""


def test_a_killed_writer_leaves_the_index_of_its_last_state(tmp_path: Path) -> None:
    chance = random.Random(4)
    for _ in range(12):
        command = [sys.executable, "-c", _WRITER, str(tmp_path / "killed")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(chance.random() * 0.15)
            writer.kill()
    index = LexicalIndex.open(tmp_path / "killed")
    index.check()
    reached = int(index.state()["n"])
    other = LexicalIndex.open(tmp_path / "other")
    n = 0
    while n < reached:
        added = [Document(f"{k:040x}", text=f"acme word{k}") for k in range(n, n + 1 + n % 5)]
        n += len(added)
        other.apply(added, retire=[f"{n // 2:040x}"], drop=[f"{n // 3:040x}"])
    assert n == reached > 0
    assert index.counts() == other.counts()
    for question in ("acme", f"word{n - 1} acme", "word1"):
        assert answers(index, question) == answers(other, question)
        assert answers(index, question, include_retired=True) == answers(other, question, include_retired=True)
    index.close()
    other.close()


def test_what_another_process_adds_is_found_at_once(tmp_path: Path) -> None:
    one, two = LexicalIndex.open(tmp_path), LexicalIndex.open(tmp_path)
    assert answers(two, "acme") == []
    one.apply([document(1, "acme")])
    assert len(answers(two, "acme")) == 1
    two.apply([document(2, "acme")], retire=[key(1)])
    assert [k for k, _ in answers(one, "acme")] == [key(2)]
    one.close()
    two.close()


def test_scores_stay_as_they_are_while_the_index_changes(index: LexicalIndex) -> None:
    index.apply([document(n, "acme") for n in range(10)])
    scores = index.search(analyze_query("acme"))
    index.apply([document(n, "acme") for n in range(10, 400)], drop=[key(0)])
    assert len(scores.top(100)) == 10
    assert key(0) in scores.of([key(0)])


def test_a_damaged_or_foreign_file_is_named(tmp_path: Path) -> None:
    (tmp_path / module.FILE).write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(IndexDamaged):
        LexicalIndex.open(tmp_path)
    LexicalIndex.remove(tmp_path)
    LexicalIndex.open(tmp_path).close()
    LexicalIndex.remove(tmp_path)
    tmp_path.mkdir(exist_ok=True)
    with sqlite3.connect(tmp_path / module.FILE) as db:
        db.execute("CREATE TABLE notes (a)")
    db.close()
    with pytest.raises(IndexDamaged):
        LexicalIndex.open(tmp_path)


def test_a_torn_file_is_an_error_of_ours(tmp_path: Path) -> None:
    index = LexicalIndex.open(tmp_path)
    index.apply([document(n, f"acme {WORDS[n % 12]} word{n}") for n in range(2000)])
    index.close()
    file = tmp_path / module.FILE
    data = bytearray(file.read_bytes())
    for at in range(4096, len(data), 1024):
        data[at : at + 600] = b"\xff" * 600
    file.write_bytes(bytes(data[: len(data) // 2]))
    with pytest.raises(IndexDamaged):
        torn = LexicalIndex.open(tmp_path)
        torn.check()


def test_a_key_that_is_no_key(index: LexicalIndex) -> None:
    with pytest.raises(ValueError):
        index.apply([Document("abc", text="acme")])
    assert index.known(["abc", "no hex", ""]) == set()


# The answer depends on the documents, and on nothing else


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of few documents, so that short histories have many."""
    monkeypatch.setattr(_write, "TAIL_MOST", 3)
    monkeypatch.setattr(_segments, "TAIL_MOST", 3)
    monkeypatch.setattr(_segments, "FAN", 2)
    monkeypatch.setattr(_segments, "SEGMENT_MOST", 20)
    monkeypatch.setattr(_write, "BUILD_DOCUMENTS", 5)


DOCUMENTS = {
    n: document(
        n,
        " ".join(WORDS[(n * 7 + i * i) % len(WORDS)] for i in range(1 + n % 5)),
        "in:journal" if n % 3 == 0 else "in:notes",
        f"kind:{n % 2}",
        title=WORDS[n % 4] if n % 4 == 1 else "",
    )
    for n in range(40)
}
numbers = st.lists(st.integers(0, 39), max_size=6)
steps = st.lists(st.tuples(numbers, numbers, numbers, numbers, st.booleans()), max_size=8)
QUESTIONS = ["acme", "acme renewal contract", "dana ran foo.bar", "Les chevaux de l'été à Tokyo", "2026 luis acme acme"]
FACETS: list[list[list[str]]] = [[], [["in:notes"]], [["kind:1", "kind:none"], ["in:journal", "in:notes"]]]


def everything(index: LexicalIndex) -> list[object]:
    found: list[object] = [index.counts().live, index.counts().retired, sorted(index.keys())]
    for question in QUESTIONS:
        for facets in FACETS:
            for retired in (False, True):
                scores = index.search(analyze_query(question), facets, include_retired=retired)
                found += [scores.idf, scores.df, [item for batch in scores.ranked() for item in batch]]
                found.append(sorted(scores.matched([document.key for document in DOCUMENTS.values()]).items()))
                found.append([scores.top(3, passages=which) for which in (True, False)])
    return found


@given(steps)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_caught_up_index_answers_as_a_rebuilt_one(
    small: None, tmp_path_factory: pytest.TempPathFactory, history: list[tuple[list[int], ...]]
) -> None:
    directory = tmp_path_factory.mktemp("index")
    live: dict[int, bool] = {}
    index = LexicalIndex.open(directory / "caught-up")
    for add, retire, revive, drop, compact in history:
        index.apply([DOCUMENTS[n] for n in add], map(key, retire), map(key, revive), map(key, drop))
        live |= dict.fromkeys(add, True)
        live |= dict.fromkeys([n for n in retire if n in live], False)
        live |= dict.fromkeys([n for n in revive if n in live], True)
        for n in drop:
            live.pop(n, None)
        if compact:
            index.compact()
    rebuilt = LexicalIndex.open(directory / "rebuilt")
    rebuilt.apply(
        [DOCUMENTS[n] for n in sorted(live, reverse=True)], [key(n) for n, alive in live.items() if not alive]
    )
    assert everything(index) == everything(rebuilt)
    index.check()
    index.close()
    rebuilt.close()


@given(st.lists(st.integers(0, 39), min_size=1, unique=True), numbers)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_kernels_give_the_same_bits(
    small: None, tmp_path_factory: pytest.TempPathFactory, add: list[int], retire: list[int]
) -> None:
    index = LexicalIndex.open(tmp_path_factory.mktemp("index"))
    for n in add:
        index.apply([DOCUMENTS[n]])
    index.apply(retire=map(key, retire))
    found = []
    for kernel in (_plain.run, _fast.run, _sparing):
        index._kernel = lambda work, kernel=kernel: kernel  # type: ignore[method-assign,misc]
        found.append(everything(index))
    assert found[0] == found[1] == found[2]
    index.close()


def _sparing(scoring: Scoring) -> _fast.FastResult:
    """As a query with many postings is answered: without scoring every document."""
    groups = weights(scoring, 0, word_of)
    result = _fast.FastResult(scoring.view, [group.found for group in groups], Shares.of(groups))
    result._much, result._all = True, None
    return result


@given(st.lists(st.lists(st.integers(0, 6), max_size=12), min_size=30, max_size=200), st.integers(1, 12), st.data())
@settings(max_examples=80, deadline=None)
def test_the_best_are_found_without_scoring_all(texts: list[list[int]], n: int, data: st.DataObject) -> None:
    words = "acme dana globex zurich invoice contract renewal".split()
    rare = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=3))
    index = LexicalIndex.open(Path(tempfile.mkdtemp()))
    try:
        for at, text in enumerate(texts):
            index.apply([document(at, " ".join(words[w] for w in text if w < 3 or at in rare), f"kind:{at % 3}")])
        index.apply(retire=[key(at) for at in range(0, len(texts), 7)])
        query = analyze_query(" ".join(words))
        found = []
        for kernel in (_plain.run, _sparing):
            index._kernel = lambda work, kernel=kernel: kernel  # type: ignore[method-assign,misc]
            for facets in ([], [["kind:1"]]):
                scores = index.search(query, facets, include_retired=n % 2 == 0)
                keys = [key(at) for at in range(len(texts))]
                found.append([scores.top(n), scores.held(keys), scores.top(5 * n, lambda keys: set(keys[1::2]))])
        assert found[:2] == found[2:]
    finally:
        index.close()


def test_few_of_many_are_scored() -> None:
    """The candidates are fewer than the documents, and the best are among them."""
    index = LexicalIndex.open(Path(tempfile.mkdtemp()))
    index.apply([document(n, f"acme word{n % 50} {'dana' if n % 400 == 0 else ''}") for n in range(4000)])
    index._kernel = lambda work: _sparing  # type: ignore[method-assign,assignment,return-value]
    scores = index.search(analyze_query("acme dana"))
    few = candidates(scores._result.view, scores._result._words, None, 3)  # type: ignore[attr-defined]
    assert few is not None and len(few) == 10
    assert candidates(scores._result.view, scores._result._words, None, 30) is None  # type: ignore[attr-defined]
    assert scores.top(10) == scores.top(30)[:10]
    index.close()


def test_both_kernels_agree_on_many_ties(index: LexicalIndex) -> None:
    """Thousands of equal scores, and keys that begin alike: the order is that of the keys."""
    documents = [
        Document(f"{n % 3}{0:030x}{n:09x}", "", "", f"acme {'dana' if n % 50 == 0 else ''}") for n in range(5000)
    ]
    index.apply(documents)
    query = analyze_query("acme dana")
    found = []
    for kernel in (_plain.run, _fast.run, _sparing):
        index._kernel = lambda work, kernel=kernel: kernel  # type: ignore[method-assign,misc]
        scores = index.search(query)
        found.append([scores.top(n) for n in (1, 10, 129, 700, 5000)])
    assert found[0] == found[1] == found[2]
    everything_found = found[0][-1]
    assert everything_found == sorted(everything_found, key=lambda item: (-item[1], item[0]))


def test_many_lookups_find_what_single_ones_find(index: LexicalIndex) -> None:
    documents = [Document(f"{n % 3}{0:030x}{n:09x}", text="acme") for n in range(500)]
    index.apply(documents[:400])
    index.apply(documents[400:], drop=[documents[7].key])
    view = index._refreshed()
    keys = [bytes.fromhex(d.key) for d in documents] + [b"\1" * 20]
    assert _fast.find(view, keys) == [view.find(k) for k in keys]
    assert _fast.find(view, keys)[7] is None


def test_facets_survive_both_forms() -> None:
    for size in (1, 7, 8, 9, 1000):
        for step in (1, 2, 40):
            found = _store.numbers_of(b"")
            found.extend(range(0, size, step))
            assert _segments.unpack_facet(_segments.pack_facet(found, size)) == found


def test_documents_behind_the_first_full_segment(tmp_path: Path) -> None:
    """Two segments of the greatest size: numbers in a segment are 16 bits, numbers over all are not."""
    index = LexicalIndex.open(tmp_path)
    builder = _segments.Builder()
    for n in range(2 * _store.SEGMENT_MOST):
        terms = {"acme": 1 + n % 2} if n % 9 == 0 else {"dana": 1, "acme": 1}
        builder.add(_store.Row(n.to_bytes(20, "big"), _store.LIVE, 2, 0, terms))
        if len(builder) == _store.SEGMENT_MOST:
            builder.write(index._db, n, 0)
            builder = _segments.Builder()
    index._db.execute("UPDATE meta SET value = 1 WHERE name = 'generation'")
    found = []
    for kernel in (_plain.run, _fast.run):
        index._kernel = lambda work, kernel=kernel: kernel  # type: ignore[method-assign,misc]
        scores = index.search(analyze_query("acme dana"))
        last = (2 * _store.SEGMENT_MOST - 9).to_bytes(20, "big").hex()
        found.append([scores.top(300), scores.df, scores.matched([last]), scores.of([last])])
    assert found[0] == found[1]
    index.close()
