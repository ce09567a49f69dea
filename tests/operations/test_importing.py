"""A folder is taken in whole: indexed while it is written, over kills, readers and commits of other people."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memoranda.context import Context
from memoranda.home.gitindex import GitIndex
from memoranda.home.keys import Keys
from memoranda.index.indexes import Indexes
from memoranda.operations import importing
from memoranda.operations.importing import import_folder
from memoranda.operations.listing import list_notes
from memoranda.operations.open_home import OpenHome
from memoranda.operations.recalling import recall
from memoranda.operations.space import Space
from tests.stores import Opening

WORDS = "anchor buoy crane dock eddy fog gull hull inlet jetty keel lamp".split()
# Row numbers say in which order things came, and that may differ.
CONTENT = {
    "notes": "path, blob, key, id, live, kind, subject, scope, valid_from, tags, links, body, problems, supersedes",
    "files": "path, blob, lines",
    "edges": "old, new",
    "entries": "path, place, id, key, speaker, text",
    "ledger": "about, kind, session, agent, user, origin, taint, op, vouched",
}
SECRET = "The password is kw7Zq2Lp" + "9XvT4mRs!"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Three hundred files in seven folders, some of them odd."""
    folder, chance = tmp_path / "vault", random.Random(5)
    for n in range(300):
        place = folder / f"topic{n % 7}"
        place.mkdir(parents=True, exist_ok=True)
        text = " ".join(chance.choices(WORDS, k=12))
        head = f"---\nid: mem_{n:016d}\nkind: fact\nsubject: topic{n % 7}\n"
        head += f"supersedes: mem_{n - 1:016d}\n" if n % 50 == 1 else ""
        (place / f"note-{n}.md").write_text(f"{head}---\n{text} item{n}\n" if n % 3 else f"{text} #tag{n}\n")
    (folder / "topic1/same.md").write_bytes((folder / "topic0/note-0.md").read_bytes())
    (folder / "binary.md").write_bytes(b"\xff\x00\xfe")
    (folder / "secret.md").write_text(SECRET)
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups, and the second process also for few files."""
    monkeypatch.setattr(importing, "_GROUP_FILES", 20)
    monkeypatch.setattr(importing, "_MANY", 30)
    monkeypatch.setattr(importing, "_ASKED_FILES", 8)


def content(home: OpenHome) -> list[object]:
    """What the indexes hold."""
    db = home.indexes.catalog.db
    tables = [sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr) for table, columns in CONTENT.items()]
    parts = [index for index in (home.indexes.lexical, home.indexes.table) if index is not None]
    return [*tables, *((sorted(index.keys()), index.counts()) for index in parts)]


def whole(home: OpenHome) -> None:
    """The indexes hold what they would if they were made anew, everything is committed and Git finds nothing wrong."""
    home.indexes.catch_up()
    grown = content(home)
    home.indexes.rebuild()
    assert content(home) == grown
    assert home.repository.flush() is None
    assert home.repository.verify() == []


@pytest.mark.disk
def test_a_long_import_leaves_indexes_as_if_made_anew(
    context: Context, space: Space, vault: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    space.one().refresh(context)
    runs: list[object] = []
    embedded: list[object] = []
    monkeypatch.setattr("memoranda.index.embedding.static.StaticEmbedder.embed", lambda *given: embedded.append(given))
    for way in ("history", "told"):
        monkeypatch.setattr(f"memoranda.home.contents.Contents.{way}", lambda *given: runs.append(given) or ())
    told: list[int] = []
    done = import_folder(context, space, vault, lambda _what, at, _all: told.append(at))
    assert (done.taken, [path for path, _ in done.left]) == (302, ["secret.md"])
    assert [path for path, _ in done.odd] == ["binary.md"]
    assert told[-1] == 303 and len(told) > 3
    assert not runs  # nobody had to read the commits again
    vectors = space.one().indexes.table
    assert vectors is None or not embedded  # nor to embed what a second process has
    monkeypatch.undo()
    home = space.one()
    assert not home.indexes.notices
    assert [item.subject for item in recall(context, space, "item10").items] == ["topic3"]
    whole(home)
    again = import_folder(context, space, vault)
    assert (again.taken, again.present) == (0, 302)


def test_a_rebuild_in_many_pieces_holds_the_same(
    context: Context, space: Space, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_folder(context, space, vault)
    home = space.one()
    grown = content(home)
    monkeypatch.setattr("memoranda.index.feeding._SOME", 10)
    monkeypatch.setattr("memoranda.index.feeding._BATCH", 40)
    monkeypatch.setattr("memoranda.index._bulk.BUILD_DOCUMENTS", 30)
    sys.modules.setdefault("numpy", pytest.importorskip("numpy"))
    home.indexes.rebuild()
    assert content(home) == grown
    assert len(home.indexes.lexical._refreshed().segments) > 3


def test_a_short_import_needs_no_second_process(
    context: Context, space: Space, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memoranda.operations.importing.Follower", None)
    assert import_folder(context, space, vault).taken == 302
    whole(space.one())


def test_others_read_and_commit_while_an_import_is_under_way(
    context: Context,
    opening: Opening,
    space: Space,
    vault: Path,
    home: Path,
    small: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    real = importing.Follower.call
    with opening(context) as other:

        def call(self: importing.Follower) -> None:
            nonlocal calls
            calls += 1
            real(self)
            if calls % 4 == 0:
                recall(context, other, "anchor buoy")
            if calls == 7:
                time.sleep(0.2)
                (home / "memory" / "notes" / "mine.md").write_text("A lighthouse of my own.\n")
                git = ["git", "-C", str(home), "-c", "user.name=x", "-c", "user.email=x@y"]
                subprocess.run([*git, "add", "memory/notes/mine.md"], check=True)
                subprocess.run([*git, "commit", "-qm", "mine"], check=True, capture_output=True)

        monkeypatch.setattr(importing.Follower, "call", call)
        assert import_folder(context, space, vault).taken == 302
        assert calls > 7
        whole(space.one())
        assert [item.text for item in recall(context, space, "lighthouse").items] == ["A lighthouse of my own."]


@pytest.mark.disk
def test_a_follower_that_fails_costs_nothing_but_time(
    context: Context, space: Space, vault: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing.Follower, "call", lambda self: self._process.kill())
    assert import_folder(context, space, vault).taken == 302
    assert any("second process" in notice for notice in space.one().indexes.notices)
    whole(space.one())


def test_what_changes_between_the_two_readings_is_judged_again(
    context: Context, space: Space, vault: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that scans reads a file by itself: what the import has read counts, and not what it has seen."""
    real = importing.read_file

    def read(path: str) -> bytes:
        data = real(path)
        return SECRET.encode() if path.endswith("note-100.md") else data

    monkeypatch.setattr(importing, "read_file", read)
    done = import_folder(context, space, vault)
    assert sorted(path for path, _ in done.left) == ["secret.md", "topic2/note-100.md"]
    assert "password" in dict(done.left)["topic2/note-100.md"]


@pytest.mark.disk
def test_a_scanner_that_fails_costs_nothing_but_time(
    context: Context, space: Space, vault: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = importing.Scanner.ask, []

    def ask(self: importing.Scanner, names: Sequence[str]) -> None:
        real(self, names)
        asked.append(names)
        if len(asked) == 3:
            self._process.kill()  # type: ignore[union-attr]

    monkeypatch.setattr(importing.Scanner, "ask", ask)
    done = import_folder(context, space, vault)
    assert (done.taken, [path for path, _ in done.left]) == (302, ["secret.md"])
    assert len(asked) > 3


_KILLED = """
import sys
from pathlib import Path
from memoranda.context import Context
from memoranda.home.keys import Keys
from memoranda.operations import importing
from memoranda.operations.space import Space
importing._GROUP_FILES, importing._MANY, importing._REPORT, importing._ASKED_FILES = 20, 30, 20, 8
root, keys, vault = map(Path, sys.argv[1:])
with Space(Context(user="dana", agent="cleo"), Keys(keys), root, None) as space:
    importing.import_folder(Context(), space, vault, lambda what, done, _all: print(done, flush=True))
"""


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.15, 0.4])
def test_an_import_that_is_killed_can_be_repeated(
    context: Context, opening: Opening, keys: Keys, home: Path, vault: Path, wait: float
) -> None:
    command = [sys.executable, "-c", _KILLED, str(home), str(keys.folder), str(vault)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.stdout.readline()
        acknowledged = int(running.stdout.readline())
        time.sleep(wait)
        os.kill(running.pid, signal.SIGKILL)
    with opening(context) as space:
        done = import_folder(context, space, vault)
        assert done.taken + done.present == 302
        assert done.present >= acknowledged - 1 >= 19  # one of them holds a secret
        whole(space.one())
        files = {path.name: path.read_bytes() for path in vault.rglob("*.md") if path.name != "secret.md"}
        kept = {path.name: path.read_bytes() for path in (home / "memory" / "notes" / "vault").rglob("*.md")}
        assert kept == files


def test_what_cannot_be_taken_is_named_and_harms_nothing_else(context: Context, space: Space, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    (folder / "shut").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    for name in (
        "One.MD",
        "two.markdown",
        "shut/three.md",
        ".hidden/four.md",
        ".five.md",
        "six.txt",
        "x" * 220 + ".md",
    ):
        (folder / name).write_text(f"The buoy {name} is green.\n")
    (folder / "link.md").symlink_to(folder / "One.MD")
    os.mkfifo(folder / "pipe.md")
    done = import_folder(context, space, folder)
    left = dict(done.left)
    assert left.pop("x" * 220 + ".md") == "its name is too long"
    assert left == {name: "it is a link or not a regular file" for name in ("link.md", "pipe.md")}
    kept = sorted(item.path.rpartition("/")[2] for item in list_notes(context, space))
    assert kept == ["One.md", "three.md", "two.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is shut to root")
def test_a_folder_that_cannot_be_read_is_named(context: Context, space: Space, tmp_path: Path) -> None:
    (tmp_path / "vault/shut").mkdir(parents=True)
    (tmp_path / "vault/one.md").write_text("The buoy is green.\n")
    (tmp_path / "vault/shut").chmod(0)
    done = import_folder(context, space, tmp_path / "vault")
    (tmp_path / "vault/shut").chmod(0o755)
    assert done.taken == 1 and [name for name, _ in done.left] == ["shut/"]


@pytest.mark.disk
def test_gits_index_is_brought_forward_once_and_then_holds_everything(
    context: Context, space: Space, vault: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, times = importing.Follower.call, []
    monkeypatch.setattr("memoranda.home.background._QUIET", 0.0)
    monkeypatch.setattr("memoranda.home.gitindex.GitIndex.advance", _counted(GitIndex.advance, times))
    space.one().refresh(context)

    def call(self: importing.Follower) -> None:
        real(self)
        time.sleep(0.05)

    monkeypatch.setattr(importing.Follower, "call", call)
    before = len(times)
    import_folder(context, space, vault)
    during = len(times) - before
    root = space.one().repository.root
    space.close()
    assert during <= 1 and len(times) > before
    assert subprocess.run(["git", "-C", str(root), "status", "--porcelain"], capture_output=True).stdout == b""


def _counted(real: Callable[..., bool], times: list[int]) -> Callable[..., bool]:
    def advance(*given: object) -> bool:
        times.append(1)
        return real(*given)

    return advance


@pytest.mark.disk
def test_pending_rows_are_gone_when_everything_is_committed(context: Context, space: Space, vault: Path) -> None:
    import_folder(context, space, vault)
    home = space.one()
    home.repository.flush()
    recall(context, space, "anchor")
    (home.repository.root / "memory/notes/vault/topic1/note-1.md").write_text("An edit.\n")
    recall(context, space, "anchor")
    home.repository.flush()
    recall(context, space, "anchor")
    Indexes.catch_up(home.indexes)
    assert home.indexes.catalog.db.execute("SELECT count(*) FROM pending").fetchone()[0] <= 1
