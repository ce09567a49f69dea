"""The catalog of a Home as one reader has it: a connection on which the tables show what lies in his places."""

from __future__ import annotations

import sqlite3

from memoranda.index.catalog import FILE, WHAT, Catalog
from memoranda.index.journal_mode import connect, named_errors
from memoranda.index.tables import NOTE_COLUMNS

Places = frozenset[str]

_GIVEN = (
    "(m.scope || ' ' || m.owner) IN (SELECT place FROM temp.places) AND EXISTS (SELECT 1 FROM main.ledger l"
    " WHERE l.about = m.blob AND l.vouched = 1 AND l.kind IN ('write', 'writes'))"
)
_VIEWS = f"""
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE places (place TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TEMP VIEW notes AS SELECT {", ".join("m." + name for name in NOTE_COLUMNS)} FROM main.notes m WHERE {_GIVEN};
CREATE TEMP VIEW edges AS SELECT e.old, e.new, e.row FROM main.edges e
  JOIN main.notes m ON m.row = e.row WHERE {_GIVEN};
CREATE TEMP VIEW entries AS SELECT * FROM main.entries WHERE 0;
CREATE TEMP VIEW files AS SELECT * FROM main.files WHERE 0;
CREATE TEMP VIEW kept_out AS SELECT * FROM main.kept_out WHERE 0;
CREATE TEMP VIEW refused AS SELECT * FROM main.refused WHERE 0;
"""


class LimitedCatalog(Catalog):
    """The catalog as a reader has it. One reader at a time, who says which places are his before he asks."""

    limited = True

    def __init__(self, connection: sqlite3.Connection, whole: Catalog) -> None:
        super().__init__(connection, whole.directory)
        self._whole = whole
        self.given: Places | None = None
        self.ledger.vouches, self.ledger.counts = whole.ledger.vouches, whole.ledger.counts
        self.ledger.rule = whole.ledger.rule
        self.key = whole.key

    @staticmethod
    def beside(whole: Catalog) -> LimitedCatalog:
        """Another connection to an open catalog. IndexDamaged, IndexBusy, Unavailable."""
        with named_errors(WHAT):
            db = connect(whole.directory / FILE)
            try:
                db.executescript(_VIEWS)
            except sqlite3.Error:
                db.close()
                raise
        return LimitedCatalog(db, whole)

    def give(self, places: Places) -> None:
        """From now on it shows what lies in these places."""
        if places == self.given:
            return
        self.forget()  # whatever is at hand was said to somebody else
        with named_errors(WHAT):
            self.given = None
            self.db.execute("BEGIN")
            self.db.execute("DELETE FROM temp.places")
            self.db.executemany("INSERT INTO temp.places VALUES (?)", [(place,) for place in sorted(places)])
            self.db.execute("COMMIT")
        self.given = places

    def _turned(self) -> None:
        """What a reader is shown goes by the ledger too, of which the feed says nothing."""
        return

    def unclaimed(self) -> bool:
        """What came in without the ledger's word is a matter of the whole."""
        return self._whole.unclaimed()

    def of(self, whole: Catalog) -> bool:
        """Whether it stands beside this very catalog, which may have been made anew."""
        return self._whole is whole
