"""Many processes and threads in one Home: nothing is lost, no chain gets two heads, readers miss nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from home.tools import assert_sound, fresh_home, git, note, rows, texts
from memoranda.context import Context
from memoranda.errors import ChainConflict
from memoranda.home.keys import Keys
from memoranda.home.repository import Repository
from memoranda.operations import journaling, listing
from memoranda.operations.remembering import NewNote, remember
from memoranda.operations.space import Space

HERE = Path(__file__).parent


class Crowd:
    """Processes that begin at the same moment."""

    def __init__(self, root: Path, keys: Path) -> None:
        self.root = root
        self._keys = keys
        self._members: list[subprocess.Popen[str]] = []
        self.said: list[list[str]] = []
        self._lock = threading.Lock()

    def add(self, role: str, number: int, rounds: int) -> None:
        words = [
            sys.executable,
            str(HERE / "crowd.py"),
            role,
            str(self.root),
            str(self._keys),
            str(number),
            str(rounds),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._members.append(
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        )

    def run(self) -> None:
        listeners = [threading.Thread(target=self._listen, args=(member,)) for member in self._members]
        for listener in listeners:
            listener.start()
        while sum(1 for words in list(self.said) if words[0] == "ready") < len(self._members):
            assert all(member.poll() is None for member in self._members), self._complaints()
            time.sleep(0.01)
        (self.root.parent / "go").touch()
        for listener in listeners:
            listener.join()
        for member in self._members:
            assert member.wait() == 0, self._complaints()
            assert member.stderr is not None
            member.stderr.close()

    def _complaints(self) -> str:
        return "\n".join(m.stderr.read() for m in self._members if m.poll() not in (None, 0) and m.stderr)

    def _listen(self, member: subprocess.Popen[str]) -> None:
        assert member.stdout is not None
        with (self.root.parent / "acknowledged").open("a") as told, member.stdout:
            for line in member.stdout:
                words = json.loads(line)
                with self._lock:
                    self.said.append(words)
                    if words[0] == "note":
                        told.write(words[1] + "\n")
                        told.flush()

    def heard(self, what: str) -> list[list[str]]:
        return [words[1:] for words in self.said if words[0] == what]


@pytest.mark.requirement("A-046")
def test_sixteen_processes_lose_nothing_and_make_no_second_head(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    context = Context(user="dana", agent="cleo")
    root = fresh_home(tmp_path / "home", keys, context)
    with Space(context, keys, root, None) as space:
        (tmp_path / "chain").write_text(note(context, space, "the first", subject="chain").id)
    crowd = Crowd(root, tmp_path / "keys")
    for number in range(8):
        crowd.add("write", number, 12)
    for number in range(8, 16):
        crowd.add("supersede", number, 5)
    for number in range(16, 18):
        crowd.add("read", number, 15)
    crowd.run()
    assert_sound(root)
    notes, entries, won = crowd.heard("note"), crowd.heard("entry"), crowd.heard("won")
    assert len(notes) == 8 * 12
    assert len(entries) == 8 * 3
    assert len(won) + len(crowd.heard("refused")) == 8 * 5
    assert won
    # One winner for each head, and so one chain.
    assert max(Counter(head for head, _ in won).values()) == 1
    committed = git(root, "ls-tree", "-r", "--name-only", "HEAD").split("\n")
    with Space(context, keys, root, None) as space:
        listed = {item.id: item for item in listing.list_notes(context, space)}
        assert {note_id for note_id, _ in notes} <= set(listed)
        assert {path for _, path in notes} <= set(committed)
        chain = listing.history(context, space, (tmp_path / "chain").read_text())
        assert len(chain) == len(won) + 1
        assert [link.id for link in chain if link.head] == [chain[-1].id]
        for entry, path in entries:
            assert (root / path).read_text().count(f"^{entry}\n") == 1
            assert space.one().indexes.catalog.entry(entry) is not None
        caught_up = rows(space)
        space.one().indexes.drop()
        listing.list_notes(context, space)
        assert rows(space) == caught_up
    for count, missing in crowd.heard("read"):
        assert missing == "", f"of {count} acknowledged notes a reader missed some"
    assert sum(int(count) for count, _ in crowd.heard("read")) > 0


def test_threads_of_one_process_lose_nothing(home: Path, keys: Keys) -> None:
    context = Context(user="dana", agent="cleo")
    errors: list[BaseException] = []
    done: list[str] = []
    with Space(context, keys, home, None) as space:
        first = note(context, space, "the first", subject="chain").id

        def work(number: int) -> None:
            try:
                for n in range(6):
                    done.append(remember(context, space, NewNote(f"{number} {n}", subject="busy")).id)
                    journaling.append(context, space, journaling.Turn(f"said {number} {n}", "dana"))
                    before = set(done)
                    assert before <= {item.id for item in listing.list_notes(context, space)}
                    if n % 3 == 0:
                        space.one().repository.flush()
                    try:
                        head = next(link.id for link in listing.history(context, space, first) if link.head)
                        remember(context, space, NewNote(f"by {number}", subject="chain", supersedes=(head,)))
                    except ChainConflict:
                        pass
            except BaseException as error:  # noqa: BLE001 - raised again below
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        assert set(done) <= {item.id for item in listing.list_notes(context, space)}
        assert sum(link.head for link in listing.history(context, space, first)) == 1
        assert space.one().indexes.catalog.count_entries() == 36 + len(done) + len(
            listing.history(context, space, first)
        )
    assert_sound(home)


def test_flushing_from_two_threads_makes_no_broken_pack(home: Path, keys: Keys) -> None:
    """The thread that commits and a caller of `flush` (doctor) take turns."""
    context = Context(user="dana", agent="cleo")
    with Space(context, keys, home, None) as space:
        for n in range(120):
            remember(context, space, NewNote(f"note {n}", subject="busy"))
            space.one().repository.flush(wait=n % 2 == 0)
        assert len(texts(context, space)) == 120
    assert_sound(home)


def test_two_open_homes_keep_one_index(home: Path, keys: Keys) -> None:
    """Two processes write the same journal by turns; whoever brings Git's index forward, it ends at the last commit."""
    context = Context(user="dana", agent="cleo")
    with Space(context, keys, home, None) as one, Space(context, keys, home, None) as two:
        for turn in range(4):
            for space in (one, two):
                note(context, space, f"turn {turn}")
                assert space.one().repository.flush() is None
            (one, two)[turn % 2].one().repository.tidy()
        repository = two.one().repository
        assert isinstance(repository, Repository)
    assert_sound(home)
