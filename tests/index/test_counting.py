"""What came is added to what was counted, and anything else is counted anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from memoranda.index.counting import Counting

_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE notes (row INTEGER PRIMARY KEY, key TEXT, live INTEGER);
CREATE TABLE entries (row INTEGER PRIMARY KEY, key TEXT);
CREATE TABLE feed (n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT, live INTEGER);
INSERT INTO state VALUES ('identity', 'a');
INSERT INTO notes VALUES (1, 'one', 1), (2, 'two', 1), (3, 'old', 0);
INSERT INTO entries VALUES (1, 'said');
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
            "INSERT INTO notes VALUES (4, 'new', 1); INSERT INTO entries VALUES (2, 'told');"
            "INSERT INTO feed (key, live) VALUES ('told', 1), ('new', 1)"
        )

    assert _asked(db, change) == ((3, 2), False)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE notes SET live = 0 WHERE row = 1; INSERT INTO feed (key, live) VALUES ('one', 0)",
        "UPDATE notes SET live = 0 WHERE row = 1; INSERT INTO notes VALUES (4, 'new', 1);"
        " INSERT INTO feed (key, live) VALUES ('one', 0), ('new', 1)",
        "DELETE FROM notes WHERE row = 2; INSERT INTO feed (key, live) VALUES ('two', -1)",
        "DELETE FROM notes WHERE row = 2; INSERT INTO notes VALUES (4, 'two', 1), (5, 'two', 1);"
        " INSERT INTO feed (key, live) VALUES ('two', 1), ('new', 1)",
        "INSERT INTO notes VALUES (4, 'new', 0); INSERT INTO feed (key, live) VALUES ('new', 0)",
        "DELETE FROM feed; DELETE FROM notes; INSERT INTO notes VALUES (9, 'x', 1);"
        " INSERT INTO feed (key, live) VALUES ('x', 1); UPDATE state SET value = 'b'",
        "UPDATE notes SET live = 1 WHERE row = 3; INSERT INTO feed (key, live) VALUES ('old', 1)",
    ],
)
def test_anything_else_is_counted_anew(db: sqlite3.Connection, change: str) -> None:
    told, anew = _asked(db, lambda: db.executescript(change))
    assert anew
    query = "SELECT (SELECT count(*) FROM notes WHERE live = 1), (SELECT count(*) FROM entries)"
    assert told == db.execute(query).fetchone()
