"""The two object stores do the same: objects, refs by compare-and-swap, what differs between commits, erasing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from home.tools import git
from memoranda.context import Context, system_clock
from memoranda.errors import RefMoved
from memoranda.home.disk import DiskStore
from memoranda.home.git import Git
from memoranda.home.layout import layout_of
from memoranda.home.objects import GitObject, Signature, TreeEditor, commit_data, make_object, object_id
from memoranda.home.postgres.copying import objects_in_folder
from memoranda.home.postgres.node import node_layout
from memoranda.home.postgres.places import make_place
from memoranda.home.postgres.store import PostgresStore
from memoranda.home.store import RefMove
from memoranda.state.opening import open_database

MAIN = "refs/heads/main"
Store = DiskStore | PostgresStore


@pytest.fixture(params=["disk", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, context: Context) -> Iterator[Store]:
    if request.param == "disk":
        root = tmp_path / "repository"
        root.mkdir()
        git(root, "init", "-q", "--initial-branch=main")
        layout = layout_of(root)
        (layout.own).mkdir(parents=True)
        on_disk = DiskStore(layout, Git(layout), system_clock)
        yield on_disk
        on_disk.close()
        return
    with open_database(request.getfixturevalue("postgres").service) as database:
        place = make_place(PostgresStore(database, "acme", 0), context, "project:web", "web")
        yield PostgresStore(database, "acme", place.home)


def put(store: Store, objects: list[GitObject]) -> None:
    store.release(store.put(objects))


class History:
    """Commits over files, made as the committer makes them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.head: str | None = None
        self.at = datetime(2026, 3, 1, tzinfo=UTC)
        self.files: dict[str, bytes] = {}

    def commit(self, changes: dict[str, bytes | None], parents: list[str] | None = None) -> str:
        made: list[GitObject] = []
        base = self.store.get(f"{self.head}^{{tree}}") if self.head else None
        editor = TreeEditor(self._read, base.oid if base else None)
        for path, data in changes.items():
            if data is None:
                editor.remove(path)
                self.files.pop(path)
            else:
                blob = make_object("blob", data, editor.get(path))
                made.append(blob)
                editor.put(path, blob.oid)
                self.files[path] = data
        self.at += timedelta(seconds=1)
        who = Signature("dana", "dana@localhost", self.at)
        tree = editor.write(made.append)
        above = parents if parents is not None else [self.head] if self.head else []
        commit = make_object("commit", commit_data(tree, above, who, who, f"commit {self.at:%H%M%S}"))
        put(self.store, [*made, commit])
        self.head = commit.oid
        return commit.oid

    def _read(self, oid: str) -> bytes:
        found = self.store.get(oid)
        assert found is not None
        return found.data


def test_what_was_put_is_there_byte_for_byte_and_nothing_else_is(store: Store) -> None:
    rng = random.Random(3)
    blobs = [make_object("blob", rng.randbytes(n)) for n in (0, 1, 63, 64, 65, 4096, 70_000)]
    blobs.append(make_object("blob", b"\xff\x00not UTF-8\n" * 9))
    put(store, blobs)
    put(store, blobs)
    for item in blobs:
        found = store.get(item.oid)
        assert found is not None and (found.kind, found.data) == ("blob", item.data)
    unknown = object_id("blob", b"nobody put this")
    asked = [blobs[3].oid, unknown, blobs[0].oid, blobs[3].oid]
    assert [item.data if item else None for item in store.get_many(asked)] == [
        blobs[3].data, None, blobs[0].data, blobs[3].data,
    ]  # fmt: skip
    assert store.get(unknown) is None and store.get("no such name") is None
    assert (store.get(blobs[5].oid[:12]) or blobs[0]).data == blobs[5].data


def test_long_rows_of_versions_are_read_back_each(store: Store) -> None:
    rng = random.Random(1)
    content, before, items = b"", None, []
    for _ in range(150):
        content += b"## " + rng.randbytes(rng.randrange(1, 300)).hex().encode() + b"\n"
        item = make_object("blob", content, before)
        put(store, [item])
        items.append(item)
        before = item.oid
    found = list(store.get_many([item.oid for item in items]))
    assert [item.data if item else None for item in found] == [item.data for item in items]


def test_others_are_read_while_one_goes_through_many(store: Store) -> None:
    blobs = [make_object("blob", b"%d" % n) for n in range(150)]
    put(store, blobs)
    names = [item.oid for item in blobs]
    for item, found in zip(blobs, store.get_many(names), strict=True):
        other = store.get(names[0])
        assert found is not None and other is not None
        assert (found.data, other.data) == (item.data, b"0")


def test_refs_move_all_or_none_and_only_from_where_they_are(store: Store) -> None:
    history = History(store)
    one, two, three = (history.commit({"a.md": bytes([65 + n])}) for n in range(3))
    store.move([RefMove(MAIN, None, one, "first"), RefMove("refs/memoranda/ledger", None, one, "first")])
    for moves in (
        [RefMove(MAIN, None, two, "as if it were new")],
        [RefMove(MAIN, two, three, "from elsewhere")],
        [RefMove(MAIN, one, two, "this one could"), RefMove("refs/memoranda/ledger", two, three, "this one not")],
        [RefMove("refs/memoranda/other", None, two, "this one could"), RefMove(MAIN, two, three, "this one not")],
    ):
        with pytest.raises(RefMoved):
            store.move(moves)
        assert (store.ref(MAIN), store.ref("refs/memoranda/ledger"), store.ref("refs/memoranda/other")) == (
            one, one, None,
        )  # fmt: skip
    store.move([RefMove(MAIN, one, two, ""), RefMove("refs/memoranda/ledger", one, three, "")])
    assert (store.ref(MAIN), store.ref("refs/memoranda/ledger")) == (two, three)


def test_what_differs_between_commits_is_what_was_changed(store: Store) -> None:
    rng = random.Random(7)
    history, states = History(store), []
    paths = [f"memory/notes/{rng.choice('abc')}/{n}.md" for n in range(30)] + ["memory/home.yaml", "memory/notes.md"]
    for _ in range(25):
        changes: dict[str, bytes | None] = {p: rng.randbytes(9).hex().encode() for p in rng.sample(paths, 4)}
        if len(history.files) > 8:
            changes |= dict.fromkeys(rng.sample([p for p in history.files if p not in changes], 2))
        states.append((history.commit(changes), dict(history.files)))
    for (old, before), (new, after) in zip(states, [*states[5:], *states[:5]], strict=True):
        told = {c.path: (c.old, c.new) for c in store.changes(old, new)}
        blobs = [{p: object_id("blob", d) for p, d in state.items()} for state in (before, after)]
        paths_then = blobs[0].keys() | blobs[1].keys()
        pairs = {p: (blobs[0].get(p), blobs[1].get(p)) for p in paths_then}
        assert told == {p: pair for p, pair in pairs.items() if pair[0] != pair[1]}
        assert dict(store.files(new)) == blobs[1] and store.count(new) == len(after)
    last, files = states[-1]
    assert [p for p, _ in store.files(last)] == sorted(files, key=str.encode)
    inside = store.get(f"{last}:{next(iter(files))}")
    assert inside is not None and inside.data == next(iter(files.values()))
    assert store.get(f"{last}:no/such/file") is None
    assert {c.path for c in store.changes(None, last)} == set(files)


def test_who_came_before_whom_is_known_through_merges(store: Store) -> None:
    history = History(store)
    root = history.commit({"a.md": b"a"})
    left = history.commit({"left.md": b"l"})
    left_more = history.commit({"left.md": b"ll"})
    history.head, history.files = root, {"a.md": b"a"}
    right = history.commit({"right.md": b"r"})
    merge = history.commit({"both.md": b"b"}, [right, left_more])
    for old, new, is_so in (
        (root, merge, True), (left, merge, True), (left_more, merge, True), (right, merge, True),
        (left, right, False), (merge, root, False), (root, root, True), ("0" * 40, merge, False),
    ):  # fmt: skip
        assert store.is_ancestor(old, new) is is_so


def test_an_erased_object_is_gone_and_what_was_written_against_it_stays(store: Store) -> None:
    history = History(store)
    text = b"".join(b"line %d of a long text that only grows\n" % n for n in range(60))
    commits = [history.commit({"notes/a.md": text + b"more\n" * n, "notes/b.md": b"b"}) for n in range(12)]
    store.move([RefMove(MAIN, None, commits[-1], "")])
    gone = object_id("blob", text + b"more\n" * 5)
    assert store.get(gone) is not None
    store.erase({bytes.fromhex(gone)}, hints={}, merge=())
    if isinstance(store, DiskStore):
        store.look_again()
    assert store.get(gone) is None
    store.erase({bytes.fromhex(gone)}, hints={}, merge=())
    for n in (*range(5), *range(6, 12)):
        found = store.get(object_id("blob", text + b"more\n" * n))
        assert found is not None and found.data == text + b"more\n" * n


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_the_database_itself_moves_no_ref_from_where_it_is_not(store: PostgresStore) -> None:
    """What a transaction believes of the refs does not count: each one has to change a row."""
    history = History(store)
    first, second = history.commit({"a.md": b"one\n"}), history.commit({"a.md": b"two\n"})
    store.move([RefMove(MAIN, None, first, "")])
    told = store.look()
    for believed in (None, second):
        state = told._replace(refs={MAIN: believed} if believed else {})
        with pytest.raises(RefMoved), store.writing() as cursor:
            store.move_in(cursor, state, [RefMove("refs/other", None, second, ""), RefMove(MAIN, believed, second, "")])
    assert store.look().refs == {MAIN: first}


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_git_itself_finds_nothing_to_complain_of_in_the_rows(store: PostgresStore, tmp_path: Path) -> None:
    history = History(store)
    rng = random.Random(5)
    for n in range(60):
        history.commit({f"memory/notes/{n % 3}/{n:03}.md": rng.randbytes(40), "agents/j.md": b"entry\n" * (n + 1)})
    assert history.head is not None
    store.move([RefMove(MAIN, None, history.head, "")])
    with objects_in_folder(store, node_layout(tmp_path / "node")) as layout:
        git(layout.root, "fsck", "--strict")
        assert int(git(layout.root, "rev-list", "--count", "main")) == 60
        listed = git(layout.root, "ls-tree", "-r", "--name-only", "main").split()
        assert listed == [path for path, _ in store.files(history.head)]
    assert not any((tmp_path / "node/node/memoranda/passing").iterdir()), "a copy was left behind"


@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_a_state_that_came_back_is_read_however_many_versions_stand_on_it(store: PostgresStore) -> None:
    """A node that has just started knows nothing of how deep the row of a former state lies, and writes on."""
    rng = random.Random(5)
    head = rng.randbytes(2000)
    versions = [make_object("tree", head + b"%d\n" % n) for n in range(70)]
    for n, item in enumerate(versions):
        if n % 20 == 0:
            node = store.beside(store.home)
            again = versions[n - 1]
            put(node, [GitObject("tree", again.data, again.oid)] if n else [])
        put(node, [GitObject("tree", item.data, item.oid, versions[n - 1].oid if n else None)])
    for item in reversed(versions):
        found = store.beside(store.home).get(item.oid)
        assert found is not None and found.data == item.data
