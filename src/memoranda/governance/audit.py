"""The audit: who did what, where, by which engine and decision, and how it ended. Never what was in it.

A change has two lines under one event id: its intent, on the disk before the operation begins, and its outcome. An
intent whose process died is given the outcome `failure` at the next start, since nobody can say that it succeeded. A
read has one line, which outlives the process before the answer is given.

No line takes in a text: every field is a name, an id or a word of a closed form, and what has another form is told by
a hash. Contents, queries, subjects and the words of errors have no field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import ColumnElement, and_, exists, not_, select

from memoranda.context import Context
from memoranda.errors import InvalidInput
from memoranda.governance.chain import Chain, tips_of
from memoranda.governance.names import moment
from memoranda.governance.pages import Line
from memoranda.governance.sinks import Sink
from memoranda.home.durable import FileLock
from memoranda.home.keys import Keys
from memoranda.notes.ids import new_id, told_id
from memoranda.state import tables as t
from memoranda.state.database import Database
from memoranda.values import dataclass, replace

Outcome = Literal["success", "deny", "failure"]
INTERRUPTED = "memory_interrupted"  # the code of an event whose process died before the outcome was known

_WORD = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+:-]{0,127}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OURS = re.compile(r"[a-z]{1,8}_[0-9A-Za-z_-]{1,120}")
_WORDS = ("operation", "decision", "outcome", "code", "scope")  # written by our own program
_NAMES = ("organization", "project", "user", "agent", "session", "team", "actor", "engine", "request_id")


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One operation. `actor` says by which credential (`user`, `agent` or `service`, with the token's id behind a
    colon); `decision` what was decided and by which policy; `code` is an error's. `items` are ids of memories."""

    operation: str
    tenant: str | None = None
    organization: str | None = None
    project: str | None = None
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    scope: str | None = None
    team: str | None = None
    actor: str | None = None
    engine: str | None = None
    decision: str | None = None
    outcome: Outcome | None = None
    code: str | None = None
    items: tuple[str, ...] = ()
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An event as it is read back: `at` is when its newest line was written. An outcome of None: still under way."""

    id: str
    at: str
    event: AuditEvent

    def json(self) -> dict[str, Any]:
        """Every field by its name."""
        told: dict[str, Any] = {name: getattr(self.event, name) for name in AuditEvent.__match_args__}
        return {"id": self.id, "at": self.at, **told, "items": list(self.event.items)}


class Audit:
    """The audit of one process. `database` is the service's state; its lines lie in a database beside it."""

    def __init__(self, context: Context, database: Database, keys: Keys, sinks: Sequence[Sink] = ()) -> None:
        self._database = database.beside("audit")
        self._keys = keys
        self._sinks = tuple(sinks)
        self._begun: dict[str, tuple[str, AuditEvent]] = {}
        self._chain = Chain(self._database, keys, lambda: new_id("chn", context.random), self._tell)

    @property
    def database(self) -> Database:
        """Where the lines lie."""
        return self._database

    def begin(self, context: Context, event: AuditEvent) -> str:
        """The intent of a change, durable when this returns; gives the event's id.

        ComponentUnavailable when it cannot be written: the operation must not begin.
        """
        self.ready()
        event_id = new_id("evt", context.random)
        self._chain.append([_line(event_id, "intent", moment(context), event)], durable=True)
        self._begun[event_id] = (event_id, event)
        return event_id

    def finish(
        self, context: Context, event_id: str, outcome: Outcome, *, code: str | None = None,
        items: Sequence[str] | None = None, decision: str | None = None, engine: str | None = None,
        scope: str | None = None,
    ) -> None:  # fmt: skip
        """How a change ended. What is left out stays as the intent said it."""
        event = self._begun[event_id][1]
        told: dict[str, Any] = {"code": code, "decision": decision, "engine": engine, "scope": scope}
        told["items"] = None if items is None else tuple(items)
        ended = replace(event, outcome=outcome, **{name: value for name, value in told.items() if value is not None})
        self._chain.append([_line(event_id, "outcome", moment(context), ended)], durable=False)
        del self._begun[event_id]

    def note(self, context: Context, event: AuditEvent) -> str:
        """An event that changed nothing (a read, a refusal), with its outcome; it outlives the process at once."""
        if event.outcome is None:
            raise ValueError("what is noted has an outcome")
        self.ready()
        event_id = new_id("evt", context.random)
        self._chain.append([_line(event_id, "single", moment(context), event)], durable=False)
        return event_id

    def recover(self, context: Context) -> int:
        """Gives the intents of processes that have died the outcome `failure`; how many. Called at every start."""
        with self._database.read(t.AUDIT) as connection:
            chains = set(connection.execute(select(t.audit_open.c.chain)).scalars())
        recovered = 0
        for chain in sorted(chains - self._chain.names):
            tip = tips_of(self._keys) / chain
            if not tip.exists():
                continue  # another machine's: its own start recovers it
            lock = FileLock(tip)
            try:
                if lock.try_acquire():
                    recovered += self._give_up(context, chain)
            finally:
                lock.close()
        return recovered

    def _give_up(self, context: Context, chain: str) -> int:
        every = t.every_audit_events
        of = select(every).join(t.audit_open, t.audit_open.c.event == every.c.id)
        with self._database.read(t.AUDIT) as connection:
            rows = connection.execute(of.where(t.audit_open.c.chain == chain)).all()
        at, lines = moment(context), []
        for row in rows:
            ended = replace(_event(row), outcome="failure", code=INTERRUPTED)
            lines.append(_line(row.id, "outcome", at, ended))
        if lines:
            self._chain.append(lines, durable=True)
        return len(lines)

    def query(
        self, tenant: str | None, *, limit: int = 100, cursor: tuple[str, str] | None = None,
        since: str | None = None, until: str | None = None, item: str | None = None, **equal: str,
    ) -> tuple[list[Entry], tuple[str, str] | None]:  # fmt: skip
        """A tenant's events (None: the platform's own), newest first, and where the next page begins.

        `item` asks for those that touched a memory; `equal` compares fields of `AuditEvent` (operation, user, agent,
        session, team, outcome, code, engine, scope, project, actor, request_id). `since` and `until` are moments in the
        state's form, the latter exclusive.
        """
        table = t.audit_events
        ended = table.alias()
        has_ended = exists().where(ended.c.id == table.c.id, ended.c.phase == "outcome")
        where: list[ColumnElement[bool]] = [table.c.tenant == (tenant or t.PLATFORM), table.c.phase != "chain"]
        where.append(not_(and_(table.c.phase == "intent", has_ended)))
        for name, value in equal.items():
            if name not in (*_WORDS, *_NAMES):
                raise InvalidInput(f"{name}: events are not found by this.")
            where.append(table.c[_COLUMN.get(name, name)] == (value if name in _WORDS else _told_name(value)))
        if item is not None:
            items = select(t.audit_items.c.event).where(t.audit_items.c.tenant == (tenant or t.PLATFORM))
            where.append(table.c.id.in_(items.where(t.audit_items.c.item == told_item(item))))
        if since is not None:
            where.append(table.c.at >= since)
        if until is not None:
            where.append(table.c.at < until)
        if cursor is not None:
            before = table.c.at < cursor[0]
            where.append(before | and_(table.c.at == cursor[0], table.c.id < cursor[1]))
        asked = select(table).where(*where).order_by(table.c.at.desc(), table.c.id.desc()).limit(limit + 1)
        with self._database.read(tenant) as connection:
            rows = connection.execute(asked).all()
        entries = [Entry(row.id, row.at, _event(row)) for row in rows[:limit]]
        return entries, (entries[-1].at, entries[-1].id) if len(rows) > limit else None

    def ready(self) -> None:
        """ComponentUnavailable while lines cannot be made durable, or a sink does not take them."""
        self._chain.ready()
        for sink in self._sinks:
            sink.flush()

    def _tell(self, lines: list[Line]) -> None:
        if self._sinks:
            written = "".join(_json_line(line) for line in lines).encode("utf-8", "replace")
            for sink in self._sinks:
                sink.write(written)

    def close(self) -> None:
        self._chain.close()
        self._database.close()

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_COLUMN = {"user": "user_id"}  # the one field whose column has another name: `user` is a word of SQL's


def told_item(item: str) -> str:
    """An id of a memory as the audit holds it: as it is when a machine made it, else a hash of it."""
    if _UUID.fullmatch(item):
        return item
    return told_id(item) if _OURS.fullmatch(item) else _hash(item)


def _told_name(name: str) -> str:
    return name if _NAME.fullmatch(name) else _hash(name)


def _hash(text: str) -> str:
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _line(event_id: str, phase: str, at: str, event: AuditEvent) -> Line:
    for name in _WORDS:
        word = getattr(event, name)
        if word is not None and _WORD.fullmatch(word) is None:
            raise ValueError(f"{name} is not a word of the audit")
    line: Line = {"tenant": event.tenant or t.PLATFORM, "id": event_id, "phase": phase, "at": at}
    for name in (*_WORDS, *_NAMES):
        value = getattr(event, name)
        line[_COLUMN.get(name, name)] = value if value is None or name in _WORDS else _told_name(value)
    line["items"] = json.dumps([told_item(item) for item in event.items], separators=(",", ":"))
    return line


def _event(row: Any) -> AuditEvent:
    fields = {name: getattr(row, _COLUMN.get(name, name)) for name in (*_WORDS, *_NAMES)}
    return AuditEvent(tenant=row.tenant or None, items=tuple(json.loads(row.items)), **fields)


def _json_line(line: Line) -> str:
    told = {name: value for name, value in line.items() if value is not None}
    return json.dumps({**told, "items": json.loads(line["items"])}, ensure_ascii=False, separators=(",", ":")) + "\n"
