"""The vector index: what is near, whatever its words; the same answer by any road; nothing half done."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.errors import IndexDamaged, Unavailable
from memoranda.index import _chunks, _near, _vector_store, vectors
from memoranda.index.documents import Document
from memoranda.index.embedding import Passage, Weigh, scaled, static
from memoranda.index.embedding.static import StaticEmbedder, installed
from memoranda.index.vectors import VectorIndex

TABLE = installed()
needs_table = pytest.mark.skipif(TABLE is None, reason="the package wordllama is not installed")


class ByHash:
    """Stands in for a model: 64 dimensions, each word a direction of its own. Counts what it was asked."""

    dimensions = 64
    params: Mapping[str, object] = {"model": "by hash"}

    def __init__(self) -> None:
        self.embedded = 0

    def embed(self, passages: Sequence[Passage]) -> list[bytes]:
        self.embedded += len(passages)
        return [self._sum(f"{p.title} {p.text}", lambda _: 1.0) for p in passages]

    def embed_question(self, text: str, weigh: Weigh) -> bytes:
        return self._sum(text, weigh)

    def _sum(self, text: str, weigh: Weigh) -> bytes:
        total = [0.0] * 64
        for word in text.split():
            digest = hashlib.sha512(word.encode()).digest()
            total = [number + weigh(word) * (byte - 127.5) for number, byte in zip(total, digest, strict=True)]
        return scaled([round(number * 10) for number in total])


def key(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def document(text: str, *facets: str) -> Document:
    return Document(key(text), "", "", text, (), facets or ("in:notes",))


def opened(folder: Path, *documents: Document) -> VectorIndex:
    index = VectorIndex.open(folder, ByHash())
    index.apply(documents)
    return index


def even(_: str) -> float:
    return 1.0


def names(index: VectorIndex, question: str, n: int = 5, facets: Sequence[Sequence[str]] = ()) -> list[str]:
    return [found for found, _ in index.search(question, even, facets).nearest(n)]


def test_the_nearest_come_first_with_their_cosine(tmp_path: Path) -> None:
    index = opened(tmp_path, document("red fox"), document("red wine"), document("blue sea"))
    found = index.search("red fox", even).nearest(3)
    assert [k for k, _ in found] == [key("red fox"), key("red wine"), key("blue sea")]
    assert found[0][1] == 1.0
    assert found[0][1] > found[1][1] > found[2][1]


def test_a_word_counts_as_the_question_weighs_it(tmp_path: Path) -> None:
    index = opened(tmp_path, document("red fox"), document("blue fox"))
    assert index.search("red", lambda w: {"red": 1.0}.get(w, 0.0)).nearest(1)[0][0] == key("red fox")
    weighed = index.search("red blue", lambda w: {"red": 0.1, "blue": 1.0}[w])
    assert weighed.nearest(1)[0][0] == key("blue fox")


def test_facets_are_applied_before_the_nearest_are_chosen(tmp_path: Path) -> None:
    many = [document(f"red fox {n}", "in:notes", "scope:user") for n in range(400)]
    index = opened(tmp_path, *many, document("blue sea", "in:notes", "scope:project"))
    assert names(index, "red fox", 3, [["scope:project"]]) == [key("blue sea")]
    assert names(index, "red fox", 3, [["scope:nobody"]]) == []
    assert len(names(index, "red fox", 500, [["scope:nobody", "scope:user"], ["in:notes"]])) == 400


def test_retired_is_not_found_unless_asked_for_and_comes_back(tmp_path: Path) -> None:
    index = opened(tmp_path, document("red fox"), document("red wine"))
    index.apply(retire=[key("red fox")])
    assert names(index, "red fox") == [key("red wine")]
    former = index.search("red fox", even, include_retired=True)
    assert former.nearest(1)[0][0] == key("red fox")
    assert index.counts() == (1, 1)
    index.apply(revive=[key("red fox")])
    assert names(index, "red fox")[0] == key("red fox")


def test_a_document_is_embedded_once(tmp_path: Path) -> None:
    index = opened(tmp_path, document("red fox"))
    index.apply(retire=[key("red fox")])
    index.apply([document("red fox"), document("red wine")])
    embedder = index.embedder
    assert isinstance(embedder, ByHash)
    assert embedder.embedded == 2
    assert index.counts() == (2, 0)


def test_what_another_process_changes_is_seen_by_who_has_looked_before(tmp_path: Path) -> None:
    index, other = opened(tmp_path, document("red fox"), document("red wine")), VectorIndex.open(tmp_path, ByHash())
    wanted = [key(text) for text in ("red fox", "red wine", "red brick")]

    def known() -> list[bool]:
        likeness = index.search("red", even).of(wanted)
        assert likeness == {name: cosine for name, cosine in other.search("red", even).of(wanted).items()}
        return [name in likeness for name in wanted]

    assert known() == [True, True, False]
    other.apply([document("red brick")])
    assert known() == [True, True, True]
    other.apply(drop=[key("red fox")])
    assert known() == [False, True, True]
    other.apply([document("red fox")], drop=[key("red wine")])
    assert known() == [True, False, True]
    index.apply([document("red wine")], retire=[key("red fox")])
    assert known() == [True, True, True]


def test_dropped_is_gone_from_the_file(tmp_path: Path) -> None:
    index = opened(tmp_path, document("red fox"), document("red wine"))
    vector = ByHash().embed([Passage("", "red fox ")])[0]
    index.close()
    assert vector in _bytes(tmp_path)
    index = VectorIndex.open(tmp_path, ByHash())
    done = index.apply(drop=[key("red fox"), key("never there")])
    assert (done.dropped, done.missing) == (1, (key("never there"),))
    assert names(index, "red fox") == [key("red wine")]
    assert index.known([key("red fox")]) == set()
    index.check()
    index.close()
    held = _bytes(tmp_path)
    assert vector not in held
    assert bytes.fromhex(key("red fox")) not in held
    assert vectors.code_of(vector) not in held


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@settings(deadline=None, max_examples=30)
@given(
    texts=st.lists(st.text("abcdef ", min_size=1, max_size=12), min_size=1, max_size=60, unique=True),
    data=st.data(),
)
def test_any_road_leads_to_the_same_answer(
    texts: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One by one, at once, in another order, with others that went again; in plain Python and with numpy."""
    documents = [document(text, "in:journal" if "a" in text else "in:notes") for text in texts]
    first, second = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    try:
        plain = opened(first, *documents)
        other = opened(second)
        for one in data.draw(st.permutations(documents)):
            other.apply([one, document(one.text + " x")])
        other.apply(drop=[key(text + " x") for text in texts if text + " x" not in texts])
        for question in ("a b", *texts[:3]):
            asked = plain.embedder.embed_question(question, even)
            for passages in (None, True, False):
                ours = plain.nearest(asked, 9, [], passages, _vector_store.LIVE)
                assert ours == other.nearest(asked, 9, [], passages, _vector_store.LIVE)
        with plain._reading() as view:
            for n in (1, 5, 100):
                code = vectors.code_of(ByHash().embed_question("c d", even))
                for allowed in (b"\0\1\1", b"\0\1\0"):
                    assert _chunks.nearest(view, code, allowed, 0, n) == _near.nearest(view, code, allowed, 0, n)
        plain.close()
        other.close()
    finally:
        shutil.rmtree(first)
        shutil.rmtree(second)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), width=st.integers(1, 70))
def test_scalar_products_are_exact_in_plain_python_and_with_numpy(data: st.DataObject, width: int) -> None:
    numbers = st.lists(st.integers(-127, 127), min_size=width, max_size=width)
    asked = data.draw(numbers)
    rows = [*data.draw(st.lists(numbers, min_size=1, max_size=5)), [127] * width, [-127] * width]
    packed = [bytes(number & 255 for number in row) for row in rows]
    exact = [sum(a * b for a, b in zip(asked, row, strict=True)) for row in rows]
    assert _chunks.products(asked, packed) == exact
    assert _near.products(asked, np.array(rows, np.int8), np.array([sum(b * b for b in row) for row in rows])) == exact


@pytest.mark.parametrize("width", [1, 31, 32, 48, 96])
def test_codes_of_any_width_are_compared_bit_by_bit(width: int) -> None:
    """Also those that differ in more bits than a byte counts."""
    chance = random.Random(width)
    codes = [bytes(width), b"\xff" * width, *(chance.randbytes(width) for _ in range(40))]
    keys = [chance.randbytes(20) for _ in codes]
    rows = [
        _chunks.Chunk(n + 1, 0, n, 1, b"\0", held, b"\1\0\0\0", bytes(4), code)
        for n, (held, code) in enumerate(zip(keys, codes, strict=True))
    ]
    asked = bytes(width)
    by_hand = sorted(
        (int.from_bytes(code, "big").bit_count(), held, n)
        for n, (held, code) in enumerate(zip(keys, codes, strict=True))
    )
    for n in (1, 7, 100):
        view = _chunks.View(1, tuple(rows), ["\nin:notes\n"], {})
        found = _chunks.nearest(view, asked, b"\0\1", _vector_store.LIVE, n)
        assert found == [(held, number) for _, held, number in by_hand[:n]]
        assert found == _near.nearest(view, asked, b"\0\1", _vector_store.LIVE, n)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_closest_of_many_are_those_that_sorting_finds(data: st.DataObject) -> None:
    """Whatever the sample says that a limit is guessed from: all alike, few shown, the near ones beside the sample."""
    size, n = data.draw(st.integers(1, 6000)), data.draw(st.integers(1, 300))
    chance = np.random.default_rng(data.draw(st.integers(0, 99)))
    distances = chance.integers(0, data.draw(st.sampled_from([1, 3, 250])), size).astype(np.uint16)
    if data.draw(st.booleans()):
        distances[:: _near._SAMPLE] = data.draw(st.sampled_from([0, 255]))
    shown = None if data.draw(st.booleans()) else chance.random(size) < data.draw(st.sampled_from([0.01, 0.5, 1.0]))
    among = np.arange(size) if shown is None else np.flatnonzero(shown)
    found = _near._closest(distances, shown, len(among), n)
    ordered = np.sort(distances[among])
    wanted = among if len(among) <= n else among[distances[among] <= ordered[n - 1]]
    assert found.tolist() == wanted.tolist()


def test_kernels_agree_beyond_one_chunk_and_after_every_kind_of_change(tmp_path: Path) -> None:
    index = opened(tmp_path, *[document(f"word{n} word{n % 7}", "in:notes", f"kind:{n % 3}") for n in range(2500)])
    code = vectors.code_of(ByHash().embed_question("word3 word5", even))

    def agree() -> list[tuple[bytes, int]]:
        with index._reading() as view:
            allowed = vectors._allowed(view, (("kind:1", "kind:9"), ("in:notes",)))
            assert allowed.count(1) == 1
            plain = _chunks.nearest(view, code, allowed, _vector_store.LIVE, 40)
            assert plain == _near.nearest(view, code, allowed, _vector_store.LIVE, 40)
            return plain

    before = agree()
    index.apply(retire=[before[0][0].hex()])
    after = agree()
    assert before[0] not in after
    for n in range(600):
        index.apply([document(f"word3 word5 {n}", "in:notes", "kind:1")])
    assert agree() != after
    index.apply(drop=[agree()[0][0].hex()])
    agree()
    index.check()


def test_another_process_sees_at_once_what_one_wrote(tmp_path: Path) -> None:
    index, other = opened(tmp_path, document("red fox")), VectorIndex.open(tmp_path, ByHash())
    assert names(other, "blue sea")[0] == key("red fox")
    index.apply([document("blue sea")], state={"feed": "7"})
    assert names(other, "blue sea")[0] == key("blue sea")
    assert other.state() == {"feed": "7"}


def test_a_failure_in_the_middle_leaves_what_was_before(tmp_path: Path) -> None:
    index = opened(tmp_path, document("red fox"))

    def broken() -> object:
        yield document("blue sea")
        raise RuntimeError("the disk of the notes is gone")

    with pytest.raises(RuntimeError):
        index.apply(broken(), retire=[key("red fox")], state={"feed": "9"})  # type: ignore[arg-type]
    assert index.state() == {}
    assert names(index, "blue sea") == [key("red fox")]
    with pytest.raises(ValueError, match="40 hex"):
        index.apply([Document("abcd", "", "", "short", (), ())])
    index.check()


_WRITES = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.index.test_vectors import ByHash, document
from memoranda.index.vectors import VectorIndex
index = VectorIndex.open(Path({folder!r}), ByHash())
for n in range(100000):
    index.apply([document(f"text {{n}} {{m}}") for m in range(3)], state={{"reached": str(n)}})
    print(n, flush=True)
"""


def test_a_killed_writer_leaves_whole_steps(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    code = _WRITES.format(path=[str(root), str(root / "src")], folder=str(tmp_path))
    for kill in range(3):
        writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(5 + 9 * kill):
            said = writer.stdout.readline()
        time.sleep(0.001 * kill)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        index = VectorIndex.open(tmp_path, ByHash())
        index.check()
        reached = int(index.state()["reached"])
        assert reached >= int(said)
        assert index.known([key(f"text {reached} {m}") for m in range(3)]) == {
            key(f"text {reached} {m}") for m in range(3)
        }
        index.close()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    opened(tmp_path, *[document(f"text {n}") for n in range(300)]).close()
    file = tmp_path / _vector_store.FILE
    db = sqlite3.connect(file)
    db.execute("UPDATE chunks SET codes = substr(codes, 9)")
    db.commit()
    db.close()
    with pytest.raises(IndexDamaged):
        VectorIndex.open(tmp_path, ByHash()).check()
    shutil.rmtree(tmp_path)
    opened(tmp_path, *[document(f"text {n}") for n in range(300)]).close()
    data = (tmp_path / _vector_store.VECTORS).read_bytes()
    for lost in (data[:-64], data[:-64] + bytes(64), bytes(len(data)), b"\1" * len(data)):
        (tmp_path / _vector_store.VECTORS).write_bytes(lost)
        index = VectorIndex.open(tmp_path, ByHash())
        with pytest.raises(IndexDamaged):
            index.check()
        with pytest.raises(IndexDamaged):
            index.search("text 299", even).nearest(300)
        index.close()
    file.write_bytes(b"no database at all" * 100)
    with pytest.raises(IndexDamaged):
        VectorIndex.open(tmp_path, ByHash())


# The bundled table


@pytest.fixture
def table(tmp_path: Path) -> StaticEmbedder:
    assert TABLE is not None
    return StaticEmbedder(TABLE, tmp_path)


@needs_table
def test_meaning_is_found_without_a_word_in_common(tmp_path: Path, table: StaticEmbedder) -> None:
    index = VectorIndex.open(tmp_path, table)
    texts = ["The physician wrote a prescription.", "They repaired the roof.", "Her cat and her dog sleep all day."]
    index.apply([document(text) for text in texts])
    assert names(index, "doctor", 1) == [key(texts[0])]
    assert names(index, "animal", 1) == [key(texts[2])]


@needs_table
@settings(deadline=None, max_examples=25)
@given(texts=st.lists(st.text(max_size=200), min_size=1, max_size=30))
def test_numpy_and_plain_python_give_the_same_bytes(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert TABLE is not None
    table = StaticEmbedder(TABLE, tmp_path_factory.getbasetemp())
    passages = [Passage("Dana", text) for text in texts]
    many = table.embed(passages)
    assert many == [table._one(passage) for passage in passages]
    fresh = StaticEmbedder(TABLE, tmp_path_factory.getbasetemp())
    assert fresh._one(passages[0]) == many[0]  # a piece looked up in the file is the one that was loaded


@needs_table
@settings(deadline=None, max_examples=25)
@given(text=st.text(alphabet="abcdefghij é日1", max_size=120), seed=st.integers(1, 999))
def test_numpy_and_plain_python_ask_with_the_same_bytes(
    text: str, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert TABLE is not None
    table = StaticEmbedder(TABLE, tmp_path_factory.getbasetemp())

    def weigh(word: str) -> float:
        return zlib.crc32(word.encode()) % (997 * seed) / 997 + 0.1

    pytest.importorskip("numpy")
    with_numpy = table.embed_question(text, weigh)
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "numpy")
        assert table.embed_question(text, weigh) == with_numpy


@needs_table
def test_a_text_of_very_many_words_is_summed_by_its_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TABLE is not None
    texts = [Passage("", " ".join(["harbour", "quay", "captain"] * n + ["7af3" * n])) for n in (1, 40, 700)]
    plain = StaticEmbedder(TABLE, tmp_path)
    wanted = [plain._one(text) for text in texts]
    monkeypatch.setattr("memoranda.index.embedding.static._WIDE", 100)
    assert StaticEmbedder(TABLE, tmp_path)._many(texts) == wanted


@needs_table
def test_of_a_run_of_letters_without_end_only_the_beginning_counts(table: StaticEmbedder) -> None:
    """A line of megabytes without a space took seconds, and stayed in memory with all its pieces."""
    begin = "abcdefghij" * 200
    one, same, other = table.embed([Passage("", text) for text in (begin, begin + "zebra" * 1000, begin[:-3])])
    assert one == same != other
    assert max(map(len, table._words)) == len(begin)


@needs_table
def test_small_words_do_not_count_and_nothing_is_zeros(table: StaticEmbedder) -> None:
    assert table.embed([Passage("", "The cat is on the mat")]) == table.embed([Passage("", "cat mat")])
    assert table.embed([Passage("", "… !"), Passage("", "")]) == [bytes(256)] * 2
    assert table.embed_question("who is it", even) == bytes(256)


@needs_table
def test_another_table_is_refused(tmp_path: Path) -> None:
    assert TABLE is not None
    shutil.copytree(TABLE, tmp_path / "package")
    file = next((tmp_path / "package").glob("weights/*.safetensors"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(Unavailable, match="table"):
        StaticEmbedder(tmp_path / "package", tmp_path).check()


def test_pieces_are_the_same_one_by_one_and_all_at_once(tmp_path: Path) -> None:
    """A process that has looked for many reads the whole list: every word has the same pieces before and after."""
    folder = static.installed()
    if folder is None:
        pytest.skip("needs wordllama")
    words = ["\u2581" + word for word in "renewed the a item99x123 été Zürich naïveté xqzj 2026 contractual".split()]
    one = static.StaticEmbedder(folder, tmp_path / "models")
    before = [list(one._pieces_of(word)) for word in words]
    for n in range(static._MANY_PIECES + 1):
        one._lookup[f"{n}#"]
    assert one._lookup.longest
    assert [list(one._pieces_of(word)) for word in words] == before
