"""The indexes of a Home as one reader has them: what lies in other places is as if it were not there.

A reader is given places (see `notes.belonging`). His catalog is a connection of its own on which the tables of notes
and links are views of those rows that lie in his places and that an operation of this installation wrote; the
journals are empty. So whatever is asked of it, by whichever operation, was filtered before it was asked: chains,
contradictions, counts, what stands beside. What was found in a file lies in nobody's place, whatever its front matter
says: an edit of an owner gives nobody anything to read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from memoranda.index.catalog import FILE, WHAT, Catalog
from memoranda.index.indexes import Indexes
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

    def unclaimed(self) -> bool:
        """What came in without the ledger's word is a matter of the whole."""
        return self._whole.unclaimed()

    def of(self, whole: Catalog) -> bool:
        """Whether it stands beside this very catalog, which may have been made anew."""
        return self._whole is whole


class ReaderIndexes(Indexes):
    """The indexes of a Home with the catalog that one reader has. Everything else is the Home's own.

    Whatever brings them up to date works on the whole catalog; what is asked of `catalog` is asked of the limited one.
    """

    _whole: Indexes
    _limited: LimitedCatalog | None

    def __init__(self, whole: Indexes, places: Iterable[str]) -> None:
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "places", frozenset(places))
        object.__setattr__(self, "_limited", None)

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_whole"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._whole, name, value)

    @property
    def catalog(self) -> Catalog:
        whole = self._whole
        with whole.lock:
            current = whole.catalog
            limited = self._limited
            if limited is None or not limited.of(current):
                if limited is not None:
                    limited.close()
                limited = self._lent(whole) or LimitedCatalog.beside(current)
                object.__setattr__(self, "_limited", limited)
                limited.give(self.places or frozenset())
            return limited

    def _lent(self, whole: Indexes) -> LimitedCatalog | None:
        """A connection that nobody uses; one that shows the same places has answers at hand."""
        if not whole.lent:
            return None
        same = [at for at, limited in enumerate(whole.lent) if limited.given == self.places]
        return whole.lent.pop(same[0] if same else 0)

    def give_back(self) -> None:
        """The reader is done: the next one may have the connection."""
        whole = self._whole
        with whole.lock:
            limited = self._limited
            object.__setattr__(self, "_limited", None)
            if limited is None:
                return
            if limited.of(whole.catalog) and len(whole.lent) < _MOST_LENT:
                whole.lent.append(limited)
            else:
                limited.close()


_OWN = frozenset(("_whole", "_limited", "places", "catalog", "give_back", "_lent", "__class__", "__dict__"))
_MOST_LENT = 2
