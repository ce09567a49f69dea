"""Objects that we write by hand are Git's own: ids, trees, commits, deltas, packs and their indexes."""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from home.tools import git
from memoranda.context import system_clock
from memoranda.home.disk import DiskStore
from memoranda.home.git import Git
from memoranda.home.layout import layout_of
from memoranda.home.objects import (
    GitObject,
    Signature,
    TreeEditor,
    commit_data,
    delta,
    make_object,
    object_id,
    read_tree,
    write_pack,
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "-q", "--initial-branch=main")
    return root


@pytest.fixture
def store(repository: Path) -> Iterator[DiskStore]:
    layout = layout_of(repository)
    opened = DiskStore(layout, Git(layout), system_clock)
    yield opened
    opened.close()


def put(store: DiskStore, objects: list[GitObject]) -> None:
    store.release(store.put(objects))


@settings(deadline=None, max_examples=25)
@given(data=st.binary(max_size=300))
def test_the_id_of_a_blob_is_what_git_says(data: bytes) -> None:
    said = git(Path("/"), "hash-object", "--stdin", stdin=data).strip()
    assert object_id("blob", data) == said


# Deltas


def apply_delta(base: bytes, change: bytes) -> bytes:
    """Undoes a delta by the letter of gitformat-pack, apart from our own code."""

    def size(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = change[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value, at

    source, at = size(0)
    target, at = size(at)
    assert source == len(base)
    out = bytearray()
    while at < len(change):
        op = change[at]
        at += 1
        if op & 0x80:
            offset = length = 0
            for bit in range(4):
                if op & 1 << bit:
                    offset |= change[at] << 8 * bit
                    at += 1
            for bit in range(3):
                if op & 1 << 4 + bit:
                    length |= change[at] << 8 * bit
                    at += 1
            length = length or 0x10000
            assert offset + length <= len(base)
            out += base[offset : offset + length]
        else:
            assert op, "the reserved instruction"
            out += change[at : at + op]
            at += op
    assert len(out) == target
    return bytes(out)


@settings(deadline=None, max_examples=400)
@given(base=st.binary(max_size=600), target=st.binary(max_size=600))
@example(base=b"", target=b"")
@example(base=b"a" * 70000, target=b"a" * 70000 + b"b")
@example(base=b"ab" * 40000, target=b"ab" * 39000 + b"x" + b"ab" * 1000)
@example(base=b"aaaa", target=b"aaa")
def test_a_delta_makes_the_target(base: bytes, target: bytes) -> None:
    assert apply_delta(base, delta(base, target)) == target


@settings(deadline=None, max_examples=200)
@given(base=st.binary(max_size=400), at=st.integers(0, 400), cut=st.integers(0, 60), put=st.binary(max_size=300))
def test_a_delta_of_one_change_costs_the_change(base: bytes, at: int, cut: int, put: bytes) -> None:
    at = min(at, len(base))
    target = base[:at] + put + base[at + cut :]
    change = delta(base, target)
    assert apply_delta(base, change) == target
    assert len(change) <= len(put) + len(put) // 127 + 24


def test_git_undoes_long_rows_of_deltas(repository: Path, store: DiskStore) -> None:
    """A journal that grows entry by entry, its versions one behind the other: Git reads each of them back."""
    rng = random.Random(1)
    objects, content, before = [], b"", None
    for _ in range(300):
        content += b"## " + rng.randbytes(rng.randrange(1, 400)).hex().encode() + b"\n"
        item = make_object("blob", content, before)
        objects.append(item)
        before = item.oid
    big = make_object("blob", rng.randbytes(200_000))
    longer = make_object("blob", big.data[:150_000] + b"between" + big.data[150_000:], big.oid)
    put(store, [*objects, big, longer])
    for item in (*objects[::17], big, longer):
        found = store.get(item.oid)
        assert found is not None
        assert found.data == item.data
    pack = next((repository / ".git/objects/pack").glob("*.pack"))
    verdict = git(repository, "verify-pack", "-v", str(pack))
    assert "chain length = 120: " in verdict
    assert "chain length = 121: " not in verdict
    assert pack.stat().st_size < sum(len(zlib.compress(o.data)) for o in objects) / 4 + 400_000


# Trees


names = st.sampled_from(
    [
        "a",
        "a.md",
        "a-b",
        "a0",
        "a.b",
        "ab",
        "A",
        "é",
        "日本",
        "z z",
        "n'\"",
        "🎉.md",
        "~",
        "a~2",
        "_",
        "caf\udce9",
        "\n",
    ]
)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
edits = st.lists(st.tuples(st.sampled_from(["put", "put", "put", "remove", "write"]), paths, st.integers(0, 5)))


def git_tree(root: Path, files: dict[str, str]) -> str:
    """The tree that Git makes of paths and blobs."""
    index = root / "oracle.index"
    index.unlink(missing_ok=True)
    rows = b"".join(
        f"100644 {oid}\t".encode() + path.encode("utf-8", "surrogateescape") + b"\0" for path, oid in files.items()
    )
    git(root, "update-index", "-z", "--add", "--index-info", stdin=rows, GIT_INDEX_FILE=str(index))
    return git(root, "write-tree", "--missing-ok", GIT_INDEX_FILE=str(index)).strip()


def test_edited_trees_are_those_of_git(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("oracle")
    git(root, "init", "-q")
    blobs = [object_id("blob", bytes([65 + n])) for n in range(6)]

    @settings(deadline=None, max_examples=80)
    @given(edits)
    def check(steps: list[tuple[str, str, int]]) -> None:
        trees: dict[str, bytes] = {}

        def emit(item: GitObject) -> None:
            trees[item.oid] = item.data

        files: dict[str, str] = {}
        editor = TreeEditor(trees.__getitem__, None)
        last = None
        for what, path, number in steps:
            if what == "put":
                editor.put(path, blobs[number])
                above = path.split("/")
                for name in [
                    f
                    for f in files
                    if f.startswith(path + "/") or any(f == "/".join(above[:n]) for n in range(1, len(above)))
                ]:
                    del files[name]  # a file takes the place of a folder, or a folder that of a file
                files[path] = blobs[number]
            elif what == "remove":
                editor.remove(path)
                files.pop(path, None)
            else:
                last = editor.write(emit)
                assert last == git_tree(root, files)
                if number % 2:
                    editor = TreeEditor(trees.__getitem__, last)  # read back what was written
            assert all(editor.get(name) == oid for name, oid in files.items())
        assert editor.write(emit) == git_tree(root, files)

    check()


def test_a_tree_of_many_names_is_sorted_as_git_sorts(repository: Path, store: DiskStore) -> None:
    """Folders sort as if a slash stood behind their name: the classic way to break a tree."""
    rng = random.Random(3)
    blob = make_object("blob", b"x")
    files = {
        f"{rng.choice('abAé日~.-_0')}{rng.randrange(500)}{rng.choice(['', '.md', '-x', '0', '/x.md'])}"
        for _ in range(900)
    }
    flat = {f for f in files if not any(g.startswith(f + "/") for g in files)}
    objects = [blob]
    editor = TreeEditor(lambda oid: next(o.data for o in objects if o.oid == oid), None)
    for path in rng.sample(sorted(flat), len(flat)):
        editor.put(path, blob.oid)
    root = editor.write(objects.append)
    put(store, objects)
    assert root == git_tree(repository, dict.fromkeys(flat, blob.oid))
    listed = "".join(
        f"{mode.decode()} {'tree' if mode == b'40000' else 'blob'} {oid}\t{name.decode()}\0"
        for mode, name, oid in read_tree(next(o.data for o in objects if o.oid == root))
    )
    assert git(repository, "mktree", "-z", stdin=listed.encode()).strip() == root
    assert git(repository, "fsck", "--strict", "--no-dangling", accept=(0,)) == ""


# Commits and packs


def test_commits_are_accepted_whatever_a_name_or_message_holds(repository: Path, store: DiskStore) -> None:
    tree = make_object("tree", b"")
    objects, parents = [tree], []
    at = datetime(2026, 10, 2, 9, 12, 33, 250_000, tzinfo=UTC)
    odd = ["Dana <d@x>", "", "\n", "a\x00b", "Jürgen Ö", "\udc80", "..", "a>b<c", "x" * 300]
    for name in odd:
        who = Signature(name, f"{name}@memoranda.local", at)
        data = commit_data(tree.oid, parents, who, who, f"{name}\n\nwith a NUL \x00 and \ud800")
        item = make_object("commit", data)
        objects.append(item)
        parents = [item.oid]
    put(store, objects)
    git(repository, "update-ref", "refs/heads/main", parents[0])
    assert git(repository, "fsck", "--strict", "--no-dangling") == ""
    assert len(git(repository, "log", "--format=%H").split()) == len(odd)
    assert git(repository, "log", "-1", "--format=%ct").strip() == str(int(at.timestamp()))


@pytest.mark.parametrize("count", [1, 2, 255, 700])
def test_packs_pass_every_check_of_git(repository: Path, store: DiskStore, count: int) -> None:
    rng = random.Random(count)
    objects = [make_object("blob", f"{n} ".encode() + rng.randbytes(rng.randrange(2000))) for n in range(count)]
    put(store, objects)
    pack = next((repository / ".git/objects/pack").glob("*.pack"))
    made = pack.with_suffix(".idx").read_bytes()
    again = repository / "again.idx"
    git(repository, "index-pack", "--strict", "-o", str(again), str(pack))
    assert again.read_bytes() == made
    git(repository, "verify-pack", str(pack))
    assert git(repository, "fsck", "--strict", "--full").count("dangling blob") == count
    assert pack.stem.removeprefix("pack-") == pack.read_bytes()[-20:].hex()


def test_the_index_of_a_pack_beyond_two_gigabytes_uses_the_large_table() -> None:
    from memoranda.home.objects import _pack_index

    rows = [
        (hashlib.sha1(bytes([n])).digest(), n, offset) for n, offset in enumerate((12, 0x7FFFFFFF, 1 << 31, 1 << 33))
    ]
    index = _pack_index(list(rows), bytes(20))
    count, table = len(rows), 8 + 256 * 4
    small = table + count * 24
    for place, (name, _, offset) in enumerate(sorted(rows)):
        assert index[table + 20 * place : table + 20 * place + 20] == name
        word = int.from_bytes(index[small + 4 * place :][:4], "big")
        if word & 0x80000000:
            large = small + 4 * count + 8 * (word & 0x7FFFFFFF)
            assert int.from_bytes(index[large : large + 8], "big") == offset
        else:
            assert word == offset
    assert len(index) == small + 4 * count + 8 * 2 + 40


def test_a_wrong_count_is_noticed() -> None:
    with pytest.raises(ValueError, match="announced"):
        write_pack([make_object("blob", b"x")], lambda data: None, 2)
