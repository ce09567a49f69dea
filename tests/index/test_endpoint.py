"""Embeddings over HTTP, against a stand-in for a server: it counts letters, and misbehaves when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.errors import InvalidInput, Unavailable
from memoranda.index.documents import Document
from memoranda.index.embedding import Passage
from memoranda.index.embedding.endpoint import EndpointEmbedder
from memoranda.index.vectors import VectorIndex
from tests.standin import StandIn


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def embedder(server: StandIn, tmp_path: Path, slept: list[float]) -> Iterator[EndpointEmbedder]:
    made = EndpointEmbedder(server.url, "letters", 8, tmp_path / "cache", key="k-1", batch=3, sleep=slept.append)
    yield made
    made.close()


def embed(embedder: EndpointEmbedder, *texts: str) -> list[bytes]:
    return embedder.embed([Passage("", text) for text in texts])


def test_texts_go_in_batches_and_vectors_come_in_their_order(server: StandIn, embedder: EndpointEmbedder) -> None:
    found = embed(embedder, "a", "bb", "ab", "h", "")
    assert found == [bytes([127, *[0] * 7]), bytes([0, 127, *[0] * 6]), bytes([127, 127, *[0] * 6]),
                     bytes([*[0] * 7, 127]), bytes(8)]  # fmt: skip
    assert [asked["input"] for asked in server.asked] == [["a", "bb", "ab"], ["h"]]
    assert {(asked["path"], asked["model"]) for asked in server.asked} == {("/v1/embeddings", "letters")}
    assert set(server.keys) == {"Bearer k-1"}


def test_a_text_is_asked_for_once_by_model_and_content(server: StandIn, tmp_path: Path) -> None:
    first = EndpointEmbedder(server.url, "letters", 8, tmp_path, key="secret-key-value")
    before = embed(first, "a", "b", "a")
    first.close()
    again = EndpointEmbedder(server.url, "letters", 8, tmp_path)
    assert embed(again, "b", "a", "c")[:2] == [before[1], before[0]]
    again.close()
    assert server.texts == ["a", "b", "c"]
    other = EndpointEmbedder(server.url, "other letters", 8, tmp_path)
    embed(other, "a")
    other.close()
    assert server.texts == ["a", "b", "c", "a"]
    assert not any(b"secret-key-value" in path.read_bytes() for path in tmp_path.iterdir())


def test_an_index_embeds_a_note_once_and_finds_it(server: StandIn, embedder: EndpointEmbedder, tmp_path: Path) -> None:
    notes = [Document(f"{n:040x}", "", "", text, (), ("in:notes",)) for n, text in enumerate(["aab", "ccd", "hhg"])]
    for place in ("one", "two"):  # the second is a rebuild
        index = VectorIndex.open(tmp_path / place, embedder)
        index.apply(notes)
        assert index.search("cd", lambda _: 1.0).nearest(1)[0][0] == notes[1].key
        index.close()
    assert sorted(server.texts) == ["aab", "ccd", "cd", "hhg"]


def test_it_tries_again_later_and_later(server: StandIn, embedder: EndpointEmbedder, slept: list[float]) -> None:
    server.says = [(503, {}, b""), (500, {}, b""), (429, {"Retry-After": "7"}, b"")]
    assert embed(embedder, "a") == [bytes([127, *[0] * 7])]
    assert len(server.asked) == 4
    assert 0.375 <= slept[0] <= 0.625 and slept[1] == 2 * slept[0]
    assert slept[2] == 7.0


def test_it_gives_up_and_says_so_and_what_it_has_is_kept(server: StandIn, embedder: EndpointEmbedder) -> None:
    server.says = [(200, {}, b""), *[(503, {}, b"")] * 5]
    with pytest.raises(Unavailable, match=r"does not answer.*503, 5 times"):
        embed(embedder, "a", "b", "c", "d")
    embed(embedder, "a", "b", "c", "d")
    assert server.asked[-1]["input"] == ["d"]


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_not_tried_again(server: StandIn, embedder: EndpointEmbedder, status: int) -> None:
    server.says = [(status, {"Location": server.url + "/elsewhere"}, b"")]
    with pytest.raises(Unavailable, match=f"refuses.*{status}"):
        embed(embedder, "a")
    assert len(server.asked) == 1


def test_a_slow_server_is_not_waited_for(server: StandIn, slept: list[float]) -> None:
    server.says = [(200, {}, 1.0)] * 2
    embedder = EndpointEmbedder(server.url, "letters", 8, wait=0.05, tries=2, sleep=slept.append)
    with pytest.raises(Unavailable, match=r"does not answer.*(timed out|Timeout)"):
        embed(embedder, "a")
    assert len(slept) == 1


def test_only_who_asks_is_not_made_to_wait(server: StandIn, slept: list[float]) -> None:
    """A build that measures with questions has the patience that it has for documents."""
    embedder = EndpointEmbedder(server.url, "letters", 8, sleep=slept.append)
    server.says = [(503, {}, b""), (503, {}, b"")]
    assert embedder.embed_questions(["a"]) == [bytes([127, *[0] * 7])]
    assert len(server.asked) == 3
    server.says = [(503, {}, b"")]
    with pytest.raises(Unavailable):
        embedder.embed_question("b", lambda _: 1.0)
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    "cut",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"data": [{"index": 0, "embedding": [1, 0',
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{"data": [{"index": 0',
        b"HTTP/1.1 20",
        b"",
    ],
)
def test_what_is_cut_off_is_asked_for_again(tmp_path: Path, slept: list[float], cut: bytes) -> None:
    body = b'{"data": [{"index": 0, "embedding": [1, 0, 0, 0, 0, 0, 0, 0]}]}'
    answers = [cut, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection, connection.makefile("rb") as said:
                    size = 0
                    while (line := said.readline()) not in (b"\r\n", b""):
                        name, _, value = line.partition(b":")
                        size = int(value) if name.lower() == b"content-length" else size
                    said.read(size)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        embedder = EndpointEmbedder(url, "m", 8, tmp_path, sleep=slept.append)
        assert embed(embedder, "one") == [bytes([127, *[0] * 7])]
        thread.join(10)
        embedder.close()
    assert len(slept) == 1


def test_who_asks_does_not_wait_for_what_comes_drop_by_drop(tmp_path: Path, slept: list[float]) -> None:
    """No wait of a socket ends it; what comes in the end is kept for who asks the same again."""
    go_on, calls = threading.Event(), []

    def send(*_: object) -> tuple[int, dict[str, str], bytes]:
        calls.append(None)
        go_on.wait(30)
        return 200, {}, b'{"data": [{"index": 0, "embedding": [1, 0, 0, 0, 0, 0, 0, 0]}]}'

    late = EndpointEmbedder("http://nowhere/v1", "m", 8, tmp_path, wait=0.1, sleep=slept.append, send=send)
    with pytest.raises(Unavailable, match="does not answer"):
        late.embed_question("who", lambda _: 1.0)
    with pytest.raises(Unavailable, match="does not answer"):  # and another is not begun
        late.embed_question("who else", lambda _: 1.0)
    go_on.set()
    for _ in range(200):
        if not any(thread.name == "memoranda-question" for thread in threading.enumerate()):
            break
        time.sleep(0.05)
    assert late.embed_question("who", lambda _: 1.0) == bytes([127, *[0] * 7])
    assert len(calls) == 1
    late.close()


def test_nobody_there(slept: list[float]) -> None:
    embedder = EndpointEmbedder("http://127.0.0.1:9", "letters", 8, tries=2, wait=1, sleep=slept.append)
    with pytest.raises(Unavailable, match="does not answer"):
        embed(embedder, "a")


@pytest.mark.parametrize(
    "body",
    [
        b"<html>", b"{}", b'{"data": 5}', b'{"data": []}', b'{"data": [{"index": 0, "embedding": [1, 2]}]}',
        b'{"data": [{"index": 1, "embedding": [1,2,3,4,5,6,7,8]}]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        b'{"data": [{"index": 0, "embedding": [1,2,3,4,5,6,7,NaN]}]}',
        b'{"data": [{"index": 0, "embedding": [1,2,3,4,5,6,7,1e300]}]}',
        b'{"data": [{"index": 0, "embedding": [1,2,3,4,5,6,7,null]}]}',
        b'{"data": [{"index": 0, "embedding": [1,2,3,4,5,6,7,8]}, {"index": 1, "embedding": [1,2,3,4,5,6,7,8]}]}',
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_an_answer_that_is_no_vector_is_an_error(server: StandIn, embedder: EndpointEmbedder, body: bytes) -> None:
    server.says = [(200, {}, body)]
    with pytest.raises(Unavailable, match="something else than vectors"):
        embed(embedder, "a")
    assert embed(embedder, "a") == [bytes([127, *[0] * 7])]  # nothing of it was kept


def test_what_cannot_be_an_endpoint_is_refused() -> None:
    with pytest.raises(InvalidInput):
        EndpointEmbedder("file:///etc/passwd", "m", 8)
    with pytest.raises(InvalidInput):
        EndpointEmbedder("http://127.0.0.1", "m", 9)
