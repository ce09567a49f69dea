"""What a reader is told of notes that were found, and whether something may contradict them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from memoranda.index.among import among
from memoranda.index.rows import Shown
from memoranda.index.tables import texts_of

_FEW = 400  # parameters of one SQL statement
# Whether another file has the note's id, or another fact about its subject may give its key a value: a title or, in a
# fact without one, what stands before a colon. What `trust.contested` finds is among what this lets through, as long as
# the keys are written alike but for the case of ASCII letters: the others, `review list` finds.
_DISPUTED = """
 EXISTS (SELECT 1 FROM notes o WHERE o.id = n.id AND o.live = 1 AND o.row != n.row)
 OR (n.kind = 'fact' AND n.subject IS NOT NULL AND CASE n.title WHEN '' THEN
   (instr(substr(n.body, 1, 80), ':') OR instr(substr(n.body, 1, 80), '='))
   AND EXISTS (SELECT 1 FROM notes o WHERE o.live = 1 AND o.kind = 'fact' AND o.subject = n.subject AND o.row != n.row
    AND (o.title = '' OR instr(lower(substr(n.body, 1, 80)), lower(o.title))))
  ELSE EXISTS (SELECT 1 FROM notes o WHERE o.live = 1 AND o.kind = 'fact' AND o.subject = n.subject
    AND o.title = n.title COLLATE NOCASE AND o.row != n.row)
   OR EXISTS (SELECT 1 FROM notes o WHERE o.live = 1 AND o.kind = 'fact' AND o.subject = n.subject
    AND o.title = '' COLLATE NOCASE AND instr(lower(substr(o.body, 1, 80)), lower(n.title)))
  END)"""
_SELECT_SHOWN = f"SELECT {', '.join('n.' + name for name in Shown._fields[:-1])}, {_DISPUTED} FROM notes n"
# What the notes asked about supersede, directly or not; then whether several notes supersede one of these.
_FORKED = """
 WITH RECURSIVE older (id) AS (VALUES {} UNION
  SELECT e.old FROM older JOIN notes n ON n.id = older.id AND n.live = 1 JOIN edges e ON e.row = n.row)
 SELECT 1 FROM older JOIN edges e ON e.old = older.id JOIN notes n ON n.row = e.row AND n.live = 1
 GROUP BY e.old HAVING count(DISTINCT e.new) > 1 LIMIT 1"""


def shown(db: sqlite3.Connection, numbers: Sequence[int]) -> list[Shown]:
    """The notes in these rows of the catalog."""
    found: list[Shown] = []
    for row in among(db, f"{_SELECT_SHOWN} WHERE n.row IN (?*)", numbers):
        found.append(Shown._make((*row[:-4], *map(texts_of, row[-4:-1]), row[-1])))
    return found


def forked(db: sqlite3.Connection, ids: Sequence[str]) -> bool:
    """Whether one of these notes stands on a chain that may have several heads."""
    parts = (ids[at : at + _FEW] for at in range(0, len(ids), _FEW))
    return any(db.execute(_FORKED.format(", ".join(["(?)"] * len(part))), part).fetchone() for part in parts)
