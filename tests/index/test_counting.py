"""What came is added to what was counted, and anything else is counted anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from memoranda.index.counting import Counting

_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE notes (row INTEGER PRIMARY KEY, key TEXT, live INTEGER, blob TEXT);
CREATE TABLE entries (row INTEGER PRIMARY KEY, key TEXT, about TEXT);
CREATE TABLE feed (n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, live INTEGER);
INSERT INTO state VALUES ('identity', 'a');
INSERT INTO notes VALUES (1, 'one', 1, 'b1'), (2, 'two', 1, 'b2'), (3, 'old', 0, 'b3');
INSERT INTO entries VALUES (1, 'said', 'e1');
INSERT INTO feed (key, live) VALUES ('one', 1), ('two', 1), ('said', 1);
"""


@pytest.fixture
def db() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.executescript(_TABLES)
    return made


def _asked(db: sqlite3.Connection, change: Callable[[], object]) -> tuple[tuple[int, int], bool]:
    """What is told after a change, and whether everything was counted for it."""
    counting = Counting(db)
    assert counting.now() == (2, 1)
    asked: list[str] = []
    change()
    db.set_trace_callback(asked.append)
    told = counting.now()
    db.set_trace_callback(None)
    return told, any("count(*)" in query for query in asked)


def test_what_came_is_added(db: sqlite3.Connection) -> None:
    def change() -> None:
        db.executescript(
            "INSERT INTO notes VALUES (4, 'new', 1, 'b4'); INSERT INTO entries VALUES (2, 'told', 'e2');"
            "INSERT INTO feed (key, live) VALUES ('told', 1), ('new', 1)"
        )

    assert _asked(db, change) == ((3, 2), False)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notes SET live = 0 WHERE row = 1; INSERT INTO feed (key, live) VALUES ('one', 0)",
        "UPDATE notes SET live = 0 WHERE row = 1; INSERT INTO notes VALUES (4, 'new', 1, 'b4');"
        " INSERT INTO feed (key, live) VALUES ('one', 0), ('new', 1)",
        "DELETE FROM notes WHERE row = 2; INSERT INTO feed (key, live) VALUES ('two', -1)",
        "DELETE FROM notes WHERE row = 2; INSERT INTO notes VALUES (4, 'two', 1, 'b4'), (5, 'two', 1, 'b5');"
        " INSERT INTO feed (key, live) VALUES ('two', 1), ('new', 1)",
        "INSERT INTO notes VALUES (4, 'new', 0, 'b4'); INSERT INTO feed (key, live) VALUES ('new', 0)",
        "DELETE FROM feed; DELETE FROM notes; INSERT INTO notes VALUES (9, 'x', 1, 'b9');"
        " INSERT INTO feed (key, live) VALUES ('x', 1); UPDATE state SET value = 'b'",
        "UPDATE notes SET live = 1 WHERE row = 3; INSERT INTO feed (key, live) VALUES ('old', 1)",
    ],
)
def test_anything_else_is_counted_anew(db: sqlite3.Connection, change: str) -> None:
    told, anew = _asked(db, lambda: db.executescript(change))
    assert anew
    query = "SELECT (SELECT count(*) FROM notes WHERE live = 1), (SELECT count(*) FROM entries)"
    assert told == db.execute(query).fetchone()


_LIMITED = """
CREATE TABLE ledger (about TEXT PRIMARY KEY, vouched INTEGER);
INSERT INTO ledger VALUES ('b1', 1), ('b2', 0), ('e1', 1);
INSERT INTO state VALUES ('told', '3');
CREATE TEMP VIEW notes AS SELECT m.row, m.key, m.live, m.blob FROM main.notes m
  WHERE EXISTS (SELECT 1 FROM main.ledger l WHERE l.about = m.blob AND l.vouched = 1);
CREATE TEMP VIEW entries AS SELECT * FROM main.entries WHERE 0;
"""
_NEW = "INSERT INTO main.notes VALUES (4, 'new', 1, 'b4'); INSERT INTO feed (key, live) VALUES ('new', 1);"
_ENTRY = "INSERT INTO main.entries VALUES (2, 'told', 'e2'); INSERT INTO feed (key, live) VALUES ('told', 1);"


@pytest.mark.parametrize(
    ("change", "anew"),
    [
        (_NEW + "INSERT INTO ledger VALUES ('b4', 1); UPDATE state SET value = '4' WHERE name = 'told'", False),
        (_NEW + "INSERT INTO ledger VALUES ('b4', 0); UPDATE state SET value = '4' WHERE name = 'told'", False),
        (_NEW + _ENTRY + "INSERT INTO ledger VALUES ('b4', 1), ('e2', 1); UPDATE state SET value = '5'"
         " WHERE name = 'told'", False),
        (_NEW, False),  # nobody's: the ledger says nothing of it yet
        ("UPDATE ledger SET vouched = 1 WHERE about = 'b2'; UPDATE state SET value = '4' WHERE name = 'told'", True),
        (_NEW + "UPDATE ledger SET vouched = 1 WHERE about = 'b2'; UPDATE state SET value = '4' WHERE name = 'told'",
         True),
        (_NEW + "INSERT INTO ledger VALUES ('b4', 1); UPDATE ledger SET vouched = 1 WHERE about = 'b2';"
         " UPDATE state SET value = '5' WHERE name = 'told'", True),
    ],
)  # fmt: skip
def test_for_a_reader_a_line_of_the_ledger_about_something_old_counts_anew(
    db: sqlite3.Connection, change: str, anew: bool
) -> None:
    db.executescript(_LIMITED)
    counting = Counting(db, by_ledger=True)
    assert counting.now() == (1, 0)
    asked: list[str] = []
    db.executescript(change)
    db.set_trace_callback(asked.append)
    told = counting.now()
    db.set_trace_callback(None)
    assert any("count(*)" in query for query in asked) == anew
    query = "SELECT (SELECT count(*) FROM notes WHERE live = 1), (SELECT count(*) FROM entries)"
    assert told == db.execute(query).fetchone()
