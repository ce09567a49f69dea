"""Relation tuples in the state of the service.

What was read is remembered until anything changes who may do what, in whichever process: a check that was made before
asks the database nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.engine import Connection

from memoranda.errors import InvalidInput
from memoranda.governance.relations import Tuple, tenant_of
from memoranda.state.database import Database
from memoranda.state.tables import relation_tuples as table

_KEPT = 10_000  # answers that are remembered


class StoredTuples:
    """A `TupleStore` in the table `relation_tuples`."""

    def __init__(self, state: Database) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._mark = -1
        self._known: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {}

    def relevant(self, object: str, user: str) -> tuple[tuple[str, str], ...]:
        """As `TupleStore.relevant`."""
        mark = self._state.mark()  # before reading: what changes meanwhile makes this answer old, never new
        with self._lock:
            if mark != self._mark or len(self._known) >= _KEPT:
                self._known.clear()
                self._mark = mark
            known = self._known.get((object, user))
        if known is not None:
            return known
        subject = table.c.subject
        # All but the other people: 'user;' follows every text that begins with 'user:'.
        others = or_(subject == user, subject == "user:*", subject < "user:", subject >= "user;")
        query = select(table.c.relation, subject).where(*_at(tenant_of(object), object), others)
        with self._state.read(tenant_of(object)) as connection:
            found = tuple((relation, of) for relation, of in connection.execute(query))
        with self._lock:
            if self._mark == mark:
                self._known[(object, user)] = found
        return found

    def read(self, *, object: str | None = None, user: str | None = None) -> list[Tuple]:
        """As `TupleStore.read`."""
        tenant = tenant_of(object or user or "")
        where = _at(tenant, object) + ((table.c.subject == user,) if user else ())
        query = select(table.c.subject, table.c.relation, table.c.object).where(*where)
        with self._state.read(tenant) as connection:
            return sorted(Tuple(*row) for row in connection.execute(query))

    def write(self, add: Sequence[Tuple], remove: Sequence[Tuple]) -> None:
        """As `TupleStore.write`. All tuples are of one tenant: InvalidInput otherwise."""
        tenants = {tenant_of(one.object) for one in (*add, *remove)}
        if not tenants:
            return
        if len(tenants) != 1:
            raise InvalidInput("Relations of several tenants cannot be written together.")
        (tenant,) = tenants
        with self._state.changing(tenant) as connection:
            for one in remove:
                connection.execute(table.delete().where(*_one(tenant, one)))
            for one in dict.fromkeys(add):
                if not _there(connection, tenant, one):
                    row = {"tenant": tenant, "object": one.object, "relation": one.relation, "subject": one.user}
                    connection.execute(table.insert().values(row))


def _at(tenant: str, object: str | None) -> tuple[ColumnElement[bool], ...]:
    return (table.c.tenant == tenant, *([table.c.object == object] if object else []))


def _one(tenant: str, one: Tuple) -> tuple[ColumnElement[bool], ...]:
    return (*_at(tenant, one.object), table.c.relation == one.relation, table.c.subject == one.user)


def _there(connection: Connection, tenant: str, one: Tuple) -> bool:
    return connection.execute(select(table.c.tenant).where(*_one(tenant, one))).first() is not None
