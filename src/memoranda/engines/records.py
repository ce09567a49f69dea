"""What we know of the items that lie in engines elsewhere: ids, labels, hashes and lifecycle; never a word of them.

An engine keeps words and finds them; whose they are, what they are, whether they hold and how long they are kept is
decided by these rows. What an engine answers with and what has no row here, or one of another place, was never asked
for, and is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Select, String, and_, bindparam, cast, delete, func, or_, select, tuple_, update
from sqlalchemy.engine import Connection

from memoranda.engines.contract import OperationContext, Place
from memoranda.engines.datasets import Datasets
from memoranda.engines.naming import project_of
from memoranda.errors import ChainConflict
from memoranda.home.keys import Keys
from memoranda.notes.chains import Chains, Link
from memoranda.notes.sameness import same_text
from memoranda.notes.times import parse_instant
from memoranda.state.database import Database
from memoranda.state.tables import engine_items
from memoranda.trust.labels import CLEAN, Root, State, Taint, note_state
from memoranda.values import dataclass, replace

_T = engine_items.c
_MOST = 500  # ids in one statement


@dataclass(frozen=True, slots=True)
class Record:
    """One item of an engine elsewhere. Times are RFC 3339 texts in UTC with six decimals, so that they sort.

    `record` is the engine's own id, None while the engine was not heard to have it; `state` is pending until then,
    kept, or gone; `project` is empty for what belongs to the tenant as a whole. `taint` holds the kinds of its roots.
    `verdict_on` is the hash of the content that a person has decided about. Only what is `recalled` is found by a
    question.
    """

    tenant: str
    id: str
    instance: str
    state: Literal["pending", "kept", "gone"]
    namespace: str
    project: str
    scope: str
    owner: str
    user_id: str
    agent: str
    kind: str
    classification: str
    origin: str
    chain: str
    content_hash: str
    same_hash: str
    created_at: str
    updated_at: str
    record: str | None = None
    container: str | None = None
    session: str | None = None
    original: str | None = None
    verdict: str | None = None
    verdict_on: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    due_at: str | None = None
    generated: bool = False
    recalled: bool = True
    head: bool = True
    legal_hold: bool = False
    confidence: float | None = None
    retention_days: int | None = None
    taint: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()

    @property
    def trust(self) -> State:
        """Its state as that of a note would be, while its content is what was written."""
        reviewed = self.verdict == "accept" and self.verdict_on == self.content_hash
        before = self.verdict == "accept" and not reviewed
        return note_state(reviewed=reviewed, was_reviewed=before, taint=self.stamp, written=True)

    @property
    def stamp(self) -> Taint:
        """What it was stamped with."""
        return Taint(frozenset(Root(kind, self.id, "as it was kept") for kind in self.taint)) if self.taint else CLEAN

    @property
    def rejected(self) -> bool:
        return self.verdict == "reject" and self.verdict_on == self.content_hash

    @property
    def believed(self) -> bool:
        """Whether it supersedes what it names: one that is quarantined or rejected only proposes to."""
        return self.trust == "reviewed" or (self.trust == "unreviewed" and not self.rejected)

    def link(self) -> Link:
        """What its chain needs to know of it."""
        return Link(
            self.id, self.supersedes if self.believed else (), _time(self.valid_from), _time(self.valid_to),
            parse_instant(self.created_at),
        )  # fmt: skip

    def due(self, now: datetime) -> bool:
        """Whether it is past its retention: it is hidden from then on, whether it was removed yet, or is held."""
        return self.due_at is not None and self.due_at <= moment(now)


def moment(t: datetime) -> str:
    """A time as these rows have it."""
    return f"{t:%Y-%m-%dT%H:%M:%S.%f}Z"


def due_at(created: datetime, days: int | None) -> str | None:
    """When what was kept then for so many days is due."""
    return None if days is None else moment(created + timedelta(days=days))


_COLUMNS = tuple(_T[name] for name in Record.__match_args__)
# What every recall asks, put together once: that takes as long as to ask it. Each takes `tenant`, `instance`, `ids`.
_THEIRS = (_T.tenant == bindparam("tenant"), _T.instance == bindparam("instance"), _T.state == "kept")
_NAMED = _T.record.in_(bindparam("ids", expanding=True))
_OF_ENGINE = select(*_COLUMNS).where(*_THEIRS, _NAMED)
_OF_CHAINS = select(*_COLUMNS).where(*_THEIRS, _T.chain.in_(bindparam("ids", expanding=True)))
_WITH_CHAINS = select(*_COLUMNS).where(*_THEIRS, _T.chain.in_(select(_T.chain).where(*_THEIRS, _NAMED)))


class Records:
    """The rows of one service. Every method is for one tenant, and knows no other's rows."""

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database = database
        self._keys = keys
        self.datasets = Datasets(database)

    def hashes(self, tenant: str, text: str) -> tuple[str, str]:
        """The keyed hashes of a content: of its exact words, and of its words as they are compared."""
        return self.exact_hash(tenant, text), self._hash(tenant, "same", same_text(text))

    def exact_hash(self, tenant: str, text: str) -> str:
        """The keyed hash of the exact words of a content."""
        return self._hash(tenant, "exact", text)

    def _hash(self, tenant: str, what: str, text: str) -> str:
        told = f"{len(tenant)}:{tenant}\n{what}\n{text}"
        return self._keys.mac("tombstone", "engines", told.encode("utf-8", "surrogatepass"))

    # Writing

    def add(self, records: Sequence[Record]) -> None:
        """New rows, all of one tenant, durable when it returns."""
        with self._database.begin(records[0].tenant) as connection:
            connection.execute(engine_items.insert(), [_values(record) for record in records])

    def change(self, tenant: str, item_id: str, **values: Any) -> None:
        """Sets fields of one row."""
        with self._database.begin(tenant) as connection:
            connection.execute(_one(tenant, item_id).values(**values))

    def keep(self, kept: Record, others: Sequence[Record] = ()) -> None:
        """The engine has it: from now on it stands in its chain. `others` are what a model made of it: new rows.

        ChainConflict when somebody else superseded the same meanwhile; nothing was changed then.
        """
        with self._database.begin(kept.tenant) as connection:
            if kept.supersedes:
                self._join_chains(connection, kept)
            connection.execute(_one(kept.tenant, kept.id).values(state="kept", record=kept.record, chain=kept.chain))
            if others:
                connection.execute(engine_items.insert(), [_values(replace(other, state="kept")) for other in others])
            if kept.believed and kept.supersedes:  # what was made of the former ones holds no more than they do
                made = update(engine_items).where(_T.tenant == kept.tenant, _T.original.in_(kept.supersedes))
                connection.execute(made.values(recalled=False, head=False))
            _set_heads(connection, kept.tenant, kept.instance, kept.chain)

    def keep_alone(self, kept: Sequence[Record]) -> None:
        """The engine has these, of one tenant; each is a chain of its own."""
        with self._database.begin(kept[0].tenant) as connection:
            for one in kept:
                connection.execute(_one(one.tenant, one.id).values(state="kept", record=one.record))

    def _join_chains(self, connection: Connection, kept: Record) -> None:
        mine = (_T.id.in_(kept.supersedes), _T.state == "kept")
        there = _rows(connection, kept.tenant, kept.instance, *mine, order=(_T.id,), lock=True)
        if kept.believed and (ended := [row.id for row in there if not row.head]):
            raise ChainConflict(
                f"{ended[0]} is superseded already.",
                why="Somebody else was there first; a second successor would give the chain two heads.",
                remedy="Read it again, then decide.",
            )
        chains = {row.chain for row in there} - {kept.chain}
        if chains:
            move = update(engine_items).where(_T.tenant == kept.tenant, _T.instance == kept.instance)
            connection.execute(move.where(_T.chain.in_(chains)).values(chain=kept.chain))

    def decide(self, record: Record, verdict: str, at: str) -> None:
        """A person's verdict on the content with this row's hash; what it supersedes follows from it.

        ChainConflict when to accept it would give its chain a second head.
        """
        decided = replace(record, verdict=verdict, verdict_on=record.content_hash)
        with self._database.begin(record.tenant) as connection:
            if decided.believed and not record.believed and record.supersedes:
                self._join_chains(connection, decided)
            told = {"verdict": verdict, "verdict_on": record.content_hash, "content_hash": record.content_hash}
            connection.execute(_one(record.tenant, record.id).values(**told, updated_at=at))
            _set_heads(connection, record.tenant, record.instance, record.chain)

    def end(self, tenant: str, item_ids: Iterable[str], at: str, *, tombstone: bool = True) -> None:
        """These are gone. With `tombstone` their hashes stay, and keep the same words out; else nothing does."""
        ids = list(item_ids)
        with self._database.begin(tenant) as connection:
            for some in _parts(ids):
                mine = and_(_T.tenant == tenant, _T.id.in_(some))
                if tombstone:
                    connection.execute(
                        update(engine_items).where(mine).values(state="gone", record=None, head=False, updated_at=at)
                    )
                else:
                    connection.execute(delete(engine_items).where(mine))

    def hold(self, tenant: str, item_ids: Sequence[str], held: bool, at: str) -> None:
        """Puts these under legal hold, or releases them."""
        with self._database.begin(tenant) as connection:
            for some in _parts(item_ids):
                mine = update(engine_items).where(_T.tenant == tenant, _T.id.in_(some))
                connection.execute(mine.values(legal_hold=held, updated_at=at))

    def lift(self, tenant: str, item_ids: Iterable[str]) -> None:
        """What kept these words out does so no more: a person remembers them again."""
        self.end(tenant, item_ids, "", tombstone=False)

    # Reading

    def get(self, tenant: str, instance: str, item_id: str) -> Record | None:
        found = self.some(tenant, instance, [item_id])
        return found[0] if found else None

    def some(self, tenant: str, instance: str, item_ids: Sequence[str]) -> list[Record]:
        """The rows with these ids, in whatever state, in the order asked for."""
        found: dict[str, Record] = {}
        with self._database.read(tenant) as connection:
            for part in _parts(item_ids):
                found |= {row.id: row for row in _rows(connection, tenant, instance, _T.id.in_(part))}
        return [found[item_id] for item_id in item_ids if item_id in found]

    def of_engine(self, tenant: str, instance: str, engine_ids: Sequence[str]) -> dict[str, Record]:
        """By the engine's own id, the rows of what the engine is known to hold."""
        return {str(row.record): row for row in self._kept(_OF_ENGINE, tenant, instance, engine_ids)}

    def chain(self, record: Record) -> list[Record]:
        """All that is kept of an item's chain, oldest first."""
        mine = (_T.chain == record.chain, _T.state == "kept")
        with self._database.read(record.tenant) as connection:
            return _rows(connection, record.tenant, record.instance, *mine, order=(_T.created_at, _T.id))

    def chains(self, records: Sequence[Record]) -> dict[str, Chains]:
        """The chains of these items, which are of one tenant and one instance, by the name of the chain."""
        if not records:
            return {}
        names = sorted({record.chain for record in records})
        return _chains(self._kept(_OF_CHAINS, records[0].tenant, records[0].instance, names))

    def with_chains(
        self, tenant: str, instance: str, engine_ids: Sequence[str]
    ) -> tuple[dict[str, Record], dict[str, Chains]]:
        """As `of_engine`, with the chains of these rows, by the name of the chain: read at once."""
        rows = {row.id: row for row in self._kept(_WITH_CHAINS, tenant, instance, engine_ids)}.values()
        asked = frozenset(engine_ids)
        return {str(row.record): row for row in rows if row.record in asked}, _chains(rows)

    def _kept(self, asked: Select[Any], tenant: str, instance: str, ids: Sequence[str]) -> list[Record]:
        found: list[Record] = []
        with self._database.read(tenant) as connection:
            for part in _parts(ids):
                told = connection.execute(asked, {"tenant": tenant, "instance": instance, "ids": part})
                found += _records(told)
        return found

    def page(
        self, where: OperationContext, instance: str, places: Sequence[Place], *, limit: int,
        after: tuple[str, str] | None, now: datetime,
    ) -> list[Record]:  # fmt: skip
        """The newest heads of these places, behind (created_at, id) `after`."""
        if not places:
            return []
        conditions = [_in(where, places), _T.state == "kept", _T.head, _not_due(now)]
        if after is not None:
            conditions.append(or_(_T.created_at < after[0], and_(_T.created_at == after[0], _T.id < after[1])))
        with self._database.read(where.tenant) as connection:
            return _rows(
                connection, where.tenant, instance, *conditions, order=(_T.created_at.desc(), _T.id.desc()), limit=limit
            )  # fmt: skip

    def at(self, where: OperationContext, instance: str, places: Sequence[Place]) -> list[Record]:
        """Everything that is kept, or may be, in these places."""
        if not places:
            return []
        with self._database.read(where.tenant) as connection:
            return _rows(connection, where.tenant, instance, _in(where, places), _T.state != "gone")

    def number_at(self, row: Record) -> int:
        """How many are kept in the place that this one lies in."""
        same = [getattr(_T, name) == getattr(row, name) for name in ("tenant", "instance", "project", "scope", "owner")]
        with self._database.read(row.tenant) as connection:
            asked = select(func.count()).select_from(engine_items).where(*same, _T.state == "kept")
            return int(connection.execute(asked).scalar_one())

    def tombstones(self, where: OperationContext, place: Place, same_hash: str) -> list[Record]:
        """What was forgotten in a place, with whichever engine, and says the same."""
        mine = [_in(where, [place]), _T.state == "gone", _T.same_hash == same_hash]
        with self._database.read(where.tenant) as connection:
            return _rows(connection, where.tenant, None, *mine)

    def within(self, tenant: str, container: str) -> list[Record]:
        """Everything that is kept in a container, or may be."""
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, None, _T.container == container, _T.state != "gone")

    def doubtful(self, tenant: str, containers: Sequence[str], now: datetime) -> list[Record]:
        """Of what is kept in these containers, what has a taint or is past its retention."""
        mine = [_T.container.in_(containers), _T.state == "kept"]
        odd = or_(cast(_T.taint, String) != "[]", _T.due_at <= moment(now))
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, None, *mine, odd)

    def derived(self, tenant: str, instance: str, originals: Sequence[str]) -> list[Record]:
        """What a model made from these items and is kept, or may be."""
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, instance, _T.original.in_(originals), _T.state != "gone")

    def due(self, tenant: str, instance: str, now: datetime, limit: int = 1000) -> list[Record]:
        """What is past its retention, still there, and not held."""
        mine = [_T.state == "kept", _T.due_at <= moment(now), _T.legal_hold.is_(False)]
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, instance, *mine, limit=limit)

    def held(self, tenant: str) -> list[Record]:
        """What is under legal hold, in whichever instance."""
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, None, _T.state == "kept", _T.legal_hold.is_(True))

    def pending(self, tenant: str, instance: str, before: str, limit: int = 1000) -> list[Record]:
        """Writes of which it is not known whether the engine has taken them, begun before this time."""
        with self._database.read(tenant) as connection:
            return _rows(connection, tenant, instance, _T.state == "pending", _T.created_at < before, limit=limit)


def _in(where: OperationContext, places: Sequence[Place]) -> Any:
    keys = [(project_of(where, place) or "", place.scope, place.owner) for place in places]
    return tuple_(_T.project, _T.scope, _T.owner).in_(keys)


def _not_due(now: datetime) -> Any:
    return or_(_T.due_at.is_(None), _T.due_at > moment(now))


def _one(tenant: str, item_id: str) -> Any:
    return update(engine_items).where(_T.tenant == tenant, _T.id == item_id)


def _rows(
    connection: Connection, tenant: str, instance: str | None, *where: Any, order: Sequence[Any] = (),
    limit: int | None = None, lock: bool = False,
) -> list[Record]:  # fmt: skip
    asked = select(*_COLUMNS).where(_T.tenant == tenant, *where).order_by(*order)
    if instance is not None:
        asked = asked.where(_T.instance == instance)
    if limit is not None:
        asked = asked.limit(limit)
    if lock:  # until the transaction ends; on SQLite no two write at once anyway
        asked = asked.with_for_update()
    return _records(connection.execute(asked))


def _records(rows: Iterable[Any]) -> list[Record]:
    return [Record(*(*told, tuple(taint), tuple(old))) for *told, taint, old in rows]


def _values(record: Record) -> dict[str, Any]:
    told: dict[str, Any] = {name: getattr(record, name) for name in Record.__match_args__}
    return {**told, "taint": list(record.taint), "supersedes": list(record.supersedes)}


def _set_heads(connection: Connection, tenant: str, instance: str, chain: str) -> None:
    rows = _rows(connection, tenant, instance, _T.chain == chain, _T.state == "kept")
    chains = Chains(row.link() for row in rows)
    for row in rows:
        if chains.is_head(row.id) != row.head:
            connection.execute(_one(tenant, row.id).values(head=not row.head))


def _chains(rows: Iterable[Record]) -> dict[str, Chains]:
    linked: dict[str, list[Link]] = {}
    for row in rows:
        linked.setdefault(row.chain, []).append(row.link())
    return {name: Chains(sorted(links, key=lambda link: link.known_from)) for name, links in linked.items()}


def _parts(values: Sequence[str]) -> Iterable[Sequence[str]]:
    for at in range(0, len(values), _MOST):
        yield values[at : at + _MOST]


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
