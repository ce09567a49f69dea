"""The indexes of a Home as one reader has them: what lies in other places is as if it were not there.

A reader is given places (see `notes.belonging`). His catalog is a connection of its own on which the tables of notes
and links are views of those rows that lie in his places and that an operation of this installation wrote; the
journals are empty. So whatever is asked of it, by whichever operation, was filtered before it was asked: chains,
contradictions, counts, what stands beside. What was found in a file lies in nobody's place, whatever its front matter
says: an edit of an owner gives nobody anything to read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from memoranda.index.catalog import Catalog
from memoranda.index.indexes import Indexes
from memoranda.index.limited import LimitedCatalog


class ReaderIndexes(Indexes):
    """The indexes of a Home with the catalog that one reader has. Everything else is the Home's own.

    Whatever brings them up to date works on the whole catalog; what is asked of `catalog` is asked of the limited one.
    """

    _whole: Indexes
    _limited: LimitedCatalog | None
    _keep_days: int | None

    def __init__(self, whole: Indexes, places: Iterable[str], keep_days: int | None = None) -> None:
        object.__setattr__(self, "_whole", whole)
        object.__setattr__(self, "places", frozenset(places))
        object.__setattr__(self, "_keep_days", keep_days)
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
                limited.keep_days = self._keep_days
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


_OWN = frozenset(
    ("_whole", "_limited", "_keep_days", "places", "catalog", "give_back", "_lent", "__class__", "__dict__")
)
_MOST_LENT = 8  # as many ask one Home at once; to make one costs as much as a question
