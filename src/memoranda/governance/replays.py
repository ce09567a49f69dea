"""What was asked under an idempotency key, by keyed hashes only; kept for a day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, delete, insert, select, update

from memoranda.context import Context
from memoranda.errors import Conflict
from memoranda.governance.names import stamp
from memoranda.state.database import Database
from memoranda.state.tables import idempotency_keys as table

_KEPT = timedelta(days=1)


class Key(NamedTuple):
    """Whose key it is and for what; `key` is a keyed hash of what was sent."""

    tenant: str
    caller: str
    operation: str
    key: str


class Replay(NamedTuple):
    """What is known of a key: `fresh` (it is the caller's to do), `under_way`, `done` with its answer, or `other`."""

    state: Literal["fresh", "under_way", "done", "other"]
    answer: str = ""


class Replays:
    """The keys of one service, in its database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, context: Context, key: Key, request: str, patience: float) -> Replay:
        """Claims a key, or tells what came of it; one that was begun `patience` seconds ago and never ended is free."""
        now = context.now()
        row = {**key._asdict(), "request": request, "answer": None, "created_at": stamp(now)}
        for _ in range(3):
            try:
                with self._database.begin(key.tenant) as db:
                    db.execute(insert(table).values(row))
                return Replay("fresh")
            except Conflict:
                known = self._known(key, request, now, patience)
            if known is not None:
                return known
        return Replay("under_way")

    def _known(self, key: Key, request: str, now: datetime, patience: float) -> Replay | None:
        """What is known of a key; None when it has just become free."""
        with self._database.begin(key.tenant) as db:
            found = db.execute(select(table).where(*_named(key))).one_or_none()
            if found is None:
                return None
            late = found.answer is None and found.created_at < stamp(now - timedelta(seconds=patience))
            if late or found.created_at < stamp(now - _KEPT):
                db.execute(delete(table).where(*_named(key), table.c.created_at == found.created_at))
                return None
            if found.request != request:
                return Replay("other")
            return Replay("under_way") if found.answer is None else Replay("done", str(found.answer))

    def end(self, key: Key, answer: str) -> None:
        with self._database.begin(key.tenant) as db:
            db.execute(update(table).where(*_named(key)).values(answer=answer))

    def drop(self, key: Key) -> None:
        """Frees a key whose request came to nothing."""
        with self._database.begin(key.tenant) as db:
            db.execute(delete(table).where(*_named(key)))


def _named(key: Key) -> tuple[ColumnElement[bool], ...]:
    return tuple(table.c[name] == value for name, value in key._asdict().items())
