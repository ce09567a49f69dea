"""Tuples in memory, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memoranda.governance.relations import Tuple


class Tuples:
    """A `TupleStore` that forgets when the test ends."""

    def __init__(self, tuples: Iterable[Tuple] = ()) -> None:
        self.all: set[Tuple] = set(tuples)

    def relevant(self, object: str, user: str) -> list[tuple[str, str]]:
        plain = [one for one in self.all if one.object == object]
        return [
            (one.relation, one.user)
            for one in plain
            if one.user in (user, "user:*") or "#" in one.user or not one.user.startswith("user:")
        ]

    def read(self, *, object: str | None = None, user: str | None = None) -> list[Tuple]:
        return sorted(one for one in self.all if object in (None, one.object) and user in (None, one.user))

    def write(self, add: Sequence[Tuple], remove: Sequence[Tuple]) -> None:
        self.all = (self.all - set(remove)) | set(add)
