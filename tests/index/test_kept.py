"""What was read is kept until somebody writes, and never out of a transaction that may be undone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memoranda.index.kept import Kept, Moment


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("PRAGMA journal_mode = WAL")  # as every cache: who writes waits for no reader
        db.executescript("CREATE TABLE t (name TEXT PRIMARY KEY, value INTEGER); INSERT INTO t VALUES ('a', 1)")
    return tmp_path / "a.db"


class _Asked:
    def __init__(self, file: Path, most: int = 10, turned: Callable[[], list[str] | None] = lambda: None) -> None:
        self.db = sqlite3.connect(file, isolation_level=None)
        self.moment = Moment(self.db)
        self.kept: Kept[str, int] = Kept(self.db, most, turned, moment=self.moment)
        self.read: list[str] = []

    def __call__(self, *names: str) -> dict[str, int]:
        return self.kept.of(names, self._read)

    def _read(self, names: list[str]) -> Iterator[tuple[str, int]]:
        self.read += names
        for name in names:
            yield from self.db.execute("SELECT name, value FROM t WHERE name = ?", (name,))


def test_it_is_read_once(file: Path) -> None:
    asked = _Asked(file)
    assert asked("a") == asked("a", "a") == {"a": 1}
    assert asked.read == ["a"]


def test_what_this_or_another_process_writes_is_seen(file: Path) -> None:
    asked = _Asked(file)
    assert asked("a", "b") == {"a": 1}
    asked.db.execute("UPDATE t SET value = 2")
    assert asked("a", "b") == {"a": 2}
    with sqlite3.connect(file) as other:
        other.execute("INSERT INTO t VALUES ('b', 3)")
    assert asked("b", "a") == {"b": 3, "a": 2}


def test_what_is_undone_is_not_kept(file: Path) -> None:
    asked = _Asked(file)
    asked.db.execute("BEGIN")
    asked.db.execute("UPDATE t SET value = 9")
    assert asked("a") == {"a": 9}
    asked.db.execute("ROLLBACK")
    assert asked("a") == {"a": 1}


def test_one_moment_is_read_once_whatever_others_write(file: Path) -> None:
    """And what it has read serves the next one, as long as nobody has written."""
    asked = _Asked(file)
    for _ in range(2):
        with asked.moment.steady():
            assert asked("a") == {"a": 1}
    assert asked.read == ["a"]
    with asked.moment.steady():
        assert asked("a") == {"a": 1}
        with sqlite3.connect(file) as other:
            other.execute("UPDATE t SET value = 2")
        assert asked("a", "b") == {"a": 1}
    assert asked("a") == {"a": 2}
    with asked.moment.steady():
        assert asked("a") == {"a": 2}
    assert asked.read == ["a", "b", "a"]


def test_what_is_written_and_undone_inside_a_moment_is_not_kept(file: Path) -> None:
    asked = _Asked(file)
    with asked.moment.steady():
        assert asked("a") == {"a": 1}
        asked.db.execute("UPDATE t SET value = 9")
        assert asked("a") == {"a": 9}
        asked.db.execute("ROLLBACK")
    assert asked("a") == {"a": 1}
    asked.db.execute("BEGIN")
    with asked.moment.steady():  # it is not the one that began
        asked.db.execute("UPDATE t SET value = 9")
        assert asked("a") == {"a": 9}
    asked.db.execute("ROLLBACK")
    assert asked("a") == {"a": 1}


def test_more_than_are_kept_are_read_all_the_same(file: Path) -> None:
    asked = _Asked(file, most=2)
    assert asked("a", "b", "c") == {"a": 1}
    assert asked("a") == asked("b", "a", "c") == {"a": 1}


def test_what_is_told_to_have_turned_is_read_again_and_nothing_else(file: Path) -> None:
    turned: list[list[str] | None] = [None, ["a"], [], None]
    asked = _Asked(file, turned=lambda: turned.pop(0))
    assert asked("a", "b") == {"a": 1}
    asked.db.execute("UPDATE t SET value = 2")
    assert asked("a", "b") == {"a": 2}
    with sqlite3.connect(file) as other:
        other.execute("INSERT INTO t VALUES ('c', 3)")
    assert asked("a", "b", "c") == {"a": 2, "c": 3}
    asked.db.execute("UPDATE t SET value = 4")
    assert asked("c") == {"c": 4}
    assert asked.read == ["a", "b", "a", "b", "b", "c", "c"]
